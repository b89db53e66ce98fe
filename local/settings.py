"""Creates settings for demonstrations: all rolls are due now, or the window stays open for hours."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from troop.chaos.roll import due_at
from troop.shared.calendars import Calendar

DATA_BUCKET = "my-data"
"""The bucket that benchmarks can read; the files of the catalogue name it."""

_MARGIN_MINUTES = 15
"""No roll is due in the last minutes of a window (see :mod:`troop.shared.calendars`)."""

_NOON, _UNTIL = 12, 15
"""Hours. In a time zone where it is noon, the date is the same as in UTC."""

_LATE = 22
"""The hour at which the first day of a lasting deployment starts."""


def local_settings(now: datetime, minutes: int = 0) -> dict[str, Any]:
    """Returns the context (keys as in cdk.json) for a deployment at the aware moment `now`.

    Ticks come every minute, the deployment is unleashed, the probability is 1, and nothing is retained. The only
    calendar is in a time zone where it is noon. Its window opened two minutes ago and stays open for more than ten
    minutes; all its rolls have been due for a minute. Raises ValueError if `now` has no time zone.

    Args:
        minutes: how much longer the window stays open; rolls are then due until these minutes are over.
    """
    ahead, local = _where_it_is(_NOON, now)
    opens = local - timedelta(minutes=2)
    closes = local + timedelta(minutes=_MARGIN_MINUTES - 1 + minutes)
    return _settings(ahead, f"{opens:%H:%M}", f"{closes:%H:%M}")


def open_settings(now: datetime) -> dict[str, Any]:
    """Returns a context like that of :func:`local_settings`, with a window that stays open for at least two hours.

    It is noon in the time zone, and the window ends at three. Rolls of some units are not due yet, unless the account's
    secret is :func:`salt_for` these units.
    """
    ahead, _ = _where_it_is(_NOON, now)
    return _settings(ahead, "00:00", f"{_UNTIL}:00")


def salt_for(units: Collection[str], now: datetime) -> str:
    """Returns a salt with which the rolls of these units are due by noon, for :func:`open_settings`.

    The salt works for the dates of `now` and of two hours later, which are also the time zone's dates. Raises
    ValueError if `now` has no time zone.
    """
    _where_it_is(_NOON, now)
    clock = Calendar("any zone's own clock", "UTC", frozenset(range(7)), 0, _UNTIL * 60)
    utc = now.astimezone(UTC)
    days = {utc.date(), (utc + timedelta(hours=2)).date()}
    salts = (f"{number:064x}" for number in itertools.count())
    return next(
        salt
        for salt in salts
        if all(due_at(salt.encode(), day, unit, clock).hour < _NOON for day in days for unit in units)
    )


def lasting_settings(now: datetime) -> dict[str, Any]:
    """Returns a context for a deployment of any duration, with a window of the whole day, with queues of fleets, and
    with faults inside instances, to which each group must consent.

    In a long window, not all rolls can be due already. So it is late in the evening in the time zone: more than nine
    out of ten rolls are due at once, the others before midnight, within one to two hours. On the next day, rolls are
    due at any minute.
    """
    ahead, _ = _where_it_is(_LATE, now)
    return _settings(ahead, "00:00", "24:00") | {"troop:inside_instances": True, "troop:queues": True}


def _where_it_is(hour: int, now: datetime) -> tuple[int, datetime]:
    """Returns the offset from UTC (-11 to 12 hours) of a time zone in which it is `hour`, and its time."""
    if now.tzinfo is None:
        raise ValueError("now must be an aware datetime")
    utc = now.astimezone(UTC)
    ahead = (hour - utc.hour + 11) % 24 - 11
    return ahead, utc + timedelta(hours=ahead)


def _settings(ahead: int, opens: str, closes: str) -> dict[str, Any]:
    return {
        "troop:leashed": False,
        "troop:probability": 1,
        "troop:min_healthy": 1,
        "troop:tick_minutes": 1,
        "troop:retain_data": False,
        "troop:log_retention_days": 1,
        "troop:bundle": "machine",
        "troop:allowed_buckets": [DATA_BUCKET],
        "troop:calendars": {
            "default": {
                "time_zone": ZONES[ahead],
                "weekdays": ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"],
                "open": opens,
                "close": closes,
                "country": None,
                "subdivision": None,
                "extra_dates": [],
                "freezes": [],
            }
        },
    }


ZONES = {
    **{-11: "Pacific/Pago_Pago", -10: "Pacific/Honolulu", -9: "Pacific/Gambier", -8: "Pacific/Pitcairn"},
    **{-7: "America/Phoenix", -6: "America/Costa_Rica", -5: "America/Panama", -4: "America/Puerto_Rico"},
    **{-3: "America/Montevideo", -2: "America/Noronha", -1: "Atlantic/Cape_Verde", 0: "UTC"},
    **{1: "Africa/Lagos", 2: "Africa/Johannesburg", 3: "Africa/Nairobi", 4: "Asia/Dubai"},
    **{5: "Asia/Karachi", 6: "Asia/Dhaka", 7: "Asia/Bangkok", 8: "Asia/Singapore"},
    **{9: "Asia/Tokyo", 10: "Australia/Brisbane", 11: "Pacific/Guadalcanal", 12: "Pacific/Tarawa"},
}
"""Time zones by their hours ahead of UTC, the same all year. Names such as Etc/GMT-11 read like the opposite."""
