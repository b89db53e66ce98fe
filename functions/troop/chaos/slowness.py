"""Whether a unit took long to recover, by its own history."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

LATEST = 20
"""So many of a unit's latest recoveries count: what was usual a year ago is not what is usual now."""

ENOUGH = 5
"""With fewer recoveries there is no saying what is usual."""

TIMES = 2.0
MORE_SECONDS = 60.0


def usual(earlier: Sequence[float]) -> float | None:
    """What a unit usually takes, in seconds: the median of its earlier recoveries; None when they are too few.

    Args:
        earlier: seconds of the unit's recoveries by the same method, newest first.
    """
    latest = earlier[:LATEST]
    return float(median(latest)) if len(latest) >= ENOUGH else None


def is_slow(seconds: float, usually: float | None) -> bool:
    """More than twice as long as usual, and more than a minute longer: seconds that double are no news."""
    return usually is not None and seconds > max(TIMES * usually, usually + MORE_SECONDS)
