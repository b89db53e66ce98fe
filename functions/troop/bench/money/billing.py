"""Computes billed time: by the second, or by the started hour as in older studies."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal

from troop.bench.definition.money import HOURLY

LEAST = 60
"""Minimum billed seconds of each node and each volume."""

HOUR = 3600
MONTH = 30 * 24 * HOUR
"""Seconds of a month in EBS billing."""


def billed(seconds: float, billing: str) -> int:
    """Computes the billed seconds of one node that existed for ``seconds``.

    Per-second billing rounds up to a second, at least 60. Hourly billing rounds up to an hour, counted from the node's
    start, not by the clock.
    """
    if billing == HOURLY:
        return max(1, math.ceil(seconds / HOUR)) * HOUR
    return max(LEAST, math.ceil(seconds))


def seconds_between(start: datetime, end: datetime) -> float:
    """Returns the seconds from start to end; 0 if skewed clocks make the end earlier."""
    return max(0.0, (end - start).total_seconds())


def hours(seconds: int) -> Decimal:
    return Decimal(seconds) / HOUR


def months(seconds: int) -> Decimal:
    return Decimal(seconds) / MONTH
