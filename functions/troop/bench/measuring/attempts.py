"""Decides whether an INVALID cell runs again, and selects the attempt that counts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from troop.bench.definition import names
from troop.bench.definition.definition import Benchmark
from troop.bench.measuring.execution_history import allows_further, steps_of
from troop.bench.records.record import Cell, CellStatus, Run


def latest(cells: Iterable[Cell]) -> list[Cell]:
    """Returns the last attempt at each cell, in the order of the cells. Earlier attempts do not count."""
    cells_by_name: dict[str, Cell] = {}
    for cell in cells:
        first, attempt = names.attempt_of(cell.cell)
        if first not in cells_by_name or attempt > names.attempt_of(cells_by_name[first].cell)[1]:
            cells_by_name[first] = cell
    return [cells_by_name[first] for first in sorted(cells_by_name)]


def following(
    run: Run, cell: Cell, benchmark: Benchmark, now: datetime, began: datetime, waiting: int = 0
) -> Cell | None:
    """Returns the next attempt at a cell that is over, ready to be recorded; None if there is none.

    Args:
        benchmark: of the cell.
        began: start of the first attempt.
        waiting: seconds to reserve for cells of the run that have not begun.
    """
    first, attempt = names.attempt_of(cell.cell)
    if cell.status is not CellStatus.INVALID or attempt >= benchmark.attempts:
        return None
    over = now + timedelta(seconds=benchmark.needed)
    if run.closed_at is not None or over + timedelta(seconds=waiting) > run.expires_at:
        return None
    if not allows_further((over - began).total_seconds(), steps_of(benchmark) * (attempt + 1)):
        return None
    attempt += 1
    return Cell(run.run, names.attempt_id(first, attempt), variant=cell.variant, attempt=attempt, order=cell.order)
