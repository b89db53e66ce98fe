"""Compares when a schedule's ticks came with the window of its calendar: EventBridge Scheduler has time zones of its
own. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from troop.shared import zones
from troop.shared.calendars import Calendar
from troop.shared.settings import OLDEST_TICK

AROUND = timedelta(hours=3)
"""The time before and after the expected ticks in which ticks are searched."""

_SEARCHED_DAYS = 31


@dataclass(frozen=True)
class TickSpan:
    """The first and the last tick of a schedule on a local day, in UTC."""

    day: date
    first: datetime
    last: datetime


def schedule_hours(calendar: Calendar) -> tuple[int, int]:
    """Returns the first and the last full hour of the day in which a calendar's schedule ticks.

    It includes the hour in which the window ends, or which begins at its end: those ticks sweep up after the last tick
    within the window. After a window to 24:00, only the sweep's own schedule does.
    """
    return calendar.open_minute // 60, min(calendar.close_minute // 60, 23)


def last_spans(calendars: Mapping[str, Calendar], tick_minutes: int, now: datetime) -> dict[str, TickSpan]:
    """Returns the expected ticks of each calendar's last business day that is over, without days on which the clocks
    change; nothing for a calendar without such a day in the last month.
    """
    spans = {}
    for name, calendar in calendars.items():
        today = calendar.at(now).day
        days = (today - timedelta(days=n) for n in range(_SEARCHED_DAYS))
        over = (_span(calendar, day, tick_minutes) for day in days if calendar.is_business_day(day))
        if span := next((span for span in over if span and span.last + AROUND <= now), None):
            spans[name] = span
    return spans


def _span(calendar: Calendar, day: date, tick_minutes: int) -> TickSpan | None:
    zone = zones.zone(calendar.time_zone)
    midnight = datetime.combine(day, time.min, zone)
    if midnight.utcoffset() != datetime.combine(day + timedelta(days=1), time.min, zone).utcoffset():
        return None
    first, last = schedule_hours(calendar)
    moments = midnight + timedelta(hours=first), midnight + timedelta(hours=last + 1, minutes=-tick_minutes)
    return TickSpan(day, *(moment.astimezone(UTC) for moment in moments))


def shift(span: TickSpan, came: Sequence[datetime]) -> timedelta:
    """Returns by how much the ticks of a day came late, or early (negative); zero if they did not.

    Both the first and the last are shifted in the same direction, by more than a delivery can take. A tick that is
    missing at one end, and ticks of the next day's window, are no shift.

    Args:
        came: the moments of ticks from :data:`AROUND` before to :data:`AROUND` after the span.
    """
    if not came:
        return timedelta()
    first, last = min(came) - span.first, max(came) - span.last
    nearer = min(first, last, key=abs)
    same_direction = (first > timedelta()) == (last > timedelta())
    return nearer if same_direction and abs(nearer) > OLDEST_TICK else timedelta()
