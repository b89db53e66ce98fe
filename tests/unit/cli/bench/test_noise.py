"""Ratios and their intervals, held against values worked out by hand, and against many experiments."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest

from cli.bench import noise

DOCS = Path(__file__).parents[4] / "docs/guides/comparing-benchmarks.md"


def test_the_ratio_is_that_of_the_geometric_means() -> None:
    estimate = noise.ratio([100, 400], [800, 200], 0.95)  # 200 and 400
    assert estimate.ratio == pytest.approx(2)


def test_the_interval_is_welchs() -> None:
    """Of logs 0, 1, 2 and 3, 5, 7 (base e): means 1 and 5, variances 1 and 4, so the difference is 4 with a standard
    error of sqrt(1/3 + 4/3) = 1.29099, and 2.94118 degrees of freedom, at which Student's t is 3.2197 for 95 %.
    """
    estimate = noise.ratio([math.exp(n) for n in (0, 1, 2)], [math.exp(n) for n in (3, 5, 7)], 0.95)
    assert estimate.low is not None
    assert estimate.high is not None
    degrees = (1 / 3 + 4 / 3) ** 2 / ((1 / 3) ** 2 / 2 + (4 / 3) ** 2 / 2)
    assert degrees == pytest.approx(2.94118, abs=1e-5)
    assert math.log(estimate.ratio) == pytest.approx(4)
    half = math.log(estimate.high) - 4
    assert half == pytest.approx(4 - math.log(estimate.low))
    assert half == pytest.approx(3.2197 * 1.29099, abs=2e-3)
    assert estimate.exceeds_noise is False


@pytest.mark.parametrize(
    ("a", "b", "exceeds"),
    [
        ([100, 101, 99], [80, 81, 79], True),
        ([100, 120, 80], [95, 115, 78], False),
        ([100, 100], [100, 100], False),
        ([100, 100], [90, 90], True),
        ([100, 100], [99, 103], False),
        ([100], [50, 51], None),
        ([100, 101], [50], None),
    ],
)
def test_whether_a_difference_exceeds_the_noise(a: list[float], b: list[float], exceeds: bool | None) -> None:
    assert noise.ratio(a, b, 0.95).exceeds_noise is exceeds
    back = noise.ratio(b, a, 0.95)
    assert back.exceeds_noise is exceeds
    assert back.ratio == pytest.approx(1 / noise.ratio(a, b, 0.95).ratio)


def test_without_any_scatter_there_is_no_doubt() -> None:
    estimate = noise.ratio([300.0, 300.0], [150.0, 150.0], 0.95)
    assert (estimate.ratio, estimate.low, estimate.high) == (0.5, 0.5, 0.5)
    same = noise.ratio([0.1 + 0.2, 0.3], [0.3, 0.3], 0.95)
    assert (same.ratio, same.exceeds_noise) == (1.0, False)


def test_nothing_at_all_is_less_than_anything() -> None:
    assert noise.ratio([10, 11], [0, 12], 0.95) == noise.Ratio(0.0)
    with pytest.raises(ValueError, match="a ratio to a rate of 0"):
        noise.ratio([0, 11], [1, 2], 0.95)


def test_more_confidence_is_a_wider_interval() -> None:
    estimates = [noise.ratio([100, 104, 97], [90, 95, 91], level) for level in (0.8, 0.95, 0.99)]
    widths = [(one.high or 0) - (one.low or 0) for one in estimates]
    assert 0 < widths[0] < widths[1] < widths[2]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([100, 101], [50, 500]),  # one degree of freedom, which at this confidence is a factor of 10 to the thousands
        ([1e-6, 1e6], [1e-6, 1.1e6]),
        ([100, 100], [1, 300]),
    ],
)
def test_very_wide_interval_is_cut_and_confidence_stays_monotonic(a: list[float], b: list[float]) -> None:
    estimate = noise.ratio(a, b, 0.9999)
    assert estimate.low == pytest.approx(math.exp(-noise.WIDEST))
    assert estimate.high == pytest.approx(math.exp(noise.WIDEST))
    exceeding = [noise.ratio(a, b, confidence).exceeds_noise for confidence in (0.8, 0.95, 0.99, 0.9999)]
    assert None not in exceeding
    assert exceeding == sorted(exceeding, key=bool, reverse=True)


def test_the_interval_holds_the_true_ratio_as_often_as_it_says() -> None:
    """Rates of two sides that scatter differently, of which B does 0.9 of what A does."""
    dice, experiments, held = random.Random(8), 400, 0
    for _ in range(experiments):
        a = [1000 * math.exp(dice.gauss(0, 0.05)) for _ in range(4)]
        b = [900 * math.exp(dice.gauss(0, 0.1)) for _ in range(5)]
        estimate = noise.ratio(a, b, 0.95)
        held += (estimate.low or 0) <= 0.9 <= (estimate.high or 0)
    assert 0.92 <= held / experiments <= 0.98


_ROW = re.compile(r"^\| (\d+) \| ([\d.]+) % \| ([\d.]+) % \|$", re.MULTILINE)


@pytest.mark.parametrize(("column", "scatter"), [(1, 0.02), (2, 0.03)])
def test_the_guide_states_the_differences_that_repetitions_find(column: int, scatter: float) -> None:
    """Four of five comparisons, within what 200 of them tell."""
    rows = [row for row in _ROW.findall(DOCS.read_text()) if row[0] in ("3", "5", "10", "20")]
    assert len(rows) == 4
    dice = random.Random(scatter)
    for row in rows:
        repetitions, change = int(row[0]), math.log1p(float(row[column]) / 100)
        sides = [[_rates(dice, mean, scatter, repetitions) for mean in (0.0, change)] for _ in range(200)]
        differing = sum(noise.ratio(a, b, 0.95).exceeds_noise is True for a, b in sides)
        assert 140 <= differing <= 180, row


def _rates(dice: random.Random, mean: float, scatter: float, repetitions: int) -> list[float]:
    return [math.exp(dice.gauss(mean, scatter)) for _ in range(repetitions)]
