"""Checks whether a unit recovered slowly, by its own history."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

LATEST = 20
"""The number of a unit's latest recoveries that count: older ones are not representative."""

ENOUGH = 5
"""The fewest recoveries from which to estimate the usual time."""

TIMES = 2.0
MORE_SECONDS = 60.0


def usual(earlier: Sequence[float]) -> float | None:
    """Returns the usual recovery time of a unit, in seconds: the median of its recoveries; None if they are too few.

    Args:
        earlier: seconds of the unit's recoveries by the same method, newest first.
    """
    latest = earlier[:LATEST]
    return float(median(latest)) if len(latest) >= ENOUGH else None


def is_slow(seconds: float, usually: float | None) -> bool:
    """Checks whether a recovery took more than twice the usual time, and more than a minute longer: double a few
    seconds is not news.
    """
    return usually is not None and seconds > max(TIMES * usually, usually + MORE_SECONDS)
