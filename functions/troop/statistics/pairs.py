"""Compares a candidate (B) with a baseline (A) in pairs, as a ratio with an interval of 95 %.

Rates and times differ by factors, so their logarithms are compared. With fewer than six pairs the interval is that of
the paired t-test. From six pairs on, it is that of Wilcoxon's signed ranks, which wild pairs widen less. Ranks have
only some levels of confidence: those of six pairs are 96.9 % and 93.75 %. So an end of the interval lies between the
two ends whose levels are next to 95 %. Otherwise six pairs would find less than five.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist

ALIKE = 1e-9
"""Values whose relative difference is at most this have no variance."""

WIDEST = 20.0
"""The bound of an interval's logarithm (a factor of half a billion). Beyond it the factor may not fit into a number."""

RANKS_FROM = 6
"""The fewest values of which ranks give an interval of 95 %: all six of one sign come by chance in 3.1 %."""

TAIL = 0.025
"""The share of chance beyond each end of an interval."""

STUDENT = (12.706, 4.303, 3.182, 2.776)
"""Student's t for intervals of 95 % with 1 to 4 degrees of freedom, from the NIST/SEMATECH e-Handbook of Statistical
Methods, section 1.3.6.7.2 (https://www.itl.nist.gov/div898/handbook/eda/section3/eda3672.htm)."""

MOST_EXACT = 200
"""The most pairs whose signed ranks have their exact distribution. For more it takes too long, and the normal one
misses the place of an end by one of 20,000."""


@dataclass(frozen=True)
class Ratio:
    """The ratio of B to A.

    Attributes:
        low, high: the ends of the interval; None with fewer than two pairs, or if a value of B is 0. See
            :meth:`widened` for an exception.
        pairs: the number of pairs; of two samples of ratios, that of the smaller one.
        method: "paired t", "signed rank" or "two ratios"; empty without an interval.
    """

    ratio: float
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    method: str = ""

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


def paired(a: Sequence[float], b: Sequence[float]) -> Ratio:
    """Computes the ratio B/A of values >= 0 that were measured in pairs: ``a[i]`` and ``b[i]`` are of one pair.

    Raises:
        ValueError: there is no pair, a value lacks its other half, is negative or no finite number, or A has a 0.
    """
    if len(a) != len(b):
        raise ValueError(f"each of {len(a)} values of A needs one of B, which has {len(b)}")
    if not _positive(a, b):
        return Ratio(0.0, pairs=len(a))
    if len(a) == 1:
        return Ratio(b[0] / a[0], pairs=1)
    logs = [math.log(late) - math.log(early) for early, late in zip(a, b, strict=True)]
    return _ratio(*interval(logs), pairs=len(a), method="signed rank" if len(a) >= RANKS_FROM else "paired t")


def ratio_of_ratios(a: Sequence[float], b: Sequence[float]) -> Ratio:
    """Computes the ratio B/A of two independent samples of ratios >= 0 to the same baseline.

    Each side has an interval of its own, as pairs have. The ends of both are joined by the root of the sum of squares
    (Zou and Donner, Construction of confidence limits about effect measures, 2008). So sides may scatter differently,
    and few ratios make it wider than necessary. There is none with fewer than two on a side.

    Raises:
        ValueError: a side has no ratio, one is negative or no finite number, or A has a 0.
    """
    fewest = min(len(a), len(b))
    if not _positive(a, b):
        return Ratio(0.0, pairs=fewest)
    first, second = [math.log(ratio) for ratio in a], [math.log(ratio) for ratio in b]
    if fewest < 2:
        return Ratio(math.exp(_mean(second) - _mean(first)), pairs=fewest)
    (early, early_low, early_high), (late, late_low, late_high) = interval(first), interval(second)
    centre = late - early
    below, above = math.hypot(late - late_low, early_high - early), math.hypot(late_high - late, early - early_low)
    return _ratio(centre, centre - below, centre + above, pairs=fewest, method="two ratios")


def interval(logs: Sequence[float]) -> tuple[float, float, float]:
    """Returns the estimate of the centre of at least two differences of logarithms, and the ends of its interval."""
    if _alike(logs):
        return (_mean(logs),) * 3
    if len(logs) < RANKS_FROM:
        mean, half = _mean(logs), STUDENT[len(logs) - 2] * math.sqrt(_variance(logs) / len(logs))
        return mean, mean - half, mean + half
    ordered = sorted(logs)  # then the averages are runs in order, which sort faster
    averages = sorted((low + high) / 2 for index, low in enumerate(ordered) for high in ordered[index:])
    begin, last = place(len(logs)), len(averages) - 1
    return _at(averages, last / 2), _at(averages, begin), _at(averages, last - begin)


@lru_cache
def place(pairs: int) -> float:
    """Returns at which place of the ordered averages of pairs the interval begins, between two of them; the first is 0.

    The sum of the positive ranks of differences around 0 is at most this place in 2.5 % of all cases.
    """
    most = pairs * (pairs + 1) // 2
    if pairs > MOST_EXACT:
        return NormalDist(most / 2, math.sqrt(most * (2 * pairs + 1) / 12)).inv_cdf(TAIL) - 0.5
    shares = [1.0]
    for rank in range(1, pairs + 1):
        apart = [0.0] * rank
        shares = [(without + including) / 2 for without, including in zip(shares + apart, apart + shares, strict=True)]
        del shares[most // 2 + 1 :]
    up_to = list(accumulate(shares))
    after = bisect_right(up_to, TAIL)
    return after - 1 + (TAIL - up_to[after - 1]) / (up_to[after] - up_to[after - 1])


def _at(ordered: Sequence[float], point: float) -> float:
    before = math.floor(point)
    if before == point:
        return ordered[before]
    return ordered[before] + (point - before) * (ordered[before + 1] - ordered[before])


def _ratio(centre: float, low: float, high: float, pairs: int, method: str) -> Ratio:
    """Makes a ratio of logarithms. Its ends are clipped, and never between the ratio and where they were."""
    ratio = _factor(centre)
    ratio = 1.0 if abs(ratio - 1) <= ALIKE and low == high else ratio
    if low == high:
        return Ratio(ratio, ratio, ratio, pairs, method)
    low, high = (math.exp(max(-WIDEST, min(end, WIDEST))) for end in (low, high))
    return Ratio(ratio, min(low, ratio), max(high, ratio), pairs, method)


def _factor(logarithm: float) -> float:
    return math.exp(max(-700.0, min(logarithm, 700.0)))  # of more, no number is large or small enough


def _positive(a: Sequence[float], b: Sequence[float]) -> bool:
    """Tells whether all values are positive, and refuses those of which no ratio is defined."""
    if not a or not b:
        raise ValueError("a ratio needs a value on each side")
    if not all(math.isfinite(value) and value >= 0 for value in (*a, *b)):
        raise ValueError("a ratio needs finite values of at least 0")
    if min(a) == 0:
        raise ValueError("a ratio to a value of 0 is undefined")
    return min(b) > 0


def _alike(logs: Sequence[float]) -> bool:
    return max(logs) - min(logs) <= ALIKE


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    mean = _mean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
