"""Histograms: to three digits what the values themselves would say, and sums of parts are the whole."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.measure.build import exact, histogram_of, latencies, times
from troop.measure.histogram import HIGHEST, Histogram, HistogramError, from_document, highest_in, index_of, lowest_in
from troop.measure.histogram_rows import pairs_of

percents = st.sampled_from([0, 0.1, 1, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100])


# ------------------------------------------------------------------ buckets


@pytest.mark.parametrize(
    ("value", "index"),
    [
        (0, 0),
        (1, 1),
        (2047, 2047),
        (2048, 2048),
        (2049, 2048),
        (2050, 2049),
        (4095, 3071),
        (4096, 3072),
        (4099, 3072),
        (1_000_000, 11_169),
        (3_600_000_000, 23_220),
    ],
)
def test_buckets_are_those_of_hdr_histogram_with_three_digits(value: int, index: int) -> None:
    assert index_of(value) == index
    assert lowest_in(index) <= value <= highest_in(index)


@given(st.integers(0, HIGHEST))
def test_a_bucket_holds_its_values_and_is_no_wider_than_a_thousandth(value: int) -> None:
    low, high = lowest_in(index_of(value)), highest_in(index_of(value))
    assert low <= value <= high
    assert index_of(low) == index_of(high) == index_of(value)
    assert (high - low) * 1000 <= value


# ------------------------------------------------------------------ percentiles


@given(times.filter(bool), percents)
def test_a_percentile_is_the_exact_one_to_three_digits(values: list[int], percent: float) -> None:
    estimate, true = histogram_of(values).percentile(percent), exact(values, percent)
    assert estimate is not None
    assert true <= estimate <= true * 1.001


def test_percentiles_of_many_latencies() -> None:
    values = latencies(20_000)
    known = histogram_of(values)
    for percent in (50, 90, 95, 99, 99.9):
        assert known.percentile(percent) == pytest.approx(exact(values, percent), rel=1e-3)
    assert known.percentile(100) == max(values)
    assert known.mean() == pytest.approx(sum(values) / len(values), rel=1e-12)


def test_a_percentile_counts_as_people_write_it() -> None:
    assert histogram_of(list(range(1, 1001))).percentile(99.9) == 999


def test_nothing_recorded_has_no_percentiles() -> None:
    nothing = Histogram()
    assert (nothing.percentile(50), nothing.mean(), nothing.count, nothing.max) == (None, None, 0, 0)


@given(times.filter(bool), st.integers(-3000, 3000).filter(bool))
def test_a_sum_is_within_what_counts_minimum_and_maximum_allow(values: list[int], more: int) -> None:
    known = histogram_of(values).document()
    low = sum(max(lowest_in(index), known["min"]) * count for index, count in pairs_of(known["counts"]))
    high = sum(min(highest_in(index), known["max"]) * count for index, count in pairs_of(known["counts"]))
    moved = known | {"sum": known["sum"] + more}
    if low <= moved["sum"] <= high:
        return  # such values can exist, but for the one minimum and the one maximum
    with pytest.raises(HistogramError, match="sum"):
        from_document(moved)


@pytest.mark.parametrize(("value", "count"), [(-1, 1), (HIGHEST + 1, 1), (5, 0), (5, -1), (5, 2**63)])
def test_impossible_value_or_count_is_refused(value: int, count: int) -> None:
    with pytest.raises(ValueError, match="cannot record"):
        Histogram().record(value, count)


# ------------------------------------------------------------------ sums


@given(st.lists(times, max_size=6), st.randoms(use_true_random=False))
def test_the_sum_of_parts_is_the_whole_in_any_order_and_grouping(parts: list[list[int]], dice: random.Random) -> None:
    whole = histogram_of([value for part in parts for value in part])
    pending = [histogram_of(part) for part in parts] or [Histogram()]
    while len(pending) > 1:
        one = pending.pop(dice.randrange(len(pending)))
        pending[dice.randrange(len(pending))].add(one)
    assert pending[0] == whole
    assert pending[0].document() == whole.document()


@given(times.filter(bool), times)
def test_the_maximum_is_a_maximum(one: list[int], other: list[int]) -> None:
    total = histogram_of(one)
    total.add(histogram_of(other))
    assert (total.min, total.max, total.percentile(100)) == (min(one + other), max(one + other), max(one + other))


def test_a_billion_of_one_value_are_as_large_as_one() -> None:
    once, often = Histogram(), Histogram()
    once.record(1234)
    often.record(1234, 10**9)
    assert len(often.document()["counts"]) == len(once.document()["counts"]) == 2, "a row of one count"
    assert (often.count, often.sum, often.percentile(50)) == (10**9, 1234 * 10**9, 1234)


# ------------------------------------------------------------------ documents


@given(times)
def test_a_document_says_all(values: list[int]) -> None:
    known = histogram_of(values)
    assert from_document(json.loads(json.dumps(known.document()))) == known


@given(times)
def test_pairs_of_earlier_versions_are_the_same_counts(values: list[int]) -> None:
    written = histogram_of(values).document()
    pairs = [list(pair) for pair in pairs_of(written["counts"])]
    assert from_document({**written, "counts": pairs}) == histogram_of(values)
    assert len(json.dumps(written["counts"])) <= len(json.dumps(pairs)) + 4


def document(**changes: Any) -> dict[str, Any]:
    return {**histogram_of([5, 5, 3000]).document(), **changes}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, "must be an object"),
        (document(digits=2), "digits 3"),
        (document(unit="ms"), "unit us"),
        (document(count=4), "must be the sum"),
        (document(count=3.0), "count must be a whole number"),
        (document(min=True), "min must be a whole number"),
        (document(max=2**60), "first and last bucket"),
        (document(max=3010), "first and last bucket"),
        (document(min=6), "first and last bucket"),
        (document(counts=[[5, 2], [5, 1]]), "ascending"),
        (document(counts=[[2524, 1], [5, 2]]), "ascending"),
        (document(counts=[[5, 2], [2524, 0.5]]), "pairs"),
        (document(counts=[[5, 3], [2524, 0]]), "count from 1"),
        (document(counts=[[-1, 2], [2524, 1]]), "pairs"),
        (document(counts=[[5, 2], [10**9, 1]]), "pairs"),
        (document(counts=[[5, 2, 1]]), "pairs"),
        (document(counts=[5]), "pairs"),
        (document(counts=[5, 2]), "count is 3: must be the sum of counts, 2"),
        (document(counts=[2524, 3]), "must lie in the first and last bucket"),
        (document(counts=[5, 3, 0]), "without 0 at the ends"),
        (document(counts=[4, 0, 3]), "without 0 at the ends"),
        (document(counts=[5, 2, -1, 2]), "must be a bucket"),
        (document(counts=[5, 2, 1.0]), "must be a bucket"),
        (document(counts=[5, 2, [2524, 1]]), "must be a bucket"),
        (document(counts=[10**9, 3]), "below"),
        (document(counts=[5, 2**63], count=2**62), "below 2"),
        (document(counts={}), "pairs"),
        (document(counts=[], count=0), "must be 0"),
        (document(sum=0), "sum is 0: counts, min and max require a sum from 3010 to 3010"),
        (document(sum=10**40), "sum must be a whole number from 0, below"),
        (document(count=10**400, counts=[[5, 10**400 - 1], [2524, 1]]), "count must be a whole number"),
        (document(counts=[[5, 2**63], [2524, 1]], count=2**62), "count from 1 below 2"),
        (histogram_of([2048, 2049]).document() | {"min": 2049, "max": 2048}, "must be at most max"),
    ],
)
def test_a_document_that_contradicts_itself_is_refused(bad: Any, message: str) -> None:
    with pytest.raises(HistogramError, match=message):
        from_document(bad)
