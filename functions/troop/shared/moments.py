"""Converts moments to text: UTC, with a fixed width, so that the texts sort by time."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(moment: datetime) -> str:
    """Formats an aware moment as ``2026-11-20T17:05:00.000Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def second(moment: datetime) -> str:
    """Formats an aware moment for a sentence: ``2026-11-20T17:05:00Z``."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def parse(text: str) -> datetime:
    """Parses a moment, the reverse of :func:`iso`; accepts any ISO 8601 form with an offset.

    Raises:
        ValueError: the text is not a moment, or has no offset.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no offset from UTC")
    return moment.astimezone(UTC)


def key_range(since: datetime | None, until: datetime | None) -> tuple[str, str]:
    """Returns the first and the last sort key that begins with a moment from ``since`` on, and before ``until``.

    "#" sorts before every character of a moment, so a bare moment precedes all keys of that moment.
    """
    return iso(since) if since else "0", iso(until) if until else "9999-12-31T23:59:59.999Z~"
