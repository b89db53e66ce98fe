"""Pairs the cells of two reports by variant, regardless of the order of its values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from troop.bench.definition.plan import Variant
from troop.bench.records.record import CellStatus
from troop.measure.operations import TOTAL
from troop.report import points
from troop.report.document import Cell, Report
from troop.report.document import Operation as Measured
from troop.report.points import Key
from troop.shared.errors import TroopError


class IncomparableError(TroopError):
    """Nothing to compare; the message says why, and what to do."""


@dataclass(frozen=True)
class Chosen:
    """One side of a comparison.

    Attributes:
        name: as the user typed it.
        label: the chosen variant, without repetition; None for all.
    """

    name: str
    report: Report
    label: str | None = None


@dataclass
class Cells:
    """The cells of one variant: its repetitions."""

    label: str
    cells: list[Cell] = field(default_factory=list)

    def operations(self) -> list[Key]:
        """Lists the measured operations, in order."""
        return [*points.by_key(self.cells)]

    def parts(self, operation: Key) -> set[str]:
        """Returns the names of all operations of the role, phase and point of an operation, without their total."""
        return {name for *place, name in self.operations() if (*place,) == operation[:3] and name != TOTAL}

    def measured(self, operation: Key) -> list[Measured]:
        """Lists the results of an operation, one for each cell that measured its rate: the repeats of a point share
        the cell's nodes, and are combined.
        """
        return [one for _, one in points.by_key(self.cells).get(operation, []) if one.per_second is not None]


def label_of(cell: Cell) -> str:
    """Returns the label of a cell's variant, such as ``n3, threads=4``."""
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in cell.values.items()}
    return Variant(cell.scale, values).label  # type: ignore[arg-type]  # scalars and lists of them, by the plan


def same(a: Chosen, b: Chosen) -> bool:
    """Checks whether both sides are the same cells of the same run. Runs without an id are compared by content."""
    if a.label is not None and b.label is not None and a.label != b.label:
        return False
    return is_one_run(a, b)


def is_one_run(a: Chosen, b: Chosen) -> bool:
    """Checks whether both sides are of the same run. Runs without an id are compared by content."""
    if a.report.run.run or b.report.run.run:
        return a.report.run.run == b.report.run.run
    return a.report.cells == b.report.cells


def example(report: Report) -> str:
    """Returns an example of how to name a variant of the report."""
    labels = [label for label in dict.fromkeys(map(label_of, report.cells)) if label]
    return f"{report.run.run or 'RUN'}:'{labels[0]}'" if labels else "RUN:n6"


def cells_of(side: Chosen) -> list[Cell]:
    """Lists the cells of the side, whatever their status.

    Raises:
        IncomparableError: the variant does not exist.
    """
    if side.label is None:
        return side.report.cells
    cells = [cell for cell in side.report.cells if label_of(cell) == side.label]
    if not cells:
        labels = ", ".join(repr(label) for label in dict.fromkeys(map(label_of, side.report.cells)) if label)
        there = f"it has {labels}" if labels else "it has only one, without a name"
        raise IncomparableError(f"{side.name} has no variant {side.label!r}: {there}")
    return cells


def succeeded(side: Chosen) -> list[Cell]:
    """Lists the cells of the side that count."""
    return [cell for cell in cells_of(side) if cell.status == CellStatus.SUCCEEDED]


def variants(side: Chosen) -> dict[str, Cells]:
    """Groups the cells that succeeded by variant: by scale step and values, in any order.

    Raises:
        IncomparableError: no cell succeeded.
    """
    cells_by_values: dict[str, Cells] = {}
    for cell in succeeded(side):
        key = json.dumps([cell.scale, cell.values], sort_keys=True)
        cells_by_values.setdefault(key, Cells(label_of(cell))).cells.append(cell)
    if not cells_by_values:
        raise IncomparableError(f"nothing to compare: no cell of {side.name} has SUCCEEDED")
    return cells_by_values


def matched(
    mine: Mapping[str, Cells], other: Mapping[str, Cells]
) -> tuple[list[tuple[str, tuple[Cells, Cells]]], list[str]]:
    """Returns the pairs with their labels, and sentences about variants that only one side has."""
    if len(mine) == len(other) == 1:
        (ours,), (theirs,) = mine.values(), other.values()
        return [(ours.label if ours.label == theirs.label else "", (ours, theirs))], []
    pairs = [(one.label, (one, other[key])) for key, one in mine.items() if key in other]
    unmatched = [f"only A has {one.label or 'a cell without a name'}" for key, one in mine.items() if key not in other]
    unmatched += [f"only B has {one.label or 'a cell without a name'}" for key, one in other.items() if key not in mine]
    return pairs, unmatched
