"""Computes what the next days bring for one unit: odds by the public rules and, with the salt, minute and instance.

Pure. The odds tell what anyone may know; the salt tells what happens if nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from math import prod
from typing import Any

from cli.forecasts.calendar_ahead import Basis
from cli.shared.settings_files import TriedSettings
from troop.chaos.decisions import Decision, is_on_record
from troop.chaos.expected_ticks import ticks_of
from troop.chaos.facts import Account, Facts, facts_of_units
from troop.chaos.forecast import LEASHED, skip_through, ticks_between
from troop.chaos.groups import Group
from troop.chaos.guards import BEFORE_CAPS, Refusal, candidates, inside, not_rolled, not_yet, pass_guards, too_late
from troop.chaos.outlook import policy_at
from troop.chaos.policy import Policy
from troop.chaos.roll import by_rank, last_due
from troop.chaos.strays import find
from troop.chaos.units import by_unit
from troop.shared import moments
from troop.shared.calendars import Calendar, clock
from troop.shared.choice import Choice

DAYS = 14
"""Days ahead, including today."""

_PUBLIC = tuple(guard for guard in BEFORE_CAPS if guard not in (not_rolled, inside, not_yet, too_late))
"""The guards whose answers depend neither on the salt nor on the fault of the day."""

ODDS_ASSUMPTIONS = (
    "the limits max_per_day and max_in_flight leave room for the unit",
    "the unit has taken part since today's window opened",
)
"""Further assumptions of the odds."""


def document(basis: Basis, unit: str, now: datetime, days: int = DAYS) -> dict[str, Any]:
    """Returns the next days of a unit that has groups, as JSON.

    Each day has ``chance``, from 0 to 1, that it brings a termination, and ``reason`` and ``detail`` why it cannot;
    both are by the public rules. ``expected`` is the outcome by the salt: None without the salt, and on closed days.

    Args:
        days: the number of days, including today on the unit's calendar.
    """
    settings = basis.settings.chaos
    groups, policy = _policy(basis, unit, now)
    calendar = settings.calendars.get(str(policy.calendar.value), settings.calendars["default"])
    today = calendar.at(now).day
    listed = [today + timedelta(days=n) for n in range(days)]
    odds = list(_odds(basis, groups, calendar, listed, now))
    expected = outcomes(basis.account, basis.settings, basis.salt, unit, now, days) if basis.salt is not None else {}
    return {
        "unit": unit,
        "groups": [group.name for group in groups],
        "calendar": calendar.name,
        "time_zone": calendar.time_zone,
        "probability": None if policy.problems else policy.probability.value,
        "days": [_day(calendar, one, _ranked(basis, one, expected.get(one.day.isoformat()))) for one in odds],
        "chance_of_any": 1 - prod(1 - one.alone for one in odds),
        "not_expected": basis.no_salt if basis.salt is None else "",
        "halted": basis.account.switch.halted,
        "leashed": basis.account.switch.leashed,
        "assumptions": [*basis.assumptions(), *(ODDS_ASSUMPTIONS if basis.salt is None else ())],
    }


def _policy(basis: Basis, unit: str, now: datetime) -> tuple[tuple[Group, ...], Policy]:
    settings, account = basis.settings.chaos, basis.account
    units = by_unit(account.groups, settings.units)
    near = find(account.items, units).near.get(unit, ())
    return units[unit], policy_at(units[unit], account.items.get(unit, {}), settings, now, near)


@dataclass(frozen=True, slots=True)
class _Odds:
    """The odds of a day.

    Attributes:
        verdict: why the day cannot bring a termination, or the facts at the first tick that can.
        alone: the chance if no earlier day of the list brings one.
        chance: the chance, given that an earlier day may bring one, after which the unit has some days of rest.
    """

    day: date
    verdict: Refusal | Facts
    alone: float
    chance: float


def _odds(
    basis: Basis, groups: tuple[Group, ...], calendar: Calendar, days: list[date], now: datetime
) -> Iterator[_Odds]:
    hits: dict[date, float] = {}
    for day in days:
        verdict = _verdict(basis, groups, calendar, day, now)
        if isinstance(verdict, Refusal):
            yield _Odds(day, verdict, 0.0, 0.0)
            continue
        alone = _chance(verdict, calendar, day, now)
        rest = verdict.policy.min_days_between.value
        resting = sum(
            chance for hit, chance in hits.items() if rest and calendar.business_days_since(hit, day, rest) < rest
        )
        hits[day] = alone * (1 - resting)
        yield _Odds(day, verdict, alone, hits[day])


def _verdict(basis: Basis, groups: tuple[Group, ...], calendar: Calendar, day: date, now: datetime) -> Refusal | Facts:
    """Returns why no tick of a day can terminate, or the facts at the first one that can, by the public rules."""
    if closure := calendar.day_off(day) or calendar.frozen(day):
        return Refusal(closure.kind, closure.detail)
    refusal = Refusal("outside-window", "no tick is left today")
    account = replace(basis.account, groups=groups)
    for tick in ticks_of(calendar, day, basis.settings.tick_minutes):
        if tick <= now:
            continue
        facts = next(facts_of_units(account, basis.settings.chaos, b"", tick))
        if facts.has_day and is_on_record(facts):
            return Refusal(LEASHED, "already recorded today")
        verdict = pass_guards(facts, _PUBLIC)
        if not isinstance(verdict, Refusal):
            refusals = [_refusal(verdict, choice) for choice in verdict.choices]
            return next((refusal for refusal in refusals if all(refusals) and refusal), verdict)
        refusal = verdict
        if refusal.reason != "change-calendar":  # the only one that can end within a day
            break
    return refusal


def _refusal(facts: Facts, choice: Choice) -> Refusal | None:
    """Returns why a fault cannot hit the unit on any day; None if it can."""
    verdict = inside(replace(facts, requested=choice))
    return verdict if isinstance(verdict, Refusal) else None


def _chance(facts: Facts, calendar: Calendar, day: date, now: datetime) -> float:
    """Returns the chance that a roll passes and is due later than now, for a unit that was not hit so far. Each of the
    unit's faults is equally likely; some of them may not be possible.
    """
    opens, _ = calendar.window(day)
    share = facts.policy.probability.value / len(facts.choices)
    later = missed = 0.0  # missed: the roll had passed, and its minute is over, so the unit would have been hit
    for choice in facts.choices:
        if _refusal(facts, choice):
            continue
        minutes = (last_due(day, calendar, choice.takes()) - opens) / timedelta(minutes=1) + 1
        over = min(max((now - opens) / timedelta(minutes=1), 0.0), minutes) / minutes
        later += share * (1 - over)
        missed += share * over
    return later / (1 - missed) if missed < 1 else facts.policy.probability.value


def _day(calendar: Calendar, odds: _Odds, expected: Mapping[str, Any] | None) -> dict[str, Any]:
    opens, closes = calendar.hours(odds.day)
    refusal = odds.verdict if isinstance(odds.verdict, Refusal) else None
    return {
        "day": odds.day.isoformat(),
        "open": clock(opens),
        "close": clock(closes),
        "reason": refusal.reason if refusal else None,
        "detail": refusal.detail if refusal else "",
        "chance": odds.chance,
        "expected": expected,
    }


def _ranked(basis: Basis, odds: _Odds, expected: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Adds ``rank``, the ids of the unit's instances in the day's order: if the first has gone, the next is hit."""
    if expected is None or basis.salt is None:
        return None
    facts = odds.verdict
    if not isinstance(facts, Refusal):
        facts = pass_guards(replace(facts, salt=basis.salt), [inside])
    able = [] if isinstance(facts, Refusal) else [i for group in facts.groups for i in candidates(facts, group)]
    rank = [instance.instance_id for instance in by_rank(basis.salt, odds.day, able)] if expected["hit"] else []
    return {**expected, "rank": rank}


