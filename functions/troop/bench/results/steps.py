"""Combines values over time into fewer, longer steps. Pure: amounts are summed, levels averaged, latencies merged
bucket by bucket.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

from troop.measure.histogram_rows import pairs_of
from troop.measure.windows import BUCKETS, highest_in

Value = float | None


@dataclass(frozen=True)
class SeriesRow:
    """A :class:`troop.report.document.Series`, for functions without pydantic."""

    role: str
    name: str
    start: float
    step_seconds: int
    values: list[Value]
    node: str = ""
    device: str = ""
    operation: str | None = None


def sums(first: int, values: Sequence[int], zero: int, step: int) -> tuple[int, list[int]]:
    """Sums amounts by second in steps that are counted from ``zero``, so that no step contains it in its middle.

    Args:
        first: the second of the first value.

    Returns:
        The number of the first step, and the sum of each step.
    """
    if not values:
        return 0, []
    low, high = (first - zero) // step, (first + len(values) - 1 - zero) // step
    sums = [0] * (high - low + 1)
    for number in range(low, high + 1):
        begin = zero + number * step - first
        sums[number - low] = sum(values[max(begin, 0) : begin + step])
    return low, sums


def rates(low: int, totals: Sequence[int], step: int, begin: float, end: float) -> list[Value]:
    """Returns the rate per second in each step. The first and the last step may be shorter than the others.

    Args:
        begin, end: limits of the time in which anything was counted, in seconds after zero.
    """
    rates: list[Value] = []
    for number, total in enumerate(totals, low):
        covered = min(end, (number + 1) * step) - max(begin, number * step)
        rates.append(total / covered if covered >= step / 2 or covered >= 1 else None)
    return rates


def means(first: int, interval: int, values: Sequence[Value], zero: int, step: int) -> tuple[int, list[Value]]:
    """Averages the known values in each step; None if there are none.

    Args:
        first: second of the first value; there is one every ``interval`` seconds.

    Returns:
        The number of the first step, counted from ``zero``, and the mean of each step.
    """
    if not values:
        return 0, []
    offset = first - zero
    low, high = offset // step, (offset + (len(values) - 1) * interval) // step
    if step == interval:  # most series: nothing to average
        return low, [None if value is None else value + 0.0 for value in values]
    bounds = _bounds(offset, interval, low, high, step)
    if None not in values and interval < step:  # most other series: each step has some
        parts = [values[begin:end] for begin, end in pairwise(bounds)]
        return low, list(map(operator.truediv, map(math.fsum, parts), map(len, parts)))  # type: ignore[arg-type]
    return low, [_mean(values[begin:end]) for begin, end in pairwise(bounds)]


@lru_cache(maxsize=8)
def _bounds(offset: int, interval: int, low: int, high: int, step: int) -> list[int]:
    """Returns the place of each step's first value; most series of a role have the same places."""
    return [max(0, -((offset - number * step) // interval)) for number in range(low, high + 2)]


def _mean(values: Sequence[Value]) -> Value:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


Buckets = Mapping[int, int]


def windows(
    counts: Sequence[Sequence[Any]], first: int, own: int, step: int
) -> tuple[int, list[tuple[int, dict[int, int]]]]:
    """Merges counts by coarse bucket into steps that are counted from zero. A window across two steps belongs to the
    one that contains its middle.

    Args:
        first: start of the first window in seconds after zero; each is ``own`` seconds long.
        step: seconds, a multiple of ``own``.

    Returns:
        The number of the first step; and for each step its start, or that of its first window, and its counts.

    Raises:
        ValueError: there is no such bucket.
    """
    if not counts:
        return 0, []
    numbers = [(2 * (first + at * own) + own) // (2 * step) for at in range(len(counts))]
    windows: list[tuple[int, dict[int, int]]] = [(number * step, {}) for number in range(numbers[0], numbers[-1] + 1)]
    for at, (number, window) in enumerate(zip(numbers, counts, strict=True)):
        begin, merged = windows[number - numbers[0]]
        windows[number - numbers[0]] = min(begin, first + at * own), merged
        _merge(merged, window)
    return numbers[0], windows


def _merge(merged: dict[int, int], step: Sequence[Any]) -> None:
    """Adds counts by bucket. A run may have millions of them, so the loops over most of them run in C."""
    pairs = pairs_of(step)
    counts: dict[int, int] = dict(pairs)
    if counts and not (min(counts) >= 0 and max(counts) < BUCKETS):
        raise ValueError(f"there are no such buckets: {min(counts)} to {max(counts)}")
    if not merged and len(counts) == len(pairs):
        merged.update(counts)
        return
    for bucket, count in pairs:
        merged[bucket] = merged.get(bucket, 0) + count


def percentiles(buckets: Buckets, percents: Sequence[float]) -> list[int | None]:
    """Returns percentiles in microseconds: the largest time of the bucket, which is too large by at most a sixteenth.
    None without counts.
    """
    ordered = sorted(buckets)
    cumulative = [*accumulate(map(buckets.__getitem__, ordered))]
    if not cumulative:
        return [None] * len(percents)
    ranks = [max(1, math.ceil(cumulative[-1] * percent / 100)) for percent in percents]
    places = [bisect_left(cumulative, rank) for rank in ranks]
    return [highest_in(ordered[place]) if place < len(ordered) else None for place in places]
