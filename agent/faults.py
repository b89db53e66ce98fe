"""Carries out the planned faults of which this node is a victim, at the common clock.

The workflow excuses only the loss of a node that has announced it. So the announcement must be stored before the first
fault, or no fault happens. A fault that this node cannot undo ends with its crash: it is then lost for all to see.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Callable

from agent import network, power, processes
from agent.barrier import Fault, Release
from agent.clock import correction
from agent.command import DRAIN_SECONDS, GRACE_SECONDS, Command, line_for
from agent.errors import AgentError, FaultError, Lost
from agent.live import FAILURES, Put
from agent.log import say
from agent.output import BoundedOutput
from agent.place import Place
from troop.measure.summary import Clock

FORMAT = "troop.fault/1"
STOP, PAUSE, CRASH, CUT, SLOW, SCRIPT = "stop", "pause", "crash", "cut", "slow", "script"
PLANNED, BEGUN, DONE, FAILED = "PLANNED", "BEGUN", "DONE", "FAILED"
"""States of a fault. DONE: it has begun, and ended if it ends."""
BEGIN, END = "begin", "end"
"""Values of TROOP_FAULT, with which a script of the folder is called."""

SCRIPT_SECONDS = 60.0
"""The time limit of such a call. The first one also ends when the fault does, and each in time for the next fault."""
LEAST_SCRIPT_SECONDS = 5.0
"""The time that a call always has. Faults are further apart than this and :data:`KILL_SECONDS`."""
KILL_SECONDS = GRACE_SECONDS + DRAIN_SECONDS
"""The longest time that the end of a call takes after its time limit."""
STORE_SECONDS = 60.0
"""The longest wait for the last state to be stored, before the next phase."""
LAST_WORDS_SECONDS = 10.0
"""The same before the node crashes."""
RETRY_SECONDS = 1.0
_LONGEST_SLEEP = 0.5
"""Seconds between two readings of the time of day, because a clock may be set."""


def prepare(methods: Iterable[str], address: str) -> None:
    """Prepares a node for all faults that may hit it, before it registers.

    Raises:
        AgentError: it cannot have one of them.
    """
    processes.adopt()
    if {CUT, SLOW} & set(methods):
        network.prepare(address)


@dataclass(frozen=True)
class State:
    """A fault's state; moments in seconds since 1970, by S3's clock, as planned and as they came.

    Attributes:
        why: why it failed, or why the node crashes.
    """

    number: int
    method: str
    state: str
    begin_at: float
    began_at: float | None = None
    ended_at: float | None = None
    why: str | None = None


class Stored:
    """Stores the latest of several documents in a thread: a request that hangs must not delay a fault.

    Attributes:
        is_announced: whether one has been stored.
    """

    def __init__(self, put: Put) -> None:
        self._put, self._changed = put, threading.Condition()
        self._body: bytes | None = None
        self.is_announced, self._is_over = False, False
        threading.Thread(target=self._store_all, name="faults", daemon=True).start()

    def tell(self, body: bytes) -> None:
        with self._changed:
            self._body = body
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Waits until the latest one is stored. Returns false if it is not after so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._body is None, seconds)

    def close(self) -> None:
        """Stores nothing more."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _store_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_over or self._body is not None)
                body = self._body
            if self._is_over or body is None:
                return
            try:
                self._put(body)
            except FAILURES as error:
                say(f"cannot store the faults: {error}")
                time.sleep(RETRY_SECONDS)
                continue
            with self._changed:
                self.is_announced = True
                if self._body is body:
                    self._body = None
                self._changed.notify_all()


