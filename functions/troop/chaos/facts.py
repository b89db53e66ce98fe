"""What a decision rests on: the facts of one unit at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from troop.calendars import Calendar, Reading
from troop.chaos.events import Last
from troop.chaos.groups import Group
from troop.chaos.policy import Policy
from troop.chaos.roll import roll
from troop.records import record
from troop.settings import Settings


@dataclass(frozen=True, slots=True)
class Switch:
    """The deployment's switch. ``halted`` stops all of chaos; ``leashed`` decides and records, terminates nothing;
    ``reaper_off`` keeps the reaper of benchmarks from removing anything, and means nothing to chaos.
    """

    halted: bool
    leashed: bool
    reaper_off: bool = False


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A claim that has used up its unit's day although it came to nothing: the scheduled one, of which there is one a
    day, or one after which AWS may have been asked.

    Attributes:
        why: a sentence, as the event has it.
    """

    day: date
    event_id: str
    why: str


@dataclass(frozen=True, slots=True)
class UnitState:
    """What is remembered of a unit.

    Attributes:
        last_day: the local day of its last termination, scheduled or on demand, from its claim on. A claim that came to
            nothing is none.
        unrecovered: the event after which it did not come back; None while it takes part.
        leashed_day: the last local day for which is on record what would have been terminated, but for the leash.
        last_event: of its last termination.
        abandoned: the last claim that came to nothing and used up its day.
    """

    last_day: date | None = None
    unrecovered: str | None = None
    leashed_day: date | None = None
    last_event: str | None = None
    abandoned: Abandoned | None = None

    @property
    def last(self) -> Last:
        """What a claim that comes to nothing puts back."""
        return Last(self.last_day, self.last_event)


@dataclass(frozen=True, slots=True)
class Counts:
    """Terminations counted so far: on each local day, and waiting for recovery now."""

    by_day: Mapping[date, int] = field(default_factory=dict)
    in_flight: int = 0

    def plus_one(self, day: date) -> Counts:
        """With one more termination on ``day``."""
        return Counts({**self.by_day, day: self.by_day.get(day, 0) + 1}, self.in_flight + 1)


@record
class Facts:
    """All that a decision about one unit rests on.

    Attributes:
        now: the moment the decision is for, aware.
        groups: the unit's groups, at least one.
        protected_instances: ids of instances that carry the tag ``troop:protected``.
        refreshing: names of groups with an instance refresh under way; None when nobody has looked yet.
        alarms: state by alarm name; an alarm that does not exist is absent; None when nobody has looked yet.
        balanced: ids of healthy instances by what the groups get traffic from, see :attr:`Group.sources`; None when
            nobody has looked yet.
        unread: why it could not be told who is healthy there; "" when it could, or nobody has looked.
    """

    unit: str
    now: datetime
    salt: bytes
    settings: Settings
    switch: Switch
    groups: tuple[Group, ...]
    policy: Policy
    state: UnitState
    counts: Counts
    protected_instances: frozenset[str] = frozenset()
    refreshing: frozenset[str] | None = None
    alarms: Mapping[str, str] | None = None
    balanced: Mapping[str, frozenset[str]] | None = None
    unread: str = ""
    _today: Reading | None = field(init=False, repr=False, compare=False)
    _rolled: float | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        calendar = self.settings.calendars.get(self.policy.calendar.value)
        today = calendar.at(self.now) if calendar else None
        object.__setattr__(self, "_today", today)
        object.__setattr__(self, "_rolled", roll(self.salt, today.day, self.unit) if today else None)

    @property
    def calendar(self) -> Calendar:
        """The unit's calendar; only for a policy without problems."""
        return self.settings.calendars[self.policy.calendar.value]

    @property
    def has_day(self) -> bool:
        """Whether the unit's calendar exists; only then there is a day, and a roll."""
        return self._today is not None

    @property
    def today(self) -> Reading:
        """What the unit's calendar says of ``now``; only for a policy without problems."""
        assert self._today, "no guard after the one of malformed policies meets a calendar that does not exist"
        return self._today

    @property
    def day(self) -> date:
        """The local day on the unit's calendar."""
        return self.today.day

    @property
    def rolled(self) -> float:
        """The unit's roll of the day."""
        assert self._rolled is not None, "see today"
        return self._rolled
