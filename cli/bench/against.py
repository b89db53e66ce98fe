"""Sums up a run's candidate against its baseline, from the run's record: its report is made a little later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.bench import cells as bench_cells
from cli.bench import show as bench_show
from troop.bench.definition.definition import plain_parameter
from troop.report import verdicts
from troop.report.baseline import name_of, ratios
from troop.report.document import Cell, Operation, Phase, Search


def against(view: Mapping[str, Any], baseline: Mapping[str, Any]) -> str:
    """Sums up a run's candidate against its baseline; "" without complete pairs.

    Args:
        baseline: of the benchmark.
    """
    its = plain_parameter(baseline)
    return verdicts.against(ratios([_cell(cell) for cell in bench_cells.latest(view)], its), name_of(its))


def _cell(cell: Mapping[str, Any]) -> Cell:
    """Returns a cell as in a report, with the results that its record has."""
    phases = [
        Phase(
            phase=row["phase"],
            label=bench_show.phase_of({"parameters": parameters}),
            parameters=parameters,
            nodes=0,
            measured_seconds=0,
            operations=[Operation.model_validate(row)],
        )
        for row in cell["results"] or ()
        if not row.get("has_faults")
        for parameters in [dict(sorted((row.get("parameters") or {}).items()))]  # in the order of the database
    ]
    known = {name: cell["variant"][name] for name in ("scale", "values", "repetition")}
    searches = [Search.model_validate(one) for one in cell.get("searches") or ()]
    return Cell(cell=cell["cell"], status=cell["status"], phases=phases, searches=searches, **known)
