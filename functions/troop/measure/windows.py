"""Counts times over time: by step, in coarse buckets, because there can be many steps.

Every doubling has sixteen buckets, and every value below 32 has its own, so all results are within a sixteenth of the
recorded values. A step with times from a microsecond to a minute has less than 400 buckets. Like histograms, two of
these add up step by step and bucket by bucket.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import Any

from troop.measure import histogram
from troop.measure.buckets import buckets
from troop.measure.histogram import HIGHEST, MOST, Histogram, buckets_at
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
    used,
)

MOST_STEPS = 2 * 24 * 3600
"""The most steps of several nodes: as many as counts by second, because a clock may be hours off. :func:`step_for`
gives one node far fewer.
"""

TARGET_STEPS = 300
_STEPS = (1, 2, 5, 10, 30, 60, 120, 300, 600)

index_of, lowest_in, highest_in = buckets(4)

BUCKETS = index_of(HIGHEST) + 1
_TWICE_THE_MIDDLE = [lowest_in(bucket) + highest_in(bucket) for bucket in range(BUCKETS)]


def mean_of(counts: Mapping[int, int]) -> float | None:
    """Returns the mean of counts by bucket in microseconds, as if each time were the middle of its bucket."""
    count = sum(counts.values())
    total = sum(map(operator.mul, map(_TWICE_THE_MIDDLE.__getitem__, counts), counts.values()))
    return total / 2 / count if count else None


def step_for(seconds: float) -> int:
    """Returns the length of a step for a recording of ``seconds`` including the warm-up: 1, 2, 5, 10, 30, 60, ...
    seconds.

    There are at most a few hundred steps. The length depends on nothing else, so all nodes of a phase have the same.
    """
    step = next((step for step in _STEPS if seconds <= step * TARGET_STEPS), _STEPS[-1])
    while seconds > step * TARGET_STEPS:
        step *= 2
    return step


def coarse(times: Histogram) -> dict[int, int]:
    """Returns the counts of a histogram of microseconds by bucket of this module."""
    counts: dict[int, int] = {}
    for bucket, count in times.counts.items():
        index = _coarse(bucket)
        counts[index] = counts.get(index, 0) + count
    return counts


def add_counts(totals: dict[int, int], more: Mapping[int, int]) -> None:
    """Adds counts by bucket to ``totals``."""
    for index, count in more.items():
        totals[index] = totals.get(index, 0) + count


@functools.cache
def _coarse(bucket: int) -> int:
    return index_of(histogram.lowest_in(bucket))


class WindowsError(ValueError):
    """A document is not of times over time, or two cannot be added up; the message says why."""


class Windows:
    """Counts by step and bucket.

    Args:
        start: no time is recorded before this second since 1970; it lies in the first step.
        step_seconds: of each step, from 1.

    Attributes:
        start: of the first step, seconds since 1970; a multiple of ``step_seconds``.
    """

    def __init__(self, start: int, step_seconds: int) -> None:
        if start < 0 or step_seconds < 1:
            raise ValueError(
                f"steps of {step_seconds} s from {start}: the length must be at least 1 s, the start not before 1970"
            )
        self.step_seconds = step_seconds
        self._first = start // step_seconds
        self._counts: list[Counts] = []

    @property
    def start(self) -> int:
        return self._first * self.step_seconds

    @property
    def steps(self) -> int:
        """The number of steps up to the last one with a count."""
        return len(self._counts)

    @property
    def size(self) -> int:
        """The number of counts in memory, with those of 0 between others."""
        return sum(map(size_of, self._counts))

    @property
    def buckets(self) -> int:
        """The number of used buckets in all steps."""
        return sum(map(used, self._counts))

    def record(self, second: float, micros: int, count: int = 1) -> None:
        """Counts a time of ``micros`` microseconds ``count`` times in the step of ``second``, seconds since 1970.

        Raises:
            ValueError: the time or the count is out of range, or the second too early or too late.
        """
        if not 0 <= micros <= HIGHEST or not 1 <= count <= MOST:
            raise ValueError(
                f"cannot record {micros} {count} times: times are from 0 to {HIGHEST}, counts from 1 to {MOST}"
            )
        counts, index = self._counts_at(second), index_of(micros)
        counts[index] = counts.get(index, 0) + count

    def take(self, second: float, times: Histogram) -> dict[int, int]:
        """Counts all values of a histogram of microseconds in the step of ``second``, seconds since 1970.

        The result is the same as from recording each value, because every bucket of a histogram lies in one bucket
        here.

        Returns:
            The counts that were added, by bucket.

        Raises:
            ValueError: the second is too early or too late.
        """
        added = coarse(times)
        add_counts(self._counts_at(second) if added else {}, added)
        return added

    def _counts_at(self, second: float) -> dict[int, int]:
        step = int(second) // self.step_seconds - self._first
        if not 0 <= step < MOST_STEPS:
            raise ValueError(f"cannot record in step {step}: steps are from 0 to below {MOST_STEPS}")
        self._counts.extend({} for _ in range(step + 1 - len(self._counts)))
        counts = self._counts[step] = by_bucket(self._counts[step])
        return counts

    def add(self, other: Windows) -> None:
        """Adds other counts step by step; the result covers both.

        Raises:
            WindowsError: the steps differ in length, or both together would have more than :data:`MOST_STEPS`.
        """
        if not other._counts:
            return
        first, length = self.span(other)
        before = self._first - first if self._counts else 0
        counts: list[Counts] = [{} for _ in range(before)] + self._counts
        counts.extend({} for _ in range(length - len(counts)))
        self._counts, self._first = counts, first
        for number, more in enumerate(other._counts, other._first - first):
            counts[number] = sum_of(counts[number], more)

    def span(self, other: Windows) -> tuple[int, int]:
        """Returns the number of the first step of both, counted from 1970, and the number of steps that cover both.

        Raises:
            WindowsError: as :meth:`add`.
        """
        if not other._counts:
            return self._first, len(self._counts)
        if other.step_seconds != self.step_seconds:
            raise WindowsError(f"cannot add steps of {other.step_seconds} seconds to steps of {self.step_seconds}")
        mine = self._first if self._counts else other._first
        first = min(mine, other._first)
        length = max(mine + len(self._counts), other._first + len(other._counts)) - first
        if length > MOST_STEPS:
            raise WindowsError(
                f"the times of two nodes are {length * self.step_seconds} seconds apart: check their clocks"
            )
        return first, length

    def copy(self) -> Windows:
        """Returns an independent copy."""
        result = Windows(self.start, self.step_seconds)
        result.add(self)
        return result

    def earlier(self, seconds: float) -> Windows:
        """Returns these counts moved back by about ``seconds``: by whole steps, and not before 1970. Shares the
        counts.
        """
        first = max(0, self._first - round(seconds / self.step_seconds))
        result = Windows(first * self.step_seconds, self.step_seconds)
        result._counts = self._counts
        return result

    def count(self, step: int) -> int:
        """Returns the number of times in a step, counted from 0."""
        return sum(by_bucket(self._counts[step]).values())

    def mean(self, step: int) -> float | None:
        """Returns :func:`mean_of` a step; None without times."""
        return mean_of(by_bucket(self._counts[step]))

    def percentile(self, step: int, percent: float) -> int | None:
        """Returns the microseconds that at least ``percent`` of a step's times do not exceed; None without times.

        It is the largest value of its bucket, so never too small, and too large by less than a sixteenth.
        """
        return self.percentiles(step, (percent,))[0]

    def percentiles(self, step: int, percents: tuple[float, ...]) -> list[int | None]:
        """Returns several percentiles for little more than the time of one."""
        buckets_by_percent = buckets_at(by_bucket(self._counts[step]), percents)
        return [None if index is None else highest_in(index) for index in buckets_by_percent]

    def buckets_within(self, second: int, seconds: int) -> dict[int, int]:
        """Returns the counts by bucket of all whole steps in the ``seconds`` from ``second`` since 1970."""
        return by_bucket(self.within(second, seconds))

    def within(self, second: int, seconds: int) -> Counts:
        """Returns the same for a further sum."""
        first = -(-second // self.step_seconds) - self._first
        last = (second + seconds) // self.step_seconds - self._first
        totals: Counts = {}
        for counts in self._counts[max(0, first) : max(0, last)]:
            totals = sum_of(totals, counts)
        return totals

    def document(self, packed: bool = False) -> dict[str, Any]:
        """Returns ``{"from", "step_seconds", "counts": [step, ...]}``. A step is ``[bucket, count, count, ...]`` from
        its first bucket on, or ``[[bucket, count], ...]`` in order if its counts are scattered, whatever was added.

        Args:
            packed: whether counts are in columns.
        """
        counts = columns(self._counts) if packed else list(map(stored, self._counts))
        return {"from": self.start, "step_seconds": self.step_seconds, "counts": counts}

    @classmethod
    def from_document(cls, document: Any) -> Windows:
        """Reads a document of :meth:`document`.

        Raises:
            WindowsError: the document is invalid.
        """
        if not isinstance(document, Mapping):
            raise WindowsError("must be an object")
        start, step, counts = (document.get(key) for key in ("from", "step_seconds", "counts"))
        if type(start) is not int or type(step) is not int or step < 1 or start < 0 or start % step:  # excludes True
            raise WindowsError("from must be a multiple of step_seconds, which is a whole number from 1")
        if start > MOST or step > MOST_STEPS:
            raise WindowsError(f"from must be below 2^63, and step_seconds at most {MOST_STEPS}")
        if isinstance(counts, Mapping):
            try:
                counts = from_columns(counts, BUCKETS, MOST_STEPS)
            except RowError as error:
                raise WindowsError(f"counts: {error}") from None
        if not isinstance(counts, list) or len(counts) > MOST_STEPS:
            raise WindowsError(f"counts must be a list of at most {MOST_STEPS} steps")
        result = cls(start, step)
        result._counts = [
            values if type(values) is Row else _step(values, number) for number, values in enumerate(counts)
        ]
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Windows) and self.document() == other.document()

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"Windows({self.steps} steps of {self.step_seconds} s from {self.start})"


def _step(values: Any, number: int) -> Counts:
    """Returns a step of a document. A merge may have millions of counts, so all loops here run in C."""
    problem = WindowsError(
        f"counts[{number}] must be a bucket and the counts from there on, without 0 at the ends, or pairs of a bucket, "
        f"ascending from 0 below {BUCKETS}, and a count from 1 below 2^63"
    )
    if not isinstance(values, list):
        raise problem
    if is_row(values):
        try:
            return row_of(values, BUCKETS, MOST)
        except RowError:
            raise problem from None
    try:
        counts = dict(values)
    except (TypeError, ValueError):
        raise problem from None
    if not set(map(type, counts)) | set(map(type, counts.values())) <= {int} or len(counts) != len(values):
        raise problem
    indices = list(counts)
    if indices != sorted(indices):
        raise problem
    if indices and (
        indices[0] < 0 or indices[-1] >= BUCKETS or not 1 <= min(counts.values()) <= max(counts.values()) <= MOST
    ):
        raise problem
    return counts
