"""The inside of an instance: Systems Manager's agent, the documents that it runs, and what they do to the machine.

The truth about a fault is here, whatever a status says. A document may be cancelled and start after that, its shell may
die while the fault stays, its undo may fail, atd may roll back or not run, and a boot may start it once more. Two
things are as AWS says: what was not delivered within the command's limit never starts; and a status is wrong only about
a fault that is felt, or a command that is not delivered yet.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.model.fleet import Instance
from troop import faults
from troop.faults.lasting_fault import INSTALLATION, ROLLBACK, LastingFault

MOST_WORKERS = 5
"""The agent's own limit of documents at the same time."""

FINAL = frozenset({"Success", "Failed", "Cancelled", "TimedOut", "Undeliverable"})
LASTING = {fault.document: fault for fault in faults.LASTING}
COUNTED = {
    **dict.fromkeys(("latency", "loss"), "qdiscs"),
    **dict.fromkeys(("cpu", "memory", "io"), "stress"),
    "blackhole": "drops",
}
NETWORK = frozenset({"latency", "loss", "blackhole"})
ANSWER = ("boot", "qdiscs", "drops", "stress", "rollbacks", "hosts", "used", "running", "missing")

At = Callable[[float, Callable[[], object]], None]


@dataclass(eq=False)
class Command:
    """A command to one instance.

    Attributes:
        limit: the seconds within which it is delivered, or never.
        states: since when it has which status, as Systems Manager knows it; the last one is the present.
        output: what its plugin has written.
        starts: when a worker has started it: more than once after a boot.
        read: for a probe, when the machine was read, and whether a fault was there.
    """

    command_id: str
    document: str
    instance_id: str
    parameters: dict[str, str]
    comment: str
    sent: float
    limit: float
    states: list[tuple[float, str]]
    output: str = ""
    starts: list[float] = field(default_factory=list)
    read: float | None = None

    @property
    def status(self) -> str:
        return self.states[-1][1]

    @property
    def is_over(self) -> bool:
        return self.status in FINAL

    @property
    def fault(self) -> LastingFault | None:
        """The fault of its document; None for a probe."""
        return LASTING.get(self.document)


@dataclass(eq=False)
class Worker:
    """The process of the agent that runs a document; ``is_felt``: its fault has begun."""

    command: Command
    is_felt: bool = False
    is_dead: bool = False


@dataclass(eq=False)
class Felt:
    """A fault that is there. ``blocks``: it keeps the agent from Systems Manager."""

    command: Command
    fault: LastingFault
    blocks: bool = False


@dataclass
class Temper:
    """What may happen in a machine: probabilities, drawn once each.

    Attributes:
        dirty: something of an earlier fault is on it.
        atd: atd runs.
        broken: the undo of a fault fails.
        agent: the agent dies for a while.
        reboot: somebody reboots it.
        killed: the shell of a document is killed, as when memory is short.
        lies: a status is wrong, an answer is stale, or has no value.
        lacks: a tool is missing.
        returns: what was killed is started again.
    """

    dirty: float = 0.03
    atd: float = 0.75
    broken: float = 0.08
    agent: float = 0.3
    reboot: float = 0.12
    killed: float = 0.15
    lies: float = 0.15
    lacks: float = 0.05
    returns: float = 0.7


