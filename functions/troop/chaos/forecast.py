"""Forecasts decisions: goes through future ticks as the schedules would, and decides at each as a tick does.

:func:`troop.chaos.decisions.decide_all` makes the decisions. This module does what the tables do between ticks: a
termination counts from the next decision on. :data:`ASSUMPTIONS` lists what cannot be known in advance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from troop.chaos.change_calendars import ChangePeriod, period_at
from troop.chaos.decisions import TERMINATE, Decision, calendar_of, decide_all
from troop.chaos.expected_ticks import is_open, ticks_of
from troop.chaos.facts import Account, Counts, Facts, UnitState, facts_of_units
from troop.chaos.groups import Group
from troop.chaos.roll import due_at
from troop.shared import zones
from troop.shared.settings import Settings

ASSUMPTIONS = (
    f"every tick comes, on its minute by the time zones {zones.VERSION}",
    "every group has recovered by the next tick, so nothing stays in flight",
    "groups, their health, tags and policy stay as they are; an instance that replaces another keeps its id",
    "SSM Change Calendars keep the entries that they have now",
)
"""The assumptions of a forecast."""

LEASHED = "leashed"

Tick = tuple[datetime, str]
"""A moment in UTC, and the name of the calendar that the tick is for."""

ReadDetails = Callable[[list[Facts]], list[Facts]]
"""Reads the details of units that are due, as for :func:`troop.chaos.decisions.decide_all`."""


def ticks_between(settings: Settings, tick_minutes: int, first: date, last: date) -> list[Tick]:
    """Lists the ticks of all calendars on the local days from ``first`` to ``last``, both included, in order."""
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    calendars = settings.calendars.values()
    return sorted((tick, c.name) for c in calendars for day in days for tick in ticks_of(c, day, tick_minutes))


@dataclass
class _Course:
    """The state that changes from tick to tick."""

    account: Account
    states: dict[str, UnitState] = field(init=False)
    by_day: Counter[date] = field(init=False)
    hits: dict[str, str] = field(init=False)
    in_flight: int = 0
    moment: datetime | None = None

    def __post_init__(self) -> None:
        self.hits = dict(self.account.inside.hits)
        self.states = dict(self.account.states)
        self.by_day = Counter(self.account.counts.by_day)

    def read(self, groups: Iterable[Group], moment: datetime, day: date) -> Account:
        """Returns what a tick would read of these groups."""
        if moment != self.moment:
            self.moment, self.in_flight = moment, 0
        counts = Counts({day: self.by_day[day]}, self.in_flight)
        inside = replace(self.account.inside, hits=self.hits)
        return replace(self.account, groups=tuple(groups), states=self.states, counts=counts, inside=inside)

    def carry_out(self, decisions: Iterable[Decision]) -> None:
        """Applies what a tick's claims write or, in a leashed deployment, its records."""
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
            instance = decision.target.instance.instance_id
            if decision.choice and decision.choice.lasting:
                self.hits[instance] = decision.event_id
            else:
                self.hits.pop(instance, None)  # its replacement had no fault inside


def go_through(
    account: Account, settings: Settings, salt: bytes, ticks: Iterable[Tick], read_details: ReadDetails = list
) -> Iterator[list[Decision]]:
    """Yields the decisions of every tick: one for each unit on its calendar, as Lambda would decide.

    Args:
        account: the account before the first tick; terminations in flight are assumed to be over by then.
        ticks: the ticks in order, of calendars in the settings.
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
    """Yields the same as :func:`go_through`, without decisions that only repeat the unit's previous one of the day.

    It decides for every unit at its calendar's first tick of a day, and of a period of the calendar's Change Calendar.
    It decides again when a unit's minute has come, if it was ``not-yet``; and at the next tick, if terminations in
    flight prevented it. All other reasons hold for the rest of the day, because groups do not change. Ticks without
    decisions yield nothing.
    """
    course = _Course(account)
    members: dict[str, dict[str, tuple[Group, ...]]] = {name: {} for name in settings.calendars}
    again: dict[str, dict[str, datetime]] = {name: {} for name in settings.calendars}
    spans: dict[str, tuple[date, ChangePeriod | None]] = {}
    for moment, calendar in ticks:
        day = settings.calendars[calendar].at(moment).day
        span = day, period_at(account.changes.get(calendar, ()), moment)
        if not spans:
            for f in facts_of_units(account, settings, salt, moment):
                members[calendar_of(f)][f.unit] = f.groups
        if spans.get(calendar) != span:
            spans[calendar] = span
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
    """Returns the moment on that day from which the decision about the unit can change; None if it cannot."""
    if decision.reason == "not-yet" and decision.day:
        return _due_at(decision, decision.day, settings, salt)
    if decision.reason == "in-flight":
        return decision.tick
    return None


@dataclass(frozen=True, slots=True)
class UnitDay:
    """A unit's decisions on a day.

    Attributes:
        calendar: the calendar whose ticks decide for the unit.
        decisions: the decisions of each tick, in order.
        due: the minute its roll is due, in UTC; None if its roll does not pass, or the day is closed.
    """

    calendar: str
    decisions: tuple[Decision, ...]
    due: datetime | None

    @property
    def outcome(self) -> Decision:
        """The decision to terminate; otherwise the first that only the leash prevented; otherwise the day's last."""
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
    """Computes a day of every unit, in the order of the units.

    Args:
        days: the local day to go through, by calendar.
        after: ticks up to this moment are over; None for the whole day. A unit whose calendar has no tick left gets one
            more decision, but no termination.
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
    return _due_at(decision, day, settings, salt) if is_open(settings.calendars[policy.calendar.value], day) else None


def _due_at(decision: Decision, day: date, settings: Settings, salt: bytes) -> datetime:
    assert decision.choice, "a policy without problems has a fault of the day"
    calendar = settings.calendars[decision.policy.calendar.value]
    return due_at(salt, day, decision.unit, calendar, decision.choice.takes())
