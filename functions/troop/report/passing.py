"""Prepares what a report says about the limits of the benchmark's file: a key figure, and a row for each limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from troop.bench.judging import bound, shown
from troop.bench.phase_limits import FAILED, PASSED, PhaseLimit
from troop.report import formatting
from troop.report.document import Cell, Limit, Phase, Report


@dataclass(frozen=True)
class Row:
    """A limit of one phase or point of a cell."""

    cell: Cell
    phase: Phase
    limit: Limit

    @property
    def bound(self) -> str:
        """The limit in words: ``p90_ms at most 300 ms in every 10 s``."""
        one = self.limit
        return f"{one.figure} {bound(PhaseLimit(one.figure, one.at_most, one.at_least, one.every))}"

    @property
    def value(self) -> str:
        """The measured value; of parts of the measured time the worst."""
        return formatting.NOTHING if self.limit.value is None else shown(self.limit.figure, self.limit.value)

    @property
    def outcome(self) -> str:
        return PASSED if self.limit.held else FAILED


def rows(report: Report) -> list[Row]:
    """Returns all limits of all cells, also of cells that have not SUCCEEDED."""
    return [Row(cell, phase, limit) for cell in report.cells for phase in cell.phases for limit in phase.limits]


def key(report: Report) -> Iterator[tuple[str, str]]:
    """Yields the value and the note of the key figure; nothing without a verdict."""
    judged = [cell for cell in report.cells if cell.verdict]
    missed = [cell for cell in judged if cell.verdict == FAILED]
    if not judged:
        return
    if not missed:
        yield PASSED, "" if len(judged) == 1 else f"all {len(judged):,} cells"
        return
    first = next(one.reason for phase in missed[0].phases for one in phase.limits if not one.held)
    cells = f"{len(missed):,} of {len(judged):,} cells: " if len(judged) > 1 else ""
    yield FAILED, f"{cells}{first}"
