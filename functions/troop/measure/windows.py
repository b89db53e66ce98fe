"""Times over time: counts by step, in buckets that are coarse, so that there may be many of them.

Every doubling has sixteen buckets, and values below 32 have one each; so whatever is told of a step is within a
sixteenth of what its values were. A step of times from a microsecond to a minute has less than 400 buckets. Two of
these add up step by step and bucket by bucket, as histograms do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troop.measure import histogram
from troop.measure.buckets import buckets
from troop.measure.histogram import HIGHEST, MOST, Histogram, buckets_at

MOST_STEPS = 2 * 24 * 3600
"""Of several nodes together: as many as counts by second may have, for where a clock is hours off these are apart, too.
Those of one node are as few as :func:`step_for` makes them.
"""

TARGET_STEPS = 300
_STEPS = (1, 2, 5, 10, 30, 60, 120, 300, 600)

index_of, lowest_in, highest_in = buckets(4)

BUCKETS = index_of(HIGHEST) + 1


def step_for(seconds: float) -> int:
    """How long a step is where so many seconds are recorded, the warm-up among them: 1, 2, 5, 10, 30, 60, ... seconds,
    so that there are at most a few hundred. It depends on nothing else, so all nodes of a phase have the same.
    """
    step = next((step for step in _STEPS if seconds <= step * TARGET_STEPS), _STEPS[-1])
    while seconds > step * TARGET_STEPS:
        step *= 2
    return step


class WindowsError(ValueError):
    """A document that is none of times over time, or two that do not belong together; the message says why."""


class Windows:
    """Counts by step and bucket.

    Args:
        start: what is recorded is not before this second since 1970; the first step is the one that it is in.
        step_seconds: of each step, from 1.

    Attributes:
        start: of the first step, seconds since 1970; a multiple of ``step_seconds``.
    """

    def __init__(self, start: int, step_seconds: int) -> None:
        if start < 0 or step_seconds < 1:
            raise ValueError(f"steps of {step_seconds} s from {start}: must be at least 1 s, from 1970 on")
        self.step_seconds = step_seconds
        self._first = start // step_seconds
        self._counts: list[dict[int, int]] = []

    @property
    def start(self) -> int:
        return self._first * self.step_seconds

    @property
    def steps(self) -> int:
        """How many there are: up to the last one that something was recorded in."""
        return len(self._counts)

    @property
    def buckets(self) -> int:
        """How many buckets of all steps hold something: its size."""
        return sum(map(len, self._counts))

    def record(self, second: float, micros: int, count: int = 1) -> None:
        """Counts a time of ``micros`` microseconds, from 0 to :data:`~troop.measure.histogram.HIGHEST`, as often as
        ``count`` says, in the step of a second since 1970.

        Raises:
            ValueError: the time or the count is out of range, or the second too early or too late.
        """
        if not 0 <= micros <= HIGHEST or not 1 <= count <= MOST:
            raise ValueError(
                f"cannot record {micros} {count} times: times are from 0 to {HIGHEST}, counts from 1 to {MOST}"
            )
        counts, index = self._of(second), index_of(micros)
        counts[index] = counts.get(index, 0) + count

    def take(self, second: float, times: Histogram) -> None:
        """Counts all that a histogram of microseconds has counted, in the step of a second since 1970. It is the same
        as if each were recorded, for a bucket of a histogram is in one of these.

        Raises:
            ValueError: the second is too early or too late.
        """
        counts = self._of(second) if times.count else {}
        for bucket, count in times.counts.items():
            index = index_of(histogram.lowest_in(bucket))
            counts[index] = counts.get(index, 0) + count

    def _of(self, second: float) -> dict[int, int]:
        step = int(second) // self.step_seconds - self._first
        if not 0 <= step < MOST_STEPS:
            raise ValueError(f"cannot record in step {step}: steps are from 0, and at most {MOST_STEPS}")
        self._counts.extend({} for _ in range(step + 1 - len(self._counts)))
        return self._counts[step]

    def add(self, other: Windows) -> None:
        """Step by step; afterwards it covers both.

        Raises:
            WindowsError: its steps are of another length, or both together would be more than :data:`MOST_STEPS`.
        """
        if not other._counts:
            return
        first, length = self.span(other)
        before = self._first - first if self._counts else 0
        self._counts = [{} for _ in range(before)] + self._counts
        self._counts.extend({} for _ in range(length - len(self._counts)))
        self._first = first
        for mine, more in zip(self._counts[other._first - first :], other._counts):
            if not mine:
                mine.update(more)
                continue
            for index, count in more.items():
                mine[index] = mine.get(index, 0) + count

    def span(self, other: Windows) -> tuple[int, int]:
        """The number of the first step of both together, counted from 1970 on, and how many there are from then on.

        Raises:
            WindowsError: as :meth:`add`.
        """
        if not other._counts:
            return self._first, len(self._counts)
        if other.step_seconds != self.step_seconds:
            raise WindowsError(f"steps of {other.step_seconds} seconds among those of {self.step_seconds}")
        mine = self._first if self._counts else other._first
        first = min(mine, other._first)
        length = max(mine + len(self._counts), other._first + len(other._counts)) - first
        if length > MOST_STEPS:
            raise WindowsError(f"of two nodes it is {length * self.step_seconds} seconds apart: check their clocks")
        return first, length

    def copy(self) -> Windows:
        """Of its own: what is added to it does not change this one."""
        result = Windows(self.start, self.step_seconds)
        result.add(self)
        return result

    def earlier(self, seconds: float) -> Windows:
        """The same, by about so much: by whole steps, and never before 1970. It shares its counts with this one."""
        first = max(0, self._first - round(seconds / self.step_seconds))
        result = Windows(first * self.step_seconds, self.step_seconds)
        result._counts = self._counts
        return result

    def count(self, step: int) -> int:
        """How many times were recorded in a step, counted from 0."""
        return sum(self._counts[step].values())

    def mean(self, step: int) -> float | None:
        """Of a step, in microseconds, as if every time were the middle of its bucket; None without any."""
        counts = self._counts[step]
        total = sum((lowest_in(index) + highest_in(index)) * count for index, count in counts.items())
        return total / (2 * sum(counts.values())) if counts else None

    def percentile(self, step: int, percent: float) -> int | None:
        """The microseconds that at least ``percent`` of a step's times do not exceed; None without any.

        It is the largest value of its bucket, so never too small, and too large by less than a sixteenth.
        """
        return self.percentiles(step, (percent,))[0]

    def percentiles(self, step: int, percents: tuple[float, ...]) -> list[int | None]:
        """Several of them, for little more than the price of one."""
        buckets_by_percent = buckets_at(self._counts[step], percents)
        return [None if index is None else highest_in(index) for index in buckets_by_percent]

    def document(self) -> dict[str, Any]:
        """``{"from", "step_seconds", "counts": [[[bucket, count], ...], ...]}``: one list a step, buckets in order."""
        counts = [[[index, step[index]] for index in sorted(step)] for step in self._counts]
        return {"from": self.start, "step_seconds": self.step_seconds, "counts": counts}

    @classmethod
    def from_document(cls, document: Any) -> Windows:
        """The reverse of :meth:`document`.

        Raises:
            WindowsError: it is of another kind.
        """
        if not isinstance(document, Mapping):
            raise WindowsError("must be an object")
        start, step, counts = (document.get(key) for key in ("from", "step_seconds", "counts"))
        if type(start) is not int or type(step) is not int or step < 1 or start < 0 or start % step:  # True is none
            raise WindowsError("from must be a multiple of step_seconds, and that a whole number from 1")
        if start > MOST or step > MOST_STEPS:
            raise WindowsError(f"from must be below 2^63, and step_seconds at most {MOST_STEPS}")
        if not isinstance(counts, list) or len(counts) > MOST_STEPS:
            raise WindowsError(f"counts must be a list of at most {MOST_STEPS} steps")
        result = cls(start, step)
        result._counts = [_step(pairs, number) for number, pairs in enumerate(counts)]
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Windows) and self.document() == other.document()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Windows({self.steps} steps of {self.step_seconds} s from {self.start})"


def _step(pairs: Any, number: int) -> dict[int, int]:
    """One step's counts by bucket. There may be millions of pairs in one merge, so no loop here is Python's own."""
    problem = WindowsError(
        f"counts[{number}] must be pairs of a bucket, ascending from 0 below {BUCKETS}, and a count from 1 below 2^63"
    )
    if not isinstance(pairs, list):
        raise problem
    try:
        counts = dict(pairs)
    except (TypeError, ValueError):
        raise problem from None
    if not set(map(type, counts)) | set(map(type, counts.values())) <= {int} or len(counts) != len(pairs):
        raise problem
    indices = list(counts)
    if indices != sorted(indices):
        raise problem
    if indices and (
        indices[0] < 0 or indices[-1] >= BUCKETS or not 1 <= min(counts.values()) <= max(counts.values()) <= MOST
    ):
        raise problem
    return counts
