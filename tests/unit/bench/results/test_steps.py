"""Values over time in fewer steps: nothing is lost, nothing invented, and the warm-up stays on its own side."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.report.runs import coarse
from troop.bench.results import steps
from troop.measure import windows
from troop.measure.windows import mean_of

amounts = st.lists(st.integers(0, 1000), max_size=400)
moments = st.integers(-500, 500)


@pytest.mark.parametrize(
    ("seconds", "step"), [(1, 1), (300, 1), (301, 2), (1500, 5), (3600, 30), (86_400, 300), (604_800, 2400)]
)
def test_a_series_has_at_most_300_steps(seconds: float, step: int) -> None:
    assert windows.step_for(seconds) == step
    assert seconds / step <= windows.TARGET_STEPS


@given(moments, amounts, moments, st.sampled_from([1, 2, 5, 60]))
def test_sums_are_conserved_on_either_side_of_zero(first: int, values: list[int], zero: int, step: int) -> None:
    low, totals = steps.sums(first, values, zero, step)
    assert sum(totals) == sum(values)
    before = sum(value for second, value in enumerate(values, first) if second < zero)
    assert sum(total for number, total in enumerate(totals, low) if number < 0) == before


@given(amounts.filter(len), st.sampled_from([1, 2, 5, 60]))
def test_rates_times_their_seconds_are_the_sums(values: list[int], step: int) -> None:
    low, totals = steps.sums(0, values, 0, step)
    rates = steps.rates(low, totals, step, 0, len(values))
    covered = [min(len(values), (n + 1) * step) - n * step for n in range(len(totals))]
    assert math.isclose(sum((rate or 0) * s for rate, s in zip(rates, covered, strict=True)), sum(values), abs_tol=1e-6)


def test_a_step_that_is_cut_off_counts_for_as_long_as_it_was() -> None:
    """From 0.4 to 2.4, 100 a second. Of less than half a step no rate is told: clocks are not that exact."""
    assert steps.rates(0, [60, 100, 40], 1, 0.4, 2.4) == [pytest.approx(100), 100, None]
    assert steps.rates(0, [460, 340], 5, 0.4, 8.4) == pytest.approx([100, 100])


@given(moments, st.lists(st.none() | st.integers(0, 1000), max_size=300), moments, st.sampled_from([1, 2, 4]))
def test_means_lie_between_what_they_are_of(first: int, values: list[int | None], zero: int, interval: int) -> None:
    _, averages = steps.means(first, interval, values, zero, 10)
    known = [value for value in values if value is not None]
    numbers = [value for value in averages if value is not None]
    assert bool(known) == bool(numbers)
    assert all(min(known) <= value <= max(known) for value in numbers)


@given(
    st.integers(-20, 20),
    st.lists(st.one_of(st.integers(0, 9), st.none()), max_size=12) | st.lists(st.integers(0, 9), max_size=40),
    st.integers(-20, 20),
    st.integers(1, 4),
    st.integers(1, 7),
)
def test_a_mean_is_that_of_the_known_values_of_its_step(
    first: int, values: list[int | None], zero: int, interval: int, step: int
) -> None:
    """Whether or not all of them are known, and also in steps without any value."""
    low, averages = steps.means(first, interval, values, zero, step)
    if interval != step:
        expected = [
            [v for at, v in enumerate(values) if v is not None and (first + at * interval - zero) // step == low + n]
            for n in range(len(averages))
        ]
        assert averages == [sum(known) / len(known) if known else None for known in expected]


def test_steps_without_values_stay_empty() -> None:
    assert steps.means(100, 1, [1, 3, None, None, 5], 100, 2) == (0, [2, None, 5])
    assert steps.sums(100, [], 100, 1) == (0, [])


@given(st.lists(st.integers(0, 10**8), min_size=1, max_size=60), st.sampled_from([50, 90, 99]))
def test_percentiles_of_steps_are_within_a_sixteenth(values: list[int], percent: float) -> None:
    counts = [[[coarse(value), 1] for value in values[half::2]] for half in (0, 1)]
    _, ((_, buckets),) = steps.windows(counts, 0, 1, 2)
    exact = sorted(values)[max(1, math.ceil(len(values) * percent / 100)) - 1]
    (estimate,) = steps.percentiles(buckets, [percent])
    assert estimate is not None
    assert exact <= estimate <= exact * 17 / 16
    average = mean_of(buckets)
    assert average is not None
    assert math.isclose(average, sum(values) / len(values), rel_tol=1 / 16, abs_tol=1)


def test_a_step_without_operations_has_no_time() -> None:
    counts = [[[40, 3]], [], [[40, 1], [41, 2]]]
    assert steps.windows(counts, 0, 1, 2) == (0, [(0, {40: 3}), (2, {40: 1, 41: 2})])
    assert steps.windows(counts, -1, 1, 2) == (-1, [(-2, {40: 3}), (0, {40: 1, 41: 2})])
    assert steps.windows(counts, -2, 5, 5) == (0, [(-2, {40: 3}), (3, {}), (8, {40: 1, 41: 2})])
    assert steps.percentiles({}, [50, 99]) == [None, None]
    assert mean_of({}) is None


pairs = st.lists(st.tuples(st.integers(0, windows.BUCKETS - 1), st.integers(0, 2**63)).map(list), max_size=20)


@given(st.lists(pairs, min_size=1, max_size=6), st.integers(-9, 9), st.sampled_from([1, 2, 3]))
def test_steps_hold_every_count_of_their_windows(counts: list[list[list[int]]], first: int, together: int) -> None:
    """Also those of a bucket that a window names twice, which only a damaged file does."""
    low, merged = steps.windows(counts, first, 2, 2 * together)
    expected: dict[int, Counter[int]] = {}
    for at, window in enumerate(counts):
        middle = first + 2 * at + 1
        for bucket, count in window:
            expected.setdefault(middle // (2 * together), Counter())[bucket] += count
    assert {number: buckets for number, (_, buckets) in enumerate(merged, low) if buckets} == expected


@pytest.mark.parametrize("bucket", [-1, windows.BUCKETS])
@pytest.mark.parametrize("before", [[], [[[40, 1]]]])
def test_a_bucket_that_does_not_exist_is_refused(bucket: int, before: list[list[list[int]]]) -> None:
    with pytest.raises(ValueError, match=str(bucket)):
        steps.windows([*before, [[bucket, 1]]], 0, 1, 2)


@given(st.dictionaries(st.integers(0, windows.BUCKETS - 1), st.integers(0, 2**63), max_size=20))
def test_means_and_percentiles_are_those_of_every_time(buckets: dict[int, int]) -> None:
    total = sum(count * (windows.lowest_in(bucket) + windows.highest_in(bucket)) for bucket, count in buckets.items())
    count = sum(buckets.values())
    assert mean_of(buckets) == (total / 2 / count if count else None)
    for percent, value in zip((0, 50, 99, 100), steps.percentiles(buckets, (0, 50, 99, 100)), strict=True):
        rank = max(1, math.ceil(count * percent / 100))
        above = [bucket for bucket in buckets if sum(n for b, n in buckets.items() if b <= bucket) >= rank]
        assert value == (windows.highest_in(min(above)) if above else None)
