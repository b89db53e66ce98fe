"""The roll: a keyed hash in place of dice.

A decision is a function of (salt, day, unit): repeating it changes nothing, somebody who holds the salt can recompute
it, and nobody without it can predict it.

Format: HMAC-SHA256 (RFC 2104) under the salt, over ``label|YYYY-MM-DD|name`` in UTF-8; the name comes last, so it may
hold any character. The first 53 bits of the digest, as a fraction, are uniform over [0, 1).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from functools import lru_cache

from troop.calendars import MARGIN_MINUTES, Calendar
from troop.chaos.groups import Instance


def fraction(salt: bytes, label: str, day: date, name: str) -> float:
    """A number in [0, 1), uniform and independent for every label, day and name."""
    keyed = _keyed(salt, label, day).copy()
    keyed.update(name.encode(errors="surrogatepass"))  # whatever a tag holds, it does not end the tick
    return (int.from_bytes(keyed.digest()[:8], "big") >> 11) / (1 << 53)


@lru_cache(maxsize=64)
def _keyed(salt: bytes, label: str, day: date) -> hmac.HMAC:
    """What the messages of all names have in common: to carry on from a copy costs half as much as to begin anew."""
    return hmac.new(salt, f"{label}|{day.isoformat()}|".encode(), hashlib.sha256)


def roll(salt: bytes, day: date, unit: str) -> float:
    """The unit's roll of the day; it passes when it is below the probability."""
    return fraction(salt, "roll", day, unit)


def due_at(salt: bytes, day: date, unit: str, calendar: Calendar) -> datetime:
    """The moment, in UTC and to the minute, from which a passed roll is due.

    Uniform over the minutes of the window, as long as it really is on that day, less its last ones.
    """
    opens, minutes = _minutes(calendar, day)
    return opens + timedelta(minutes=int(fraction(salt, "minute", day, unit) * minutes))


def last_due(day: date, calendar: Calendar) -> datetime:
    """The latest moment, in UTC, that :func:`due_at` can give for any unit: from then on every passed roll is due."""
    opens, minutes = _minutes(calendar, day)
    return opens + timedelta(minutes=minutes - 1)


@lru_cache(maxsize=1024)
def _minutes(calendar: Calendar, day: date) -> tuple[datetime, int]:
    """When the window of a day opens, and in how many of its minutes something may fall due."""
    opens, closes = calendar.window(day)
    return opens, max(1, (closes - opens) // timedelta(minutes=1) - MARGIN_MINUTES)


def by_rank(salt: bytes, day: date, instances: Iterable[Instance]) -> list[Instance]:
    """Instances in the day's order; the first is the one to terminate. Others coming or going never reorder them."""
    return sorted(instances, key=lambda i: fraction(salt, "instance", day, i.instance_id))
