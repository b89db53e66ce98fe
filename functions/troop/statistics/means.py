"""Computes the mean of values with its interval of 95 %, as if they were normal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev

from troop.statistics.pairs import STUDENT, TAIL

_NORMAL = NormalDist().inv_cdf(1 - TAIL)
_TERMS = (
    (4, (1, 1)),
    (96, (5, 16, 3)),
    (384, (3, 19, 17, -15)),
    (92160, (79, 776, 1482, -1920, -945)),
)
"""Of the expansion of Student's t in powers of one by its degrees of freedom, each a divisor and the factors of falling
odd powers of the normal quantile: Abramowitz and Stegun, 26.7.5.
"""


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Returns the mean of at least two values, and the ends of its interval by Student's t."""
    mean, half = fmean(values), student(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def student(degrees: int) -> float:
    """Returns Student's t for intervals of 95 %, exact to a thousandth."""
    if degrees <= len(STUDENT):
        return STUDENT[degrees - 1]
    t = _NORMAL
    for n, (divisor, factors) in enumerate(_TERMS, 1):
        terms = (factor * _NORMAL ** (2 * (n - place) + 1) for place, factor in enumerate(factors))
        t += sum(terms) / divisor / degrees**n
    return t
