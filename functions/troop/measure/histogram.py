"""Counts whole numbers in HdrHistogram's buckets: lowest value 1, three significant digits.

Adding two histograms bucket by bucket gives exactly the histogram of all values. Every value that a histogram returns
is within a thousandth of a recorded one. The size depends on the range of values, not on their number: from a
microsecond to an hour there are less than 24,000 buckets.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from troop.measure.buckets import buckets
from troop.measure.histogram_rows import (
    Counts,
    Row,
    RowError,
    by_bucket,
    columns,
    from_columns,
    is_row,
    row_of,
    size_of,
    stored,
    sum_of,
)

DIGITS = 3
UNIT = "us"

_DOUBLING = 10
_EQUAL = 1 << _DOUBLING
index_of, lowest_in, highest_in = buckets(_DOUBLING)
"""Functions of buckets with three digits, which need 1,024 buckets for every doubling."""

HIGHEST = 2**53 - 1
"""The largest value: the largest integer that every JSON reader keeps exactly. In microseconds, 285 years."""

MOST = 2**63 - 1
"""The largest count: that of common tools. Rates and means of such counts are finite floats."""

_BUCKETS = index_of(HIGHEST) + 1


class HistogramError(ValueError):
    """A document is not a histogram of this kind; the message says why."""


class Histogram:
    """Counts by bucket; count, sum, minimum and maximum are exact.

    Attributes:
        count: number of values.
        min: the smallest value; 0 if there is none.
        max: the largest value; 0 if there is none.
        sum: of all values.
    """

    def __init__(self) -> None:
        self.count = self.min = self.max = self.sum = 0
        self._counts: Counts = {}

    def record(self, value: int, count: int = 1) -> None:
        """Counts ``value``, a whole number from 0 to :data:`HIGHEST`, ``count`` times.

        Raises:
            ValueError: the value or the count is out of range.
        """
        check_value(value, count)
        index, counts = index_of(value), self._counts
        if isinstance(counts, Row):
            counts = self._counts = by_bucket(counts)
        counts[index] = counts.get(index, 0) + count
        self._widen(value, value)
        self.count += count
        self.sum += value * count

    def record_all(self, values: Sequence[int]) -> None:
        """Counts each of at least one value, as :meth:`record`, in loops that run in C.

        Raises:
            ValueError: a value is out of range; then none is counted.
        """
        low, high = min(values), max(values)
        check_value(low)
        check_value(high)
        table = _buckets_of_ordinary()
        ordinary = high < len(table)
        counts = by_bucket(self._counts)
        self._counts = counts = counts if isinstance(counts, Counter) else Counter(counts)
        counts.update(map(table.__getitem__ if ordinary else index_of, values))
        self._widen(low, high)
        self.count += len(values)
        self.sum += sum(values)

    def add(self, other: Histogram) -> None:
        """Adds all counts of another histogram."""
        if not other.count:
            return
        self._counts = sum_of(self._counts, other._counts)
        self._widen(other.min, other.max)
        self.count += other.count
        self.sum += other.sum

    def _widen(self, low: int, high: int) -> None:
        """Extends the range. Must run before the count changes, because an empty histogram has no minimum."""
        self.min = min(self.min, low) if self.count else low
        self.max = max(self.max, high)

    def percentile(self, percent: float) -> int | None:
        """Returns the value that at least ``percent`` of all values do not exceed, to three digits; None if there is
        none.

        It is the largest value of its bucket, as in HdrHistogram, but never more than the maximum.
        """
        return self.percentiles((percent,))[0]

    def percentiles(self, percents: tuple[float, ...]) -> list[int | None]:
        """Returns several percentiles for little more than the time of one."""
        buckets_by_percent = buckets_at(self.counts, percents)
        return [None if index is None else min(highest_in(index), self.max) for index in buckets_by_percent]

    @property
    def counts(self) -> Mapping[int, int]:
        """Counts by bucket, unordered."""
        return by_bucket(self._counts)

    @property
    def size(self) -> int:
        """The number of counts in memory, with those of 0 between others."""
        return size_of(self._counts)

    def mean(self) -> float | None:
        """Returns the mean; None without values."""
        return self.sum / self.count if self.count else None

    def document(self, packed: bool = False) -> dict[str, Any]:
        """Returns ``{"digits", "unit", "counts", "count", "min", "max", "sum"}``. Counts are ``[bucket, count, count,
        ...]`` from the first bucket on, or ``[[bucket, count], ...]`` in order if they are scattered.

        Args:
            packed: whether counts are in columns.
        """
        counts = columns([self._counts]) if packed else stored(self._counts)
        totals = {"count": self.count, "min": self.min, "max": self.max, "sum": self.sum}
        return {"digits": DIGITS, "unit": UNIT, "counts": counts, **totals}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self.document() == other.document()

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"Histogram({self.count} values from {self.min} to {self.max})"


def check_value(value: int, count: int = 1) -> None:
    """Checks whether a histogram can count a value.

    Raises:
        ValueError: the value or the count is out of range.
    """
    if not 0 <= value <= HIGHEST or not 1 <= count <= MOST:
        raise ValueError(
            f"cannot record {value} {count} times: values are from 0 to {HIGHEST}, counts from 1 to {MOST}"
        )


def buckets_at(counts: Mapping[int, int], percents: tuple[float, ...]) -> list[int | None]:
    """Returns the bucket of each percentile; None without values.

    Args:
        counts: by bucket, unordered.
    """
    buckets_by_percent: dict[int, int] = {}
    total = sum(counts.values())
    # Fractions of the decimal notation: 99.9 % of 1000 values is the 999th, but floats give 999.0000000000001.
    ranks = {n: max(1, -(-Fraction(str(p)) * total // 100)) for n, p in enumerate(percents)}
    pending = sorted(ranks, key=ranks.__getitem__)
    seen = 0
    for index in sorted(counts):
        seen += counts[index]
        while pending and seen >= ranks[pending[0]]:
            buckets_by_percent[pending.pop(0)] = index
    return [buckets_by_percent.get(n) for n in range(len(percents))]


def from_document(document: Any) -> Histogram:
    """Reads a document of :meth:`Histogram.document`.

    Raises:
        HistogramError: the document is of another kind or inconsistent.
    """
    if not isinstance(document, Mapping) or document.get("digits") != DIGITS or document.get("unit") != UNIT:
        raise HistogramError(f"must be an object with digits {DIGITS} and unit {UNIT}")
    result = Histogram()
    result.count, result.min, result.max, result.sum = (_whole(document, key) for key in ("count", "min", "max", "sum"))
    result._counts, indices, counts = _columns(document.get("counts"))
    total = sum(counts)
    if total != result.count:
        raise HistogramError(f"count is {result.count}: must be the sum of counts, {total}")
    if result.min > result.max:
        raise HistogramError(f"min is {result.min}: must be at most max, {result.max}")
    ends = (index_of(result.min), index_of(result.max)) if result.max <= HIGHEST else (0, _BUCKETS)
    if indices and ends != (indices[0], indices[-1]):
        raise HistogramError(f"min and max are {result.min} and {result.max}: must lie in the first and last bucket")
    if not indices and (result.min or result.max or result.sum):
        raise HistogramError("without counts, min, max and sum must be 0")
    low, high = _sums(indices, counts, result.min, result.max) if indices else (0, 0)
    if not low <= result.sum <= high:
        raise HistogramError(f"sum is {result.sum}: counts, min and max require a sum from {low} to {high}")
    return result


def _sums(indices: Sequence[int], counts: list[int], smallest: int, largest: int) -> tuple[int, int]:
    """Returns the bounds of the sum of values in these buckets, given the smallest and the largest value."""
    lowest, first, last = _lowest(), indices[0], indices[-1]
    lows = lowest[first : last + 1] if isinstance(indices, range) else [lowest[index] for index in indices]
    low = sum(map(operator.mul, lows, counts))
    high = low + _widths(indices, counts) - (lowest[last + 1] - 1 - largest) * counts[-1]
    low += (smallest - lows[0]) * counts[0]
    least = max(lows[-1], smallest)  # the smallest possible maximum
    most = min(lowest[first + 1] - 1, largest)  # the largest possible minimum
    return low + largest - least, high - (most - smallest)


def _widths(indices: Sequence[int], counts: list[int]) -> int:
    """Returns for all counts together by how much the largest value of a bucket exceeds the smallest."""
    if not isinstance(indices, range):
        return sum((highest_in(index) - lowest_in(index)) * count for index, count in zip(indices, counts))
    total = 0
    for begin in range(indices.start & -_EQUAL, indices.stop, _EQUAL):  # buckets of one width
        first = max(begin, indices.start)
        several = sum(counts[first - indices.start : begin + _EQUAL - indices.start])
        total += (highest_in(first) - lowest_in(first)) * several
    return total


@lru_cache(maxsize=1)
def _buckets_of_ordinary() -> list[int]:
    """Returns the bucket of each value of up to a second in microseconds; eight megabytes."""
    table: list[int] = []
    for index in range(index_of(1 << 20)):
        table += [index] * (highest_in(index) + 1 - lowest_in(index))
    return table


@lru_cache(maxsize=1)
def _lowest() -> list[int]:
    """Returns the smallest value of each bucket, and of the one after the last."""
    return list(map(lowest_in, range(_BUCKETS + 1)))


def _whole(document: Mapping[str, Any], key: str) -> int:
    value = document.get(key)
    if type(value) is not int or not 0 <= value <= (MOST * HIGHEST if key == "sum" else MOST):  # excludes True
        raise HistogramError(f"{key} must be a whole number from 0, below {'2^116' if key == 'sum' else '2^63'}")
    return value


def _columns(pairs: Any) -> tuple[Counts, Sequence[int], list[int]]:
    """Returns the counts of a row or pairs, their buckets, and a count for each bucket; a row may have counts of 0
    within. A merge may have millions of counts, so all loops here run in C.
    """
    problem = HistogramError(
        "counts must be a bucket and the counts from there on, without 0 at the ends, or pairs of a bucket, from 0 "
        f"below {_BUCKETS} and ascending, and a count from 1 below 2^63"
    )
    if isinstance(pairs, Mapping):
        try:
            row = from_columns(pairs, _BUCKETS, 1)[0]
        except (RowError, IndexError):
            raise problem from None
        if isinstance(row, Row):
            return row, range(row.first, row.first + row.length), row.unpacked()[1:]
        pairs = row
    if isinstance(pairs, list) and is_row(pairs):
        try:
            row = row_of(pairs, _BUCKETS, MOST)
        except RowError:
            raise problem from None
        return row, range(row.first, row.first + row.length), pairs[1:]
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
    return dict(zip(indices, counts)), indices, counts
