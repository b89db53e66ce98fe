"""Counts what all roles that generate load did in windows around a planned fault. Pure.

Windows consist of whole seconds since 1970, because results have counts by second. The second in which the fault begins
belongs to the window during the fault, and so does each of its operations. The last window also has the part of a
second at the end of the measured time. So windows that follow one another have each operation once.

Operations count in the second in which they ended. Percentiles are precise to a sixteenth, and never too small.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troop.measure.histogram import buckets_at
from troop.measure.operations import OTHER, Operation, PerSecond
from troop.measure.windows import Windows, WindowsError, highest_in, mean_of

HOLD = 5
"""Seconds of the moving means and percentiles that say whether something is back."""

FOLLOWING = 10
"""The fewest seconds for which something stays back: fewer can pass by chance at the end."""


class UncountedError(ValueError):
    """Operations were not counted by second; the message says why."""


@dataclass(frozen=True)
class Counted:
    """Operations of several roles by second since 1970.

    Attributes:
        successes: by second, from ``start`` on.
        errors: of each kind, as many.
        times: of successes, in steps of a second.
        has_failures: whether all tools count failures; otherwise errors are unknown.
    """

    start: int
    successes: Sequence[int]
    errors: Mapping[str, Sequence[int]]
    times: Windows
    has_failures: bool = True

    @property
    def until(self) -> int:
        """The second after the last one."""
        return self.start + len(self.successes)

    def done(self, begin: int, end: int) -> int:
        """Returns the number of successes from second ``begin`` to before ``end``."""
        return sum(self.successes[max(0, begin - self.start) : max(0, end - self.start)])

    def failed(self, begin: int, end: int) -> dict[str, int]:
        """Returns the number of errors by kind, without those that have none."""
        low, high = max(0, begin - self.start), max(0, end - self.start)
        totals = {kind: sum(counts[low:high]) for kind, counts in sorted(self.errors.items())}
        return {kind: total for kind, total in totals.items() if total}

    def took(self, begin: int, end: int) -> dict[int, int]:
        """Returns counts of times by bucket of :mod:`troop.measure.windows`."""
        return self.times.buckets_within(begin, end - begin)

    def window(self, begin: int, end: float, zero: float, last: int | None = None) -> dict[str, Any]:
        """Returns a window of a fault's entry.

        Args:
            end: as the window's length; a fraction of a second only at the end of the measured time.
            zero: the moment of the fault, from which the window's start is stated.
            last: the second before which operations count; by default ``end``.
        """
        last = math.ceil(end) if last is None else last
        count, times = self.done(begin, last), self.took(begin, last)
        mean = mean_of(times)
        return {
            "from": round(begin - zero, 3),
            "seconds": round(end - begin, 3),
            "count": count,
            "per_second": round(count / (end - begin), 3),
            "errors": self.failed(begin, last) if self.has_failures else None,
            "mean_ms": None if mean is None else round(mean / 1000, 3),
            **{name: percentile_ms(times, percent) for name, percent in _PERCENTS.items()},
        }


_PERCENTS = {"p50_ms": 50.0, "p99_ms": 99.0, "max_ms": 100.0}


def percentile_ms(times: Mapping[int, int], percent: float) -> float | None:
    """Returns a percentile of counts by bucket in milliseconds; None without counts."""
    (bucket,) = buckets_at(times, (percent,))
    return None if bucket is None else highest_in(bucket) / 1000


def counted(operations: Collection[Operation]) -> Counted:
    """Adds up operations by second.

    Raises:
        UncountedError: some were not counted by second, or have no times by second.
    """
    totals, times, errors = PerSecond(), Windows(0, 1), dict[str, PerSecond]()
    for one in operations:
        if one.lacks.successes or one.lacks.errors or one.rate:
            raise UncountedError("a tool does not count operations and errors by second")
        if one.lacks.times:
            raise UncountedError("not all times over time are on record")
        totals.add(one.per_second)
        for kind, counts in _by_kind(one).items():
            errors.setdefault(kind, PerSecond()).add(PerSecond(one.per_second.start, counts, counts))
        if one.over_time is not None:
            try:
                times.add(one.over_time)
            except WindowsError:
                raise UncountedError(f"times over time have steps of {one.over_time.step_seconds} s") from None
    length = len(totals.count)
    aligned = {
        kind: [0] * (its.start - totals.start)
        + its.errors
        + [0] * (totals.start + length - its.start - len(its.errors))
        for kind, its in errors.items()
    }
    return Counted(totals.start, totals.count, aligned, times, all(one.counts_failures for one in operations))


def _by_kind(operation: Operation) -> dict[str, list[int]]:
    """Returns the errors in each second by kind. Those whose kind by second is not on record have the only kind of the
    operation, or are counted as other.
    """
    kinds = {kind: list(counts) for kind, counts in (operation.per_second.kinds or {}).items()}
    rest = operation.per_second.errors
    for counts in kinds.values():
        rest = list(map(operator.sub, rest, counts))
    if any(rest):
        kind = next(iter(operation.errors)) if len(operation.errors) == 1 else OTHER
        kinds[kind] = list(map(operator.add, kinds.get(kind, [0] * len(rest)), rest))
    return kinds
