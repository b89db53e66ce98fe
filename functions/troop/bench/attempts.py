"""Whether a cell that has become INVALID is run again, and which of its attempts counts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from troop.bench import names
from troop.bench.definition import Benchmark
from troop.bench.record import Cell, CellStatus, Run

MOST_PHASES, MOST_TIME = 40, timedelta(hours=24)
"""Of all attempts at a cell together, where there are several: they share one execution, whose history ends at 25,000
events.
"""


def latest(cells: Iterable[Cell]) -> list[Cell]:
    """Of each cell the last attempt, in the order of the cells; the others do not count any more."""
    cells_by_name: dict[str, Cell] = {}
    for cell in cells:
        first, attempt = names.attempt_of(cell.cell)
        if first not in cells_by_name or attempt > names.attempt_of(cells_by_name[first].cell)[1]:
            cells_by_name[first] = cell
    return [cells_by_name[first] for first in sorted(cells_by_name)]


def following(
    run: Run, cell: Cell, benchmark: Benchmark, now: datetime, began: datetime, waiting: int = 0
) -> Cell | None:
    """The next attempt at a cell that is over, as it is put on record; None when there is none to be made.

    Args:
        benchmark: the cell's.
        began: when the first attempt at it did.
        waiting: seconds that the run's cells may take which have not begun: their time is not taken from them.
    """
    first, attempt = names.attempt_of(cell.cell)
    if cell.status is not CellStatus.INVALID or attempt >= benchmark.attempts:
        return None
    over = now + timedelta(seconds=benchmark.needed)
    if run.closed_at is not None or over + timedelta(seconds=waiting) > run.expires_at:
        return None
    if over - began > MOST_TIME or len(benchmark.phases) * (attempt + 1) > MOST_PHASES:
        return None
    attempt += 1
    return Cell(run.run, names.attempt_id(first, attempt), variant=cell.variant, attempt=attempt)
