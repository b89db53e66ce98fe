"""Ratios of pairs and their intervals, held against published tables, values by hand, and many experiments."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.statistics import pairs
from troop.statistics.pairs import Ratio, paired, ratio_of_ratios

values = st.floats(1e-3, 1e6)
samples = st.lists(st.tuples(values, values), min_size=2, max_size=30)
sides = st.lists(values, min_size=2, max_size=12)
Comparison = Callable[[list[float], list[float]], Ratio]


def ends(ratio: Ratio) -> tuple[float, float]:
    """Returns the ends of an interval that exists."""
    assert ratio.low is not None
    assert ratio.high is not None
    return ratio.low, ratio.high


def exponentials(*logs: float) -> list[float]:
    return [math.exp(log) for log in logs]


def test_few_pairs_have_the_interval_of_the_paired_t_test() -> None:
    """Of differences 1, 2, 3: mean 2, deviation 1, and t is 4.303 with two degrees of freedom."""
    ratio = paired(exponentials(0, 1, 2), exponentials(1, 3, 5))
    assert (ratio.pairs, ratio.method, ratio.exceeds_noise) == (3, "paired t", False)
    half = 4.303 / math.sqrt(3)
    assert [math.log(one) for one in (ratio.ratio, *ends(ratio))] == pytest.approx([2, 2 - half, 2 + half])


@pytest.mark.parametrize(
    ("count", "critical"),
    [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (12, 13), (15, 25), (20, 52), (25, 89), (30, 137), (50, 434)],
)
def test_places_are_the_published_critical_values_of_signed_ranks(count: int, critical: int) -> None:
    """Table of F. Wilcoxon and R. A. Wilcox, Some rapid approximate statistical procedures (1964), two-sided 5 %."""
    assert math.floor(pairs.place(count)) == critical


def test_many_pairs_have_the_normal_distribution_of_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = pairs.place(100)
    monkeypatch.setattr(pairs, "MOST_EXACT", 99)
    near = pairs.place.__wrapped__(100)
    assert near != exact
    assert near == pytest.approx(exact, abs=1)


def test_ranks_agree_with_a_published_example() -> None:
    """Hollander and Wolfe, Nonparametric Statistical Methods, examples 3.1, 3.3 and 3.4: depression of nine patients
    before and after a drug. The estimate is -0.46, and the interval of 96.1 % from -0.786 to -0.010.
    """
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    centre, low, high = pairs.interval([late - early for early, late in zip(before, after, strict=True)])
    assert centre == pytest.approx(-0.46)
    averages = sorted(
        (before[i] - after[i] + before[j] - after[j]) / -2 for i in range(len(before)) for j in range(i, len(before))
    )
    assert (averages[5], averages[-6]) == pytest.approx((-0.786, -0.010))
    assert averages[5] <= low <= averages[6]
    assert averages[-7] <= high <= averages[-6]


def test_one_wild_pair_of_twelve_does_not_hide_what_the_others_show() -> None:
    others = [103.0, 103.1, 102.9, 103.2, 102.8, 103.0, 103.1, 102.9, 103.0, 102.7, 103.3]
    ratio = paired([100.0] * 12, [*others, 60.0])
    assert (ratio.method, ratio.exceeds_noise) == ("signed rank", True)
    assert ratio.ratio == pytest.approx(1.03, abs=0.002)


@pytest.mark.parametrize("counts", [(2, 4), (5, 5), (6, 9)])
def test_two_samples_join_the_intervals_of_both(counts: tuple[int, int]) -> None:
    dice = random.Random(1)
    a, b = ([math.exp(dice.gauss(mean, 0.1)) for _ in range(count)] for mean, count in zip((0, 1), counts, strict=True))
    ratio, first, second = ratio_of_ratios(a, b), paired([1] * len(a), a), paired([1] * len(b), b)
    assert (ratio.pairs, ratio.method) == (min(counts), "two ratios")
    assert ratio.ratio == pytest.approx(second.ratio / first.ratio)
    (low, high), (first_low, first_high), (second_low, second_high) = map(ends, (ratio, first, second))
    below = math.log(second.ratio / second_low) ** 2 + math.log(first_high / first.ratio) ** 2
    above = math.log(second_high / second.ratio) ** 2 + math.log(first.ratio / first_low) ** 2
    assert math.log(ratio.ratio / low) == pytest.approx(math.sqrt(below))
    assert math.log(high / ratio.ratio) == pytest.approx(math.sqrt(above))


@given(samples)
def test_swapped_sides_have_the_inverse_ratio_of_pairs(sample: list[tuple[float, float]]) -> None:
    a, b = map(list, zip(*sample, strict=True))
    assert_inverse(paired, a, b)


@given(sides, sides)
def test_swapped_samples_have_the_inverse_ratio(a: list[float], b: list[float]) -> None:
    assert_inverse(ratio_of_ratios, a, b)


def assert_inverse(compare: Comparison, a: list[float], b: list[float]) -> None:
    ratio, inverse = compare(a, b), compare(b, a)
    low, high = ends(inverse)
    assert ratio.ratio == pytest.approx(1 / inverse.ratio)
    assert ends(ratio) == pytest.approx((1 / high, 1 / low))
    assert ratio.exceeds_noise is inverse.exceeds_noise
    low, high = ends(ratio)
    assert low <= ratio.ratio <= high


@given(samples, st.floats(1e-3, 1e3))
def test_units_do_not_matter(sample: list[tuple[float, float]], unit: float) -> None:
    a, b = map(list, zip(*sample, strict=True))
    scaled = [value * unit for value in a], [value * unit for value in b]
    for compare in (paired, ratio_of_ratios):
        ratio, same = compare(a, b), compare(*scaled)
        assert (same.ratio, *ends(same)) == pytest.approx((ratio.ratio, *ends(ratio)))


@given(st.lists(values, min_size=2, max_size=10), st.sampled_from([0.5, 1.0, 3.0]))
def test_pairs_with_one_ratio_leave_no_doubt(a: list[float], factor: float) -> None:
    ratio = paired(a, [value * factor for value in a])
    assert ratio.low == ratio.ratio == ratio.high == pytest.approx(factor)
    assert ratio.exceeds_noise is (factor != 1)
    twice = ratio_of_ratios([factor] * len(a), [factor] * 3)
    assert (twice.low, twice.ratio, twice.high, twice.exceeds_noise) == (1, 1, 1, False)


@given(samples, st.integers(0, 29))
def test_the_order_of_pairs_does_not_matter(sample: list[tuple[float, float]], turn: int) -> None:
    turned = sample[turn % len(sample) :] + sample[: turn % len(sample)]
    first, second = (paired(*map(list, zip(*one, strict=True))) for one in (sample, turned))
    assert (first.ratio, *ends(first)) == pytest.approx((second.ratio, *ends(second)))


def test_one_pair_has_a_ratio_without_an_interval() -> None:
    assert paired([100], [50]) == Ratio(0.5, pairs=1)
    assert ratio_of_ratios([0.5, 0.5], [1]) == Ratio(2.0, pairs=1)
    assert paired([100], [50]).exceeds_noise is None


def test_nothing_at_all_is_less_than_anything() -> None:
    assert paired([10, 11], [0, 12]) == Ratio(0.0, pairs=2)
    assert ratio_of_ratios([1, 1], [0, 1, 1]) == Ratio(0.0, pairs=2)


@pytest.mark.parametrize(
    ("a", "b", "problem"),
    [
        ([], [], "needs a value on each side"),
        ([0, 11], [1, 2], "a ratio to a value of 0"),
        ([1, 2], [-1, 2], "finite values of at least 0"),
        ([1, math.nan], [1, 2], "finite values of at least 0"),
        ([1, 2], [math.inf, 2], "finite values of at least 0"),
    ],
)
def test_values_without_a_ratio_are_refused(a: list[float], b: list[float], problem: str) -> None:
    for compare in (paired, ratio_of_ratios):
        with pytest.raises(ValueError, match=problem):
            compare(a, b)


def test_a_value_without_its_other_half_is_refused() -> None:
    with pytest.raises(ValueError, match="each of 3 values of A needs one of B, which has 2"):
        paired([1, 2, 3], [1, 2])


@pytest.mark.parametrize(("a", "b"), [([100, 101], [50, 5e6]), ([1e-6, 1e6], [1e-6, 1.1e9]), ([1e-9, 1], [1e9, 1e30])])
def test_very_wide_intervals_are_cut(a: list[float], b: list[float]) -> None:
    ratio = paired(a, b)
    low, high = ends(ratio)
    assert high == pytest.approx(max(math.exp(pairs.WIDEST), ratio.ratio))
    assert low == pytest.approx(math.exp(-pairs.WIDEST))


def test_intervals_widen_by_what_both_sides_do_not_know() -> None:
    known = Ratio(1.1, 1.05, 1.15, 6, "signed rank")
    assert known.widened(1, 1) is known
    wider = known.widened(0.95, 1.02)
    assert ends(wider) == pytest.approx((0.9975, 1.173))
    assert wider.exceeds_noise is False
    assert Ratio(2.0).widened(0.9, 1.1) == Ratio(2.0)  # more than the factors explain: no interval
    assert Ratio(1.05).widened(0.9, 1.1).exceeds_noise is False


@pytest.mark.parametrize("count", [2, 3, 5, 6, 7, 9, 12])
@pytest.mark.parametrize("tail", ["normal", "heavy", "outliers"])
def test_equal_sides_differ_in_one_of_twenty_comparisons(count: int, tail: str) -> None:
    """At most 6.5 % of 2,000: the standard error is half a percent."""
    dice = random.Random(f"{count} {tail}")

    def noise() -> float:
        error = dice.gauss(0, 0.01)
        if tail == "heavy":  # Student's t with 3 degrees of freedom
            return error / math.sqrt(dice.gammavariate(1.5, 2) / 3)
        return error + (dice.gauss(0, 0.1) if tail == "outliers" and dice.random() < 0.05 else 0)

    def side() -> list[float]:
        return [100 * math.exp(noise()) for _ in range(count)]

    for compare in (paired, ratio_of_ratios):
        wrong = sum(compare(side(), side()).exceeds_noise is True for _ in range(2000))
        assert wrong <= 130, compare
        assert wrong >= 70 or count < pairs.RANKS_FROM or compare is ratio_of_ratios


@pytest.mark.parametrize(("first", "second"), [(2, 5), (3, 12), (6, 20)])
@pytest.mark.parametrize("scatter", [1 / 3, 3])
def test_equal_samples_of_unequal_size_and_scatter_differ_in_few_comparisons(
    first: int, second: int, scatter: float
) -> None:
    dice = random.Random(f"{first} {second} {scatter}")
    wrong = 0
    for _ in range(2000):
        a = [math.exp(dice.gauss(0, 0.01)) for _ in range(first)]
        b = [math.exp(dice.gauss(0, 0.01 * scatter)) for _ in range(second)]
        wrong += ratio_of_ratios(a, b).exceeds_noise is True
    assert wrong <= 130
