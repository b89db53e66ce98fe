"""What viewers see of a run: merges of the running summaries of its nodes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.definition.definition import Benchmark, Fleet, Phase, Point, PointPlace
from troop.bench.records import live_view
from troop.bench.records.live_view import MOST_POINTS, CellView, LiveState, LiveView, LiveViewError, Watched, cell_view
from troop.bench.records.record import Cell, CellStatus, Run, RunStatus
from troop.measure.histogram import buckets_at
from troop.measure.live import Live, LiveOperation
from troop.measure.windows import BUCKETS, highest_in, index_of

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
START = NOW.timestamp()
CELL = Cell("r", "c001", status=CellStatus.RUNNING, phase="measure")


def live(node: str, operations: dict[str, LiveOperation] | None = None, **more: Any) -> Live:
    values: dict[str, Any] = {"role": "drivers", "phase": "measure", "until": int(START), "seconds": 15}
    values |= {"measured_from": START - 60, "measured_seconds": 300.0, "cpu": 500}
    return Live(node=node, operations=operations or {}, **{**values, **more})


def reads(count: int, errors: int = 0, micros: int = 1000) -> dict[str, LiveOperation]:
    return {"read": LiveOperation(count, errors, {index_of(micros): count} if count else {})}


def test_rates_add_up_over_the_time_of_each_node_and_times_are_pooled() -> None:
    slow, fast = live("i-1", reads(150, 15, 9000)), live("i-2", reads(1000, 0, 1000), seconds=10)
    view = cell_view(CELL, [slow, fast], NOW)
    (operation,) = view.operations
    assert (operation.role, operation.operation) == ("drivers", "read")
    assert (operation.per_second, operation.errors_per_second) == (110.0, 1.0)
    assert operation.p50_ms == highest_in(index_of(1000)) / 1000
    assert operation.p99_ms == highest_in(index_of(9000)) / 1000
    assert view.total is not None
    assert (view.total.per_second, view.total.p99_ms) == (110.0, operation.p99_ms)


@pytest.mark.parametrize(
    ("after_start", "left", "warm_up"), [(-30, 330, 30), (0, 300, 0), (100, 200, 0), (300, 0, 0), (400, 0, 0)]
)
def test_the_time_left_includes_what_is_left_of_the_warm_up(after_start: int, left: int, warm_up: int) -> None:
    view = cell_view(CELL, [live("i-1", reads(1), measured_from=START - after_start)], NOW)
    assert (view.seconds_left, view.warm_up_seconds_left) == (left, warm_up)


def test_one_node_with_a_wrong_clock_does_not_change_the_time_left() -> None:
    lives = [live(f"i-{n}", measured_from=START - 60 + (7200 if n == 1 else 0)) for n in range(3)]
    assert cell_view(CELL, lives, NOW).seconds_left == 240


def test_processors_are_by_role_and_silent_nodes_are_seen() -> None:
    lives = [live("i-1", cpu=200, iowait=300), live("i-2", cpu=901, iowait=100), live("i-3", role="servers", cpu=None)]
    view = cell_view(CELL, lives, NOW, is_measured=True, expected={"drivers": 3, "servers": 1})
    drivers, servers = view.roles
    assert (drivers.cpu_percent, drivers.cpu_percent_max, drivers.iowait_percent) == (55.0, 90.1, 20.0)
    assert (drivers.reporting, drivers.expected, servers.reporting) == (2, 3, 1)
    assert (servers.cpu_percent, view.reporting, view.expected) == (None, 3, 4)
    assert view.total is None, "nobody has counted an operation"
    assert view.history == ()


def test_summaries_of_a_phase_before_do_not_count() -> None:
    view = cell_view(CELL, [live("i-1", reads(9), phase="prepare")], NOW, is_measured=True, expected={"drivers": 1})
    assert (view.reporting, view.total, view.seconds_left) == (0, None, None)


def test_frequent_ones_of_very_many_operations_are_named() -> None:
    names = {f"op{n:02d}": LiveOperation(15 * (n + 1)) for n in range(40)}
    view = cell_view(CELL, [live("i-1", names), live("i-2", names)], NOW)
    by_name = {one.operation: one.per_second for one in view.operations}
    assert (len(by_name), by_name["op39"]) == (16, 80.0)
    assert view.total is not None
    assert sum(by_name.values()) == view.total.per_second


def test_the_history_grows_and_ends_at_its_limit() -> None:
    view: CellView | None = None
    for n in range(MOST_POINTS + 5):
        view = cell_view(CELL, [live("i-1", reads(15 * n))], NOW + timedelta(seconds=15 * n), before=view)
    assert view is not None
    assert len(view.history) == MOST_POINTS
    assert [one.per_second for one in view.history] == list(range(5, MOST_POINTS + 5))
    quiet = cell_view(CELL, [], NOW, before=view)
    assert quiet.history == view.history, "who looks after a pause between phases sees what was before"


OPERATIONS = st.dictionaries(
    st.sampled_from([f"op{n}" for n in range(20)]),
    st.builds(
        LiveOperation,
        st.integers(0, 10_000),
        st.integers(0, 10_000),
        st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 1000), max_size=5),
    ),
    max_size=20,
)
LIVES = st.lists(
    st.builds(
        live,
        st.uuids().map(str),
        OPERATIONS,
        role=st.sampled_from(["a", "b"]),
        seconds=st.integers(0, 15),
        measured_from=st.floats(START - 100, START + 100),
        cpu=st.none() | st.integers(0, 1000),
    ),
    max_size=6,
)


@given(LIVES, st.data())
def test_the_order_of_nodes_does_not_matter_and_percentiles_are_of_all_times(lives: list[Live], data: Any) -> None:
    view = cell_view(CELL, lives, NOW)
    assert cell_view(CELL, data.draw(st.permutations(lives)), NOW) == view
    pooled: dict[int, int] = {}
    for one in lives:
        for operation in one.operations.values():
            for bucket, count in operation.times.items():
                pooled[bucket] = pooled.get(bucket, 0) + count
    at = [None if bucket is None else highest_in(bucket) / 1000 for bucket in buckets_at(pooled, (50, 99))]
    if view.total is None:
        assert not any(one.operations for one in lives)
    else:
        assert [view.total.p50_ms, view.total.p99_ms] == at
    stored = json.loads(json.dumps(LiveView("r", NOW, [view]).document()))
    assert json.loads(json.dumps(live_view.parse_view(stored).document())) == stored


@pytest.mark.parametrize(
    "document", [None, [], {}, {"format": "troop.live-view/0"}, {"format": live_view.FORMAT}, {"format": 1, "cells": 2}]
)
def test_another_document_is_no_merge(document: Any) -> None:
    with pytest.raises(LiveViewError):
        live_view.parse_view(document)


BENCHMARK = Benchmark(
    name="ranges",
    description="",
    expires_after=7200,
    fleets=(Fleet("servers", 2, "c7g.large", 2, 600, 8), Fleet("drivers", 3, "c5.large", 1, 300, 8)),
    phases=(
        Phase("prepare", ("servers",), "prepare.sh", 600),
        Phase(
            "measure",
            ("servers", "drivers"),
            "read.py",
            600,
            measured=300,
            points=(Point({"drivers": 1}), Point({"drivers": 3})),
            nodes={"drivers": "drivers"},
        ),
    ),
    parameters={"drivers": 3},
)


@pytest.mark.parametrize(
    ("phase", "nodes"),
    [
        ("prepare", {"servers": 2}),
        ("measure.1", {"servers": 2, "drivers": 1}),
        ("measure.2", {"servers": 2, "drivers": 3}),
        ("boot", None),
    ],
)
def test_as_many_nodes_are_expected_as_take_part(phase: str, nodes: dict[str, int] | None) -> None:
    at = Cell("r", "c001", phase=phase, point=PointPlace(1, 2, 1, {}) if "." in phase else None)
    step = live_view.step_of(BENCHMARK, at)
    assert (live_view.expected_nodes(BENCHMARK, step) if step else None) == nodes


RUN = Run("r", "ranges", NOW, NOW, "arn", 1, 5, status=RunStatus.RUNNING)
REPORTING = CellView("c001", "", "measure", is_measured=True, roles=cell_view(CELL, [live("i-1")], NOW).roles)


@pytest.mark.parametrize(
    ("run", "cells", "state", "words"),
    [
        (RUN, None, LiveState.WAITING, "nothing is measured yet"),
        (RUN, [CellView("c001", "", "boot", is_measured=False)], LiveState.WAITING, "with the next measured phase"),
        (
            RUN,
            [CellView("c001", "", "measure", is_measured=True)],
            LiveState.WAITING,
            "nodes measure, and report for the first time",
        ),
        (RUN, [REPORTING], LiveState.MEASURING, "nodes report"),
        (Run("r", "n", NOW, NOW, "arn", 1, 5, RunStatus.FAILED, ended_at=NOW), None, LiveState.ENDED, "ended: FAILED"),
    ],
)
def test_the_state_is_a_sentence_too(run: Run, cells: Any, state: LiveState, words: str) -> None:
    watched = Watched(run, None if cells is None else LiveView("r", NOW, cells), NOW + timedelta(seconds=4))
    assert watched.state is state
    assert words in watched.message
    assert watched.age_seconds == (None if cells is None else 4)
