"""Prints how a run has ended, and ends the command accordingly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cli.bench import cells as bench_cells
from cli.bench import faults as bench_faults
from cli.bench import limits as bench_limits
from cli.bench import show as bench_show
from cli.shared import show
from cli.shared.errors import CliError, Exit
from troop.bench.records.record import CellStatus, RunStatus

_EMPTY = "no script recorded an operation in a measured time; the report has details"


def results(view: Mapping[str, Any]) -> None:
    """Prints the table of results, and which cells have succeeded without any."""
    (bench_show if len(view["cells"]) == 1 else bench_cells).results(view)
    bench_limits.table(view)
    bench_faults.table(view)
    done = [cell for cell in bench_cells.latest(view) if cell["status"] == CellStatus.SUCCEEDED]
    if empty := [cell["cell"] for cell in done if cell["results"] == []]:
        show.note(f"{', '.join(empty)} measured nothing: {_EMPTY}", style="yellow")
    for cell in done:
        if silent := silent_points(cell):
            show.note(f"{cell['cell']}: {', '.join(silent)} measured nothing: {_EMPTY}", style="yellow")


def silent_points(cell: Mapping[str, Any]) -> list[str]:
    """Lists the points without results of phases that have results of other points: ``measure.2``."""
    measured = {(row["phase"], str(row["point"])) for row in cell["results"] or () if row.get("point")}
    phases = {phase for phase, _ in measured}
    steps = [step["phase"].rpartition(".") for step in cell["steps"]]
    return [
        f"{phase}.{point}"
        for phase, _, point in steps
        if phase in phases and point.isdigit() and (phase, point) not in measured
    ]


def tell(view: Mapping[str, Any], as_json: bool, *more: str) -> None:
    """Prints the outcome of a run.

    Args:
        more: additional lines.

    Raises:
        CliError: FAILED, if its status is not SUCCEEDED; otherwise as :func:`judge`.
    """
    if as_json:
        show.document(view)
    else:
        results(view)
    for line in filter(None, more):
        (show.note if as_json else show.say)(line)
    check(view, show.note if as_json else show.say)


def check(view: Mapping[str, Any], tell: Callable[[str], None]) -> None:
    """Prints a summary of a run that has succeeded.

    Raises:
        CliError: as :func:`tell`.
    """
    summary = bench_show.summary(view)
    if view["run"]["status"] != RunStatus.SUCCEEDED:
        raise CliError(Exit.FAILED, summary)
    tell(summary)
    judge(view)


def judge(view: Mapping[str, Any]) -> None:
    """Judges the results of a run by its file.

    Raises:
        CliError: LIMITS_MISSED, if they do not hold their limits; BROKEN, if they did not bear a planned fault as
            expected; UNKNOWN, if they do not show it.
    """
    bench_limits.check(view)
    bench_faults.check(view)
