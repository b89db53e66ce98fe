"""Combines repeats of points, which share nodes: each cell contributes one value to any statistics over cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Any

from troop.bench.definition.search import ANSWERS, Outcome
from troop.measure.operations import TOTAL
from troop.report.document import Cell, Operation, Phase, Report
from troop.report.totals import rows_of

Key = tuple[str, str, str, str]
"""Phase, label of the point ("" without), role and name of an operation."""

_TIMES = ("mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p99_9_ms", "max_ms", "cost_per_million")


@dataclass(frozen=True)
class Within:
    """The rates of a point that one cell has repeated. They show the noise of the nodes over time, and not that
    between nodes.

    Attributes:
        rates: operations per second, in the order of execution.
    """

    cell: Cell
    key: Key
    rates: Sequence[float]

    @property
    def middle(self) -> float:
        return middle(self.rates)

    @property
    def spread(self) -> float | None:
        """The difference between the highest and the lowest rate, relative to the middle; None if that is 0."""
        return (max(self.rates) - min(self.rates)) / self.middle if self.middle else None


def middle(rates: Sequence[float]) -> float:
    """Returns the geometric mean; 0 if one of the rates is 0."""
    return geometric_mean(rates) if min(rates) > 0 else 0.0


def key_of(phase: Phase, operation: Operation) -> Key:
    return phase.phase, phase.label, operation.role, operation.operation


def by_key(
    cells: Iterable[Cell], rows: Callable[[Phase], Sequence[Operation]] = rows_of
) -> dict[Key, list[tuple[Cell, Operation]]]:
    """Returns the operations of cells and their totals by key, at most one for each cell, see :func:`combined`. Those
    of phases with planned faults are left out: they measure the faults.
    """
    operations_by_key: dict[Key, list[tuple[Cell, Operation]]] = {}
    for cell in cells:
        for key, operations in _repeats(cell, rows).items():
            operations_by_key.setdefault(key, []).append((cell, combined(operations)))
    return operations_by_key


def combined(operations: Sequence[Operation]) -> Operation:
    """Combines repeats of one operation on the same nodes: the geometric mean of the rates, the median of the times,
    and the sum of the counts. A single one stays as it is.
    """
    if len(operations) == 1:
        return operations[0]
    errors: Counter[str] = Counter()
    for one in operations:
        errors.update(one.errors)
    rates = [one.per_second for one in operations if one.per_second is not None]
    known = {name: [value for one in operations if (value := getattr(one, name)) is not None] for name in _TIMES}
    moved = [one.bytes_per_second for one in operations if one.bytes_per_second is not None]
    update: dict[str, Any] = {
        "count": sum(one.count for one in operations),
        "per_second": middle(rates) if rates else None,
        "bytes_per_second": sum(moved) / len(moved) if moved else None,
        "errors": dict(errors),
        "distribution": [],
        "service": None,
        "share": _share(operations),
        **{name: median(values) if values else None for name, values in known.items()},
    }
    return operations[0].model_copy(update=update)


def _share(operations: Sequence[Operation]) -> float | None:
    """Returns the part that an operation has of all operations in all repeats; None if one part is unknown."""
    shares = [(one.count, one.share) for one in operations if one.count]
    if not shares or any(not share for _, share in shares):
        return None
    return sum(count for count, _ in shares) / sum(count / share for count, share in shares if share)


def within(report: Report) -> Iterator[Within]:
    """Yields the repeated points of all cells."""
    for cell in report.cells:
        for key, operations in _repeats(cell, rows_of).items():
            rates = [one.per_second for one in operations if one.per_second is not None]
            if len(rates) > 1:
                yield Within(cell, key, rates)


def answers(cell: Cell, *, exact: bool = False) -> Iterator[Phase]:
    """Yields the points at the answers of a cell's searches, under a label that is the same for all cells: each search
    chooses its own points.

    Args:
        exact: without answers that are intervals.
    """
    for search in cell.searches:
        if search.outcome not in ANSWERS or search.largest is None or (exact and search.outcome == Outcome.WIDENED):
            continue
        for phase in cell.phases:
            if phase.phase == search.phase and phase.parameters.get(search.parameter) == search.largest:
                yield phase.model_copy(update={"label": answer_label(search.parameter)})


def answer_label(parameter: str) -> str:
    """Returns the label of the points at the answers of searches."""
    return f"largest {parameter}"


def parts(keys: Iterable[Key], total: Key) -> set[str]:
    """Returns the names of the operations of the role, phase and point of a total."""
    return {name for *place, name in keys if (*place,) == total[:3] and name != TOTAL}


def is_beyond(cell: Cell, phase: Phase) -> bool:
    """Checks whether a phase is a point of a search that did not hold the limits: each search tries some of these."""
    return any(one.phase == phase.phase for one in cell.searches) and not all(one.held for one in phase.limits)


def within_limits(report: Report) -> Report:
    """Returns the report without the points of searches that did not hold the limits."""
    cells = [
        cell.model_copy(update={"phases": [one for one in cell.phases if not is_beyond(cell, one)]})
        for cell in report.cells
    ]
    return report.model_copy(update={"cells": cells})


def shares_nodes(cell: Cell) -> bool:
    """Checks whether a cell has several points."""
    return sum(phase.point is not None for phase in cell.phases) > 1


def _repeats(cell: Cell, rows: Callable[[Phase], Sequence[Operation]]) -> dict[Key, list[Operation]]:
    operations_by_key: dict[Key, list[Operation]] = {}
    for phase in cell.phases:
        for operation in () if phase.faults else rows(phase):
            operations_by_key.setdefault(key_of(phase, operation), []).append(operation)
    return operations_by_key
