"""Cron expressions of EventBridge Scheduler for the ticks of a calendar."""

from __future__ import annotations

from troop.calendars import WEEKDAYS, Calendar


def cron_expression(calendar: Calendar, tick_minutes: int) -> str:
    """``cron(...)`` for a tick every ``tick_minutes`` of each hour the window touches, on the calendar's weekdays.

    The expression is meant for the calendar's own time zone. Its hours are whole: ticks before a window that opens at
    half past find the calendar closed. The hour in which the window ends, or which begins at its end, is always among
    them, for the ticks after the window sweep up what the last one within it may have left behind; after a
    window to 24:00 only the sweep's own schedule does.

    Args:
        calendar: its ``weekdays``, ``open_minute`` and ``close_minute`` (exclusive) are used.
        tick_minutes: divides 60.
    """
    minutes = "*" if tick_minutes == 1 else f"0/{tick_minutes}"
    first, last = calendar.open_minute // 60, min(calendar.close_minute // 60, 23)
    hours = str(first) if first == last else f"{first}-{last}"
    days = ",".join(WEEKDAYS[day] for day in sorted(calendar.weekdays))
    return f"cron({minutes} {hours} ? * {days} *)"
