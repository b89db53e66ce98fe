"""Finds where the level of a series changes, so that noise, outliers and slow waves rarely look like a change.

The search splits the logarithms of the values where two parts differ most, and then each part again. A part inside a
longer one is searched too: a level that later returns. Noise comes from differences of neighbours, which a step hardly
touches, then from what the steps leave. Far values count only up to a bound. If neighbours
resemble each other (autocorrelation), that widens the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import NormalDist, median

LEAST = 5
"""The fewest values between two change points, and at both ends."""

STRENGTH = 4.15
"""How many standard errors the levels of two parts must differ by. All splits of normal noise exceed it in about 1 of
250 series of 200 values (``python -m perf.change_points``)."""

FEW = 8.0
"""What a series of n values needs in addition, divided by n: few values state their noise badly."""

RETURNED = 0.4
"""What a part inside a longer one needs in addition, because there are many more of them."""

FAR = 3.0
"""Values count up to so many deviations beyond the levels, where steps are searched."""

WIDE = 2.0
"""The same where a level is computed, and where parts inside longer ones are searched."""

TAILS = 4.0
"""Degrees of freedom of Student's t, by which the place of a step is chosen: a far value says little about it."""

CORRELATED = 2.0
"""Autocorrelation counts from so many standard errors on. Noise without it seldom exceeds that."""

MOST_CORRELATED = 0.8
ROUNDS = 5
ALIKE = 1e-9
"""Relative noise below this is that of arithmetic."""

MEDIAN_SIZE = 0.6745
"""The median of absolute values of normal noise of deviation 1."""

NEIGHBOUR_MEDIAN = MEDIAN_SIZE * math.sqrt(2)
"""The same of differences of neighbours."""

NEIGHBOUR_MEAN = 2 / math.sqrt(math.pi)
"""The mean of absolute differences of neighbours: 2 divided by the root of pi."""


@dataclass(frozen=True)
class ChangePoint:
    """A place where the level changes.

    Attributes:
        index: of the first value of the new level.
        before, after: the levels: geometric means from the change point before, and up to the next. Far values count
            only up to :data:`WIDE`.
    """

    index: int
    before: float
    after: float

    @property
    def ratio(self) -> float:
        return self.after / self.before


def change_points(values: Sequence[float], strength: float = STRENGTH) -> list[ChangePoint]:
    """Finds the places where the level of a series changes.

    Args:
        values: positive values in their order, such as a rate or a ratio of each night. Fewer than ten have no
            change point. Factors do not matter.
        strength: as :data:`STRENGTH`; see :func:`strength_among`.

    Returns:
        The change points in order, at least :data:`LEAST` values apart.

    Raises:
        ValueError: a value is not positive and finite.
    """
    if not all(0 < value < math.inf for value in values):
        raise ValueError("change points need positive, finite values")
    logs = [math.log(value) for value in values]
    if len(logs) < 2 * LEAST:
        return []
    spread = neighbours = max(_neighbour_noise(logs), ALIKE)
    tried: list[list[int]] = []
    while (steps := _settled(logs, _search(logs, spread, strength), spread, strength)) not in tried and len(
        tried
    ) < ROUNDS:
        tried.append(steps)
        spread = max(_around(logs, steps, neighbours), ALIKE)
    levels = [_level(logs[begin:end], neighbours) for begin, end in pairwise((0, *steps, len(logs)))]
    return [
        ChangePoint(index, math.exp(before), math.exp(after))
        for index, (before, after) in zip(steps, pairwise(levels), strict=True)
    ]


def strength_among(series: int) -> float:
    """Returns the strength with which so many series together have as few false alarms as one with :data:`STRENGTH`."""
    normal = NormalDist()
    return STRENGTH if series <= 1 else -normal.inv_cdf(normal.cdf(-STRENGTH) / series)


def relative_noise(values: Sequence[float]) -> float | None:
    """Returns by how much positive values differ apart from changes of their level: the relative standard deviation, as
    neighbours show it. None with fewer than :data:`LEAST`.
    """
    return None if len(values) < LEAST else _neighbour_noise([math.log(value) for value in values])


def _neighbour_noise(logs: Sequence[float]) -> float:
    gaps = [abs(after - before) for before, after in pairwise(logs)]
    return median(gaps) / NEIGHBOUR_MEDIAN or sum(gaps) / len(gaps) / NEIGHBOUR_MEAN


def _around(logs: Sequence[float], steps: Sequence[int], neighbours: float) -> float:
    """Returns the noise around the levels between the steps."""
    bound = FAR * neighbours
    rest: list[float] = []
    for begin, end in pairwise((0, *steps, len(logs))):
        level = _level(logs[begin:end], neighbours)
        rest += [min(max(value - level, -bound), bound) for value in logs[begin:end]]
    squares = sum(value * value for value in rest)
    if not squares:
        return 0.0
    deviation = math.sqrt(squares / (len(rest) - len(steps) - 1))
    correlation = sum(before * after for before, after in pairwise(rest)) / squares
    if correlation < CORRELATED / math.sqrt(len(rest)):
        return deviation
    correlation = min(correlation, MOST_CORRELATED)
    return max(deviation, neighbours) * math.sqrt((1 + correlation) / (1 - correlation))


