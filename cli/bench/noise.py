"""Computes whether the ratio between the repetitions of two sides is more than chance.

Rates and times of repetitions differ by factors, so their logarithms are compared: the ratio is that of the geometric
means. Its interval is Welch's, which does not assume the same variance on both sides.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

from troop.report.points import middle

ALIKE = 1e-9
"""Repetitions whose relative difference is at most this have no variance."""

WIDEST = 20.0
"""The bound of an interval's logarithm (a factor of half a billion). Beyond it the factor may not fit into a number."""


@dataclass(frozen=True)
class Ratio:
    """The ratio of B to A.

    Attributes:
        low, high: the interval; None with fewer than two repetitions on a side, or if a rate is 0. See
            :meth:`widened` for an exception.
    """

    ratio: float
    low: float | None = None
    high: float | None = None

    @property
    def exceeds_noise(self) -> bool | None:
        """Whether 1 is outside the interval; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return not self.low <= 1 <= self.high

    def widened(self, below: float, above: float) -> Ratio:
        """Returns the ratio with an interval that is wider by factors, because both sides are known as intervals.

        Without an interval, it gets one only if the factors alone explain the difference.

        Args:
            below: at most 1, for the lower end.
            above: at least 1, for the upper end.
        """
        if below == above == 1:
            return self
        if self.low is not None and self.high is not None:
            return self._between(self.low * below, self.high * above)
        alone = self._between(self.ratio * below, self.ratio * above)
        return self if alone.exceeds_noise else alone

    def _between(self, low: float, high: float) -> Ratio:
        return replace(self, low=max(low, math.exp(-WIDEST)), high=min(high, math.exp(WIDEST)))


def ratio(a: Sequence[float], b: Sequence[float], confidence: float) -> Ratio:
    """Computes the ratio of rates >= 0, at least one on each side; those of A must be positive.

    Args:
        confidence: the confidence of the interval, such as 0.95.

    Raises:
        ValueError: A has a rate of 0.
    """
    if min(a) <= 0:
        raise ValueError("a ratio to a rate of 0 is undefined")
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
    # Clipped, not omitted: a ratio within the noise at one confidence must be so at every higher one.
    return Ratio(estimate, *(math.exp(max(-WIDEST, min(end, WIDEST))) for end in (low, high)))


def _alike(rates: Sequence[float]) -> bool:
    return max(rates) / min(rates) - 1 <= ALIKE


def _welch(a: Sequence[float], b: Sequence[float], confidence: float) -> tuple[float, float]:
    """Returns the interval of the difference of means, B minus A."""
    from scipy.stats import ttest_ind  # the import takes most of a second, and no other command needs it

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # about a side without variance
        interval = ttest_ind(b, a, equal_var=False).confidence_interval(confidence)
    return float(interval.low), float(interval.high)
