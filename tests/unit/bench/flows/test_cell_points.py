"""A cell whose measured phase has points: each on the same nodes, with its own start, summaries and results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.account.benches import BENCHMARK, BUCKET, CELL, WRITER, Bench
from troop.bench.definition import names
from troop.bench.definition.definition import Between, Point, PointPlace
from troop.bench.flows import cell_steps as cells
from troop.bench.flows.cell_steps import CellDamagedError
from troop.bench.records.record import CellStatus
from troop.measure.summary import SummaryError

PREPARE, MEASURE = BENCHMARK.phases
POINTS = replace(
    BENCHMARK,
    expires_after=3 * 7200,
    phases=(
        PREPARE,
        replace(
            MEASURE,
            points=(Point({"threads": 1, "drivers": 1}), Point({"threads": 8}, warm_up=60)),
            between=Between("prepare.sh", ("servers",), 300),
            nodes={"drivers": "drivers"},
        ),
    ),
    parameters={"threads": 4, "drivers": 3},
)
FIRST, BETWEEN, SECOND = 1, 2, 3
"""Indices of the steps."""


@pytest.fixture
def swept(bench: Bench) -> Bench:
    """A cell whose first point has begun."""
    swept = bench.again("points", POINTS).gathered()
    swept.step("release", phase_index=0)
    swept.finish("prepare", swept.nodes())
    assert swept.check(0) == "next"
    swept.step("release", phase_index=FIRST)
    return swept


def first(bench: Bench) -> list[str]:
    """The node that takes part in the first point: the one of rank 0."""
    roster = bench.get(names.roster_key(bench.run, CELL))["nodes"]
    return [node["id"] for node in roster if (node["role"], node["rank"]) == ("drivers", 0)]


def to_second(bench: Bench) -> Bench:
    bench.finish("measure.1", first(bench))
    assert bench.check(FIRST) == "next"
    bench.step("release", phase_index=BETWEEN)
    bench.finish("measure.2.between", bench.nodes("servers"))
    assert bench.check(BETWEEN) == "next"
    bench.step("release", phase_index=SECOND)
    return bench


def test_all_barriers_exist_from_the_start(swept: Bench) -> None:
    held = {name: swept.barrier(name)["state"] for name in ("measure.1", "measure.2.between", "measure.2")}
    assert held == {"measure.1": "release", "measure.2.between": "hold", "measure.2": "hold"}
    assert "parameters" not in swept.barrier("measure.2"), "they come with the release"


def test_each_point_has_its_own_start_parameters_and_nodes(swept: Bench) -> None:
    one = swept.barrier("measure.1")
    assert (one["point"], one["parameters"], one["nodes"]) == (1, {"threads": 1, "drivers": 1}, {"drivers": 1})
    assert one["warm_up_seconds"] == 30
    swept.account.clock.forward(minutes=6)
    two = to_second(swept).barrier("measure.2")
    assert (two["point"], two["parameters"], two["nodes"]) == (2, {"threads": 8, "drivers": 3}, {"drivers": 3})
    assert two["warm_up_seconds"] == 60
    assert two["start_at"] - one["start_at"] >= 360
    before = swept.barrier("measure.2.between")
    assert (before["script"], before["measured_seconds"], before["point"]) == ("prepare.sh", 0, 2)
    assert before["parameters"] == two["parameters"], "a script that restores the state may need what follows"


def test_status_says_which_point_goes_on(swept: Bench) -> None:
    cell = swept.cell()
    assert (cell.phase, cell.point) == ("measure.1", PointPlace(1, 2, 1, {"threads": 1, "drivers": 1}))
    cell = to_second(swept).cell()
    assert (cell.phase, cell.point and cell.point.number) == ("measure.2", 2)
    swept.finish("measure.2", swept.nodes("drivers"))
    assert swept.check(SECOND) == "done"
    swept.step("collect")
    assert swept.cell().point is None
    assert list(swept.cell().phases)[2:6] == ["prepare", "measure.1", "measure.2.between", "measure.2"]


def test_a_point_waits_only_for_the_nodes_that_take_part(swept: Bench) -> None:
    others = [node for node in swept.nodes("drivers") if node not in first(swept)]
    swept.finish("measure.1", others)
    assert swept.check(FIRST) == "waiting"
    swept.finish("measure.1", first(swept))
    assert swept.check(FIRST) == "next"


def test_results_are_those_of_each_point(swept: Bench) -> None:
    to_second(swept).finish("measure.2", swept.nodes("drivers"))
    assert swept.check(SECOND) == "done"
    assert swept.step("collect")["state"] == "done"
    stored = swept.get(names.results_key(swept.run, CELL))
    assert "complete" not in stored
    keys = ("phase", "point", "repeat", "parameters", "nodes")
    assert [tuple(phase[key] for key in keys) for phase in stored["phases"]] == [
        ("measure", 1, 1, {"threads": 1, "drivers": 1}, 1),
        ("measure", 2, 1, {"threads": 8, "drivers": 3}, 3),
    ]
    assert set(stored["phases"][0]["roles"]["drivers"]["nodes"]) == set(first(swept))
    rows = swept.cell().results or []
    assert [(row["phase"], row["point"], row["parameters"]["threads"], row["count"]) for row in rows] == [
        ("measure", 1, 1, 1000),
        ("measure", 2, 8, 3000),
    ]


def test_a_point_is_merged_while_the_next_step_goes_on(swept: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge at the end would take as long as all points together, and a function may not take that long."""
    to_second(swept).finish("measure.2", swept.nodes("drivers"))
    merged: list[str] = []
    merge = cells.CellSteps._merged

    def counted(steps: Any, run: str, cell: str, benchmark: Any, step: Any, roster: Any) -> Any:
        merged.append(step.name)
        return merge(steps, run, cell, benchmark, step, roster)

    monkeypatch.setattr(cells.CellSteps, "_merged", counted)
    swept.step("release", phase_index=BETWEEN)  # a retry
    swept.check(SECOND)
    swept.step("collect")
    assert merged == ["measure.2"]


