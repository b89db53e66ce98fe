"""Defines the facts on which a decision depends: of the account, and of one unit at one moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from troop.chaos.change_calendars import ChangePeriod, Changes, period_at
from troop.chaos.events import Last
from troop.chaos.groups import Group
from troop.chaos.inside import Inside
from troop.chaos.policy import Policy, effective_policy, says_anything
from troop.chaos.roll import choose, roll
from troop.chaos.self_halt import SelfHalt
from troop.chaos.strays import StrayRecord, find
from troop.chaos.units import by_unit
from troop.shared.calendars import Calendar, Reading
from troop.shared.choice import Choice
from troop.shared.records import record
from troop.shared.settings import Settings


@dataclass(frozen=True, slots=True)
class Switch:
    """The switch of chaos.

    Attributes:
        halted: everything stops: people have halted the deployment, or it has halted itself.
        leashed: chaos decides and records, but terminates nothing.
        itself: the deployment's own halt; None without one.
    """

    halted: bool
    leashed: bool
    itself: SelfHalt | None = None


@dataclass(frozen=True, slots=True)
class AbandonedClaim:
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
        unrecovered: the event because of which it has left chaos; None while it takes part.
        left_for: why it has left: ``unrecovered`` or ``broken``; None while it takes part.
        leashed_day: the last local day with a leashed record.
        last_event: the event of its last termination.
        abandoned: the last abandoned claim that used up its day.
    """

    last_day: date | None = None
    unrecovered: str | None = None
    leashed_day: date | None = None
    last_event: str | None = None
    abandoned: AbandonedClaim | None = None
    left_for: str | None = None

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


@dataclass(frozen=True, slots=True)
class Account:
    """The state of the account at one tick. Mappings are by unit; a unit without an entry has nothing stored. Keys of
    ``items`` can also name no unit; ``strays`` is what the last tick has recorded of these.
    """

    groups: Sequence[Group]
    items: Mapping[str, Mapping[str, Any]]
    states: Mapping[str, UnitState]
    switch: Switch
    counts: Counts
    protected_instances: frozenset[str] = frozenset()
    strays: StrayRecord = field(default_factory=StrayRecord)
    changes: Changes = field(default_factory=dict)
    inside: Inside = field(default_factory=Inside)


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
        change: the current period of the SSM Change Calendar that the unit's calendar names; None if not read.
        inside: what is known of its instances for lasting faults.
        requested: the fault that somebody requests, or has claimed; None for the fault of the day.
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
    change: ChangePeriod | None = None
    inside: Inside = field(default_factory=Inside)
    requested: Choice | None = None
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
    def choice(self) -> Choice:
        """The requested fault, or the unit's fault of the day; only for a policy without problems."""
        return self.requested or choose(self.salt, self.day, self.unit, self.policy.method.value)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The faults of which :attr:`choice` is one."""
        return (self.requested,) if self.requested else self.policy.method.value

    @property
    def rolled(self) -> float:
        """The unit's roll of the day."""
        assert self._rolled is not None, "see today"
        return self._rolled


def facts_of_units(account: Account, settings: Settings, salt: bytes, now: datetime) -> Iterator[Facts]:
    """Yields the facts of every unit, in the order of the units, without those that cost a call per group."""
    days = {name: calendar.at(now).day for name, calendar in settings.calendars.items()}
    today = days.__getitem__
    nobody, no_state = Group("", 0), UnitState()
    shared = effective_policy([nobody], {}, settings, today)  # by all units without any policy of their own
    counts = _with_leashed(account) if account.switch.leashed else account.counts
    changes = {name: period_at(periods, now) for name, periods in account.changes.items()}
    units = by_unit(account.groups, settings.units)
    near = find(account.items, units).near
    for unit, groups in units.items():
        item, keys = account.items.get(unit), near.get(unit, ())
        plain = not item and not keys and not any(map(says_anything, groups))
        policy = shared if plain else effective_policy(groups, item or {}, settings, today, keys)
        yield Facts(
            unit=unit,
            now=now,
            salt=salt,
            settings=settings,
            switch=account.switch,
            groups=groups,
            policy=policy,
            state=account.states.get(unit, no_state),
            counts=counts,
            protected_instances=account.protected_instances,
            change=changes.get(policy.calendar.value),
            inside=account.inside,
        )


def _with_leashed(account: Account) -> Counts:
    """Returns the counts as if all recorded leashed decisions had been terminations."""
    by_day = Counter(account.counts.by_day)
    by_day.update(state.leashed_day for state in account.states.values() if state.leashed_day)
    return replace(account.counts, by_day=by_day)
