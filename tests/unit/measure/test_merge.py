"""Merging: the whole of the parts, in any order and grouping; errors are summed, percentiles are never averaged."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.measure.build import START, histogram_of, latencies, sampled, summaries, summary
from troop.measure.merge import Merger
from troop.measure.operations import Operation, PerSecond
from troop.measure.summary import Samples, Summary, SummaryError, parse


def merged(*parts: Summary) -> Merger:
    merger = Merger()
    for part in parts:
        merger.add(part)
    return merger


def reading(number: int, values: list[int], **errors: int) -> Summary:
    """A driver that has read so many times."""
    operation = Operation(
        histogram_of(values), errors, PerSecond(START, [len(values)], [sum(errors.values())]), 10 * len(values)
    )
    return summary(number, operations={"read": operation})


# ------------------------------------------------------------------ exactness


@settings(max_examples=150)
@given(summaries(), st.randoms(use_true_random=False))
def test_neither_order_nor_grouping_changes_anything(parts: list[Summary], dice: random.Random) -> None:
    expected = merged(*parts).document()
    shuffled = dice.sample(parts, len(parts))
    assert merged(*shuffled).document() == expected
    groups = [merged(part) for part in shuffled]
    while len(groups) > 1:
        one = groups.pop(dice.randrange(len(groups)))
        groups[dice.randrange(len(groups))].merge(one)
    assert groups[0].document() == expected


@given(summaries())
def test_merging_what_was_read_from_documents_is_the_same(parts: list[Summary]) -> None:
    assert merged(*(parse(part.document()) for part in parts)).document() == merged(*parts).document()


@given(summaries())
def test_merging_leaves_the_summaries_as_they_were(parts: list[Summary]) -> None:
    before = [part.document() for part in parts]
    merged(*parts)
    assert [part.document() for part in parts] == before


def test_the_table_of_the_parts_is_that_of_the_whole() -> None:
    values = latencies(9000)
    parts = [reading(n, values[n * 3000 : (n + 1) * 3000], timeout=n, reset=1) for n in range(3)]
    assert merged(*parts).table() == merged(reading(9, values, timeout=3, reset=3)).table()


def test_percentiles_are_those_of_all_operations_together() -> None:
    fast, slow = [1_000] * 9_900, [1_000_000] * 100
    (row,) = merged(reading(0, fast), reading(1, slow)).table()
    assert (row["p50_ms"], row["p99_ms"], row["max_ms"]) == (1.0, 1.0, 1000.0)
    assert row["p99_9_ms"] == pytest.approx(1000, rel=1e-3)
    assert row["mean_ms"] == pytest.approx(10.99)


def test_a_row() -> None:
    (row,) = merged(reading(0, [1_000, 3_000], timeout=2), reading(1, [2_000], timeout=1, reset=4)).table()
    assert row == {
        "role": "drivers",
        "operation": "read",
        "count": 3,
        "per_second": 0.3,
        "errors": {"reset": 4, "timeout": 3},
        "bytes_per_second": 3.0,
        "mean_ms": 2.0,
        "p50_ms": 2.0,
        "p90_ms": 3.0,
        "p95_ms": 3.0,
        "p99_ms": 3.0,
        "p99_9_ms": 3.0,
        "max_ms": 3.0,
    }


def test_only_errors_make_a_row_without_times() -> None:
    (row,) = merged(reading(0, [], timeout=5)).table()
    assert (row["count"], row["errors"], row["per_second"]) == (0, {"timeout": 5}, 0.0)
    assert row["p50_ms"] is row["max_ms"] is row["mean_ms"] is None


def test_the_rarest_of_many_kinds_of_errors_are_told_together() -> None:
    kinds = {f"kind-{n:02d}": 100 - n for n in range(40)}
    (row,) = merged(reading(0, [1], **kinds)).table()
    assert len(row["errors"]) == 17
    assert sum(row["errors"].values()) == sum(kinds.values())
    assert list(row["errors"])[:2] == ["kind-00", "kind-01"]


# ------------------------------------------------------------------ over time


def test_counts_are_added_second_by_second() -> None:
    early = summary(0, operations={"read": Operation(per_second=PerSecond(START, [1, 2], [0, 1]))})
    late = summary(1, operations={"read": Operation(per_second=PerSecond(START + 1, [10, 20], [5, 0]))})
    per_second = merged(early, late).document()["roles"]["drivers"]["operations"]["read"]["per_second"]
    assert per_second == {"from": START, "count": [1, 12, 20], "errors": [0, 6, 0]}


def test_of_levels_the_mean_and_of_amounts_the_sum() -> None:
    one = summary(0, samples=sampled(cpu_user=[100, None, None], disk_reads=[1, 2, None]))
    other = summary(1, samples=sampled(cpu_user=[301, 7, None], disk_reads=[10, None, None]))
    role = merged(one, other).document()["roles"]["drivers"]
    assert role["samples"]["cpu_user"] == [201, 7, None]
    assert role["samples"]["disk_reads"] == [11, 2, None]
    assert role["nodes"][one.node]["means"]["cpu_user"] == 100
    assert role["nodes"][other.node]["rank"] == 1


def test_roles_are_kept_apart() -> None:
    driver = reading(0, [1])
    server = summary(1, role="servers", operations=driver.operations)
    document = merged(driver, server).document()
    assert [(row["role"], row["count"]) for row in document["table"]] == [("drivers", 1), ("servers", 1)]
    assert (document["phase"], document["nodes"], document["measured_seconds"]) == ("measure", 2, 10.0)


# ------------------------------------------------------------------ what does not belong together


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (summary(1, phase="prepare"), "phase prepare among those of measure"),
        (summary(0, role="servers"), "merged already"),
        (summary(1, samples=Samples(START, 2, sampled(cpu_user=[1]).series)), "every 2 seconds among"),
    ],
)
def test_what_does_not_belong_together_is_not_merged(other: Summary, message: str) -> None:
    first = summary(0, samples=sampled(cpu_user=[1]))
    with pytest.raises(SummaryError, match=message):
        merged(first, other)
    group = merged(first)
    with pytest.raises(SummaryError, match=message):
        group.merge(merged(other))


def test_a_clock_that_is_days_off_is_not_merged() -> None:
    def at(number: int, start: int) -> Summary:
        return summary(number, operations={"read": Operation(per_second=PerSecond(start, [1], [0]))})

    with pytest.raises(SummaryError, match="check their clocks"):
        merged(at(0, START), at(1, 0))


def test_samples_that_are_days_apart_are_not_merged() -> None:
    here, there = (Samples(start, 1, sampled(cpu_user=[1]).series) for start in (START, 0))
    with pytest.raises(SummaryError, match="check their clocks"):
        merged(summary(0, samples=here), summary(1, samples=there))


def test_nothing_merged_is_no_result() -> None:
    with pytest.raises(SummaryError, match="no summary"):
        Merger().document()
