"""Calculates when a schedule starts its next run, as EventBridge Scheduler evaluates its expression.

A time that a change of the clock skips does not come. A time that comes twice counts once, the first time.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import product

from troop.bench.records.schedule import Schedule
from troop.shared import zones

_UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NUMBER_BY_NAME = {name: str(number) for names in (_MONTHS, _DAYS) for number, name in enumerate(names, 1)}
_NAMES = re.compile("|".join(_NUMBER_BY_NAME), re.IGNORECASE)
_LAST_YEAR = 2199
_MOST_DAYS = 29 * 366
"""Days to search: in no longer time does every combination of weekday and leap day come, around the year 2100 too."""


def next_start(schedule: Schedule, now: datetime) -> datetime | None:
    """Returns the first start after `now` in UTC; None if there is none, or none within 29 years.

    Args:
        schedule: its expression passes :func:`troop.bench.records.schedule.check_expression`.
        now: aware.
    """
    kind, _, body = schedule.expression.rstrip(")").partition("(")
    if kind == "rate":
        return _next_of_rate(body, schedule.last_at or schedule.created_at, now)
    zone = zones.zone(schedule.time_zone)
    starts = iter([datetime.fromisoformat(body)]) if kind == "at" else _cron_times(body, now.astimezone(zone).date())
    moments = (_in_zone(start, zone) for start in starts)
    return next((moment for moment in moments if moment is not None and moment > now), None)


def _next_of_rate(body: str, since: datetime, now: datetime) -> datetime:
    count, unit = body.split(" ")
    period = int(count) * _UNITS[unit.rstrip("s")]
    periods = max(1, (now - since) // period + 1)
    return (since + periods * period).astimezone(UTC)


def _in_zone(local: datetime, zone: tzinfo) -> datetime | None:
    """Returns a time of a zone's clock in UTC; None if the clock skips it."""
    moment = local.replace(tzinfo=zone).astimezone(UTC)
    return moment if moment.astimezone(zone).replace(tzinfo=None) == local else None


def _cron_times(body: str, first: date) -> Iterator[datetime]:
    """Lists the times of the six fields on a clock without a zone, in order, from a day on."""
    fields = [_NAMES.sub(lambda name: _NUMBER_BY_NAME[name[0].upper()], field) for field in body.split(" ")]
    minutes, hours = sorted(_numbers(fields[0], 0, 59)), sorted(_numbers(fields[1], 0, 23))
    months, years = _numbers(fields[3], 1, 12), _numbers(fields[5], 1970, _LAST_YEAR)
    last_year = max(years)
    for ahead in range(-1, _MOST_DAYS):  # a day earlier, because of clocks that go back at midnight
        day = first + timedelta(days=ahead)
        if day.year > last_year:
            return
        if day.year in years and day.month in months and _is_on(day, fields[2], fields[4]):
            for hour, minute in product(hours, minutes):
                yield datetime.combine(day, time(hour, minute))


def _numbers(field: str, low: int, high: int) -> set[int]:
    """Returns the numbers of a field without letters, such as ``1-5,10/5``. A range can wrap: 6-2 is 6, 7, 1, 2."""
    numbers: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        start, _, end = span.partition("-")
        if start in ("", "*", "?"):
            first, last = low, high
        else:
            first, last = int(start), int(end or (high if step else start))
        if first > last:
            last += high - low + 1
        numbers |= {(n - low) % (high - low + 1) + low for n in range(first, last + 1, int(step or 1) or 1)}
    return numbers


def _is_on(day: date, days_of_month: str, days_of_week: str) -> bool:
    """Checks whether a day is one of both fields; one of them is ``?``."""
    if days_of_week != "?":
        return any(_is_weekday(day, part) for part in days_of_week.upper().split(","))
    return any(_is_day_of_month(day, part) for part in days_of_month.upper().split(","))


def _is_day_of_month(day: date, part: str) -> bool:
    last = monthrange(day.year, day.month)[1]
    if part == "L":
        return day.day == last
    if part.endswith("W"):  # the weekday next to a date, in the same month
        nominal = last if part == "LW" else int(part[:-1])
        return nominal <= last and day == _nearest_weekday(day.replace(day=nominal), last)
    return day.day in _numbers(part, 1, 31)


def _nearest_weekday(day: date, last: int) -> date:
    if day.weekday() == 5:
        return day - timedelta(days=1) if day.day > 1 else day + timedelta(days=2)
    if day.weekday() == 6:
        return day + timedelta(days=1) if day.day < last else day - timedelta(days=2)
    return day


def _is_weekday(day: date, part: str) -> bool:
    number = day.isoweekday() % 7 + 1
    if part == "L":
        return number == 7
    if part.endswith("L"):  # the last of its kind in a month
        return number == int(part[:-1]) and day.day > monthrange(day.year, day.month)[1] - 7
    weekday, hash_sign, nth = part.partition("#")
    if hash_sign:
        return number == int(weekday) and (day.day - 1) // 7 + 1 == int(nth)
    return number in _numbers(part, 1, 7)
