"""Whether a difference is more than chance: repetitions of two sides, and the ratio between them.

Rates and times of repetitions differ by factors, so they are compared by their logarithms: the ratio is that of the
geometric means, and its interval Welch's, which does not take for granted that both sides scatter alike.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean

ALIKE = 1e-9
"""Repetitions that differ by no more than this part do not scatter at all."""

WIDEST = 20.0
"""Of the logarithm: an interval is told to no more than that (half a billion times as much, or as little), for further
on it could not be told as a number.
"""


@dataclass(frozen=True)
class Ratio:
    """Of B to A.

    Attributes:
        low, high: of the interval; None with fewer than two repetitions on a side, or where a rate is 0.
    """

    ratio: float
    low: float | None = None
    high: float | None = None

    @property
    def exceeds_noise(self) -> bool | None:
        """Whether 1 is outside of the interval; None without one."""
        if self.low is None or self.high is None:
            return None
        return not self.low <= 1 <= self.high


def middle(rates: Sequence[float]) -> float:
    """The geometric mean; 0 as soon as one of them is."""
    return geometric_mean(rates) if min(rates) > 0 else 0.0


def ratio(a: Sequence[float], b: Sequence[float], confidence: float) -> Ratio:
    """Of rates from 0, at least one on each side, and none of A's 0.

    Args:
        confidence: of the interval, such as 0.95.

    Raises:
        ValueError: A has a rate of 0, to which nothing has a ratio.
    """
    if min(a) <= 0:
        raise ValueError("there is no ratio to 0")
    if min(b) <= 0:
        return Ratio(0.0)
    estimate = middle(b) / middle(a)
    if len(a) < 2 or len(b) < 2:
        return Ratio(estimate)
    if _alike(a) and _alike(b):
        estimate = 1.0 if abs(estimate - 1) <= ALIKE else estimate
        return Ratio(estimate, estimate, estimate)
    low, high = _welch([math.log(rate) for rate in a], [math.log(rate) for rate in b], confidence)
    if math.isnan(low) or math.isnan(high):
        return Ratio(estimate)
    # Cut, and not left out: what is within the noise at one confidence must be so at every higher one.
    return Ratio(estimate, *(math.exp(max(-WIDEST, min(end, WIDEST))) for end in (low, high)))


def _alike(rates: Sequence[float]) -> bool:
    return max(rates) / min(rates) - 1 <= ALIKE


def _welch(a: Sequence[float], b: Sequence[float], confidence: float) -> tuple[float, float]:
    """The interval of the difference of means, B less A."""
    from scipy.stats import ttest_ind  # most of a second to import, which no other command needs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a side that does not scatter, it says so
        interval = ttest_ind(b, a, equal_var=False).confidence_interval(confidence)
    return float(interval.low), float(interval.high)
