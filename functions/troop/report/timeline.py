"""Lists when each cell did what, and draws the time from its launch to its first measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from troop.report.document import Cell, Step
from troop.report.formatting import cell_name

COLOURS = 7
"""Colours of the steps, used in turn."""
WIDTH = 1000
"""Width of the longest bar."""


@dataclass(frozen=True)
class Part:
    """A step on a bar.

    Attributes:
        colour: from 1 to ``COLOURS``, the same for the same step of all cells.
        start, length: of ``WIDTH``, which is the longest time to the first measurement of all cells.
    """

    phase: str
    seconds: float
    colour: int
    start: float
    length: float


@dataclass(frozen=True)
class Timeline:
    """The steps of a cell.

    Attributes:
        steps: with their seconds; None for the last step, which ends the cell.
        until_measured: seconds from the start to the first measured phase; None if there is none.
        parts: the steps until then.
    """

    name: str
    at: datetime
    steps: Sequence[tuple[str, float | None]]
    until_measured: float | None
    parts: Sequence[Part]


def timelines(cells: Sequence[Cell]) -> list[Timeline]:
    """Returns the timelines of the cells that have steps, in the same order."""
    before = {cell.cell: _until_measured(cell) for cell in cells}
    longest = max((_seconds(steps) for steps in before.values() if steps), default=0.0)
    scale = WIDTH / longest if longest else 0.0
    phases = list(dict.fromkeys(step.phase for steps in before.values() for step in steps[:-1]))
    colours = {phase: 1 + number % COLOURS for number, phase in enumerate(phases)}
    return [
        Timeline(
            cell_name(cell),
            cell.steps[0].at,
            _lengths(cell.steps),
            _seconds(before[cell.cell]) if before[cell.cell] else None,
            _parts(before[cell.cell], colours, scale),
        )
        for cell in cells
        if cell.steps
    ]


def _until_measured(cell: Cell) -> Sequence[Step]:
    """Returns the steps up to the first measured one, which is the last; none if the cell has measured nothing."""
    measured = {phase.phase for phase in cell.phases}
    for number, step in enumerate(cell.steps):
        if step.phase.partition(".")[0] in measured:  # the step of a point is "measure.1"
            return cell.steps[: number + 1]
    return ()


def _seconds(steps: Sequence[Step]) -> float:
    return (steps[-1].at - steps[0].at).total_seconds()


def _lengths(steps: Sequence[Step]) -> list[tuple[str, float | None]]:
    ends = [*((end.at - step.at).total_seconds() for step, end in pairwise(steps)), None]
    return [(step.phase, seconds) for step, seconds in zip(steps, ends, strict=True)]


def _parts(steps: Sequence[Step], colours: dict[str, int], scale: float) -> list[Part]:
    return [
        Part(
            step.phase,
            (end.at - step.at).total_seconds(),
            colours[step.phase],
            round((step.at - steps[0].at).total_seconds() * scale, 1),
            round((end.at - step.at).total_seconds() * scale, 1),
        )
        for step, end in pairwise(steps)
    ]
