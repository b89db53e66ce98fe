"""A cell whose phase searches: the workflow chooses each point from the verdicts before it, and skips what is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.account.benches import BENCHMARK, CELL, WRITER, Bench
from troop.bench.api.run_models import CellOut
from troop.bench.definition import names
from troop.bench.definition.definition import Between, Phase, Step
from troop.bench.definition.phase_limits import PhaseLimit
from troop.bench.definition.roster import from_document as roster_of
from troop.bench.definition.search import Search
from troop.bench.records.record import CellStatus
from troop.measure.histogram import Histogram
from troop.measure.operations import Operation
from troop.measure.summary import Summary

PREPARE, MEASURE = BENCHMARK.phases
LIMIT = PhaseLimit("p90_ms", at_most=300)
SEARCHED = replace(MEASURE, limits=(LIMIT,), search=Search("threads", (), 1, 64))
LAST = Phase("last", ("servers",), "prepare.sh", 600)
Holds = Callable[[int, int], bool]
"""Whether a value holds the limit, by the value and the number of the point."""


def up_to(most: int) -> Holds:
    return lambda value, point: value <= most


def benchmark(*phases: Phase) -> Any:
    return replace(BENCHMARK, phases=phases, expires_after=24 * 3600, parameters={"threads": 4, "drivers": 3})


def finish(bench: Bench, step: Step, holds: Holds) -> None:
    """What the nodes do that take part: those of the barrier."""
    barrier = bench.barrier(step.name)
    roster = roster_of(bench.get(names.roster_key(bench.run, CELL)))
    for node in roster.ids(step.phase.roles, barrier.get("nodes", {})):
        operations = {}
        if step.phase.measured:
            times = Histogram()
            times.record(100_000 if holds(barrier["parameters"]["threads"], barrier["point"]) else 900_000, 10)
            operations["read"] = Operation(times)
        summary = Summary(
            node=node, role=bench.role_of(node), rank=0, phase=step.name, outcome="ok", started_at=1.0, ended_at=2.0,
            exit_code=0, measured_from=1.0, measured_seconds=float(step.phase.measured), operations=operations,
        )  # fmt: skip
        bench.put(f"{names.phase_prefix(bench.run, CELL, step.name)}{WRITER}{node}.json", summary.document())


def drive(bench: Bench, holds: Holds, until: int = 99, retry: bool = False) -> list[str]:
    """Takes a cell through its steps as the state machine does; returns the names of those that were released."""
    steps, at, released = bench.benchmark.steps, 0, []
    while at < until:
        answer = bench.step("release", phase_index=at)
        if retry:
            assert bench.step("release", phase_index=at) == answer
        at = answer["phase_index"]
        released.append(bench.cell().phase)
        assert answer["wait_seconds"] > 0
        finish(bench, steps[at], holds)
        checked = bench.step("check", phase_index=at)
        if checked["state"] == "done":
            assert bench.step("collect")["state"] == "done"
            return released
        assert (checked["state"], checked["phase_index"]) == ("next", at + 1)
        at = checked["phase_index"]
    return released


def values(bench: Bench) -> list[tuple[int, int, bool]]:
    phases = bench.get(names.results_key(bench.run, CELL))["phases"]
    searched = [one for one in phases if one["phase"] == "measure"]
    assert [one["point"] for one in searched] == [n + 1 for n in range(len(searched))]
    return [(one["parameters"]["threads"], one["repeat"], one["limits"][0]["held"]) for one in searched]


def test_a_search_finds_the_last_value_that_holds_and_measures_both_ends_again(bench: Bench) -> None:
    ran = bench.again("search", benchmark(PREPARE, SEARCHED, LAST)).gathered()
    released = drive(ran, up_to(20), retry=True)
    assert values(ran) == [
        (1, 1, True), (64, 1, False), (32, 1, False), (16, 1, True), (24, 1, False), (20, 1, True), (22, 1, False),
        (21, 1, False), (20, 2, True), (21, 2, False),
    ]  # fmt: skip
    assert released == ["prepare", *(f"measure.{n}" for n in range(1, 11)), "last"]
    assert SEARCHED.search is not None
    assert len(released) - 2 == SEARCHED.search.most
    cell = ran.cell()
    assert cell.status is CellStatus.SUCCEEDED
    shown = CellOut.from_cell(cell)
    assert (shown.verdict, [one.largest for one in shown.searches]) == ("PASSED", [20])
    assert shown.searches[0].text == (
        "the largest threads that holds the limits is 20; 21 does not hold them (both measured twice)"
    )
    assert ran.get(names.results_key(ran.run, CELL))["searches"] == cell.searches


@pytest.mark.parametrize(
    ("phases", "after"),
    [((PREPARE, SEARCHED, LAST), ["last"]), ((PREPARE, SEARCHED), ["measure.2"]), ((SEARCHED,), ["measure.2"])],
)
def test_points_that_a_search_does_not_need_are_skipped(
    bench: Bench, phases: tuple[Phase, ...], after: list[str]
) -> None:
    """If even the first value fails, it is measured twice; nodes pass all other points without a part in them."""
    ran = bench.again(f"none {len(phases)}", benchmark(*phases)).gathered()
    released = drive(ran, up_to(0), retry=len(phases) == 2)
    assert released[-1:] == after
    assert values(ran) == [(1, 1, False), (1, 2, False)]
    barriers = [ran.barrier(step.name) for step in ran.benchmark.steps if step.search]
    assert {one["state"] for one in barriers} == {"release"}
    assert [one["nodes"] for one in barriers if one["skipped"]] == [{"drivers": 0}] * 8
    shown = CellOut.from_cell(ran.cell())
    assert (shown.status, shown.verdict, shown.searches[0].outcome) == (CellStatus.SUCCEEDED, "FAILED", "NONE_HELD")


@pytest.mark.parametrize(("most", "seconds"), [(0, 45), (20, 5)])
def test_phase_after_a_search_starts_after_nodes_skip_remaining_points(bench: Bench, most: int, seconds: float) -> None:
    """Each takes them seconds, and a node that reads the release after the common start has failed."""
    ran = bench.again(f"later {most}", benchmark(SEARCHED, replace(MEASURE, name="steady", measured=0))).gathered()
    drive(ran, up_to(most))
    barrier = ran.barrier("steady")
    assert seconds <= barrier["start_at"] - barrier["released_at"] < seconds + 5


def test_scripts_between_points_get_the_next_value_and_are_skipped_with_it(bench: Bench) -> None:
    between = replace(SEARCHED, between=Between("prepare.sh", ("servers",), 300))
    ran = bench.again("between", benchmark(between)).gathered()
    drive(ran, up_to(99))
    assert values(ran) == [(1, 1, True), (64, 1, True), (64, 2, True)]
    assert ran.barrier("measure.2.between")["parameters"] == {"threads": 64}
    assert ran.barrier("measure.4.between")["nodes"] == {"servers": 0}
    assert CellOut.from_cell(ran.cell()).searches[0].outcome == "ALL_HELD"


def test_without_a_value_that_held_each_time_there_is_no_answer(bench: Bench) -> None:
    ran = bench.again("unstable", benchmark(SEARCHED)).gathered()
    drive(ran, lambda value, point: point == 1)
    assert values(ran)[-2:] == [(2, 1, False), (1, 2, False)]
    shown = CellOut.from_cell(ran.cell())
    assert (shown.verdict, shown.searches[0].outcome) == ("FAILED", "UNSTABLE")
    assert "1 did both; use a larger step, such as 2" in shown.searches[0].text


def test_after_a_contradiction_the_answer_is_an_interval(bench: Bench) -> None:
    ran = bench.again("widened", benchmark(SEARCHED)).gathered()
    drive(ran, lambda value, point: value <= 20 and point != 9, retry=True)
    assert values(ran)[-2:] == [(20, 2, False), (18, 1, True)]
    shown = CellOut.from_cell(ran.cell())
    assert (shown.verdict, shown.searches[0].outcome) == ("PASSED", "WIDENED")
    assert (shown.searches[0].largest, shown.searches[0].smallest) == (18, 21)
    assert ran.get(names.results_key(ran.run, CELL))["searches"] == ran.cell().searches


def test_the_number_of_nodes_can_be_searched(bench: Bench) -> None:
    """Only so many nodes take part in a point, and only their summaries are awaited and merged."""
    search = replace(SEARCHED, search=Search("drivers", (1, 2, 3)), nodes={"drivers": "drivers"})
    ran = bench.again("nodes", benchmark(search)).gathered()
    before = ran.get(names.roster_key(ran.run, CELL))
    assert len(before["nodes"]) == 5
    steps, at, taken = ran.benchmark.steps, 0, []
    while at < len(steps):
        at = ran.step("release", phase_index=at)["phase_index"]
        barrier = ran.barrier(steps[at].name)
        if not barrier["skipped"]:
            taken.append(barrier["parameters"]["drivers"])
            held = taken[-1] <= 2
            barrier_holds: Holds = lambda value, point, held=held: held  # type: ignore[misc] # noqa: E731
            ran.put(
                names.barrier_key(ran.run, CELL, steps[at].name),
                {**barrier, "parameters": {**barrier["parameters"], "threads": 0}},
            )
            finish(ran, steps[at], barrier_holds)
            ran.put(names.barrier_key(ran.run, CELL, steps[at].name), barrier)
        assert ran.check(at) in ("next", "done")
        at += 1
    ran.step("collect")
    phases = ran.get(names.results_key(ran.run, CELL))["phases"]
    assert [(one["parameters"]["drivers"], one["nodes"]) for one in phases] == [(n, n) for n in taken]
    assert taken == [1, 3, 2, 2, 3]


def test_status_shows_how_far_a_search_is(bench: Bench) -> None:
    ran = bench.again("progress", benchmark(SEARCHED)).gathered()
    drive(ran, up_to(20), until=3)
    ran.step("release", phase_index=3)
    cell = ran.cell()
    assert (cell.phase, cell.point and dict(cell.point.parameters)) == ("measure.4", {"threads": 16})
    assert [one["text"] for one in cell.searches or ()] == [
        "search for the largest threads: 1 holds the limits, 32 does not; 3 of at most 10 points"
    ]


def test_lost_node_makes_the_cell_invalid_and_its_measured_points_stay(bench: Bench) -> None:
    ran = bench.again("lost", benchmark(SEARCHED)).gathered()
    drive(ran, up_to(20), until=3)
    ran.step("release", phase_index=3)
    ran.lose(ran.nodes("drivers")[0])
    assert ran.check(3) == "failed"
    assert ran.cell().status is CellStatus.INVALID
    ran.step("fail", error="", cause="")
    stored = ran.get(names.results_key(ran.run, CELL))
    assert (stored["complete"], len(stored["phases"]), stored["searches"][0]["outcome"]) == (False, 3, None)
