"""Forecasts: goes through ticks that are still to come as the schedules would, and decides at each as a tick does.

The decisions are :func:`troop.chaos.decisions.decide_all`'s; what is done here is what the tables do in between: a
termination counts from the next decision on. What nobody can know ahead is assumed, see :data:`ASSUMPTIONS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from troop.chaos.decisions import TERMINATE, Account, Decision, calendar_of, decide_all, facts_of_units
from troop.chaos.expected_ticks import is_open, ticks_of
from troop.chaos.facts import Counts, Facts, UnitState
from troop.chaos.groups import Group
from troop.chaos.roll import due_at
from troop.settings import Settings

ASSUMPTIONS = (
    "every tick comes, on its minute",
    "every group has recovered by the next tick, so nothing stays in flight",
    "groups, their health, tags and policy stay as they are; an instance that replaces another keeps its id",
)
"""What a forecast takes for granted."""

LEASHED = "leashed"

Tick = tuple[datetime, str]
"""A moment in UTC, and the name of the calendar whose tick it is."""

ReadDetails = Callable[[list[Facts]], list[Facts]]
"""Adds to the facts of units that are due, as for :func:`troop.chaos.decisions.decide_all`."""


def ticks_between(settings: Settings, tick_minutes: int, first: date, last: date) -> list[Tick]:
    """The ticks of all calendars on the local days from ``first`` to ``last``, both included, in order."""
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    calendars = settings.calendars.values()
    return sorted((tick, c.name) for c in calendars for day in days for tick in ticks_of(c, day, tick_minutes))


@dataclass
class _Course:
    """What changes from tick to tick."""

    account: Account
    states: dict[str, UnitState] = field(init=False)
    by_day: Counter[date] = field(init=False)
    in_flight: int = 0
    moment: datetime | None = None

    def __post_init__(self) -> None:
        self.states = dict(self.account.states)
        self.by_day = Counter(self.account.counts.by_day)

    def read(self, groups: Iterable[Group], moment: datetime, day: date) -> Account:
        """What a tick would read of these groups."""
        if moment != self.moment:
            self.moment, self.in_flight = moment, 0
        counts = Counts({day: self.by_day[day]}, self.in_flight)
        return replace(self.account, groups=tuple(groups), states=self.states, counts=counts)

    def carry_out(self, decisions: Iterable[Decision]) -> None:
        """Does to the tables' contents what the claims of a tick do or, in a leashed deployment, its records."""
        for decision in decisions:
            if decision.target is None or decision.day is None:
                continue
            before = self.states.get(decision.unit, UnitState())
            if decision.reason == LEASHED:
                self.states[decision.unit] = replace(before, leashed_day=decision.day)
                continue
            self.states[decision.unit] = replace(before, last_day=decision.day)
            self.by_day[decision.day] += 1
            self.in_flight += 1


def go_through(
    account: Account, settings: Settings, salt: bytes, ticks: Iterable[Tick], read_details: ReadDetails = list
) -> Iterator[list[Decision]]:
    """The decisions of every tick: one for each unit on its calendar, as Lambda would decide them.

    Args:
        account: as it is before the first tick; what is in flight is taken to be over by then.
        ticks: in order, of calendars that the settings have.
    """
    course = _Course(account)
    for moment, calendar in ticks:
        read = course.read(account.groups, moment, settings.calendars[calendar].at(moment).day)
        facts = (f for f in facts_of_units(read, settings, salt, moment) if calendar_of(f) == calendar)
        decisions = decide_all(facts, read_details)
        course.carry_out(decisions)
        yield decisions


