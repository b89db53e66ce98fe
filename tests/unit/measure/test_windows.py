"""Times over time: to a sixteenth what the values themselves would say, and sums of parts are the whole."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.measure.build import START, exact, histogram_of, latencies, recorded, windows
from troop.measure.histogram import HIGHEST
from troop.measure.histogram_rows import column, pairs_of
from troop.measure.windows import BUCKETS, MOST_STEPS, Windows, WindowsError, highest_in, index_of, lowest_in, step_for


def one_step(values: list[int]) -> Windows:
    return windows([(0, value) for value in values])


# ------------------------------------------------------------------ buckets


@given(st.integers(0, HIGHEST))
def test_a_bucket_holds_its_values_and_is_no_wider_than_a_sixteenth(value: int) -> None:
    low, high = lowest_in(index_of(value)), highest_in(index_of(value))
    assert low <= value <= high
    assert index_of(low) == index_of(high) == index_of(value)
    assert (high - low) * 16 < max(low, 1)
    assert low == high or value >= 32


@pytest.mark.parametrize(
    ("value", "index"), [(0, 0), (31, 31), (32, 32), (33, 32), (34, 33), (64, 48), (67, 48), (60_000_000, 364)]
)
def test_buckets_are_sixteen_a_doubling(value: int, index: int) -> None:
    """They are in documents, so they stay what they are."""
    assert index_of(value) == index


# ------------------------------------------------------------------ what a step says


@given(
    st.lists(st.one_of(st.integers(0, 5_000), st.integers(0, 10**7), st.integers(0, HIGHEST)), min_size=1),
    st.sampled_from([0, 1, 50, 90, 99, 99.9, 100]),
)
def test_a_percentile_is_the_exact_one_to_a_sixteenth(values: list[int], percent: float) -> None:
    estimate, true = one_step(values).percentile(0, percent), exact(values, percent)
    assert estimate is not None
    assert true <= estimate <= true * 17 / 16


@given(st.lists(st.one_of(st.integers(0, 5_000), st.integers(0, HIGHEST))))
def test_taking_a_histogram_is_recording_each_of_its_values(values: list[int]) -> None:
    taken, one_by_one = Windows(START, 5), Windows(START, 5)
    taken.take(START + 7, histogram_of(values))
    for value in values:
        one_by_one.record(START + 7, value)
    assert taken == one_by_one


def test_percentiles_and_means_are_nearly_those_of_a_histogram() -> None:
    values = latencies(5_000)
    coarse, fine = one_step(values), histogram_of(values)
    assert coarse.percentiles(0, (50, 99)) == pytest.approx(fine.percentiles((50, 99)), rel=1 / 16)
    assert coarse.mean(0) == pytest.approx(fine.mean(), rel=1 / 32)
    assert coarse.count(0) == 5_000


def test_each_step_has_its_own() -> None:
    histograms = Windows(START + 3, 5)
    for second, micros in ((0, 10), (4.99, 20), (5, 30), (17, 31)):
        histograms.record(START + second, micros)
    assert histograms.start == START, "a multiple of the step"
    assert [histograms.count(step) for step in range(histograms.steps)] == [2, 1, 0, 1]
    assert [histograms.percentile(step, 100) for step in range(histograms.steps)] == [20, 30, None, 31]
    assert histograms.mean(2) is None


@pytest.mark.parametrize(
    ("second", "micros", "count"),
    [
        (START - 1, 5, 1),
        (START + MOST_STEPS, 5, 1),
        (START, -1, 1),
        (START, HIGHEST + 1, 1),
        (START, 5, 0),
    ],
)
def test_impossible_value_or_count_is_refused(second: int, micros: int, count: int) -> None:
    histograms = Windows(START, 1)
    with pytest.raises(ValueError, match="cannot record"):
        histograms.record(second, micros, count)
    assert histograms.steps == 0


# ------------------------------------------------------------------ steps


@given(st.floats(0, 10**7))
def test_there_are_at_most_a_few_hundred_steps(seconds: float) -> None:
    assert seconds / step_for(seconds) <= 300


@pytest.mark.parametrize(
    ("seconds", "step"),
    [(0, 1), (2.5, 1), (300, 1), (300.5, 2), (660, 5), (2400, 10), (3600, 30), (43_200, 300), (180_001, 1200)],
)
def test_a_step_is_as_short_as_can_be(seconds: float, step: int) -> None:
    assert step_for(seconds) == step


# ------------------------------------------------------------------ sums


@given(st.lists(recorded, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_sum_of_parts_is_the_whole_in_any_order_and_grouping(
    parts: list[list[tuple[int, int]]], dice: random.Random
) -> None:
    whole = [one for part in parts for one in part]
    pending = [windows(part) for part in parts]
    while len(pending) > 1:
        one = pending.pop(dice.randrange(len(pending)))
        pending[dice.randrange(len(pending))].add(one)
    assert pending[0] == windows(whole)


def test_nodes_that_began_at_other_seconds_are_added_step_by_step() -> None:
    early, late = Windows(START, 2), Windows(START + 4, 2)
    early.record(START + 1, 5)
    early.record(START + 5, 5)
    late.record(START + 4, 5, 10)
    late.record(START + 6, 7)
    early.add(late)
    assert early.document() == {"from": START, "step_seconds": 2, "counts": [[5, 1], [], [5, 11], [7, 1]]}


def test_adding_leaves_the_other_as_it_was() -> None:
    total, one = Windows(START, 1), windows([(0, 5)])
    total.add(one)
    total.record(START, 5)
    assert one == windows([(0, 5)])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Windows(START, 2), "cannot add steps of 2 seconds to steps of 1"),
        (Windows(0, 1), "check their clocks"),
        (Windows(START + MOST_STEPS, 1), "check their clocks"),
    ],
)
def test_windows_that_do_not_fit_together_are_not_added(other: Windows, message: str) -> None:
    other.record(other.start, 1)
    total = windows([(0, 5)])
    with pytest.raises(WindowsError, match=message):
        total.add(other)
    assert total == windows([(0, 5)])


# ------------------------------------------------------------------ documents


@given(recorded)
def test_a_document_says_all(values: list[tuple[int, int]]) -> None:
    known = windows(values)
    assert Windows.from_document(json.loads(json.dumps(known.document()))) == known


@given(recorded)
def test_pairs_of_earlier_versions_are_the_same_counts(values: list[tuple[int, int]]) -> None:
    known = windows(values)
    written = known.document()
    pairs = [[list(pair) for pair in pairs_of(step)] for step in written["counts"]]
    assert all(pair[1] for step in pairs for pair in step)
    assert Windows.from_document({**written, "counts": pairs}) == known
    assert Windows.from_document({**written, "counts": pairs}).document() == written


@given(st.lists(recorded, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_sums_of_stored_parts_do_not_depend_on_their_form(
    parts: list[list[tuple[int, int]]], dice: random.Random
) -> None:
    """A later version adds up parts from files of this one and of earlier ones, and none of the parts changes."""
    total = Windows(START, 1)
    for part in parts:
        one = windows(part).document()
        if dice.random() < 0.5:
            one["counts"] = [[list(pair) for pair in pairs_of(step)] for step in one["counts"]]
        before = json.dumps(one)
        total.add(Windows.from_document(one))
        total.add(windows([(0, 3)]))
        assert json.dumps(one) == before
    whole = [one for part in parts for one in part] + [(0, 3)] * len(parts)
    assert total.document() == windows(whole).document()


@given(recorded)
def test_counts_take_hardly_more_text_than_pairs(values: list[tuple[int, int]]) -> None:
    counts = windows(values).document()["counts"]
    pairs = [[list(pair) for pair in pairs_of(step)] for step in counts]
    assert len(json.dumps(counts)) <= len(json.dumps(pairs)) + 4 * len(counts)


def document(**changes: Any) -> dict[str, Any]:
    return {"from": START, "step_seconds": 1, "counts": [[[5, 2]], [], [[3, 1], [40, 7]]], **changes}


def test_sums_of_the_largest_counts_are_exact() -> None:
    one = Windows.from_document(document(counts=[[5, 2**62, 2**62 - 1]]))
    total = Windows(START, 1)
    for _ in range(7):
        total.add(one)
    assert total.document()["counts"] == [[5, 7 * 2**62, 7 * (2**62 - 1)]]


def column_of(*numbers: int) -> dict[str, Any]:
    packed = column(numbers)
    assert isinstance(packed, dict)
    return packed


@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 10**7), st.one_of(st.integers(1, 300), st.integers(1, 2**50), st.just(2**62))),
            max_size=12,
        ),
        max_size=5,
    )
)
def test_columns_have_the_same_counts(steps: list[list[tuple[int, int]]]) -> None:
    """Also if some of them are scattered, or too large for a column; and sums of them are the same."""
    its = Windows(START, 1)
    for step, values in enumerate(steps):
        for micros, count in values:
            its.record(START + step, micros, count)
    try:
        Windows.from_document(its.document())
    except WindowsError:
        return  # too many all together
    copy = Windows.from_document(json.loads(json.dumps(its.document(packed=True))))
    assert copy.document() == its.document()
    twice = Windows.from_document(its.document())
    twice.add(its)
    copy.add(Windows.from_document(json.loads(json.dumps(its.document(packed=True)))))
    assert copy.document() == twice.document()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, "must be an object"),
        ([], "must be an object"),
        (document(step_seconds=0), "whole number from 1"),
        (document(step_seconds=1.0), "whole number from 1"),
        (document(step_seconds=True), "whole number from 1"),
        (document(step_seconds=7), "multiple"),
        ({**document(), "from": -1}, "multiple"),
        ({**document(), "from": str(START)}, "multiple"),
        (document(counts={}), "counts: rows must be a list"),
        (document(counts="5"), "counts must be a list"),
        (document(counts={"rows": [[5, 2]], "column": column([1])}), "the column ends before"),
        (document(counts={"rows": [[5, 1]], "column": column([1, 1])}), "the counts of all rows"),
        (document(counts={"rows": [[5, 2]], "column": column([1, 0])}), "a count of 0 at an end"),
        (document(counts={"rows": [[5, 2]], "column": column([0, 1])}), "a count of 0 at an end"),
        (document(counts={"rows": [[BUCKETS, 1]], "column": column([1])}), f"below {BUCKETS}"),
        (document(counts={"rows": [[5, True]], "column": column([1])}), "a number of counts"),
        (document(counts={"rows": [[5, 1, 1]], "column": column([1])}), "a number of counts"),
        (document(counts={"rows": [5], "column": column([1])}), "rows must be lists"),
        (document(counts={"rows": [[[5, 0]]], "column": column([])}), "count from 1"),
        (document(counts={"rows": [[5, 1]], "column": {**column_of(1), "bytes": 7}}), "1 to 6 bytes"),
        (document(counts={"rows": [[5, 1]], "column": {**column_of(1), "count": 2}}), "must have 2 numbers"),
        (document(counts={"rows": [[5, 1]], "column": {**column_of(1), "count": 1 << 24}}), "at most"),
        (document(counts={"rows": [[5, 1]], "column": {**column_of(1), "packed": "AAAA"}}), "cannot be read"),
        (document(counts={"rows": [[5, 1]], "column": {**column_of(1), "packed": None}}), "cannot be read"),
        (
            document(counts={"rows": [[5, 1]], "column": column_of(*[0] * 10**6)}),
            "of 0 at an end",
        ),
        (document(counts=[[]] * (MOST_STEPS + 1)), f"at most {MOST_STEPS}"),
        (document(counts=[[], {}]), r"counts\[1\] must be a bucket"),
        (document(counts=[["5", 2]]), r"counts\[0\] must be a bucket"),
        (document(counts=[[5]]), r"counts\[0\] must be a bucket"),
        (document(counts=[[5, 0, 1]]), "without 0 at the ends"),
        (document(counts=[[5, 1, 0]]), "without 0 at the ends"),
        (document(counts=[[5, 1, -1, 1]]), "must be a bucket"),
        (document(counts=[[5, 1, 2**63]]), "below 2"),
        (document(counts=[[5, 2**62, 2**62]]), "below 2"),  # all together
        (document(counts=[[5, 1.0]]), "must be a bucket"),
        (document(counts=[[5, 1, 1.0]]), "must be a bucket"),
        (document(counts=[[5, [5, 1]]]), "must be a bucket"),
        (document(counts=[[-1, 1]]), "from 0"),
        (document(counts=[[BUCKETS - 1, 1, 1]]), "below"),
        (document(counts=[[[5, 2, 1]]]), "pairs"),
        (document(counts=[[[[5], 2]]]), "pairs"),
        (document(counts=[["ab"]]), "pairs"),
        (document(counts=[[[True, 2]]]), "pairs"),
        (document(counts=[[[5, 2.0]]]), "pairs"),
        (document(counts=[[[5, 0]]]), "count from 1"),
        (document(counts=[[[5, 1], [5, 1]]]), "ascending"),
        (document(counts=[[[6, 1], [5, 1]]]), "ascending"),
        (document(counts=[[[-1, 1]]]), "from 0"),
        (document(counts=[[[10**4, 1]]]), "below"),
    ],
)
def test_malformed_document_is_refused(bad: Any, message: str) -> None:
    with pytest.raises(WindowsError, match=message):
        Windows.from_document(bad)
