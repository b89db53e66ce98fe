"""Computes how often a comparison in pairs finds a true change, from the spread of earlier pairs."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist

from troop.statistics import pairs as comparisons

LEAST_DEGREES = 4
"""The fewest degrees of freedom of a spread that is worth a plan."""

MOST_PAIRS = 50
"""The most pairs that :func:`needed` proposes."""

SHAPES = 200
"""The simulated comparisons of each number of pairs."""

STEPS = 200
"""The steps of an integral over the standard deviation, an even number."""


def spread(pairs: Iterable[Sequence[float]]) -> float | None:
    """Pools the standard deviation of log ratios within runs; None with fewer than four degrees of freedom.

    Args:
        pairs: of each run, the ratios (B/A, positive) of its pairs. Its own mean is removed, as runs may differ.
    """
    runs = [[math.log(ratio) for ratio in run] for run in pairs if run]
    degrees = sum(len(run) - 1 for run in runs)
    if degrees < LEAST_DEGREES:
        return None
    squares = [(log - math.fsum(run) / len(run)) ** 2 for run in runs for log in run]
    return math.sqrt(math.fsum(squares) / degrees)


def power(change: float, pairs: int, spread: float) -> float:
    """Returns the share of comparisons that find a true change, by :func:`troop.statistics.pairs.paired`.

    Log ratios are assumed to be normal. The integral over the mean and the standard deviation of a comparison is
    exact. Its shape, on which ranks depend, does not depend on these two, and is simulated with a fixed seed. The
    shares are exact to half a percent. More than 50 pairs are judged as sharply as 50.

    Args:
        change: relative: 0.03 for a candidate that does 3 % more, -0.03 for one that does 3 % less; above -1.
        spread: the standard deviation of the log ratio of a pair, as :func:`spread` returns it.
    """
    return _power(change, pairs, spread)


def needed(change: float, spread: float, power: float = 0.8) -> int | None:
    """Returns the fewest pairs that find a change in this share of comparisons; None if 50 are not enough."""
    low, high = 2, MOST_PAIRS
    if _power(change, high, spread) < power:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(change, middle, spread) >= power else (middle + 1, high)
    return low


def _power(change: float, pairs: int, spread: float) -> float:
    if change <= -1:
        raise ValueError("a change is above -1, which is -100 %")
    if spread < 0:
        raise ValueError("a spread is at least 0")
    if pairs < 2:
        return 0.0
    effect = abs(math.log1p(change))
    if spread == 0:
        return float(effect > comparisons.ALIKE)
    shift = effect / spread * math.sqrt(pairs)
    normal = NormalDist().cdf
    factors = _factors(min(pairs, MOST_PAIRS))
    shares = (
        weight * (normal(shift - factor * deviation) + normal(-shift - factor * deviation))
        for deviation, weight in _deviations(pairs - 1)
        for factor in factors
    )
    return min(1.0, math.fsum(shares) / len(factors))


@lru_cache
def _factors(pairs: int) -> tuple[float, ...]:
    """Simulates by how many standard errors an interval reaches below the mean, and returns ten typical factors.

    With the t-test it is Student's t. With ranks it depends on the shape of the sample.
    """
    dice = random.Random(pairs)
    factors: list[float] = []
    for _ in range(SHAPES if pairs >= comparisons.RANKS_FROM else 1):
        sample = [dice.gauss(0, 1) for _ in range(pairs)]
        mean = math.fsum(sample) / pairs
        error = math.sqrt(math.fsum((value - mean) ** 2 for value in sample) / (pairs - 1) / pairs)
        _, low, high = comparisons.interval(sample)
        factors += [(mean - low) / error, (high - mean) / error]  # the sample in a mirror is as likely
    factors.sort()
    each = max(1, len(factors) // 10)
    return tuple(math.fsum(factors[at : at + each]) / each for at in range(0, len(factors), each))


@lru_cache
def _deviations(degrees: int) -> tuple[tuple[float, float], ...]:
    """Lists standard deviations of samples from a normal distribution with their weights, by Simpson's rule."""
    margin = 6 / math.sqrt(2 * degrees)
    begin, end = max(0.0, 1 - margin), 1 + margin
    step = (end - begin) / STEPS
    points = []
    for index in range(STEPS + 1):
        deviation = begin + index * step
        weight = 1 if index in (0, STEPS) else 4 if index % 2 else 2
        logarithm = (degrees - 1) * math.log(max(deviation, 1e-300)) - degrees * (deviation**2 - 1) / 2
        points.append((deviation, weight * math.exp(logarithm)))
    total = math.fsum(weight for _, weight in points)
    return tuple((deviation, weight / total) for deviation, weight in points)