class Machine:
    """One instance from inside.

    Args:
        now, at: the true time in seconds, and how to do something later.
        changed: told of a command whose status has changed.
        felt: told when the fault of a command begins.
    """

    def __init__(
        self,
        instance: Instance,
        now: Callable[[], float],
        at: At,
        dice: random.Random,
        temper: Temper,
        changed: Callable[[Command], None],
        felt: Callable[[Command], None],
    ) -> None:
        self.instance, self._now, self._at, self._dice = instance, now, at, dice
        self._changed, self._begins, self._temper = changed, felt, temper
        odds = dice.random
        self.boots, self.is_alive, self.has_atd = 1, True, odds() < temper.atd
        self._is_broken = odds() < temper.broken
        self.felt: list[Felt] = []
        self.leftovers = 0  # files that a failed undo has left
        self.others = 0 if odds() < 0.9 else dice.randint(1, MOST_WORKERS)
        self.runs_named = odds() < 0.95
        self.down_since: float | None = None
        self.up_since = float("-inf")
        self._workers: list[Worker] = []
        self._mailbox: list[Command] = []
        self._reports: list[tuple[Command, str]] = []
        self._earlier: list[dict[str, Any]] = []
        dirty = odds() < temper.dirty
        self.own = {
            "qdiscs": dice.choice((0, 0, 0, 1)),
            "drops": dice.choice((0, 0, 2)),
            "stress": int(dirty and odds() < 0.3),
            "rollbacks": int(dirty and odds() < 0.5),
            "hosts": int(dirty and odds() < 0.5),
        }
        self.used = float(dice.randint(10, 60))
        self.missing = {dice.choice(faults.tools())} if odds() < temper.lacks else set()
        if not self.has_atd and odds() < 0.3:
            self.missing.add("atd")
        if self.others:
            at(now() + dice.uniform(5, 150), self._is_idle)

    # What happens to it

    def trouble(self, span: float) -> None:
        """Plans what happens to it within so many seconds."""
        dice, temper, now = self._dice, self._temper, self._now()
        for odds, act in (
            (temper.agent, self._agent_dies),
            (temper.reboot, self.reboot),
            (temper.killed, self._shell_dies),
        ):
            if dice.random() < odds:
                self._at(now + dice.uniform(0, span), act)

    @property
    def is_on(self) -> bool:
        return self.instance.state == "running"

    @property
    def is_reachable(self) -> bool:
        """Whether its agent and Systems Manager hear each other."""
        return self.is_on and self.is_alive and not any(one.blocks for one in self.felt)

    def has(self, command: Command) -> bool:
        """Whether the fault of a command is there. A killed process is, until it runs again."""
        if self.instance.state == "terminated":
            return False
        if command.fault and command.fault.returns:
            return self.down_since is not None and bool(command.starts)
        return any(one.command is command for one in self.felt)

    def _later(self, seconds: float, act: Callable[..., object], *args: Any) -> None:
        self._at(self._now() + seconds, partial(act, *args))

    def _is_idle(self) -> None:
        self.others = 0
        self._wake()

    def _agent_dies(self) -> None:
        if self.is_alive:
            self.is_alive = False
            self._later(self._dice.choice((5.0, 30.0, 120.0, 400.0)) * self._dice.random(), self._agent_returns)

    def _agent_returns(self) -> None:
        """It finds the workers that live, or takes them for dead after a minute."""
        self.is_alive = True
        for worker in self._workers:
            if worker.is_felt and self._dice.random() < 0.5:
                self._later(60.0, self._report, worker.command, "Failed")
        self._wake()

    def _shell_dies(self) -> None:
        for worker in [one for one in self._workers if one.command.fault]:
            self._kill(worker)
            lie = self._dice.random() < self._temper.lies
            self._later(self._dice.uniform(0.1, 1.0), self._report, worker.command, "Success" if lie else "Failed")

    def reboot(self) -> None:
        """Boots it again: every fault is gone, files stay, and the agent goes on with its documents."""
        if not self.is_on:
            return
        self.boots += 1
        self.is_alive = False
        interrupted = [worker.command for worker in self._workers]
        for worker in self._workers:
            worker.is_dead = True
        self._workers.clear()
        self.leftovers += sum(one.fault.needs_timer for one in self.felt)  # flags and scripts
        self.felt.clear()
        self._returns()
        self._later(self._dice.uniform(10, 40), self._booted, interrupted)

    def _booted(self, interrupted: list[Command]) -> None:
        if not self.is_on:
            return
        self.is_alive = True
        for command in interrupted:
            if self._dice.random() < 0.5:
                self._start(command)
            elif self._dice.random() < 0.7:
                self._report(command, "Failed")
        self._wake()

    # Delivery

    def deliver(self, command: Command) -> None:
        """A command arrives, or waits until the agent takes it."""
        if command.is_over:
            return
        if self.is_reachable and len(self._workers) + self.others < MOST_WORKERS:
            self._start(command)
        else:
            self._mailbox.append(command)

    def cancel(self, command: Command) -> None:
        """Systems Manager passes a cancel on. Nothing says that it succeeds."""
        dice, now = self._dice, self._now()
        if command.is_over:
            return
        if not command.starts:
            self._set(command, "Cancelled")
            most = command.sent + command.limit - now
            if self.is_on and most > 0 and dice.random() < self._temper.lies:  # it was on its way already
                self._later(dice.random() * most, self._late, command)
            return
        self._later(dice.uniform(0.05, 0.5), self._cancelled, command)

    def expire(self, command: Command) -> None:
        """The limit of delivery has passed."""
        if command.status == "Pending":
            self._set(command, "TimedOut")

    def _late(self, command: Command) -> None:
        if self.is_on and not command.starts:
            self._start(command)

    def _cancelled(self, command: Command) -> None:
        if command.is_over:
            return
        if not self.is_reachable:  # the agent hears of it when it comes back
            if self.is_on:
                self._later(2.0, self._cancelled, command)
            return
        for worker in [one for one in self._workers if one.command is command]:
            if not (worker.is_felt and self._dice.random() < self._temper.lies):
                self._kill(worker)
        self._set(command, "Cancelled")

    def _wake(self) -> None:
        """The agent can be reached again, or has room."""
        if not self.is_reachable:
            return
        waiting, self._mailbox = self._mailbox, []
        for command in waiting:
            self.deliver(command)
        reports, self._reports = self._reports, []
        for command, status in reports:
            self._set(command, status)

    def _report(self, command: Command, status: str) -> None:
        """The agent reports a status, as soon as it can."""
        if self.is_reachable:
            self._set(command, status)
        else:
            self._reports.append((command, status))

    def _set(self, command: Command, status: str) -> None:
        if not command.is_over:
            command.states.append((self._now(), status))
            self._changed(command)

    # Documents

    def _start(self, command: Command) -> None:
        dice, worker = self._dice, Worker(command)
        command.starts.append(self._now())
        self._workers.append(worker)
        if command.fault is None or dice.random() >= self._temper.lies / 4:  # or the report is lost, and it times out
            self._later(dice.uniform(0, 1), self._report, command, "InProgress")
        fault = command.fault
        if fault is None:
            heavy = 3.0 if any(one.fault.name in ("cpu", "memory", "io") for one in self.felt) else 1.0
            lasts = dice.choice((1.0, 1.0, 2.0, 2.0, 5.0, 20.0)) * dice.uniform(0.5, 1.5) * heavy
            self._later(lasts * dice.random(), self._read, worker)
            self._later(lasts, self._is_read, worker)
            return
        lacking = [tool for tool in fault.tools if tool in self.missing]
        if not lacking:
            self._later(dice.choice((1.5, 1.5, float(fault.overrun))) * dice.random(), self._hit, worker)
        elif command.parameters.get("InstallDependencies") == "True":
            self._later(dice.choice((5.0, 20.0, 60.0, float(INSTALLATION))) * dice.random(), self._hit, worker)
        else:
            self._later(dice.uniform(0.1, 1.0), self._over, worker, "Failed")

    def _over(self, worker: Worker, status: str) -> None:
        """A worker ends by itself."""
        if not worker.is_dead:
            self._stop(worker)
            self._report(worker.command, status)

    def _stop(self, worker: Worker) -> None:
        worker.is_dead = True
        if worker in self._workers:
            self._workers.remove(worker)
        self._wake()

    def _hit(self, worker: Worker) -> None:
        """A document's fault begins."""
        if worker.is_dead or not self.is_on:
            return
        dice, command, fault = self._dice, worker.command, worker.command.fault
        assert fault is not None
        worker.is_felt = True
        if fault.returns:
            self.down_since = self._now()
            if dice.random() < self._temper.returns:
                self._later(dice.choice((2.0, 10.0, 60.0, 200.0)) * dice.random(), self._returns)
            self._begins(command)
            self._over(worker, "Failed" if dice.random() < self._temper.lies else "Success")
            return
        blocks = fault.name in NETWORK and dice.random() < 0.05
        self.felt.append(Felt(command, fault, blocks))
        self._begins(command)
        self._later(float(command.parameters["DurationSeconds"]), self._ends, worker)

    def _returns(self) -> None:
        """What was killed runs again."""
        if self.down_since is not None:
            self.down_since, self.up_since = None, self._now()

    def _ends(self, worker: Worker) -> None:
        """A fault's own end: its shell undoes it, or its timer does some seconds later."""
        if worker.is_dead:
            return
        dice = self._dice
        felt = next((one for one in self.felt if one.command is worker.command), None)
        if felt and self._is_broken:
            self._over(worker, dice.choice(("Success", "Failed")))
            return
        if felt and dice.random() < self._temper.lies and felt.fault.needs_timer and self.has_atd:
            self._roll_back(felt)
        elif felt:
            self._gone(felt)
        self._over(worker, "Failed" if dice.random() < self._temper.lies else "Success")

    def _kill(self, worker: Worker) -> None:
        """SIGKILL to the process group: no trap runs."""
        worker.is_dead = True
        self._stop(worker)
        for one in [felt for felt in self.felt if felt.command is worker.command]:
            if one.fault.needs_timer:
                self._roll_back(one)
            elif not self._is_broken:
                self._later(self._dice.uniform(0, 0.6), self._gone, one)

    def _roll_back(self, felt: Felt) -> None:
        if self.has_atd and not self._is_broken:
            self._later(self._dice.uniform(5, ROLLBACK), self._gone, felt)

    def _gone(self, felt: Felt) -> None:
        if felt in self.felt:
            self.felt.remove(felt)
            self._wake()

    # Probes

    def _read(self, worker: Worker) -> None:
        """The probe's script reads the machine, and writes its line."""
        if worker.is_dead or not self.is_on:
            return
        dice, command, lies = self._dice, worker.command, self._temper.lies / 4
        command.read = self._now()
        names = [one.fault.name for one in self.felt]
        own = self.own
        used = self.used + dice.uniform(-1, 2)
        answer: dict[str, Any] = {
            "token": command.parameters["Token"],
            "boot": f"{self.instance.instance_id}-{self.boots}",
            "qdiscs": own["qdiscs"] + 2 * sum(COUNTED.get(name) == "qdiscs" for name in names),
            "drops": own["drops"] + sum(COUNTED.get(name) == "drops" for name in names),
            "stress": own["stress"] + 3 * sum(COUNTED.get(name) == "stress" for name in names),
            "rollbacks": own["rollbacks"] + 2 * sum(one.fault.needs_timer for one in self.felt) + self.leftovers,
            "hosts": own["hosts"] + sum(name in NETWORK for name in names),
            "used": min(100.0, used + 35.0 * names.count("disk")),
            "running": int(self.runs_named and self.down_since is None) if command.parameters.get("Process") else None,
            "missing": sorted(self.missing),
        }
        if dice.random() < lies:
            answer[dice.choice(ANSWER[1:8])] = None
        if dice.random() < lies and self._earlier:
            answer = dice.choice(self._earlier)  # an answer to an earlier request
        if dice.random() < lies:
            answer = answer | {"token": "0" * 32}
        self._earlier.append(answer)
        command.output = json.dumps(answer)
        if dice.random() < lies:
            command.output = dice.choice(("", "bash: fork: Cannot allocate memory", command.output[:40]))

    def _is_read(self, worker: Worker) -> None:
        self._over(worker, "Failed" if self._dice.random() < self._temper.lies / 4 else "Success")
