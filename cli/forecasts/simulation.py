"""Sums up years of decisions. Pure: :mod:`troop.chaos.forecast` makes the decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from cli.shared.settings_files import TriedSettings
from troop.chaos.decisions import TERMINATE, Decision, calendar_of
from troop.chaos.expected_ticks import is_open
from troop.chaos.facts import Account, facts_of_units
from troop.chaos.forecast import skip_through, ticks_between
from troop.chaos.groups import Group
from troop.chaos.policy import Policy
from troop.shared.calendars import Calendar
from troop.shared.day_rules import WEEKDAYS

ELIGIBLE = frozenset({TERMINATE, "not-rolled", "day-cap", "in-flight"})
"""Reasons of a day on which only the roll, or a limit of the deployment, could prevent a termination."""

_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Termination:
    """A simulated termination: its local day and hour, and the group that lost an instance."""

    day: date
    hour: int
    group: str


@dataclass(frozen=True)
class UnitYears:
    """The result of a unit over all days.

    Attributes:
        terminations: in chronological order.
        reasons: the number of open days by the reason of the last decision.
        policy: the policy on the first open day; None without one.
    """

    unit: str
    groups: tuple[Group, ...]
    calendar: Calendar
    terminations: tuple[Termination, ...]
    reasons: Mapping[str, int]
    policy: Policy | None


@dataclass(frozen=True)
class Days:
    """The days of a calendar.

    Attributes:
        business: the number of business days, frozen ones included.
        open: the number of open days.
        weeks: business days of each whole week (Monday to Sunday), by its Monday.
    """

    business: int
    open: int
    weeks: Mapping[date, int]


def simulate(account: Account, settings: TriedSettings, salt: bytes, first: date, last: date) -> list[UnitYears]:
    """Simulates every unit from ``first`` to ``last``, both included, in the units' order."""
    chosen = settings.chaos
    last_word: dict[str, dict[date, str]] = {}
    terminations: dict[str, list[Termination]] = {}
    policies: dict[str, Policy] = {}
    ticks = ticks_between(chosen, settings.tick_minutes, first, last)
    for decisions in skip_through(account, chosen, salt, ticks):
        for decision in decisions:
            day = chosen.calendars[_calendar(decision, settings)].at(decision.tick).day
            last_word.setdefault(decision.unit, {})[day] = decision.reason
            policies.setdefault(decision.unit, decision.policy)
            if decision.reason == TERMINATE and decision.target:
                hour = chosen.calendars[_calendar(decision, settings)].local(decision.tick).hour
                termination = Termination(day, hour, decision.target.group.name)
                terminations.setdefault(decision.unit, []).append(termination)
    some_moment = chosen.calendars["default"].window(first)[0]
    return [
        UnitYears(
            unit=facts.unit,
            groups=facts.groups,
            calendar=chosen.calendars[calendar_of(facts)],
            terminations=tuple(terminations.get(facts.unit, ())),
            reasons=dict(Counter(last_word.get(facts.unit, {}).values()).most_common()),
            policy=policies.get(facts.unit),
        )
        for facts in facts_of_units(account, chosen, salt, some_moment)
    ]


def _calendar(decision: Decision, settings: TriedSettings) -> str:
    name = str(decision.policy.calendar.value)
    return name if name in settings.chaos.calendars else "default"


def days_of(calendar: Calendar, first: date, last: date) -> Days:
    """Counts the days of a calendar from ``first`` to ``last``, both included."""
    business = opened = 0
    weeks: Counter[date] = Counter()
    day = first
    while day <= last:
        if calendar.is_business_day(day):
            business += 1
            opened += is_open(calendar, day)
            monday = day - timedelta(days=day.weekday())
            if first <= monday and monday + _WEEK - timedelta(days=1) <= last:
                weeks[monday] += 1
        day += timedelta(days=1)
    return Days(business, opened, weeks)


def statistics(unit: UnitYears, days: Days, group: str | None = None) -> dict[str, Any]:
    """Returns the terminations of a unit, or of one of its groups, with statistics, in JSON's types."""
    terminations = [t for t in unit.terminations if group in (None, t.group)]
    probability = None if unit.policy is None or unit.policy.problems else unit.policy.probability.value
    hours = range(unit.calendar.open_minute // 60, -(-unit.calendar.close_minute // 60))
    by_hour = Counter(t.hour for t in terminations)
    return {
        "terminations": len(terminations),
        "days": [t.day.isoformat() for t in terminations],
        "by_weekday": by_weekday(terminations),
        "by_hour": {f"{hour:02d}": by_hour[hour] for hour in hours},
        "calendar": unit.calendar.name,
        "probability": probability,
        "realised_rate": len(terminations) / days.business if days.business else None,
        "business_days": days.business,
        "open_days": days.open,
        "eligible_days": sum(count for reason, count in unit.reasons.items() if reason in ELIGIBLE),
        "weeks": len(days.weeks),
        "chance_of_a_week_without": free_week_share((t.day for t in terminations), days.weeks),
        "configured_chance_of_a_week_without": _configured(probability, days),
        "reasons": dict(unit.reasons),
    }


def by_weekday(terminations: Iterable[Termination]) -> dict[str, int]:
    """Counts terminations by day of the week, from Monday."""
    counts = Counter(t.day.weekday() for t in terminations)
    return {name: counts[number] for number, name in enumerate(WEEKDAYS)}


def free_week_share(hit: Iterable[date], weeks: Iterable[date]) -> float | None:
    """Returns the share of weeks (given by their Mondays) with none of the days; None without weeks."""
    mondays = set(weeks)
    return 1 - len(mondays & {day - timedelta(days=day.weekday()) for day in hit}) / len(mondays) if mondays else None


def _configured(probability: float | None, days: Days) -> float | None:
    """Returns the chance of a week without a termination if only the roll decided."""
    if probability is None or not days.weeks:
        return None
    return sum((1 - probability) ** count for count in days.weeks.values()) / len(days.weeks)