def _level(part: Sequence[float], noise: float) -> float:
    middle, bound = median(part), WIDE * noise
    return middle + sum(min(max(value - middle, -bound), bound) for value in part) / len(part)


def _search(logs: Sequence[float], noise: float, strength: float) -> list[int]:
    """Splits the series, and its parts again, until no part has a step."""
    steps: list[int] = []
    parts = [(0, len(logs))]
    while parts:
        begin, end = parts.pop()
        if split := [begin + at for at in _split(logs[begin:end], noise, strength)]:
            steps += split
            parts += pairwise((begin, *split, end))
    return sorted(steps)


def _settled(logs: Sequence[float], steps: Sequence[int], noise: float, strength: float) -> list[int]:
    """Moves each step to its best place between its neighbours; leaves out those that no longer hold there."""
    settled: list[int] = []
    for step, end in pairwise((*steps, len(logs))):
        begin = settled[-1] if settled else 0
        part = logs[begin:end]
        at = _place(part, step - begin, noise)
        if at and _strength(part, at, noise) > _needed(part, strength):
            settled.append(begin + at)
    return settled


def _needed(part: Sequence[float], strength: float) -> float:
    return strength + FEW / len(part)


def _split(part: Sequence[float], noise: float, strength: float) -> list[int]:
    """Returns the strongest step of a part, or the one or two ends of the strongest part inside; or nothing."""
    count = len(part)
    if count < 2 * LEAST:
        return []
    halves = median(part[: count // 2]), median(part[count // 2 :])
    sums = _sums(part, min(halves) - FAR * noise, max(halves) + FAR * noise)
    mean = sums[-1] / count
    best, at = max((abs(sums[k] - k * mean) / math.sqrt(k * (count - k)), k) for k in range(LEAST, count - LEAST + 1))
    if best * math.sqrt(count) > (_needed(part, strength) - 1) * noise:  # the exact strength may be more
        at = _place(part, at, noise)
        if at and _strength(part, at, noise) > _needed(part, strength):
            return [at]
    return _inside(part, noise, strength)


def _inside(part: Sequence[float], noise: float, strength: float) -> list[int]:
    """Returns the ends of the part inside whose level differs most from the rest; or nothing."""
    count, middle = len(part), median(part)
    sums = _sums(part, middle - WIDE * noise, middle + WIDE * noise)
    mean, best, ends = sums[-1] / count, 0.0, (0, count)
    length = LEAST
    while length <= count // 2:
        stride = max(1, length // 4)
        scale = math.sqrt(count / (length * (count - length)))
        offset = length * mean
        sizes = [abs(after - before - offset) for before, after in zip(sums[::stride], sums[length::stride])]  # noqa: B905
        largest = max(sizes)
        if largest * scale > best:
            best, begin = largest * scale, sizes.index(largest) * stride
            ends = begin, begin + length
        length += max(1, length // 3)
    if best <= (_needed(part, strength) + RETURNED) * noise:
        return []
    return [end for end in ends if LEAST <= end <= count - LEAST]


def _sums(part: Sequence[float], low: float, high: float) -> list[float]:
    return [0.0, *accumulate(min(max(value, low), high) for value in part)]


def _strength(part: Sequence[float], at: int, noise: float) -> float:
    """Returns by how many standard errors the levels of both sides differ. Where a part has more noise than the whole,
    its own counts.
    """
    before, after = part[:at], part[at:]
    levels = _level(before, noise), _level(after, noise)
    sizes = [abs(value - level) for side, level in zip((before, after), levels, strict=True) for value in side]
    bound = WIDE * max(noise, median(sizes) / MEDIAN_SIZE)
    own = math.sqrt(sum(min(size, bound) ** 2 for size in sizes) / (len(part) - 2))
    error = max(noise, own) * math.sqrt(1 / len(before) + 1 / len(after))
    return abs(levels[1] - levels[0]) / error


def _place(part: Sequence[float], at: int, noise: float) -> int:
    """Returns the most likely place of a step near a place; 0 if it is too near to an end."""
    scale, last = TAILS * noise * noise, len(part) - LEAST
    for _ in range(2):
        if not LEAST <= at <= last:
            return 0
        before, after = _level(part[:at], noise), _level(part[at:], noise)
        gains = accumulate(
            math.log((scale + (value - after) ** 2) / (scale + (value - before) ** 2)) for value in part[:last]
        )
        _, best = max((gain, place) for place, gain in enumerate(gains, 1) if place >= LEAST)
        if best == at:
            break
        at = best
    return at
