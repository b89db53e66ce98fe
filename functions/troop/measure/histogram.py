"""Counts of whole numbers in HdrHistogram's buckets: lowest value 1, three significant digits.

Two histograms add up bucket by bucket, so a histogram of the parts' sums is the histogram of the whole, exactly; any
value it answers is within a thousandth of a recorded one. Its size depends on how far values spread, never on how many
there are: of a microsecond to an hour it has less than 24,000 buckets.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from troop.measure.buckets import buckets

DIGITS = 3
UNIT = "us"

index_of, lowest_in, highest_in = buckets(10)
"""Three digits take 1,024 of them for every doubling."""

HIGHEST = 2**53 - 1
"""The largest value: what JSON's numbers hold exactly, everywhere; in microseconds, 285 years."""

MOST = 2**63 - 1
"""The largest count. No tool counts further, and rates and means of such counts are finite floats."""

_BUCKETS = index_of(HIGHEST) + 1


class HistogramError(ValueError):
    """A document that is no histogram of this kind; the message says why."""


class Histogram:
    """Counts by bucket; number, sum, smallest and largest value exactly.

    Attributes:
        count: how many values were recorded.
        min: the smallest; 0 when there is none.
        max: the largest; 0 when there is none.
        sum: of all values.
    """

    def __init__(self) -> None:
        self.count = self.min = self.max = self.sum = 0
        self._counts: dict[int, int] = {}

    def record(self, value: int, count: int = 1) -> None:
        """Counts ``value``, a whole number from 0 to :data:`HIGHEST`, as often as ``count`` says.

        Raises:
            ValueError: the value or the count is out of range.
        """
        if not 0 <= value <= HIGHEST or not 1 <= count <= MOST:
            raise ValueError(
                f"cannot record {value} {count} times: values are from 0 to {HIGHEST}, counts from 1 to {MOST}"
            )
        index = index_of(value)
        self._counts[index] = self._counts.get(index, 0) + count
        self._widen(value, value)
        self.count += count
        self.sum += value * count

    def add(self, other: Histogram) -> None:
        """Counts all that the other one has counted."""
        if not other.count:
            return
        counts = self._counts
        for index, count in other._counts.items():
            counts[index] = counts.get(index, 0) + count
        self._widen(other.min, other.max)
        self.count += other.count
        self.sum += other.sum

    def _widen(self, low: int, high: int) -> None:
        """Before the count is raised: an empty histogram has no smallest value yet."""
        self.min = min(self.min, low) if self.count else low
        self.max = max(self.max, high)

    def percentile(self, percent: float) -> int | None:
        """The value that at least ``percent`` of all values do not exceed, to three digits; None without any value.

        It is the largest value of its bucket, as in HdrHistogram, but never more than the maximum.
        """
        return self.percentiles((percent,))[0]

    def percentiles(self, percents: tuple[float, ...]) -> list[int | None]:
        """Several of them, for little more than the price of one."""
        buckets_by_percent = buckets_at(self._counts, percents)
        return [None if index is None else min(highest_in(index), self.max) for index in buckets_by_percent]

    @property
    def counts(self) -> Mapping[int, int]:
        """By bucket, in whatever order."""
        return self._counts

    def mean(self) -> float | None:
        """None without any value."""
        return self.sum / self.count if self.count else None

    def document(self) -> dict[str, Any]:
        """``{"digits", "unit", "counts": [[bucket, count], ...], "count", "min", "max", "sum"}``, buckets in order."""
        counts = [[index, self._counts[index]] for index in sorted(self._counts)]
        totals = {"count": self.count, "min": self.min, "max": self.max, "sum": self.sum}
        return {"digits": DIGITS, "unit": UNIT, "counts": counts, **totals}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self.document() == other.document()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Histogram({self.count} values from {self.min} to {self.max})"