def outcomes(
    account: Account, settings: TriedSettings, salt: bytes, unit: str, now: datetime, days: int
) -> dict[str, dict[str, Any]]:
    """Returns what each day brings for a unit, by the day; closed days are omitted.

    A termination is the outcome of its day, otherwise the first decision is. The unit competes with all others for the
    limits of the deployment.
    """
    chosen = settings.chaos
    todays = [calendar.at(now).day for calendar in chosen.calendars.values()]
    between = ticks_between(chosen, settings.tick_minutes, min(todays), max(todays) + timedelta(days=days - 1))
    ticks = [tick for tick in between if tick[0] > now]
    by_day: dict[str, dict[str, Any]] = {}
    for decisions in skip_through(account, chosen, salt, ticks):
        for decision in decisions:
            if decision.unit != unit or not decision.day:
                continue
            day = decision.day.isoformat()
            if not by_day.get(day, {}).get("hit"):
                by_day[day] = _outcome(decision, settings)
    return by_day


def _outcome(decision: Decision, settings: TriedSettings) -> dict[str, Any]:
    target = decision.target
    calendar = settings.chaos.calendars.get(decision.policy.calendar.value)
    return {
        "reason": decision.reason,
        "detail": decision.detail,
        "hit": target is not None,
        "leashed": decision.reason == LEASHED,
        "at": f"{calendar.local(decision.tick):%H:%M}" if target and calendar else None,
        "tick": moments.iso(decision.tick) if target else None,
        "group": target.group.name if target else None,
        "instance_id": target.instance.instance_id if target else None,
    }
