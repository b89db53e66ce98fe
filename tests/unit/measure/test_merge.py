"""Merging: the whole of the parts, in any order and grouping; errors are summed, percentiles are never averaged."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.measure.build import START, histogram_of, latencies, sampled, summaries, summary
from troop.measure import merge, operations
from troop.measure.merge import MOST_SEPARATE, Merger
from troop.measure.operations import Operation, PerSecond
from troop.measure.separate import MOST_ROWS, REQUESTS, Separate
from troop.measure.summary import Clock, Samples, Summary, SummaryError, parse
from troop.measure.windows import Windows
from troop.report import document as report


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


@pytest.mark.slow
@settings(max_examples=40)
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


@pytest.mark.slow
@settings(max_examples=25)
@given(summaries())
def test_merging_what_was_read_from_documents_is_the_same(parts: list[Summary]) -> None:
    assert merged(*(parse(part.document()) for part in parts)).document() == merged(*parts).document()


@pytest.mark.slow
@settings(max_examples=15)
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


def timed_operation(timing: str | None, values: list[int], service: list[int] | None = None) -> Operation:
    its = None if service is None else histogram_of(service)
    return Operation(times=histogram_of(values), timing=timing, service=its)


RESPONSES = timed_operation("response", [900, 1000], [100, 200])
SERVICES = timed_operation("service", [300])
OLD = timed_operation(None, [400])
UNKNOWN = timed_operation("response", [5000])
NOTHING = Operation(errors={"timeout": 3})


@pytest.mark.parametrize(
    ("parts", "timing", "service"),
    [
        ([RESPONSES], "response", [100, 200]),
        ([RESPONSES, RESPONSES], "response", [100, 100, 200, 200]),
        ([SERVICES, SERVICES], "service", None),
        ([OLD, OLD], None, None),
        ([SERVICES, OLD], None, None),
        ([RESPONSES, SERVICES], "mixed", [100, 200, 300]),
        ([RESPONSES, OLD], "mixed", [100, 200, 400]),
        ([RESPONSES, UNKNOWN], "response", None),
        ([RESPONSES, NOTHING], "response", [100, 200]),
        ([NOTHING, SERVICES], "service", None),
        ([NOTHING], None, None),
    ],
)
def test_merged_operation_has_a_timing_and_service_times_only_of_like_parts(
    parts: list[Operation], timing: str | None, service: list[int] | None
) -> None:
    for ordered in (parts, parts[::-1]):
        total = Operation()
        for one in ordered:
            total.add(one)
        assert total.timing == timing
        assert total.service == (None if service is None else histogram_of(service))


def test_a_row_has_service_times_beside_response_times() -> None:
    its = merge.row("drivers", "read", RESPONSES, 2.0)
    assert (its["timing"], its["p50_ms"], its["max_ms"]) == ("response", 0.9, 1.0)
    assert (its["service"]["p50_ms"], its["service"]["mean_ms"], its["service"]["max_ms"]) == (0.1, 0.15, 0.2)
    assert merge.row("drivers", "read", SERVICES, 2.0)["timing"] == "service"
    for one in (SERVICES, UNKNOWN, OLD):
        assert "service" not in merge.row("drivers", "read", one, 2.0)
    assert "timing" not in merge.row("drivers", "read", OLD, 2.0)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"timing": "soon"}, "timing must be one of response, service, mixed"),
        ({"timing": ["response"]}, "timing must be one of"),
        ({"service": RESPONSES.times.document()}, "service needs a timing of response or mixed"),
        ({"timing": "response", "service": {}}, "service"),
        ({"tools": ["a b"]}, "tools"),
        ({"tools": [f"t{n}" for n in range(9)]}, "at most 8"),
    ],
)
def test_malformed_timing_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(operations.OperationsError, match=message):
        operations.parse({"read": {**SERVICES.document(), "timing": None, **more}})


def test_only_errors_make_a_row_without_times() -> None:
    (row,) = merged(reading(0, [], timeout=5)).table()
    assert (row["count"], row["errors"], row["per_second"]) == (0, {"timeout": 5}, 0.0)
    assert row["p50_ms"] is row["max_ms"] is row["mean_ms"] is None


def test_rarest_of_many_kinds_of_errors_count_together() -> None:
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


def test_errors_are_added_by_second_and_kind() -> None:
    """Also if a node has a kind that others lack, or has none on record."""
    each = [
        PerSecond(START, [0, 0], [2, 1], {"reset": [2, 0], "tls": [0, 1]}),
        PerSecond(START + 1, [0, 0], [5, 3], {"reset": [5, 3]}),
        PerSecond(START, [0], [4]),
    ]
    parts = [summary(n, operations={"read": Operation(per_second=one)}) for n, one in enumerate(each)]
    per_second = merged(*parts).document()["roles"]["drivers"]["operations"]["read"]["per_second"]
    assert per_second["errors"] == [6, 6, 3]
    assert per_second["kinds"] == {"reset": [2, 5, 3], "tls": [0, 1, 0]}
    assert "kinds" not in merged(parts[2]).document()["roles"]["drivers"]["operations"]["read"]["per_second"]


def timed(number: int, step_seconds: int | None) -> Summary:
    """A driver that has recorded a time of its rank in the first step; with no step, none over time."""
    over_time = Windows(START, step_seconds) if step_seconds else None
    if over_time:
        over_time.record(START, number)
    return summary(number, operations={"read": Operation(over_time=over_time)})


def test_times_are_added_by_step_where_only_some_nodes_have_them() -> None:
    parts = [timed(0, None), timed(1, 1), timed(2, 1), timed(3, None)]
    over_time = merged(*parts).document()["roles"]["drivers"]["operations"]["read"]["over_time"]
    assert over_time == {"from": START, "step_seconds": 1, "counts": [[1, 1, 1]]}


def test_levels_have_a_mean_and_amounts_a_sum() -> None:
    one = summary(0, samples=sampled(cpu_user=[100, None, None], disk_reads=[1, 2, None]))
    other = summary(1, samples=sampled(cpu_user=[301, 7, None], disk_reads=[10, None, None]))
    role = merged(one, other).document()["roles"]["drivers"]
    assert role["samples"]["cpu_user"] == [201, 7, None]
    assert role["samples"]["disk_reads"] == [11, 2, None]
    assert role["nodes"][one.node]["means"]["cpu_user"] == 100
    assert role["nodes"][other.node]["rank"] == 1


@pytest.mark.parametrize(("begin", "mean"), [(START + 2.0, 600), (START + 1.4, 300), (None, 280), (START + 60.0, None)])
def test_a_nodes_means_are_of_the_measured_time(begin: float | None, mean: int | None) -> None:
    one = summary(0, samples=sampled(cpu_user=[0, 100, 500, 700, 100]), measured_from=begin, measured_seconds=2.0)
    assert merged(one).document()["roles"]["drivers"]["nodes"][one.node]["means"]["cpu_user"] == mean


def test_the_measured_time_begins_when_most_nodes_say() -> None:
    parts = [
        summary(n, measured_from=at, warm_up_seconds=warm_up)
        for n, (at, warm_up) in enumerate([(START + 0.1, 5.0), (START - 7200.0, 5.0), (START + 0.3, 0.0), (None, 0.0)])
    ]
    document = merged(*parts).document()
    assert (document["measured_from"], document["warm_up_seconds"]) == (START + 0.1, 5.0)
    assert merged(parts[3]).document()["measured_from"] is None


def test_roles_have_separate_rows() -> None:
    driver = reading(0, [1])
    server = summary(1, role="servers", operations=driver.operations)
    document = merged(driver, server).document()
    assert [(row["role"], row["count"]) for row in document["table"]] == [("drivers", 1), ("servers", 1)]
    assert (document["phase"], document["nodes"], document["measured_seconds"]) == ("measure", 2, 10.0)


# ------------------------------------------------------------------ clocks


def by_a_clock(one: Summary, ahead: float, known: float | None = None) -> Summary:
    """What a node would have said whose clock is so far ahead, a whole number of seconds; as far as is known to it."""
    seconds = int(ahead)

    def later(operation: Operation) -> Operation:
        per_second, over_time = operation.per_second, operation.over_time
        if over_time is not None:
            document = over_time.document()
            over_time = Windows.from_document({**document, "from": document["from"] + seconds})
        return replace(operation, per_second=replace(per_second, start=per_second.start + seconds), over_time=over_time)

    return replace(
        one,
        clock=Clock(ahead if known is None else known, 0.2),
        ended_at=one.ended_at + ahead,
        measured_from=None if one.measured_from is None else one.measured_from + seconds,
        operations={name: later(operation) for name, operation in one.operations.items()},
        samples=one.samples and _later(one.samples, seconds),
    )


def _later(samples: Samples, seconds: int) -> Samples:
    devices = samples.devices and replace(samples.devices, start=samples.devices.start + seconds)
    return replace(samples, start=samples.start + seconds, devices=devices)


@settings(max_examples=20)
@given(summaries(most=3), st.lists(st.integers(-90, 90), min_size=3, max_size=3))
def test_clocks_that_are_certainly_wrong_change_nothing(parts: list[Summary], ahead: list[int]) -> None:
    parts = [replace(part, clock=Clock(0.0, 0.2), measured_from=START + 0.5) for part in parts]
    right = merged(*parts).document()
    wrong = merged(*(by_a_clock(part, seconds) for part, seconds in zip(parts, ahead, strict=False))).document()
    for document in (right, wrong):
        for role in document["roles"].values():
            for line in role["nodes"].values():
                del line["clock_offset_seconds"]
    assert wrong == right


@pytest.mark.parametrize(
    ("ahead", "known", "counts"),
    [(5, 5.3, [2, 2]), (-5, -4.7, [2, 2]), (1, 0.15, [1, 2, 1]), (0, 0.4, [2, 2]), (1, 0.7, [2, 2])],
    ids=["ahead", "behind", "perhaps", "by less than half a second", "by more"],
)
def test_series_of_a_node_are_moved_by_whole_seconds_of_its_clock(ahead: int, known: float, counts: list[int]) -> None:
    part = summary(0, operations={"read": Operation(per_second=PerSecond(START, [1, 1], [0, 0]))})
    document = merged(part, by_a_clock(replace(part, node="i-1"), ahead, known)).document()
    per_second = document["roles"]["drivers"]["operations"]["read"]["per_second"]
    assert (per_second["from"], per_second["count"]) == (START, counts)


def test_series_with_steps_are_moved_by_whole_steps() -> None:
    over_time = Windows(START, 10)
    over_time.record(START + 12, 7)
    samples = Samples(START - START % 8, 8, sampled(cpu_user=[1]).series)
    part = summary(0, operations={"read": Operation(over_time=over_time)}, samples=samples, clock=Clock(17.0, 0.1))
    role = merged(part).document()["roles"]["drivers"]
    assert role["operations"]["read"]["over_time"]["from"] == over_time.start - 20
    assert role["samples"]["from"] == samples.start - 16


def test_no_clock_moves_anything_to_before_1970() -> None:
    document = merged(by_a_clock(timed(1, 1), 0, 1e300)).document()
    assert document["roles"]["drivers"]["operations"]["read"]["over_time"]["from"] == 0


# ------------------------------------------------------------------ what only single nodes can tell


def test_rows_of_single_nodes_stand_side_by_side() -> None:
    fast, slow = Separate("wrk", "get", 10, percentiles={"99": 1.5, "50": 0.5}), Separate("wrk", "get", 5)
    parts = [
        summary(1, separate=(slow,)),
        summary(0, separate=(slow, fast)),
        summary(2, role="clients", separate=(fast,)),
    ]
    document = merged(*parts).document()
    rows = [(row["role"], row["rank"], row["node"], row["count"]) for row in document["separate"]]
    assert rows == [
        ("clients", 2, parts[2].node, 10),
        ("drivers", 0, parts[1].node, 10),
        ("drivers", 0, parts[1].node, 5),
        ("drivers", 1, parts[0].node, 5),
    ]
    assert list(document["separate"][0]["percentiles"].items()) == [("50", 0.5), ("99", 1.5)]
    assert document["table"] == []
    for row in document["separate"]:
        assert report.Separate.model_validate(row).tool == "wrk"


def test_billed_requests_are_added_up_and_are_no_results() -> None:
    parts = [summary(n, separate=(Separate(REQUESTS, "s3_gets", 10 + n), Separate("wrk", "get", 1))) for n in range(9)]
    whole = merged(*parts[:4])
    whole.merge(merged(*parts[4:]))
    assert whole.document()["requests"] == {"s3_gets": 9 * 10 + 36}
    assert {row["tool"] for row in whole.document()["separate"]} == {"wrk"}
    assert "requests" not in merged(summary(0)).document()


def test_first_of_very_many_separate_rows_stay_and_others_are_counted() -> None:
    """Whatever the order in which they come."""
    row = Separate("wrk", "get", 1)
    parts = [summary(n, separate=(row,) * MOST_ROWS) for n in range(20)]
    random.Random(1).shuffle(parts)
    document = merged(*parts).document()
    assert len(document["separate"]) == MOST_SEPARATE
    assert document["separate_left_out"] == 20 * MOST_ROWS - MOST_SEPARATE
    assert {row["rank"] for row in document["separate"]} == set(range(-(-MOST_SEPARATE // MOST_ROWS)))
    group = merged(*parts[:9])
    group.merge(merged(*parts[9:]))
    assert group.document() == document


# ------------------------------------------------------------------ what does not belong together


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (summary(1, phase="prepare"), "phase prepare with those of phase measure"),
        (summary(0, role="servers"), "was merged before"),
        (summary(1, samples=Samples(START, 2, sampled(cpu_user=[1]).series)), "samples of 2 seconds with those of 1"),
        (summary(1, samples=Samples(0, 1, sampled(cpu_user=[1]).series)), "check their clocks"),
        (summary(1, operations={"read": Operation(per_second=PerSecond(0, [1], [0]))}), "check their clocks"),
        (timed(1, 2), "over_time: cannot add steps of 2 seconds to steps of 1"),
    ],
)
def test_summaries_that_do_not_fit_together_are_not_merged(other: Summary, message: str) -> None:
    read = replace(timed(1, 1).operations["read"], per_second=PerSecond(START, [1], [0]))
    first = summary(0, samples=sampled(cpu_user=[1]), operations={"read": read})
    with pytest.raises(SummaryError, match=message):
        merged(first, other)
    group = merged(first)
    with pytest.raises(SummaryError, match=message):
        group.merge(merged(other))


def test_nothing_merged_is_no_result() -> None:
    with pytest.raises(SummaryError, match="no summary"):
        Merger().document()