def buckets_at(counts: Mapping[int, int], percents: tuple[float, ...]) -> list[int | None]:
    """In which bucket each of the percentiles is; None without any value.

    Args:
        counts: by bucket, in whatever order.
    """
    buckets_by_percent: dict[int, int] = {}
    total = sum(counts.values())
    # As written, not as stored: 99.9 of 1000 values is the 999th, and 999.0000000000001 would be one further.
    ranks = {n: max(1, -(-Fraction(str(p)) * total // 100)) for n, p in enumerate(percents)}
    pending = sorted(ranks, key=ranks.__getitem__)
    seen = 0
    for index in sorted(counts):
        seen += counts[index]
        while pending and seen >= ranks[pending[0]]:
            buckets_by_percent[pending.pop(0)] = index
    return [buckets_by_percent.get(n) for n in range(len(percents))]


def from_document(document: Any) -> Histogram:
    """The reverse of :meth:`Histogram.document`.

    Raises:
        HistogramError: it is of another kind, or contradicts itself.
    """
    if not isinstance(document, Mapping) or document.get("digits") != DIGITS or document.get("unit") != UNIT:
        raise HistogramError(f"must be an object with digits {DIGITS} and unit {UNIT}")
    result = Histogram()
    result.count, result.min, result.max, result.sum = (_whole(document, key) for key in ("count", "min", "max", "sum"))
    indices, counts = _columns(document.get("counts"))
    if sum(counts) != result.count:
        raise HistogramError(f"count is {result.count}: must be the sum of counts, {sum(counts)}")
    if result.min > result.max:
        raise HistogramError(f"min is {result.min}: must be at most max, {result.max}")
    ends = (index_of(result.min), index_of(result.max)) if result.max <= HIGHEST else (0, _BUCKETS)
    if indices and ends != (indices[0], indices[-1]):
        raise HistogramError(f"min and max are {result.min} and {result.max}: must lie in the first and last bucket")
    if not indices and (result.min or result.max or result.sum):
        raise HistogramError("without counts, min, max and sum must be 0")
    low, high = _sums(indices, counts, result.min, result.max) if indices else (0, 0)
    if not low <= result.sum <= high:
        raise HistogramError(f"sum is {result.sum}: must be from {low} to {high}, as counts, min and max say")
    result._counts = dict(zip(indices, counts))
    return result


def _sums(indices: list[int], counts: list[int], smallest: int, largest: int) -> tuple[int, int]:
    """Answers the bounds of the sum of values in these buckets, one of which is the smallest and one the largest."""
    lowest = _lowest()
    lows = [lowest[index] for index in indices]
    low = sum(map(operator.mul, lows, counts)) + (smallest - lows[0]) * counts[0]
    least = max(lows[-1], smallest)  # of a value in the last bucket
    highs = [lowest[index + 1] for index in indices]
    high = sum(map(operator.mul, highs, counts)) - sum(counts) - (highs[-1] - 1 - largest) * counts[-1]
    most = min(highs[0] - 1, largest)  # of a value in the first bucket
    return low + largest - least, high - (most - smallest)


@lru_cache(maxsize=1)
def _lowest() -> list[int]:
    """The smallest value of each bucket, and of the one behind the last."""
    return list(map(lowest_in, range(_BUCKETS + 1)))


def _whole(document: Mapping[str, Any], key: str) -> int:
    value = document.get(key)
    if type(value) is not int or not 0 <= value <= (MOST * HIGHEST if key == "sum" else MOST):  # True is none
        raise HistogramError(f"{key} must be a whole number from 0, below {'2^116' if key == 'sum' else '2^63'}")
    return value


def _columns(pairs: Any) -> tuple[list[int], list[int]]:
    """Buckets and their counts. There may be millions of pairs in one merge, so no loop here is Python's own."""
    problem = HistogramError(
        f"counts must be pairs of a bucket, from 0 below {_BUCKETS} and ascending, and a count from 1 below 2^63"
    )
    if not isinstance(pairs, list) or not set(map(type, pairs)) <= {list} or not set(map(len, pairs)) <= {2}:
        raise problem
    indices = [pair[0] for pair in pairs]
    counts = [pair[1] for pair in pairs]
    if not set(map(type, indices)) | set(map(type, counts)) <= {int}:
        raise problem
    if indices and (indices[0] < 0 or indices[-1] >= _BUCKETS or min(counts) < 1 or max(counts) > MOST):
        raise problem
    if not all(map(operator.lt, indices, indices[1:])):
        raise problem
    return indices, counts
