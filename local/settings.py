"""Settings of a deployment that is to be seen at work: now, with every roll due, or for hours."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from troop.calendars import Calendar
from troop.chaos.roll import due_at

DATA_BUCKET = "my-data"
"""What benchmarks may read; the catalogue's files name it."""

_MARGIN_MINUTES = 15
"""No roll is due in the last minutes of a window (see the calendars of the core)."""

_NOON, _UNTIL = 12, 15
"""Hours. When a zone's clock shows noon, it is the same day there as in UTC."""

_LATE = 22
"""The hour at which a lasting deployment begins its first day."""


def local_settings(now: datetime) -> dict[str, Any]:
    """Context (keys as in cdk.json) for a deployment at the aware moment `now`.

    A tick every minute, unleashed, probability 1, nothing retained. The only calendar lives in a zone whose clock shows
    noon: its window opened two minutes ago, everything in it fell due by a minute ago, and it stays open for more than
    ten minutes. ValueError if `now` has no time zone.
    """
    ahead, local = _where_it_is(_NOON, now)
    opens = local - timedelta(minutes=2)
    closes = local + timedelta(minutes=_MARGIN_MINUTES - 1)
    return _settings(ahead, f"{opens:%H:%M}", f"{closes:%H:%M}")


def open_settings(now: datetime) -> dict[str, Any]:
    """Context like that of :func:`local_settings`, for a window that stays open for two hours or more.

    The zone's clock shows noon, and the window ends at three. The rolls of some units are not due yet, unless the
    account's secrets are :func:`salt_for` these units.
    """
    ahead, _ = _where_it_is(_NOON, now)
    return _settings(ahead, "00:00", f"{_UNTIL}:00")


def salt_for(units: Collection[str], now: datetime) -> str:
    """A salt by which the rolls of these units are due from noon, in deployments with :func:`open_settings`.

    For the day of `now` and that of two hours later, which are the zone's days, too. ValueError if `now` has no time
    zone.
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
    """The same for as long as anybody likes: the window is the whole day.

    As no window can be long and have all its rolls behind it, the zone is one in which it is late in the evening: more
    than nine rolls in ten are due at once, and the others before midnight, in one to two hours. Then the next day
    begins, with rolls at any minute of it.
    """
    ahead, _ = _where_it_is(_LATE, now)
    return _settings(ahead, "00:00", "24:00")


def _where_it_is(hour: int, now: datetime) -> tuple[int, datetime]:
    """The hours (-11 to 12) by which the clock of a zone in which it is `hour` is ahead of UTC, and what it shows."""
    if now.tzinfo is None:
        raise ValueError("now has to be an aware datetime")
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
                "time_zone": _zone(ahead),
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


def _zone(hours_ahead: int) -> str:
    """The zone whose clock is that many hours (-11 to 12) ahead of UTC; the Etc zones count the other way round."""
    return "Etc/GMT" if hours_ahead == 0 else f"Etc/GMT{-hours_ahead:+d}"
