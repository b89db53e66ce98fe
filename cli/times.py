"""Moments as people type them: a point in time, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_AGO = re.compile(r"([0-9]{1,6})\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
EXPECTED = (
    "a time such as 2026-11-20, 2026-11-20T14:00 (your clock), 2026-11-20T14:00Z, or 30m, 3h, 2d, 1w for so long ago"
)


def now() -> datetime:
    """The moment, in UTC."""
    return datetime.now(UTC)


def parse_moment(text: str, now: datetime) -> datetime:
    """An aware moment in UTC; text without an offset is on this machine's clock.

    Raises:
        ValueError: the text is none of the forms.
    """
    if match := _AGO.fullmatch(text.strip()):
        try:
            return (now - timedelta(**{_UNITS[match[2]]: int(match[1])})).astimezone(UTC)
        except OverflowError:
            raise ValueError(f"{text!r} is too long ago") from None
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not {EXPECTED}") from None
