"""Computes scaling: throughput by number of nodes over the cells of one combination of the matrix."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, linear_regression

from pydantic import JsonValue

from troop.bench.plan import Variant
from troop.bench.record import CellStatus
from troop.report.document import Cell, Point, Scaling
from troop.report.totals import rows_of

_ENOUGH = 3
"""The fewest different numbers of nodes for which the fit of a line can be judged."""


def scaling(cells: Sequence[Cell], order: Sequence[str]) -> list[Scaling]:
    """Returns the scaling of each combination, phase, role and operation with different numbers of nodes.

    Args:
        cells: those that count; only SUCCEEDED ones are used.
        order: roles in the file's order.
    """
    good = [cell for cell in cells if cell.status == CellStatus.SUCCEEDED]
    role = counted(good, order)
    if role is None:
        return []
    return [one for label, alike in _combinations(good, role).items() for one in _of_combination(label, alike, role)]


def counted(cells: Sequence[Cell], order: Sequence[str] = ()) -> str | None:
    """Returns the first role whose number changes between otherwise equal cells; None if there is none.

    Roles that grow by scale steps come before roles that grow by a key of the matrix. A step can change several roles
    together as one way to grow, but a key is one question of many.
    """
    roles = dict.fromkeys([*order, *(fleet.role for cell in cells for fleet in cell.fleets)])
    by_steps = [role for role in roles if not any(_count_of(role) in cell.values for cell in cells)]
    return next((role for role in dict.fromkeys([*by_steps, *roles]) if _grows(cells, role)), None)


def _grows(cells: Sequence[Cell], role: str) -> bool:
    return any(len({nodes_of(cell, role) for cell in alike}) > 1 for alike in _combinations(cells, role).values())


def _combinations(cells: Iterable[Cell], role: str) -> dict[str, list[Cell]]:
    cells_by_combination: dict[str, list[Cell]] = {}
    for cell in cells:
        cells_by_combination.setdefault(combination(cell.values, role), []).append(cell)
    return cells_by_combination


def combination(values: Mapping[str, JsonValue], role: str | None) -> str:
    """Returns a cell's values of the matrix as a label, without the number of nodes of ``role``."""
    own = _count_of(role)
    rest = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items() if key != own}
    return Variant(values=rest).label  # type: ignore[arg-type]  # lists of scalars, as they came from the plan


def _count_of(role: str | None) -> str:
    """Returns the key of the matrix that makes steps, as ``scale`` does."""
    return f"fleets.{role}.count"


def nodes_of(cell: Cell, role: str) -> int:
    """Returns the number of a cell's nodes of a role."""
    return sum(fleet.nodes for fleet in cell.fleets if fleet.role == role)


def _of_combination(label: str, cells: Iterable[Cell], role: str) -> list[Scaling]:
    points_by_key: dict[tuple[str, str, str], list[tuple[str, int, float]]] = {}
    for cell in cells:
        for phase in cell.phases:
            for one in rows_of(phase):
                if one.per_second is not None and (nodes := nodes_of(cell, role)):
                    key = phase.phase, one.role, one.operation
                    points_by_key.setdefault(key, []).append((cell.cell, nodes, one.per_second))
    return [
        _scaling(label, key, role, sorted(points, key=lambda point: (point[1], point[0])))
        for key, points in points_by_key.items()
        if len({nodes for _, nodes, _ in points}) > 1
    ]


def _scaling(label: str, key: tuple[str, str, str], counted: str, points: Sequence[tuple[str, int, float]]) -> Scaling:
    phase, role, operation = key
    nodes, rates = [point[1] for point in points], [point[2] for point in points]
    slope, intercept = linear_regression(nodes, rates)
    each = efficiencies(nodes, rates)
    return Scaling(
        label=label,
        phase=phase,
        role=role,
        operation=operation,
        counted=counted,
        points=[
            Point(cell=cell, nodes=count, per_second=rate, efficiency=efficiency)
            for (cell, count, rate), efficiency in zip(points, each, strict=True)
        ],
        slope=slope,
        intercept=intercept,
        r_squared=r_squared(nodes, rates, slope, intercept) if len(set(nodes)) >= _ENOUGH else None,
    )


def efficiencies(nodes: Sequence[int], rates: Sequence[float]) -> list[float | None]:
    """Returns the throughput per node relative to that of the fewest nodes (mean of its repetitions); None if that is
    0.
    """
    fewest = min(nodes)
    base = fmean(rate / count for count, rate in zip(nodes, rates, strict=True) if count == fewest)
    return [rate / count / base if base else None for count, rate in zip(nodes, rates, strict=True)]


def r_squared(xs: Sequence[float], ys: Sequence[float], slope: float, intercept: float) -> float | None:
    """Returns the part of the variation of ``ys`` that the line explains; None if they do not vary."""
    mean = fmean(ys)
    total = math.fsum((y - mean) ** 2 for y in ys)
    rest = math.fsum((y - slope * x - intercept) ** 2 for x, y in zip(xs, ys, strict=True))
    return max(0.0, 1 - rest / total) if total else None
