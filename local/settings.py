"""Settings of a deployment that is to be seen at work now: every roll is due, and no midnight is near."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

DATA_BUCKET = "my-data"
"""What benchmarks may read; the catalogue's files name it."""

_MARGIN_MINUTES = 15
"""No roll is due in the last minutes of a window (see the calendars of the core)."""


def local_settings(now: datetime) -> dict[str, Any]:
    """Context (keys as in cdk.json) for a deployment at the aware moment `now`.

    A tick every minute, unleashed, probability 1, nothing retained. The only calendar lives in a zone whose clock shows
    noon: its window opened two minutes ago, everything in it fell due by a minute ago, and it stays open for more than
    ten minutes. ValueError if `now` has no time zone.
    """
    if now.tzinfo is None:
        raise ValueError("now has to be an aware datetime")
    utc = now.astimezone(UTC)
    ahead = 12 - utc.hour
    local = utc + timedelta(hours=ahead)
    opens = local - timedelta(minutes=2)
    closes = local + timedelta(minutes=_MARGIN_MINUTES - 1)
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
                "open": f"{opens:%H:%M}",
                "close": f"{closes:%H:%M}",
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
