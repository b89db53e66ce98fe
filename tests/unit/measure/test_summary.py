"""Summaries: what is written can be read again, and what is none is refused with a reason."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.measure.build import START, histogram_of, sampled, summaries, summary, windows
from troop.measure import operations
from troop.measure.histogram import HIGHEST, MOST, Histogram
from troop.measure.merge import Merger
from troop.measure.operations import LONGEST_SECONDS, Operation, PerSecond, bound_over_time, document_of
from troop.measure.summary import (
    BEFORE,
    HEAD_BYTES,
    MOST_SAMPLES,
    SHORTEST,
    Summary,
    SummaryError,
    head_of,
    parse,
)
from troop.measure.summary_size import encoded


@given(summaries(most=2))
def test_written_summary_can_be_read(written: list[Summary]) -> None:
    for one in written:
        assert parse(json.loads(json.dumps(one.document()))) == one


def test_a_node_that_measured_nothing_has_a_summary() -> None:
    bare = summary(exit_code=None, clock=None, measured_from=None, measured_seconds=0.0, outcome="lost", reason="ended")
    assert parse(bare.document()) == bare


def test_an_older_operation_has_nothing_over_time() -> None:
    older = document()
    del older["operations"]["read"]["over_time"]
    assert parse(older) == parse(document())


def test_rarest_operations_lose_their_times_over_time() -> None:
    def operation(count: int, *times: int) -> Operation:
        return Operation(
            per_second=PerSecond(START, [count], [0]), over_time=windows([(0, micros) for micros in times])
        )

    def all_of_them() -> dict[str, Operation]:
        return {"rare": operation(5, 1, 2, 2), "common": operation(9, 1, 2, 3), "seldom": operation(6, 4)}

    assert bound_over_time(bounded := all_of_them(), most=6) == []
    assert bounded == all_of_them()
    assert bound_over_time(bounded, most=3) == ["rare", "seldom"]
    assert {name for name, one in bounded.items() if one.over_time} == {"common"}
    assert bounded["rare"].per_second.count == [5]


def document(**changes: Any) -> dict[str, Any]:
    full = summary(
        samples=sampled(cpu_user=[500, None]), operations={"read": Operation(per_second=PerSecond(START, [1], [0]))}
    )
    return {**full.document(), **changes}


def read_with(**changes: Any) -> dict[str, Any]:
    return {"read": {**document()["operations"]["read"], **changes}}


def samples_with(**changes: Any) -> dict[str, Any]:
    return {**document()["samples"], **changes}


def per_second(**changes: Any) -> dict[str, Any]:
    return read_with(per_second={"from": START, "count": [1], "errors": [0], **changes})


def test_the_largest_numbers_of_a_summary_merge_into_finite_ones() -> None:
    largest = {"histogram": largest_histogram(), "bytes": MOST, "errors": {"timeout": MOST}}
    merger = Merger()
    for node in ("i-1", "i-2"):
        merger.add(parse(document(node=node, operations=read_with(**largest), measured_seconds=SHORTEST)))
    json.dumps(merger.document(), allow_nan=False)


@given(
    st.lists(st.integers(0, 10**7), min_size=1, max_size=50),
    st.lists(st.sampled_from([0, 1, 300, 2**47, MOST]), max_size=9),
)
def test_a_summary_of_an_earlier_version_is_the_same(values: list[int], counts: list[int]) -> None:
    """Nodes that began before an upgrade write it. Its counts are no columns, and its outcome is behind them."""
    one = summary(
        operations={
            "read": Operation(
                histogram_of(values),
                per_second=PerSecond(START, counts, counts[::-1]),
                over_time=windows([(at, value) for at, value in enumerate(values)]),
                service=histogram_of(values[:3]),
                timing="response",
            )
        },
        interruption={"action": "stop", "time": "now"},
    )
    stored = one.document()
    earlier = {**stored, "format": BEFORE, "operations": document_of(one.operations)}
    earlier["interruption"] = earlier.pop("interruption")
    assert parse(json.loads(json.dumps(stored))) == parse(json.loads(json.dumps(earlier))) == parse(stored)
    assert head_of(encoded(earlier).encode()) is None


@pytest.mark.parametrize("reason", [None, 'it said ,"operations":{} and "x\\', "é" * 3000])
def test_the_head_of_a_summary_is_read_without_its_measurements(reason: str | None) -> None:
    one = summary(outcome="failed" if reason else "ok", reason=reason, interruption={"action": "stop", "time": "now"})
    stored = encoded(one.document()).encode()
    head = head_of(stored[:HEAD_BYTES])
    if reason and len(reason) > 1000:
        assert head is None
    else:
        assert head == replace(one, operations={}, samples=None, separate=())
    assert head_of(b'{"a":' + b"[" * HEAD_BYTES + b',"operations":') is None
    assert head_of(b"") is head_of(stored[:100]) is head_of(b'{"format":,"operations":{}}') is None


@pytest.mark.parametrize(
    "one",
    [
        Operation(histogram_of([1, 17])),
        Operation(histogram_of([1]), timing="response", service=histogram_of([1, 16])),
    ],
)
def test_counts_of_histograms_are_some_of_too_many(one: Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    its = document(operations={"read": one.document(packed=True)})
    monkeypatch.setattr(operations, "MOST_LANES", 9)
    parse(its)
    monkeypatch.setattr(operations, "MOST_LANES", 8)
    with pytest.raises(SummaryError, match="too many counts"):
        parse(its)


def vast() -> dict[str, Any]:
    """Of a few hundred bytes."""
    return Operation(per_second=PerSecond(START, [0] * LONGEST_SECONDS, [0] * LONGEST_SECONDS)).document(packed=True)


def largest_histogram() -> dict[str, Any]:
    one = Histogram()
    one.record(HIGHEST, MOST)
    return one.document()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("text", "format troop.summary/2"),
        (document(format="troop.summary/3"), "format troop.summary/2"),
        (document(node=""), "node must be text"),
        (document(role=7), "role must be text"),
        (document(rank=-1), "rank must be"),
        (document(rank=True), "rank must be"),
        (document(outcome="fine"), "one of ok, failed"),
        (document(exit_code="0"), "exit_code"),
        (document(reason=3), "reason must be text"),
        (document(started_at=None), "started_at must be a number"),
        (document(ended_at=float("nan")), "ended_at must be a number"),
        (document(measured_seconds=-1), "measured_seconds must be a number from 0"),
        (document(clock=[]), "clock must be"),
        (document(clock={"offset_seconds": 0, "uncertainty_seconds": -1}), r"clock\.uncertainty_seconds"),
        (document(operations=None), "operations must be an object"),
        (document(operations={"a b": {}}), "must match"),
        (document(operations={f"o{n}": {} for n in range(258)}), "at most 257"),
        (document(operations=read_with(errors={f"e{n}": 1 for n in range(65)})), "at most 64"),
        (document(operations={"read": 1}), r"operations\.read must be"),
        (document(operations=read_with(histogram={})), r"operations\.read\.histogram"),
        (document(operations=read_with(errors={"timeout": -1})), r"errors\.timeout"),
        (document(operations=read_with(bytes=1.5)), r"operations\.read\.bytes"),
        (document(operations=read_with(per_second=None)), "per_second must be an object"),
        (document(operations=read_with(over_time=[])), r"operations\.read\.over_time: must be an object"),
        (document(operations=per_second(count=[1.0])), "whole numbers from 0"),
        (document(operations=per_second(count=[1, 2])), "the same length"),
        (document(operations=per_second(count=[0] * (LONGEST_SECONDS + 1))), "at most"),
        (document(operations=per_second(count={"bytes": 1, "count": 1, "packed": "AAAA"})), "a column cannot be read"),
        (document(operations=read_with(histogram={**largest_histogram(), "counts": {"rows": []}})), "counts must be"),
        (document(operations={f"o{n}": vast() for n in range(60)}), "too many counts"),
        (document(samples=[]), "samples must be"),
        (document(samples=samples_with(cpu_user=[1])), "the same length"),
        (document(samples=samples_with(cpu_user=[1, -1])), "samples.cpu_user must hold"),
        (document(samples=samples_with(cpu_user=[1, 1.5])), "samples.cpu_user must hold"),
        (document(samples=samples_with(disk_reads=None)), "samples.disk_reads must be a list"),
        (document(samples=samples_with(disk_reads=[0] * (MOST_SAMPLES + 1))), "at most"),
        (document(samples=samples_with(interval_seconds=0)), "multiple"),
        (document(samples={**samples_with(interval_seconds=10**6), "from": 0}), "from 1 to 86400"),
        (document(samples=samples_with(cpu_user=[1, 10**400])), "samples.cpu_user must hold"),
        *((document(**{key: 10**400}), key) for key in ("started_at", "ended_at", "measured_from", "measured_seconds")),
        *((document(**{key: float("inf")}), key) for key in ("started_at", "measured_from", "warm_up_seconds")),
        (document(measured_seconds=1e-300), "measured_seconds must be 0, or a number from"),
        (document(clock={"offset_seconds": -(10**400), "uncertainty_seconds": 1}), r"clock\.offset_seconds"),
        (document(exit_code=10**400), "exit_code"),
        (document(rank=10**400), "rank must be"),
        (document(operations=read_with(bytes=10**400)), r"operations\.read\.bytes"),
        (document(operations=read_with(errors={"timeout": 10**400})), r"errors\.timeout"),
        (document(operations=per_second(count=[10**400])), "per_second.count must hold"),
        (document(operations=per_second(**{"from": 10**400})), "per_second.from"),
        (document(operations=per_second(kinds={"reset": [1, 2, 3, 4, 5, 6]})), "kinds and errors must have the same"),
        (document(operations=per_second(kinds={"a reset": [1]})), "per_second.kinds: 'a reset' must match"),
        (document(operations=read_with(over_time={"from": 0, "step_seconds": 10**400, "counts": []})), "step_seconds"),
        (document(operations=read_with(over_time={"from": 0, "step_seconds": 1, "counts": [[[1, 10**400]]]})), "pairs"),
        (document(samples={**samples_with(interval_seconds=7), "from": START + 1}), "multiple"),
    ],
)
def test_malformed_summary_is_refused_with_a_reason(bad: Any, message: str) -> None:
    with pytest.raises(SummaryError, match=message):
        parse(bad)
