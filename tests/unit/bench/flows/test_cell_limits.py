"""A cell whose phase has limits: it succeeds whether or not its results hold them, and the record says which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.account.benches import BENCHMARK, CELL, Bench
from troop.bench.api.run_models import CellOut
from troop.bench.definition import names
from troop.bench.definition.definition import Phase, Point
from troop.bench.definition.phase_limits import PhaseLimit
from troop.bench.definition.plan import Variant
from troop.bench.records.record import CellStatus

PREPARE, MEASURE = BENCHMARK.phases
HELD, MISSED = PhaseLimit("p90_ms", at_most=2), PhaseLimit("error_rate", at_most=0.001)
"""Of a node's 1,000 reads, p90 is 1 ms; 2 of 1,002 time out."""


def measured(
    bench: Bench, phase: Phase, baseline: Mapping[str, Any] | None = None, values: Mapping[str, Any] | None = None
) -> Bench:
    """A cell that has collected the results of one phase or of its two points.

    Args:
        values: of the cell's variant.
    """
    benchmark = replace(BENCHMARK, phases=(PREPARE, phase), expires_after=3 * 7200, baseline=baseline or {})
    key = f"limits {len(phase.limits)} {phase.points} {baseline} {values}"
    ended = replace(bench, variant=Variant(values=values or {})).again(key, benchmark).gathered()
    ended.step("release", phase_index=0)
    ended.finish("prepare", ended.nodes())
    for index, step in list(enumerate(benchmark.steps))[1:]:
        assert ended.check(index - 1) == "next"
        ended.step("release", phase_index=index)
        ended.finish(step.name, ended.nodes("drivers"))
    assert ended.check(len(benchmark.steps) - 1) == "done"
    return ended


@pytest.mark.parametrize(
    ("limits", "verdict", "reason"),
    [
        ((HELD,), "PASSED", None),
        ((HELD, MISSED), "FAILED", "error_rate of read was 0.1996 %; at most 0.1 %"),
        ((PhaseLimit("per_second", at_least=11),), "FAILED", "per_second of read was 10/s; at least 11/s"),
        ((PhaseLimit("p90_ms", 2, operation="raed"),), "FAILED", "raed was not measured; measured were read"),
        ((), None, None),
    ],
)
def test_a_cell_that_measured_succeeds_and_its_verdict_is_on_record(
    bench: Bench, limits: tuple[PhaseLimit, ...], verdict: str | None, reason: str | None
) -> None:
    ended = measured(bench, replace(MEASURE, limits=limits))
    assert ended.step("collect")["state"] == "done"
    cell = ended.cell()
    assert (cell.status, cell.reason) == (CellStatus.SUCCEEDED, None)
    shown = CellOut.from_cell(cell)
    assert (shown.verdict, [one.reason for one in shown.limits]) == (verdict, [reason] if limits else [])
    (stored,) = ended.get(names.results_key(ended.run, CELL))["phases"]
    assert [one["held"] for one in stored.get("limits", [])] == [one == HELD for one in limits]


def test_each_point_has_its_verdict_as_soon_as_it_is_merged(bench: Bench) -> None:
    points = (Point({"threads": 1}), Point({"threads": 8}))
    ended = measured(bench, replace(MEASURE, points=points, limits=(MISSED,)))
    before = ended.cell().limits or []
    assert [(one["point"], one["setting"], one["held"]) for one in before] == [(1, "threads=1", False)]
    ended.step("release", phase_index=2)  # a retry
    assert ended.cell().limits == before
    ended.step("collect")
    after = ended.cell().limits or []
    assert [(one["point"], one["setting"]) for one in after] == [(1, "threads=1"), (2, "threads=8")]


def test_a_point_that_did_not_have_its_rate_does_not_hold_the_limits(bench: Bench) -> None:
    """All points did 10 reads a second: at another set rate they say nothing about the limit."""
    points = (Point({"rate": 3.34}), Point({"rate": 20}), Point({"rate": 2}))
    ended = measured(bench, replace(MEASURE, points=points, limits=(HELD,), rate={"drivers": "rate"}))
    ended.step("collect")
    entries = ended.cell().limits or []
    assert [(one["setting"], one["held"]) for one in entries] == [
        ("rate=3.34", True),
        ("rate=20", False),
        ("rate=2", False),
    ]
    assert entries[2]["reason"] == "drivers did 10.02/s, 167.0% of the set rate of 6/s"
    assert entries[1]["reason"].startswith("drivers did 10.02/s, ")
    assert "% of the set rate of " in entries[1]["reason"]


def judged(ended: Bench) -> tuple[str | None, list[tuple[str, bool, bool]]]:
    """The verdict of the cell, and of each point whether it held the limits, and whether it is the baseline's."""
    assert ended.step("collect")["state"] == "done"
    shown = CellOut.from_cell(ended.cell())
    return shown.verdict, [(one.setting, one.held, one.is_baseline) for one in shown.limits]


@pytest.mark.parametrize("candidate", [4, 8])
def test_the_limits_judge_the_candidate_and_not_its_baseline(bench: Bench, candidate: int) -> None:
    """Both miss the limit; a baseline that does so is shown, but is no failure of what is measured."""
    baseline = {"parameters.threads": 8}
    points = (Point({"threads": candidate}), Point({"threads": 8}))
    ended = measured(bench, replace(MEASURE, points=points, limits=(MISSED,)), baseline)
    entries = [(f"threads={candidate}", False, candidate == 8), ("threads=8", False, True)]
    assert judged(ended) == (None if candidate == 8 else "FAILED", entries)
    report = [one.get("is_baseline", False) for one in ended.get(names.results_key(ended.run, CELL))["phases"]]
    assert report == [candidate == 8, True]


@pytest.mark.parametrize(("own", "verdict"), [("m7g.large", "FAILED"), ("m7g.xlarge", None)])
def test_a_cell_of_the_baseline_has_no_verdict(bench: Bench, own: str, verdict: str | None) -> None:
    key = "fleets.servers.instance_type"
    ended = measured(bench, replace(MEASURE, limits=(MISSED,)), {key: "m7g.xlarge"}, {key: own})
    assert judged(ended) == (verdict, [("", False, verdict is None)])