class Victim:
    """This node as a victim in one step.

    Args:
        step: the name of the phase or the point.
        release: of the step, which has the faults.
        clock: how far this node's clock is off.
        put: stores the node's document of the step.

    Attributes:
        output: of the scripts.
    """

    def __init__(
        self,
        place: Place,
        step: str,
        rank: int | None,
        release: Release,
        clock: Clock | None,
        put: Put,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._place, self._step, self._sleep = place, step, sleep
        self._correction = correction(clock)
        start_at = (release.start_at or 0.0) + self._correction
        self._environment = partial(place.environment, step, rank, release, start_at)
        mine = [one for one in release.faults if place.identity.id in one.nodes]
        self._faults = sorted(mine, key=lambda one: one.begin_at)
        self._states = {one.number: State(one.number, one.method, PLANNED, one.begin_at) for one in mine}
        self._stored = Stored(put)
        self.output = BoundedOutput()

    def carry_out(self) -> None:
        """Announces all faults, and carries them out one after another.

        Raises:
            Lost: the agent must end; the fault that has begun is undone.
            AgentError: a fault cannot be undone, and the node cannot crash.
        """
        try:
            self._tell()
            for fault in self._faults:
                self._carry_out(fault)
            if not self._stored.wait(STORE_SECONDS):
                say("the last states of the faults are not stored")
        finally:
            self._stored.close()

    def _carry_out(self, fault: Fault) -> None:
        late = self._now() - fault.begin_at
        if late > 0:
            self._change(fault, state=FAILED, why=f"this node was ready for it only {late:.1f} s after its moment")
            return
        self._wait_until(fault.begin_at)
        if not self._stored.is_announced:
            self._change(fault, state=FAILED, why="its announcement was not stored in time")
            return
        began_at = self._now()
        try:
            try:
                self._begin(fault)
            except FaultError as error:
                self._change(fault, state=FAILED, why=str(error))
            else:
                self._change(fault, state=DONE if fault.end_at is None else BEGUN, began_at=began_at)
                self._wait_until(fault.end_at or 0.0)
        finally:
            if fault.end_at is not None:
                try:
                    self._end(fault)
                except Lost:
                    self._end(fault)  # whatever the signal has interrupted
                    raise

    def _begin(self, fault: Fault) -> None:
        address = self._place.identity.address
        if fault.method == STOP:
            processes.kill()
        elif fault.method == PAUSE:
            processes.pause()
        elif fault.method == CRASH:
            power.crash()
        elif fault.method == CUT:
            network.cut(address)
        elif fault.method == SLOW:
            network.slow(address, fault.delay_ms or 0)
        elif fault.method == SCRIPT:
            self._call(fault, BEGIN)
        else:
            raise FaultError(f"this node's agent knows no method {fault.method}")

    def _end(self, fault: Fault) -> None:
        """Undoes a fault, also one that began only in part; otherwise crashes the node."""
        try:
            if fault.method == PAUSE:
                processes.resume()
            elif fault.method in (CUT, SLOW):
                network.restore(self._place.identity.address)
            elif fault.method == SCRIPT:
                self._call(fault, END)
        except FaultError as error:
            began = f"; before: {why}" if (why := self._states[fault.number].why) else ""
            self._change(fault, why=f"could not undo: {error}; the node crashes{began}")
            self._stored.wait(LAST_WORDS_SECONDS)
            try:
                power.crash()
            except FaultError as still_there:
                raise AgentError(f"{fault.method} could not be undone: {error}; {still_there}") from None
        if self._states[fault.number].state == BEGUN:
            self._change(fault, state=DONE, ended_at=self._now())

    def _call(self, fault: Fault, word: str) -> None:
        """Runs a file of the folder. Raises FaultError unless its exit code is 0."""
        limit = self._limit(fault, word)
        script, folder = str(fault.script), self._place.results(self._step)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            command = Command(line_for(self._place.files / script), folder.parent, self._environment(word), self.output)
        except OSError as error:
            raise FaultError(f"cannot run {script}: {error}") from None
        ended = command.wait(time.monotonic() + limit)
        if ended.code != 0:
            last = self.output.last_line()
            suffix = f"; its last output: {last}" if last else ""
            raise FaultError(f"{script} {ended.words(limit)} with TROOP_FAULT={word}{suffix}")

    def _limit(self, fault: Fault, word: str) -> float:
        """Returns the seconds that a call may take; a script that does not end is killed before the next fault."""
        if word == BEGIN and fault.end_at is not None:
            return min(SCRIPT_SECONDS, fault.end_at - fault.begin_at)
        later = min((one.begin_at for one in self._faults if one.begin_at > fault.begin_at), default=math.inf)
        left = min(SCRIPT_SECONDS, later - self._now() - KILL_SECONDS)
        return max(LEAST_SCRIPT_SECONDS, float(math.floor(left)))

    def _change(self, fault: Fault, **changes: Any) -> None:
        state = self._states[fault.number] = replace(self._states[fault.number], **changes)
        say(f"fault {state.number}, {state.method}: {state.state}" + (f", {state.why}" if state.why else ""))
        self._tell()

    def _tell(self) -> None:
        self._stored.tell(json.dumps(self._document(), separators=(",", ":")).encode())

    def _document(self) -> Mapping[str, Any]:
        identity, role = self._place.identity, self._place.boot.role
        states = [asdict(self._states[one.number]) for one in self._faults]
        return {"format": FORMAT, "id": identity.id, "role": role, "phase": self._step, "faults": states}

    def _now(self) -> float:
        """Returns the time by S3's clock."""
        return time.time() - self._correction

    def _wait_until(self, moment: float) -> None:
        while (left := moment - self._now()) > 0:
            self._sleep(min(left, _LONGEST_SLEEP))
