"""Computes the roll: a keyed hash instead of random numbers.

A decision is a function of (salt, day, unit): a repetition has the same result, anyone with the salt can recompute it,
and no one without it can predict it.

Format: HMAC-SHA256 (RFC 2104) under the salt, over ``label|YYYY-MM-DD|name`` in UTF-8; the name comes last, so it can
contain any character. The first 53 bits of the digest, as a fraction, are uniform over [0, 1).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache

from troop.chaos.groups import Instance
from troop.shared.calendars import MARGIN_MINUTES, Calendar
from troop.shared.choice import Choice


def fraction(salt: bytes, label: str, day: date, name: str) -> float:
    """Returns a number in [0, 1), uniform and independent for every label, day and name."""
    keyed = _keyed(salt, label, day).copy()
    keyed.update(name.encode(errors="surrogatepass"))  # no tag's value must fail the tick
    return (int.from_bytes(keyed.digest()[:8], "big") >> 11) / (1 << 53)


@lru_cache(maxsize=64)
def _keyed(salt: bytes, label: str, day: date) -> hmac.HMAC:
    """Returns the hash of the part that is the same for all names: a copy of it costs half as much as a new hash."""
    return hmac.new(salt, f"{label}|{day.isoformat()}|".encode(), hashlib.sha256)


def roll(salt: bytes, day: date, unit: str) -> float:
    """Returns the unit's roll of the day; it passes if it is below the probability."""
    return fraction(salt, "roll", day, unit)


def choose(salt: bytes, day: date, unit: str, choices: Sequence[Choice]) -> Choice:
    """Returns the fault of the day among those that may hit, each with the same probability; at least one is given."""
    if len(choices) == 1:
        return choices[0]
    return choices[int(fraction(salt, "method", day, unit) * len(choices))]


_AT_ONCE = timedelta()


def due_at(salt: bytes, day: date, unit: str, calendar: Calendar, takes: timedelta = _AT_ONCE) -> datetime:
    """Returns the moment, in UTC and to the minute, from which a passed roll is due.

    Uniform over the minutes of the window, in its real length on that day, without the last ones.

    Args:
        takes: how long the fault of the day takes, see :meth:`troop.shared.choice.Choice.takes`.
    """
    opens, minutes = _minutes(calendar, day, takes)
    return opens + timedelta(minutes=int(fraction(salt, "minute", day, unit) * minutes))


def last_due(day: date, calendar: Calendar, takes: timedelta = _AT_ONCE) -> datetime:
    """Returns the latest possible :func:`due_at` of any unit, in UTC: from then on every passed roll is due."""
    opens, minutes = _minutes(calendar, day, takes)
    return opens + timedelta(minutes=minutes - 1)


@lru_cache(maxsize=1024)
def _minutes(calendar: Calendar, day: date, takes: timedelta) -> tuple[datetime, int]:
    """Returns when the window of a day opens, and the number of its minutes in which a roll can be due."""
    opens, closes = calendar.window(day)
    return opens, max(1, (closes - opens - takes) // timedelta(minutes=1) - MARGIN_MINUTES)


def by_rank(salt: bytes, day: date, instances: Iterable[Instance]) -> list[Instance]:
    """Sorts instances into the day's order; the first is the one to terminate. New or missing instances do not reorder
    the others.
    """
    return sorted(instances, key=lambda i: fraction(salt, "instance", day, i.instance_id))
