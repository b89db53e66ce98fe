"""Defines events: the records of a claim and its outcome, up to the group's recovery."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any
from urllib.parse import quote, unquote

from troop.chaos.hypothesis import Hypothesis
from troop.chaos.injection import Injection, Way
from troop.chaos.replacements import Build, Replacement
from troop.chaos.stages import Stages
from troop.chaos.verdict import Verdict
from troop.faults import find_fault, find_lasting
from troop.faults.fault import Fault
from troop.faults.lasting_fault import LastingFault
from troop.shared.choice import Choice
from troop.shared.codec import stored
from troop.shared.errors import MissingFaultError

_ON_DEMAND = "od#"

SCHEMA = 1
"""The version of the stored items' shape."""


class Status(StrEnum):
    """The status of an event."""

    LEASHED = "LEASHED"
    CLAIMED = "CLAIMED"
    RUNNING = "RUNNING"
    TERMINATED = "TERMINATED"
    RECOVERED = "RECOVERED"
    UNRECOVERED = "UNRECOVERED"
    GROUP_DELETED = "GROUP_DELETED"
    GONE_ELSEWHERE = "GONE_ELSEWHERE"
    ABANDONED = "ABANDONED"


STEPS: dict[Status, frozenset[Status]] = {
    # A claim replaces a leashed record if the deployment is unleashed that day.
    Status.LEASHED: frozenset({Status.CLAIMED}),
    Status.CLAIMED: frozenset({Status.RUNNING, Status.TERMINATED, Status.GONE_ELSEWHERE, Status.ABANDONED}),
    # A lasting fault. ABANDONED only if AWS certainly refused it; TERMINATED if its end was not proven.
    Status.RUNNING: frozenset(
        {Status.ABANDONED, Status.TERMINATED, Status.RECOVERED, Status.UNRECOVERED, Status.GROUP_DELETED}
    ),
    Status.TERMINATED: frozenset({Status.RECOVERED, Status.UNRECOVERED, Status.GROUP_DELETED}),
}
"""Status -> the statuses that may follow. A status that is not a key is final."""

OPEN = frozenset({Status.CLAIMED, Status.RUNNING, Status.TERMINATED})
"""Statuses of events in flight: they count against ``max_in_flight``, and every sweep checks them."""


HIT = frozenset({Status.RUNNING, Status.TERMINATED})
"""Statuses of events in flight whose fault has hit."""


class AbandonReason(StrEnum):
    """Why a claim terminated nothing: chaos was halted or leashed; an alarm of the unit went off; its instance is gone;
    any other reason.
    """

    SWITCHED_OFF = "switched-off"
    ALARM = "alarm"
    GONE = "gone"
    REFUSED = "refused"


USUAL_CAUSES = {Status.ABANDONED: AbandonReason.REFUSED, Status.GONE_ELSEWHERE: AbandonReason.GONE}
"""The cause by status, where no other one is recorded."""

WITHOUT_TERMINATION = frozenset(USUAL_CAUSES)
"""Statuses of claims without a termination: they do not count against ``max_per_day``, nor as the unit's last
termination.
"""


@dataclass(frozen=True)
class Watch:
    """The progress of the recovery checks after a termination.

    Attributes:
        checks: the number of checks.
        whole: how many in a row, up to the last, found the group whole.
        whole_since: the first of these.
        checked_at: the last check; without recent ones, an open event has lost its watch.
        short_at: the last moment at which the group was certainly not whole: a check found it so, or no instance had
            returned to service yet. The recovery is between it and ``whole_since``.
    """

    checks: int = 0
    whole: int = 0
    whole_since: datetime | None = None
    checked_at: datetime | None = None
    short_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Abort:
    """An alarm of the unit went off while the event was in flight, or before its verdict.

    Attributes:
        at: when the alarm changed its state, by CloudWatch's clock.
        alarm: its name.
    """

    at: datetime
    alarm: str


