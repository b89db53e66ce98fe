"""Events: the record of a termination, from its claim to the group's recovery."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from urllib.parse import quote, unquote

_ON_DEMAND = "od#"

SCHEMA = 1
"""Version of the stored items' shape."""


class Status(StrEnum):
    """Where an event stands. Legal steps are in :data:`STEPS`."""

    LEASHED = "LEASHED"
    CLAIMED = "CLAIMED"
    TERMINATED = "TERMINATED"
    RECOVERED = "RECOVERED"
    UNRECOVERED = "UNRECOVERED"
    GROUP_DELETED = "GROUP_DELETED"
    GONE_ELSEWHERE = "GONE_ELSEWHERE"
    ABANDONED = "ABANDONED"


STEPS: dict[Status, frozenset[Status]] = {
    # A leashed record gives way to a real claim when the deployment is unleashed that day.
    Status.LEASHED: frozenset({Status.CLAIMED}),
    Status.CLAIMED: frozenset({Status.TERMINATED, Status.GONE_ELSEWHERE, Status.ABANDONED}),
    Status.TERMINATED: frozenset({Status.RECOVERED, Status.UNRECOVERED, Status.GROUP_DELETED}),
}
"""Status -> what may follow. A status that is not a key is final."""

OPEN = frozenset({Status.CLAIMED, Status.TERMINATED})
"""Statuses of events in flight: they count against ``max_in_flight``, and every sweep looks at them."""

CAME_TO_NOTHING = frozenset({Status.ABANDONED, Status.GONE_ELSEWHERE})
"""Statuses of claims that terminated nothing: they count neither against ``max_per_day`` nor as the unit's last one."""


@dataclass(frozen=True)
class Watch:
    """What the looks at a group after its termination have shown so far.

    Attributes:
        checks: how many there were.
        whole: how many in a row, up to the last, showed the group whole.
        whole_since: the first of these.
        checked_at: the last look; an open event that nobody looks at has lost its watch.
    """

    checks: int = 0
    whole: int = 0
    whole_since: datetime | None = None
    checked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Last:
    """What a unit's item says of its last termination: the local day, and the event; None when there was none."""

    day: date | None = None
    event_id: str | None = None


@dataclass(frozen=True)
class Event:
    """A termination on record. Moments are aware and in UTC.

    Attributes:
        event_id: ``<day>#<unit>`` when scheduled, ``od#<unit>#<key>`` on demand.
        at: when it was claimed (or recorded as leashed); the order of listings.
        deadline: after which the claim is only reconciled, never carried out.
        execution: the workflow execution that claimed it.
        desired: the group's desired capacity at the claim, in its own units.
        attempted_at: when a try was first about to ask AWS to terminate the instance.
        attempts: how many tries were.
        os_shutdown: whether the operating system is shut down before the instance ends: always by ``drain``, by
            ``crash`` only where EC2 rejects a termination without it. None before the first try.
        terminated_at: when AWS said it was being terminated.
        recovered_at: when the group was first seen whole again (and then seen so once more).
        detail: a sentence about how it ended, "" while there is nothing to say.
        before: the unit's last termination before this claim, which is its last again should the claim come to nothing;
            None when that is not on record.
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
    attempts: int = 0
    os_shutdown: bool | None = None
    terminated_at: datetime | None = None
    recovered_at: datetime | None = None
    watch: Watch = Watch()
    detail: str = ""
    before: Last | None = None

    @property
    def recovery_seconds(self) -> float | None:
        """From the termination to the first sight of the group whole again."""
        if self.recovered_at is None or self.terminated_at is None:
            return None
        return max(0.0, (self.recovered_at - self.terminated_at).total_seconds())


def scheduled_id(day: date, unit: str) -> str:
    return f"{day.isoformat()}#{unit}"


def on_demand_id(unit: str, key: str) -> str:
    return f"{_ON_DEMAND}{unit}#{key}"


def is_on_demand(event_id: str) -> bool:
    return event_id.startswith(_ON_DEMAND)


def in_words(event_id: str) -> str:
    """Which termination of a unit it is, as far as its id tells.

    >>> in_words("2026-11-20#web")
    'its termination of 2026-11-20'
    """
    return "a termination on demand" if is_on_demand(event_id) else f"its termination of {event_id.partition('#')[0]}"


def exception_of(method: str, os_shutdown: bool | None) -> str:
    """Says that a crash was none; "" for every other termination.

    >>> exception_of("crash", True)
    'its operating system was shut down first, because AWS rejects a crash without that'
    """
    gentle = method == "crash" and os_shutdown
    return "its operating system was shut down first, because AWS rejects a crash without that" if gentle else ""


def to_url(event_id: str) -> str:
    """An event's id as one URL path segment of unreserved characters (RFC 3986): ``#`` is ``~``.

    >>> to_url("2026-11-20#web/api")
    '2026-11-20~web~2Fapi'
    """
    head, _, rest = event_id.partition("#")
    return f"{head}~" + quote(rest, safe="").replace("~", "%7E").replace("%", "~")


def from_url(segment: str) -> str:
    """The reverse of :func:`to_url`; text that is no such segment comes back as an id that no event has."""
    head, _, rest = segment.partition("~")
    event_id = f"{head}#" + unquote(rest.replace("~", "%"))
    # One event, one address: what an IAM policy says of a path must not be got round by spelling it otherwise.
    return event_id if to_url(event_id) == segment else f"~{segment}"
