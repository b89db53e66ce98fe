"""Parses moments as people type them: a point in time, or an age."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_AGO = re.compile(r"([0-9]{1,6})\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
EXPECTED = (
    "a time such as 2026-11-20, 2026-11-20T14:00 (your clock), 2026-11-20T14:00Z, or an age such as 30m, 3h, 2d, 1w"
)


def now() -> datetime:
    """Returns the current moment in UTC."""
    return datetime.now(UTC)


def parse_moment(text: str, now: datetime) -> datetime:
    """Parses a moment into UTC; text without an offset is local time.

    Raises:
        ValueError: the text has none of the forms.
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