@dataclass(frozen=True, slots=True)
class Last:
    """A unit's last termination according to its item: the local day, and the event; None if there was none."""

    day: date | None = None
    event_id: str | None = None


def _cause(value: Any) -> AbandonReason | None:
    # A later version may have written another one.
    return AbandonReason(value) if value in list(AbandonReason) else None


@dataclass(frozen=True)
class Event:
    """The record of a termination. Moments are aware and in UTC.

    Attributes:
        event_id: ``<day>#<unit>`` if scheduled, ``od#<unit>#<key>`` on demand.
        at: when it was claimed (or recorded as leashed); the order of listings.
        deadline: after it the claim is only reconciled, never carried out.
        execution: the workflow execution that claimed it.
        desired: the group's desired capacity at the claim, in the group's capacity units.
        attempted_at: when Troop was first about to send AWS the request to terminate.
        attempts: the number of these attempts.
        os_shutdown: whether the operating system is shut down before the instance ends, as the fault does; by
            ``crash`` only where EC2 rejects a termination without it. None before the first attempt.
        terminated_at: when Troop sent the request that AWS accepted.
        recovered_at: when the first of the two consecutive checks found the group whole.
        detail: a sentence about how it ended; "" if there is none.
        cause: why the claim terminated nothing, for programs; None for other events, and in items of earlier versions.
        before: the unit's last termination before this claim, restored if the claim is abandoned; None if not recorded.
        build: what the instance was launched from; its image is unknown until the group has recovered. None if not
            recorded.
        replacement: the first instance that the group launched since; None before the recovery, and without one.
        launch_failure: why Auto Scaling last failed to change the group since the termination, in its words;
            "" without such a failure.
        owner: the unit's owner at the claim; "" if it had none, and in items of earlier versions.
        hypothesis: what the policy said at the claim; None in items of earlier versions.
        stages: the stages of the recovery; None if not recorded.
        running: when EC2 reported instances of the group as running, by id, in the order of the events.
        settles_at: from when on the verdict can be given; None before the group has recovered, and without alarms.
        verdict: None before, for claims without a termination, and in items of earlier versions.
        abort: the first alarm that went off; None without one.
        token: the task token of the workflow that waits for the event; "" if none waits.
        injection: what is recorded of a lasting fault; None for terminations.
        benchmark: the run that requested the hit while it loaded the unit; "" for all others.
    """

    event_id: str
    unit: str
    day: date
    status: Status
    at: datetime
    group: str
    instance_id: str
    zone: str
    method: str
    rolled: float | None
    probability: float | None
    desired: int
    deadline: datetime | None = None
    execution: str = ""
    attempted_at: datetime | None = None
    attempts: int = field(default=0, metadata=stored(omit=True))
    os_shutdown: bool | None = None
    terminated_at: datetime | None = None
    recovered_at: datetime | None = None
    watch: Watch = Watch()
    detail: str = ""
    cause: AbandonReason | None = field(default=None, metadata=stored(decode=_cause))
    before: Last | None = None
    build: Build | None = None
    replacement: Replacement | None = None
    launch_failure: str = field(default="", metadata=stored(omit=True))
    owner: str = field(default="", metadata=stored(omit=True))
    hypothesis: Hypothesis | None = None
    stages: Stages | None = None
    running: dict[str, datetime] = field(default_factory=dict, metadata=stored(omit=lambda event: not event.running))
    settles_at: datetime | None = None
    verdict: Verdict | None = None
    abort: Abort | None = None
    token: str = field(default="", metadata=stored(omit=True))
    injection: Injection | None = None
    benchmark: str = field(default="", metadata=stored(omit=True))

    @property
    def fault(self) -> str:
        """The fault as people write it, with all its parameters: ``cpu load=100 processors=0 seconds=300``."""
        if self.injection is None:
            return self.method
        values, lasting = self.injection.parameters, find_lasting(self.method)  # another version can have more
        order = dict.fromkeys([*(one.name for one in (lasting.parameters if lasting else ())), *sorted(values)])
        return Choice(self.method, tuple((name, values[name]) for name in order if name in values)).text

    @property
    def hit_at(self) -> datetime | None:
        """When the fault hit: the request to terminate, or to inject a lasting fault; None before."""
        return self.attempted_at if self.injection else self.terminated_at

    @property
    def victim_stays(self) -> bool:
        """Whether the instance may serve on: a probe has proven that its fault is over."""
        return self.injection is not None and self.injection.proof is not None and self.injection.proof.by is Way.PROBE

    @property
    def recovers_from(self) -> datetime | None:
        """The moment from which the recovery counts: a lasting fault's proven end if the instance stays or has ended by
        itself, otherwise the request to terminate. None before, and while a lasting fault is not proven to be over.
        """
        if self.status is Status.RUNNING or self.terminated_at is None:
            proof = self.injection and self.injection.proof
            return proof.at if proof else None
        return self.terminated_at

    @property
    def is_recovering(self) -> bool:
        """Whether the group's recovery is checked now: after a termination, or the proven end of a lasting fault."""
        return self.status is Status.TERMINATED or (self.status is Status.RUNNING and self.recovers_from is not None)

    @property
    def awaits_verdict(self) -> bool:
        """Whether the group has recovered, and the alarms still have time to go off."""
        return self.status is Status.RECOVERED and self.settles_at is not None and self.verdict is None

    @property
    def recovery_seconds(self) -> float | None:
        """The seconds from :attr:`recovers_from` to the first check that found the group whole."""
        if self.recovered_at is None or self.recovers_from is None:
            return None
        return max(0.0, (self.recovered_at - self.recovers_from).total_seconds())