def skip_through(
    account: Account, settings: Settings, salt: bytes, ticks: Iterable[Tick], read_details: ReadDetails = list
) -> Iterator[list[Decision]]:
    """As :func:`go_through`, less the decisions that can only repeat the unit's one before of the same day.

    Every unit is decided for at its calendar's first tick of a day; again when its minute has come, if it was
    ``not-yet``; and at the next tick, if others in flight were in its way. All other reasons hold for the rest of the
    day, since groups stay as they are. Ticks at which nothing is left to decide yield nothing.
    """
    course = _Course(account)
    members: dict[str, dict[str, tuple[Group, ...]]] = {name: {} for name in settings.calendars}
    again: dict[str, dict[str, datetime]] = {name: {} for name in settings.calendars}
    days: dict[str, date] = {}
    for moment, calendar in ticks:
        day = settings.calendars[calendar].at(moment).day
        if not days:
            for f in facts_of_units(account, settings, salt, moment):
                members[calendar_of(f)][f.unit] = f.groups
        if days.get(calendar) != day:
            days[calendar] = day
            units: Iterable[str] = members[calendar]
        else:
            units = [unit for unit, at in again[calendar].items() if at <= moment]
        groups = [group for unit in units for group in members[calendar][unit]]
        if not groups:
            continue
        read = course.read(groups, moment, day)
        decisions = decide_all(facts_of_units(read, settings, salt, moment), read_details)
        course.carry_out(decisions)
        for decision in decisions:
            if at := _again_at(decision, settings, salt):
                again[calendar][decision.unit] = at
            else:
                again[calendar].pop(decision.unit, None)
        yield decisions


def _again_at(decision: Decision, settings: Settings, salt: bytes) -> datetime | None:
    """From when on that day another decision about the unit can be another one."""
    if decision.reason == "not-yet" and decision.day:
        calendar = settings.calendars[decision.policy.calendar.value]
        return due_at(salt, decision.day, decision.unit, calendar)
    if decision.reason == "in-flight":
        return decision.tick
    return None


@dataclass(frozen=True, slots=True)
class UnitDay:
    """What becomes of a unit on a day.

    Attributes:
        calendar: on whose ticks it is decided for.
        decisions: of each tick, in order.
        due: the minute its roll is due, in UTC; None when its roll does not pass, or the day is closed.
    """

    calendar: str
    decisions: tuple[Decision, ...]
    due: datetime | None

    @property
    def outcome(self) -> Decision:
        """The decision to terminate; else the first that only the leash has stopped; else the day's last word."""
        outcomes = (TERMINATE, LEASHED)
        matching = [d for reason in outcomes for d in self.decisions if d.reason == reason]
        return matching[0] if matching else self.decisions[-1]


def plan(
    account: Account,
    settings: Settings,
    salt: bytes,
    tick_minutes: int,
    days: Mapping[str, date],
    after: datetime | None = None,
    read_details: ReadDetails = list,
) -> list[UnitDay]:
    """A day of every unit, in the units' order.

    Args:
        days: the local day to go through, by calendar.
        after: ticks up to this moment are over; None for the whole day. A unit whose calendar has no tick left is
            decided for once more, but not for termination.
    """
    left: list[Tick] = []
    over: list[Tick] = []
    for name, calendar in settings.calendars.items():
        moments = ticks_of(calendar, days[name], tick_minutes)
        coming = [(moment, name) for moment in moments if after is None or moment > after]
        left += coming
        if not coming:
            over.append((moments[-1] if moments else calendar.window(days[name])[0], name))
    decided: dict[str, list[Decision]] = {}
    calendars: dict[str, str] = {}
    for ticks, come in ((sorted(left), True), (sorted(over), False)):
        for (_, on), decisions in zip(ticks, go_through(account, settings, salt, ticks, read_details), strict=True):
            for decision in decisions:
                calendars[decision.unit] = on
                decided.setdefault(decision.unit, []).append(decision if come else _too_late(decision))
    return [
        UnitDay(calendars[u], tuple(unit_decisions), _due(unit_decisions[-1], settings, salt))
        for u, unit_decisions in sorted(decided.items())
    ]


def _too_late(decision: Decision) -> Decision:
    if decision.reason not in (TERMINATE, LEASHED):
        return decision
    return replace(decision, reason="outside-window", detail=f"no tick is left on {decision.day}", target=None)


def _due(decision: Decision, settings: Settings, salt: bytes) -> datetime | None:
    policy, day, rolled = decision.policy, decision.day, decision.rolled
    if policy.problems or day is None or rolled is None or rolled >= policy.probability.value:
        return None
    calendar = settings.calendars[policy.calendar.value]
    return due_at(salt, day, decision.unit, calendar) if is_open(calendar, day) else None
