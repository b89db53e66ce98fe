"""Phases with planned faults: their throughput enters nothing, and no finding takes a fault for something else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cli.bench.against import against
from cli.bench.comparing import compare
from cli.bench.pairing import Chosen, IncomparableError
from tests.unit.report import sample_failures
from tests.unit.report.test_saturation import THREADS, point
from troop.bench.records.record import Run, RunStatus
from troop.report import bills, instance_limits, overview, points, saturation, trust
from troop.report.document import Cell, Node, Phase, Report
from troop.report.lines import line_of
from troop.report.scaling import scaling

AT = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
RECORD = Run("run-1", "ring", AT, AT + timedelta(hours=2), "arn:me", 1, 4, RunStatus.SUCCEEDED)


@pytest.fixture(scope="module")
def disturbed() -> Report:
    """A run whose server was stopped, and whose load missed its rate and failed in many operations."""
    return sample_failures.broken()


def undisturbed(report: Report, change: Callable[[Phase], dict[str, Any]] = lambda _: {}) -> Report:
    """The same measurements, as if nothing had been planned."""
    cells = [
        cell.model_copy(
            update={
                "phases": [one.model_copy(update={"faults": [], **change(one)}) for one in cell.phases],
                "system_hourly": 1.0,
            }
        )
        for cell in report.cells
    ]
    return report.model_copy(update={"cells": cells})


def renamed(report: Report) -> Report:
    """A run with both: a phase named steady, and one with a fault."""
    steady = undisturbed(report, lambda _: {"phase": "steady"}).cells[0].phases
    (cell,) = report.cells
    return report.model_copy(update={"cells": [cell.model_copy(update={"phases": [*steady, *cell.phases]})]})


def test_figures_of_the_run_are_those_of_other_phases(disturbed: Report) -> None:
    assert [one.phase for one in line_of(RECORD, renamed(disturbed)).figures] == ["steady"]
    assert line_of(RECORD, disturbed).figures == ()
    labels = {key.label for key in overview.keys(undisturbed(disturbed))} - {
        key.label for key in overview.keys(disturbed)
    }
    assert labels >= {"Highest throughput", "p99 at highest throughput", "Errors"}
    assert [*points.by_key(undisturbed(disturbed).cells)] != []
    assert [*points.by_key(disturbed.cells)] == []


def test_cost_of_a_throughput_is_not_that_of_a_fault(disturbed: Report) -> None:
    assert bills.rates(undisturbed(disturbed).cells) != []
    assert bills.rates(disturbed.cells) == []


def test_nodes_are_not_compared_by_what_faults_left(disturbed: Report) -> None:
    (cell,) = disturbed.cells

    def grown(one: Cell) -> list[Cell]:
        phases = [phase.model_copy(update={"targets": {}}) for phase in one.phases]
        more = [fleet.model_copy(update={"nodes": 2 * fleet.nodes}) for fleet in one.fleets]
        one = one.model_copy(update={"phases": phases})
        return [one, one.model_copy(update={"cell": "c002", "fleets": more})]

    assert scaling(grown(undisturbed(disturbed).cells[0]), ["servers", "drivers"]) != []
    assert scaling(grown(cell), ["servers", "drivers"]) == []


def test_no_finding_advises_against_the_effect_of_a_fault() -> None:
    """The rate was missed, the second half was slower, and operations failed."""
    late = sample_failures.with_faults(sample_failures.simulated((80, 60), slow=60), sample_failures.stopped(80))
    phase = sample_failures.phase(late)
    more = [one.model_copy(update={"count": 100 * one.count}) for one in phase.operations]
    phase = phase.model_copy(update={"operations": more, "targets": {"drivers": 1000.0}})
    (cell,) = sample_failures.report(sample_failures.cell(phase)).cells
    (same,) = undisturbed(sample_failures.report(cell)).cells
    plain = {one.cause: one.severity for one in trust.findings(same)}
    assert plain == dict.fromkeys(["Operations failed", "The set rate was not kept", "No steady state"], "warning")
    findings = trust.findings(cell)
    assert {one.cause: one.severity for one in findings} == {"Operations failed": "note"}
    assert not any("warm-up" in one.text for one in findings)


def test_threads_are_not_compared_by_what_faults_left(disturbed: Report) -> None:
    faults = disturbed.cells[0].phases[0].faults
    flat = [point(threads, 1000) for threads in THREADS]
    with_faults = [one.model_copy(update={"faults": faults}) for one in flat]
    cell = Cell(cell="c001", status="SUCCEEDED", phases=flat)
    assert [*saturation.findings(cell, {})] != []
    assert [*saturation.findings(cell.model_copy(update={"phases": with_faults}), {})] == []


def test_retransmits_are_expected_of_a_fault(disturbed: Report) -> None:
    node = Node(
        node="i-1", role="drivers", rank=0, outcome="ok", count=1, errors=0, retransmits=5000, retransmit_share=0.2
    )

    def causes(report: Report) -> set[str]:
        (cell,) = report.cells
        phases = [one.model_copy(update={"members": [node]}) for one in cell.phases]
        return {one.cause for one in instance_limits.findings(cell.model_copy(update={"phases": phases}), {})}

    assert causes(undisturbed(disturbed)) == {"Many TCP retransmits"}
    assert causes(disturbed) == set()


def test_comparisons_have_no_rows_of_disturbed_phases(disturbed: Report) -> None:
    def chosen(name: str, report: Report) -> Chosen:
        run = report.run.model_copy(update={"run": name})
        return Chosen(name, report.model_copy(update={"run": run}))

    a, b = (chosen(name, renamed(disturbed)) for name in ("A", "B"))
    rows = compare(a, b, now=AT, version="0.3").rows
    assert {row.phase for row in rows} == {"steady"}
    with pytest.raises(IncomparableError, match="without planned faults"):
        compare(chosen("A", disturbed), chosen("B", disturbed), now=AT, version="0.3", fail_below=0.9)


def test_pairs_of_a_record_have_no_rows_of_disturbed_phases() -> None:
    def cells(**mark: Any) -> dict[str, Any]:
        row = {"phase": "measure", "role": "drivers", "operation": "read", "count": 1, "per_second": 10.0, **mark}
        return {
            "cells": [
                {
                    "cell": f"c00{n}", "status": "SUCCEEDED", "attempt": 1, "results": [row], "searches": [],
                    "variant": {"scale": None, "repetition": repetition, "values": {"fleets.servers.count": servers}},
                }
                for n, (repetition, servers) in enumerate(((1, 3), (1, 6), (2, 3), (2, 6)), 1)
            ]
        }  # fmt: skip

    baseline = {"fleets.servers.count": 3}
    assert against(cells(), baseline) != ""
    assert against(cells(has_faults=True), baseline) == ""
