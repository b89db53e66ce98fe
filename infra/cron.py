"""Builds cron expressions of EventBridge Scheduler for the ticks of a calendar."""

from __future__ import annotations

from troop.calendars import WEEKDAYS, Calendar


def cron_expression(calendar: Calendar, tick_minutes: int) -> str:
    """Returns ``cron(...)`` for a tick every ``tick_minutes`` of each hour that the window touches, on the calendar's
    weekdays.

    The expression applies in the calendar's time zone. Its hours are whole: ticks before a window that opens at half
    past find the calendar closed. It always includes the hour in which the window ends, or which begins at its end,
    because those ticks sweep up after the last tick within the window. After a window to 24:00, only the sweep's own
    schedule does.

    Args:
        calendar: its ``weekdays``, ``open_minute`` and ``close_minute`` (exclusive) are used.
        tick_minutes: divides 60.
    """
    minutes = "*" if tick_minutes == 1 else f"0/{tick_minutes}"
    first, last = calendar.open_minute // 60, min(calendar.close_minute // 60, 23)
    hours = str(first) if first == last else f"{first}-{last}"
    days = ",".join(WEEKDAYS[day] for day in sorted(calendar.weekdays))
    return f"cron({minutes} {hours} ? * {days} *)"
