"""Moments as text: UTC, to the millisecond, of one width, so that their order is the order of the text."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(moment: datetime) -> str:
    """An aware moment as ``2026-11-20T17:05:00.000Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse(text: str) -> datetime:
    """The reverse of :func:`iso`; takes any ISO 8601 form with an offset.

    Raises:
        ValueError: if the text is no moment, or has no offset.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} says no offset from UTC")
    return moment.astimezone(UTC)