def scheduled_id(day: date, unit: str) -> str:
    return f"{day.isoformat()}#{unit}"


def on_demand_id(unit: str, key: str) -> str:
    return f"{_ON_DEMAND}{unit}#{key}"


def is_on_demand(event_id: str) -> bool:
    return event_id.startswith(_ON_DEMAND)


def in_words(event_id: str) -> str:
    """Describes a hit by its id, which does not say whether it was a termination or a lasting fault.

    >>> in_words("2026-11-20#web")
    'its hit of 2026-11-20'
    """
    return "a hit on demand" if is_on_demand(event_id) else f"its hit of {event_id.partition('#')[0]}"


def fault_named(name: str) -> Fault:
    """Returns the fault of an event by its method.

    Raises:
        MissingFaultError: this version does not have it.
    """
    fault = find_fault(name)
    if fault is None:
        raise MissingFaultError(name)
    return fault


def lasting_named(name: str) -> LastingFault:
    """Returns the lasting fault of an event by its method.

    Raises:
        MissingFaultError: this version does not have it.
    """
    fault = find_lasting(name)
    if fault is None:
        raise MissingFaultError(name)
    return fault


def exception_of(method: str, os_shutdown: bool | None) -> str:
    """Explains a shutdown of the operating system by a fault that has none; "" for every other termination.

    >>> exception_of("crash", True)
    'its operating system was shut down first, because AWS rejects a crash without that'
    """
    fault = find_fault(method)  # another version can have more
    return fault.fallback if fault and os_shutdown else ""


def to_url(event_id: str) -> str:
    """Encodes an event's id as one URL path segment of unreserved characters (RFC 3986): ``#`` is ``~``.

    >>> to_url("2026-11-20#web/api")
    '2026-11-20~web~2Fapi'
    """
    head, _, rest = event_id.partition("#")
    return f"{head}~" + quote(rest, safe="").replace("~", "%7E").replace("%", "~")


def from_url(segment: str) -> str:
    """Decodes :func:`to_url`; text that is not such a segment becomes an id that no event has."""
    head, _, rest = segment.partition("~")
    event_id = f"{head}#" + unquote(rest.replace("~", "%"))
    # An event has one address: another spelling of the path must not bypass an IAM policy.
    return event_id if to_url(event_id) == segment else f"~{segment}"