def test_a_summary_that_cannot_be_merged_fails_the_next_release_for_good(swept: Bench) -> None:
    swept.finish("measure.1", first(swept))
    assert swept.check(FIRST) == "next"
    swept.put(f"{names.phase_prefix(swept.run, CELL, 'measure.1')}{WRITER}{first(swept)[0]}.json", {"format": "other"})
    with pytest.raises(SummaryError):
        swept.step("release", phase_index=BETWEEN)
    swept.s3.delete_object(
        Bucket=BUCKET, Key=f"{names.phase_prefix(swept.run, CELL, 'measure.1')}{WRITER}{first(swept)[0]}.json"
    )
    with pytest.raises(CellDamagedError, match=r"measure\.1"):
        swept.step("release", phase_index=BETWEEN)


def between(bench: Bench) -> int:
    bench.finish("measure.1", first(bench))
    assert bench.check(FIRST) == "next"
    bench.step("release", phase_index=BETWEEN)
    return BETWEEN


def at_second(bench: Bench) -> int:
    to_second(bench)
    return SECOND


@pytest.mark.parametrize(("go", "name"), [(between, "measure.2.between"), (at_second, "measure.2")])
def test_lost_node_makes_the_cell_invalid_and_earlier_points_stay(
    swept: Bench, go: Callable[[Bench], int], name: str
) -> None:
    """Also between two points: the next one would not have the same nodes."""
    index = go(swept)
    dead = swept.nodes("drivers")[-1]
    swept.lose(dead)
    assert swept.check(index) == "failed"
    cell = swept.cell()
    assert (cell.status, cell.reason) == (CellStatus.INVALID, f"{dead} was lost during the phase {name}")
    swept.step("fail", error="", cause="")
    stored = swept.get(names.results_key(swept.run, CELL))
    assert stored["complete"] is False
    assert [phase["point"] for phase in stored["phases"]] == [1]
    assert swept.cell().results is None, "they do not count"
    waiting = swept.barrier("measure.2")["state"]
    assert waiting == ("end" if index == BETWEEN else "release")


def test_a_cell_that_fails_in_its_first_point_has_no_results(swept: Bench) -> None:
    swept.lose(swept.nodes("servers")[0])
    assert swept.check(FIRST) == "failed"
    swept.step("fail", error="", cause="")
    assert names.results_key(swept.run, CELL) not in swept.objects()


def test_a_retry_of_a_release_changes_nothing(swept: Bench) -> None:
    to_second(swept)
    before = swept.barrier("measure.2")
    swept.account.clock.forward(seconds=30)
    swept.step("release", phase_index=SECOND)
    assert swept.barrier("measure.2") == before
