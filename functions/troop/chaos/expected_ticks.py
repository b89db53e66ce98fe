"""Computes when ticks are expected: the effect of the schedules, as far as chaos depends on it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta

from troop.shared import zones
from troop.shared.calendars import Calendar


def expected_ticks(
    calendars: Iterable[Calendar], tick_minutes: int, after: datetime, until: datetime
) -> list[tuple[datetime, str]]:
    """Lists the ticks in the open windows of ``calendars``: (moment in UTC, calendar's name), in order.

    Schedules also tick on holidays, in freezes, around the window and in the other part of half days; these ticks are
    not needed.

    Args:
        tick_minutes: a divisor of 60: ticks are at its full multiples on the wall clock.
        after, until: aware; the first excluded, the second included.
    """
    ticks = []
    for calendar in calendars:
        day, last = calendar.local(after).date(), calendar.local(until).date()
        while day <= last:
            ticks += [(tick, calendar.name) for tick in ticks_of(calendar, day, tick_minutes) if after < tick <= until]
            day += timedelta(days=1)
    return sorted(ticks)


def ticks_of(calendar: Calendar, day: date, tick_minutes: int) -> list[datetime]:
    """Lists the ticks in a calendar's window on a local day, in UTC and in order; none on a closed day."""
    if not is_open(calendar, day):
        return []
    midnight = datetime.combine(day, time.min, zones.zone(calendar.time_zone))
    opens, closes = calendar.hours(day)
    first = -(-opens // tick_minutes) * tick_minutes
    ticks = []
    for minute in range(first, closes, tick_minutes):
        local = midnight + timedelta(minutes=minute)  # on the wall clock
        tick = local.astimezone(UTC)
        # Without ticks at times that the clocks skip on that day.
        if tick.astimezone(local.tzinfo).replace(tzinfo=None) == local.replace(tzinfo=None):
            ticks.append(tick)
    return ticks


def is_open(calendar: Calendar, day: date) -> bool:
    """Checks whether a local day has a window: it is a business day, and not frozen."""
    return calendar.is_business_day(day) and calendar.frozen(day) is None
