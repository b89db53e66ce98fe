"""Shows what planned faults did to the results of a run, and whether its file expects it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cli.bench.cells import latest, name
from cli.shared import show
from cli.shared.errors import CliError, Exit
from troop.bench.measuring.failure import BROKEN, UNKNOWN, WORST
from troop.bench.records.record import CellStatus

COLUMNS = ("phase", "fault", "expected", "")

ENDING = {
    BROKEN: (Exit.BROKEN, "did not bear its faults as expected"),
    UNKNOWN: (Exit.UNKNOWN, "does not show whether it bears its faults"),
}
"""Verdicts that end the command."""

_NAMED = 3


def table(view: Mapping[str, Any]) -> None:
    """Prints the verdict on each planned fault; nothing without any.

    Args:
        view: the answer of GET /benchmarks/{run}.
    """
    cells = latest(view)
    several = len(cells) > 1
    rows = [
        (*((name(cell),) if several else ()), _phase(one), one["what"], one["verdict"] or show.NOTHING, one["sentence"])
        for cell in cells
        for one in cell.get("faults") or ()
    ]
    if rows:
        show.table((*(("cell",) if several else ()), *COLUMNS), rows, title=" ")


def check(view: Mapping[str, Any]) -> None:
    """Ends the command if a cell that SUCCEEDED did not bear a fault as expected, or does not show it.

    Raises:
        CliError: BROKEN or UNKNOWN, with the first sentences.
    """
    for verdict in (one for one in WORST if one in ENDING):
        code, text = ENDING[verdict]
        if bad := [f"{name(cell)} {_phase(one)}: {one['sentence']}" for cell, one in _deciding(view, verdict)]:
            more = f"; and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
            raise CliError(code, f"{view['run']['run']} {text}: {' '.join(bad[:_NAMED])}{more}")


def _deciding(view: Mapping[str, Any], verdict: str) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yields the faults with a verdict. Points of a search are meant to reach what breaks, so its answer decides."""
    for cell in latest(view):
        searched = {one["phase"] for one in cell.get("searches") or ()}
        for one in cell.get("faults") or ():
            if cell["status"] == CellStatus.SUCCEEDED and one["verdict"] == verdict and one["phase"] not in searched:
                yield cell, one


def _phase(one: Mapping[str, Any]) -> str:
    return ", ".join(part for part in (one["phase"], one.get("setting")) if part)
