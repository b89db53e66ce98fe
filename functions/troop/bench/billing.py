"""How long something is paid for: by the second, or by the started hour as older studies were."""

from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal

from troop.bench.money import HOURLY

LEAST = 60
"""Seconds that are paid for of each node, and of each volume."""

HOUR = 3600
MONTH = 30 * 24 * HOUR
"""Seconds of a month by which EBS counts."""


def billed(seconds: float, billing: str) -> int:
    """Seconds that are paid for of one node that was there for so many.

    By the second, a started second is one, and there are at least 60. By the hour, a started hour is one, counted from
    the node's own start: the clock's hours mean nothing.
    """
    if billing == HOURLY:
        return max(1, math.ceil(seconds / HOUR)) * HOUR
    return max(LEAST, math.ceil(seconds))


def seconds_between(start: datetime, end: datetime) -> float:
    """How long; 0 when the clocks that told the two moments disagree."""
    return max(0.0, (end - start).total_seconds())


def hours(seconds: int) -> Decimal:
    return Decimal(seconds) / HOUR


def months(seconds: int) -> Decimal:
    return Decimal(seconds) / MONTH
