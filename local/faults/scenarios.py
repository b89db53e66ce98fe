"""The scenarios: which fault, how it ends, and what must be true then. Measures them from outside the instance."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from troop import faults
from troop.chaos.events import Event, Status
from troop.chaos.injection import Way
from troop.faults.lasting_fault import ROLLBACK

from .node import SERVICE
from .site import Round, Site, TooLate, until

FELT_SECONDS = 60
"""Seconds within which a client suffers, also on a busy machine."""
REQUEST_LIMIT, STRESS_LIMIT, ROLLBACK_LIMIT, PROVEN_LIMIT = 5.0, 5.0, 20.0, 120.0
"""Seconds: from the order until Troop asks for the end; until stress is gone, network and disk faults are gone; and
until each is proven to be over, or its instance's termination is requested.
"""
STRESS = ("cpu", "memory", "io")
_HOLD_SECONDS = 8
"""Seconds for which a fault is felt before a scenario interferes."""
_ROUNDS = 3
"""Rounds in a row that show a fault, or its absence."""


class Act(StrEnum):
    """What happens to a running fault."""

    NOTHING = "ends by itself"
    HALT = "chaos is halted"
    OPT_OUT = "the unit opts out"
    ALARM = "an alarm goes off"
    NO_AGENT = "the agent dies"
    REBOOT = "the instance is rebooted"
    FULL = "the disk is full, then halted"
    LOST = "the answer is lost"
    NO_TIMER = "atd dies, then opted out"
    NO_RESTART = "nothing restarts it"


CUT_SHORT = frozenset({Act.HALT, Act.OPT_OUT, Act.ALARM, Act.FULL, Act.NO_TIMER})
"""After these, Troop asks for the end."""
HALTS = frozenset({Act.HALT, Act.FULL})
"""These halt chaos."""
ALONE = HALTS | {Act.LOST}
"""These concern all units, so no other scenario runs at the same time."""
LONG = frozenset({Act.NO_AGENT, Act.REBOOT, Act.NO_TIMER, Act.NO_RESTART})
"""These take minutes, so they run beside the others."""


@dataclass(frozen=True)
class Scenario:
    """A fault and what happens to it.

    Attributes:
        method: the fault as an owner writes it.
        by: how its end must be proven.
    """

    method: str
    act: Act
    by: Way = Way.PROBE

    @property
    def fault(self) -> str:
        return self.method.split()[0]

    @property
    def name(self) -> str:
        return f"{self.fault}: {self.act}"


@dataclass
class Outcome:
    """What was measured, in seconds. None: it did not happen.

    Attributes:
        felt: from the attempt until a client suffers.
        requested: from the act until Troop asks for the end.
        gone: from the act, or the planned end, until no client suffers.
        proven: from the act, or the planned end, until the proof; for a replacement, until its request.
        wrong: sentences.
    """

    scenario: Scenario
    felt: float | None = None
    requested: float | None = None
    gone: float | None = None
    proven: float | None = None
    status: str = ""
    by: str = ""
    wrong: tuple[str, ...] = ()


_LATENCY = "latency delay=300 jitter=0"
_KILL = f"kill process={SERVICE}"
SCENARIOS = (
    Scenario("cpu seconds=20", Act.NOTHING),
    Scenario("memory percent=60 seconds=20", Act.NOTHING),
    Scenario("io percent=20 seconds=20", Act.NOTHING),
    Scenario("disk percent=90 seconds=20", Act.NOTHING),
    Scenario(f"{_KILL} seconds=30", Act.NOTHING),
    Scenario(f"{_LATENCY} seconds=20", Act.NOTHING),
    Scenario("loss percent=50 seconds=20", Act.NOTHING),
    Scenario("blackhole port=7000 direction=ingress seconds=20", Act.NOTHING),
    Scenario("cpu seconds=300", Act.OPT_OUT),
    Scenario("memory percent=60 seconds=300", Act.ALARM),
    Scenario("io percent=20 seconds=300", Act.OPT_OUT),
    Scenario("disk percent=90 seconds=300", Act.ALARM),
    Scenario(f"{_LATENCY} seconds=300", Act.ALARM),
    Scenario("loss percent=50 seconds=300", Act.OPT_OUT),
    Scenario("blackhole port=7000 direction=ingress seconds=300", Act.OPT_OUT),
    Scenario(f"{_LATENCY} seconds=20", Act.LOST),
    Scenario(f"{_LATENCY} seconds=300", Act.NO_TIMER, Way.REPLACED),
    Scenario(f"{_LATENCY} seconds=20", Act.NO_AGENT, Way.REPLACED),
    Scenario(f"{_LATENCY} seconds=20", Act.REBOOT, Way.REPLACED),
    Scenario(f"{_KILL} seconds=10", Act.NO_RESTART, Way.REPLACED),
    Scenario(f"{_LATENCY} seconds=300", Act.HALT),
    Scenario("cpu seconds=300", Act.HALT),
    Scenario("disk percent=95 seconds=300", Act.FULL),
)
SHORT = (Scenario(f"{_LATENCY} seconds=10", Act.NOTHING), Scenario("disk percent=90 seconds=300", Act.HALT))
"""Of each kind of end one, for the tests."""


def suffers(fault: str, usual: Sequence[Round]) -> Callable[[Round], bool]:
    """Returns what tells whether a client suffers from a fault in a round.

    Args:
        usual: rounds before the fault.
    """
    ms = statistics.median(one.ms or 0 for one in usual)
    memory = statistics.median(one.memory or 0 for one in usual)
    checks: Mapping[str, Callable[[Round], bool]] = {
        "cpu": lambda one: one.ms is None or one.ms > 1.4 * ms,
        "io": lambda one: one.ms is None or one.ms > 1.4 * ms,
        "memory": lambda one: one.memory is not None and one.memory < 0.7 * memory,
        "disk": lambda one: one.room is False,
        "latency": lambda one: one.ms is None or one.ms > ms + 250,
        "loss": lambda one: one.lost > 1,
    }
    return checks.get(fault, lambda one: one.ms is None)


def play(site: Site, group: str, scenario: Scenario) -> Outcome:
    """Plays a scenario in a group, has the instance replaced, and returns what was measured."""
    play = _Play(site, group, scenario)
    try:
        wrong = play.run()
    except (TooLate, RuntimeError) as error:
        wrong = [str(error)]
    play.tidy()
    play.outcome.wrong = tuple(wrong)
    return play.outcome


class _Play:
    """One run of a scenario."""

    def __init__(self, site: Site, group: str, scenario: Scenario) -> None:
        self.site, self.group, self.scenario, self.outcome = site, group, scenario, Outcome(scenario)
        self.event_id = self.instance = ""

    def tidy(self) -> None:
        """Takes everything back that the scenario has changed for the next one."""
        if self.scenario.act in HALTS:
            self.site.halt(False)
        self.site.opt_out(self.group, out=False)
        self.site.set_alarm(self.group, "OK")
        if self.instance:
            self.site.replace(self.instance)

    def run(self) -> list[str]:
        site, scenario, outcome = self.site, self.scenario, self.outcome
        addresses = site.ready(self.group)
        self.event_id, self.instance = site.request(self.group, scenario.method)
        instance = self.instance
        usual = site.seen(instance, addresses)[-10:]
        is_felt = suffers(scenario.fault, usual)

        def rounds(since: float) -> list[Round]:
            return [one for one in site.seen(instance, addresses) if one.at > since]

        if scenario.act is Act.NO_RESTART:
            (site.home(instance) / "no-restart").touch()
        if scenario.act is Act.LOST:
            until(self._probed, FELT_SECONDS, "the probe before was sent")
            site.account.disturb_commands(lost_answers=1)  # the fault's own: the next that is sent
        attempted = until(self._attempted, 2 * FELT_SECONDS, "the fault was injected").timestamp()
        felt = until(lambda: _first(rounds(attempted), is_felt, 1), FELT_SECONDS, "a client suffers")
        outcome.felt = felt - attempted
        since = self._act(felt)
        if scenario.by is Way.PROBE or scenario.act is Act.NO_AGENT:
            calm = until(
                lambda: _first(rounds(since), lambda one: not is_felt(one), _ROUNDS), 300, "no client suffers any more"
            )
            outcome.gone = max(0.0, calm - since)
        event = until(self._closed, 400, "the event is closed")
        return self._check(event, since)

    def _act(self, felt: float) -> float:
        """Interferes with the fault; returns the moment from which its end is measured."""
        site, act, group, instance = self.site, self.scenario.act, self.group, self.instance
        planned = felt + self._seconds
        if act in (Act.NOTHING, Act.LOST, Act.NO_RESTART):
            return felt if (self.scenario.fault, act) == ("kill", Act.NOTHING) else planned
        time.sleep(_HOLD_SECONDS)
        if act is Act.NO_AGENT:
            site.account.let_run(instance, agent=False)
            return planned
        if act is Act.REBOOT:
            site.reboot(instance)
            return planned
        if act is Act.NO_TIMER:
            site.account.let_run(instance, atd=False)
            time.sleep(ROLLBACK + _HOLD_SECONDS)  # what it has begun still ends
        if act is Act.FULL:
            (site.home(instance) / "fill").touch()
            time.sleep(_HOLD_SECONDS)
        now = time.time()
        if act in HALTS:
            site.halt(True)
        elif act is Act.ALARM:
            site.set_alarm(group, "ALARM")
        else:
            site.opt_out(group, out=True)
        requested = until(self._end_request, FELT_SECONDS, "Troop asks for the end").timestamp()
        self.outcome.requested = requested - now
        return now

    @property
    def _seconds(self) -> int:
        injection = self.site.event(self.event_id).injection
        return injection.seconds if injection else 0

    def _probed(self) -> bool | None:
        injection = self.site.event(self.event_id).injection
        return bool(injection and injection.before and injection.before.command_id) or None

    def _attempted(self) -> datetime | None:
        event = self.site.event(self.event_id)
        if event.status is Status.ABANDONED:
            raise RuntimeError(f"it was not injected: {event.detail}")
        return event.attempted_at

    def _end_request(self) -> datetime | None:
        injection = self.site.event(self.event_id).injection
        return injection.end_request.at if injection and injection.end_request else None

    def _closed(self) -> Event | None:
        event = self.site.event(self.event_id)
        return None if event.status in (Status.CLAIMED, Status.RUNNING, Status.TERMINATED) else event

    def _check(self, event: Event, since: float) -> list[str]:
        outcome, scenario, injection = self.outcome, self.scenario, event.injection
        outcome.status = event.status.value
        if injection is None or injection.proof is None:
            return [f"it is closed without a proof: {event.detail}"]
        outcome.by = injection.proof.by.value
        over = injection.repair_at if injection.proof.by is Way.REPLACED and injection.repair_at else injection.proof.at
        outcome.proven = max(0.0, over.timestamp() - since)
        wrong = []
        if event.status is not Status.RECOVERED:
            wrong.append(f"it is {event.status}: {event.detail}")
        if injection.proof.by is not scenario.by:
            wrong.append(f"its end is proven by {injection.proof.by}: {injection.proof.why}")
        document = faults.find_lasting(scenario.fault)
        assert document
        if injection.proof.by is Way.PROBE and (sent := self.site.commands(self.instance, document.document)) != 1:
            wrong.append(f"{sent} commands of the fault were sent")
        gone_limit = STRESS_LIMIT if scenario.fault in STRESS else ROLLBACK_LIMIT
        # Troop allows for a late delivery: a fault that nobody ends has its latest end in the record.
        ends = since if scenario.act in CUT_SHORT or not injection.ends_by else injection.ends_by.timestamp()
        limits: list[tuple[str, float | None, float]] = [("proven or replaced", over.timestamp() - ends, PROVEN_LIMIT)]
        if scenario.act in CUT_SHORT:
            limits.append(("the end requested", outcome.requested, REQUEST_LIMIT))
            if scenario.by is Way.PROBE:
                limits.append(("gone", outcome.gone, gone_limit))
        wrong += [f"{step} after {took:.1f} s, not {most:.0f}" for step, took, most in limits if took and took > most]
        return wrong


def _first(rounds: Sequence[Round], holds: Callable[[Round], bool], times: int) -> float | None:
    """Returns when the first of so many rounds in a row began for which something holds; None without them."""
    run: list[Round] = []
    for one in rounds:
        run = [*run, one] if holds(one) else []
        if len(run) == times:
            return run[0].at
    return None
