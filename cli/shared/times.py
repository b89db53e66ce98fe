"""Parses moments as people type them: a point in time, or an age."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from cli.shared.errors import CliError, Exit
from troop.shared import moments

_AGO = re.compile(r"([0-9]{1,6})\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
EXPECTED = (
    "a time such as 2026-11-20, 2026-11-20T14:00 (your clock), 2026-11-20T14:00Z, yesterday, today, or an age such as "
    "30m, 3h, 2d, 1w"
)
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}


def now() -> datetime:
    """Returns the current moment in UTC."""
    return datetime.now(UTC)


def day_in_words(text: str, now: datetime) -> str:
    """Returns yesterday, today or tomorrow on this machine's clock as YYYY-MM-DD; other text unchanged."""
    days = _DAYS.get(text.strip().lower())
    return text if days is None else (now.astimezone().date() + timedelta(days=days)).isoformat()


def midnight(day: date) -> datetime:
    """Returns the moment in UTC at which a day begins on this machine's clock."""
    return datetime.combine(day, time.min).astimezone(UTC)


def parse_moment(text: str, now: datetime) -> datetime:
    """Parses a moment into UTC; text without an offset is local time, and a day its first moment.

    Raises:
        ValueError: the text has none of the forms.
    """
    text = day_in_words(text, now)
    if match := _AGO.fullmatch(text.strip()):
        try:
            return (now - timedelta(**{_UNITS[match[2]]: int(match[1])})).astimezone(UTC)
        except OverflowError:
            raise ValueError(f"{text!r} is too long ago") from None
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not {EXPECTED}") from None


def moment_of(option: str, text: str | None, now: datetime) -> str | None:
    """Returns the moment that an option gives, for a query.

    Raises:
        CliError: USAGE.
    """
    if text is None:
        return None
    try:
        return moments.iso(parse_moment(text, now))
    except ValueError as error:
        raise CliError(Exit.USAGE, f"{option}: {error}") from None
