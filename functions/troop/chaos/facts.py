"""Defines the facts of one unit at one moment, on which a decision depends."""

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
    """The deployment's switch.

    ``halted`` stops all of chaos. ``leashed`` decides and records, but terminates nothing. ``reaper_off`` prevents the
    reaper of benchmarks from removing anything, and does not affect chaos.
    """

    halted: bool
    leashed: bool
    reaper_off: bool = False


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A claim without a termination that has used up its unit's day: a scheduled one, of which there is one a day, or
    one after which AWS may have received the request.

    Attributes:
        why: a sentence, from the event.
    """

    day: date
    event_id: str
    why: str


@dataclass(frozen=True, slots=True)
class UnitState:
    """The stored state of a unit.

    Attributes:
        last_day: the local day of its last termination, scheduled or on demand, as of its claim. Abandoned claims do
            not count.
        unrecovered: the event from which it has not recovered; None while it takes part.
        leashed_day: the last local day with a leashed record.
        last_event: of its last termination.
        abandoned: the last abandoned claim that used up its day.
    """

    last_day: date | None = None
    unrecovered: str | None = None
    leashed_day: date | None = None
    last_event: str | None = None
    abandoned: Abandoned | None = None

    @property
    def last(self) -> Last:
        """The value that an abandoned claim restores."""
        return Last(self.last_day, self.last_event)


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of terminations: on each local day, and in flight now."""

    by_day: Mapping[date, int] = field(default_factory=dict)
    in_flight: int = 0

    def plus_one(self, day: date) -> Counts:
        """Returns the counts with one more termination on ``day``."""
        return Counts({**self.by_day, day: self.by_day.get(day, 0) + 1}, self.in_flight + 1)


@record
class Facts:
    """All facts for a decision about one unit.

    Attributes:
        now: the moment the decision is for, aware.
        groups: the unit's groups, at least one.
        protected_instances: ids of instances with the tag ``troop:protected``.
        refreshing: names of groups with an instance refresh in progress; None if not read yet.
        alarms: state by alarm name, without alarms that do not exist; None if not read yet.
        balanced: ids of healthy instances by traffic source, see :attr:`Group.sources`; None if not read yet.
        unread: why the health in the traffic sources could not be read; "" if it was, or was not tried.
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
        """Whether the unit's calendar exists; without it there is neither a day nor a roll."""
        return self._today is not None

    @property
    def today(self) -> Reading:
        """The calendar's reading at ``now``; only for a policy without problems."""
        assert self._today, "guards after malformed() never meet a calendar that does not exist"
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
