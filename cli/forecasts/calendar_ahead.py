"""Computes the calendars of the next weeks: holidays, freezes, and the expected terminations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from cli.shared.settings_files import TriedSettings
from troop.chaos.change_calendars import assumptions
from troop.chaos.decisions import TERMINATE, Decision
from troop.chaos.expected_ticks import expected_ticks, ticks_of
from troop.chaos.facts import Account, Switch
from troop.chaos.forecast import ASSUMPTIONS, LEASHED, skip_through, ticks_between
from troop.chaos.outlook import policy_at
from troop.chaos.units import by_unit
from troop.shared import moments
from troop.shared.calendars import Calendar, clock

DAYS_AHEAD = 14
"""The days within which the next open one is looked for: enough for every usual holiday."""

TAKEN_FOR_GRANTED = (*ASSUMPTIONS, "alarms are OK, and no instance refresh is under way")


@dataclass(frozen=True)
class Basis:
    """The inputs of a forecast.

    Attributes:
        salt: None if the caller may not read it; then no termination can be predicted.
        no_salt: why there is no salt.
    """

    account: Account
    settings: TriedSettings
    salt: bytes | None
    no_salt: str = ""

    def assumptions(self) -> list[str]:
        return [*TAKEN_FOR_GRANTED, *assumptions(self.account.changes)]


def document(basis: Basis, now: datetime, weeks: int, *, unleashed: bool = False) -> dict[str, Any]:
    """Returns every calendar from the Monday of its current week, and the terminations expected from now on, as JSON.

    Args:
        weeks: the number of weeks, including the current one.
        unleashed: assume that the deployment is neither leashed nor halted.
    """
    calendars = basis.settings.chaos.calendars.values()
    switch = basis.account.switch
    lasts = {calendar.name: _days(calendar, now, weeks)[-1] for calendar in calendars}
    return {
        "now": moments.iso(now),
        "calendars": [_calendar(calendar, basis, now, weeks) for calendar in calendars],
        "expected": None if basis.salt is None else list(_expected(basis, basis.salt, now, lasts, unleashed=unleashed)),
        "not_expected": basis.no_salt,
        "halted": switch.halted,
        "leashed": switch.leashed,
        "unleashed": unleashed,
        "assumptions": basis.assumptions(),
    }


def next_tick(settings: TriedSettings, now: datetime) -> tuple[datetime, str] | None:
    """Returns the next tick after ``now``, and its calendar; None if no window opens within :data:`DAYS_AHEAD` days."""
    for days in (1, 4, DAYS_AHEAD):
        calendars = settings.chaos.calendars.values()
        if ticks := expected_ticks(calendars, settings.tick_minutes, now, now + timedelta(days=days)):
            return ticks[0]
    return None


def next_day(basis: Basis, now: datetime) -> dict[str, Any] | None:
    """Returns the next day on which the window of a unit is open, and the terminations expected on it, as JSON.

    Returns:
        None if there is no such day within :data:`DAYS_AHEAD` days.
    """
    settings = basis.settings.chaos
    units = by_unit(basis.account.groups, settings.units)
    policies = (policy_at(units[unit], basis.account.items.get(unit, {}), settings, now) for unit in units)
    names = {str(policy.calendar.value) for policy in policies} & settings.calendars.keys() or {*settings.calendars}
    calendars = [settings.calendars[name] for name in names]
    opens = [day for one in calendars if (day := _next_open(one, basis.settings.tick_minutes, now))]
    if not opens:
        return None
    day, lasts = min(opens), dict.fromkeys(settings.calendars, min(opens))
    return {
        "day": day.isoformat(),
        "is_today": any(calendar.at(now).day == day for calendar in calendars),
        "expected": None if basis.salt is None else list(_expected(basis, basis.salt, now, lasts, unleashed=False)),
        "not_expected": basis.no_salt,
        "halted": basis.account.switch.halted,
        "leashed": basis.account.switch.leashed,
    }


def _next_open(calendar: Calendar, tick_minutes: int, now: datetime) -> date | None:
    days = [calendar.at(now).day + timedelta(days=n) for n in range(DAYS_AHEAD + 1)]
    return next((day for day in days if any(tick > now for tick in ticks_of(calendar, day, tick_minutes))), None)


def _calendar(calendar: Calendar, basis: Basis, now: datetime, weeks: int) -> dict[str, Any]:
    return {
        "calendar": calendar.name,
        "time_zone": calendar.time_zone,
        "open": clock(calendar.open_minute),
        "close": clock(calendar.close_minute),
        "today": calendar.at(now).day.isoformat(),
        "days": [_day(calendar, day, basis.settings.tick_minutes, now) for day in _days(calendar, now, weeks)],
    }


def _days(calendar: Calendar, now: datetime, weeks: int) -> list[date]:
    """Lists the days of a calendar's weeks, by its own time zone: on a Monday it may still be Sunday elsewhere."""
    today = calendar.at(now).day
    first = today - timedelta(days=today.weekday())
    return [first + timedelta(days=n) for n in range(7 * weeks)]


def _day(calendar: Calendar, day: date, tick_minutes: int, now: datetime) -> dict[str, Any]:
    closure = calendar.day_off(day) or calendar.frozen(day)
    return {
        "day": day.isoformat(),
        "closed": {"reason": closure.kind, "detail": closure.detail} if closure else None,
        "half_day": None if closure else _half_day(calendar, day),
        "ticks": sum(tick > now for tick in ticks_of(calendar, day, tick_minutes)),
    }


def _half_day(calendar: Calendar, day: date) -> dict[str, str] | None:
    halves = [extra.name for extra in calendar.extras(day) if extra.hours]
    opens, closes = calendar.hours(day)
    return {"open": clock(opens), "close": clock(closes), "name": ", ".join(halves)} if halves else None


def _expected(
    basis: Basis, salt: bytes, now: datetime, lasts: Mapping[str, date], *, unleashed: bool
) -> Iterator[dict[str, Any]]:
    """Yields the expected terminations from now on, until the last day of each calendar."""
    chosen, account = basis.settings.chaos, basis.account
    if unleashed:
        account = replace(account, switch=Switch(halted=False, leashed=False))
    todays = [calendar.at(now).day for calendar in chosen.calendars.values()]
    between = ticks_between(chosen, basis.settings.tick_minutes, min(todays), max(lasts.values()))
    ticks = [tick for tick in between if tick[0] > now]
    for decisions in skip_through(account, chosen, salt, ticks):
        hits = (_hit(decision, basis) for decision in decisions if decision.reason in (TERMINATE, LEASHED))
        yield from (hit for hit in hits if hit["day"] <= lasts[hit["calendar"]].isoformat())


def _hit(decision: Decision, basis: Basis) -> dict[str, Any]:
    calendar = str(decision.policy.calendar.value)
    target = decision.target
    return {
        "calendar": calendar,
        "day": str(decision.day),
        "at": f"{basis.settings.chaos.calendars[calendar].local(decision.tick):%H:%M}",
        "tick": moments.iso(decision.tick),
        "unit": decision.unit,
        "group": target.group.name if target else None,
        "instance_id": target.instance.instance_id if target else None,
        "reason": decision.reason,
    }
