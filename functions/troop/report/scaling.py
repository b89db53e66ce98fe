"""Computes scaling: throughput by number of nodes over the cells of one combination of the matrix."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, linear_regression

from pydantic import JsonValue

from troop.bench.definition.plan import Variant
from troop.bench.records.record import CellStatus
from troop.report import points
from troop.report.document import Cell, Point, Scaling

_ENOUGH = 3
"""The fewest different numbers of nodes for which the fit of a line can be judged."""


def scaling(cells: Sequence[Cell], order: Sequence[str]) -> list[Scaling]:
    """Returns the scaling of each combination, phase, role and operation with different numbers of nodes. Roles with a
    set rate are left out: their throughput is what they were told to do.

    Args:
        cells: those that count; only SUCCEEDED ones are used.
        order: roles in the file's order.
    """
    good = [cell for cell in cells if cell.status == CellStatus.SUCCEEDED]
    role = counted(good, order)
    if role is None:
        return []
    return [
        one for label, alike in _combinations(good, role).items() for one in _combination_scaling(label, alike, role)
    ]


def counted(cells: Sequence[Cell], order: Sequence[str] = ()) -> str | None:
    """Returns the first role whose number changes between otherwise equal cells; None if there is none.

    Roles of the system come before those that only generate load, whose number says how much is asked of the system and
    not how large it is. Then roles that grow by scale steps come before roles that grow by a key of the matrix. A step
    can change several roles together as one way to grow, but a key is one question of many.
    """
    roles = dict.fromkeys([*order, *(fleet.role for cell in cells for fleet in cell.fleets)])
    loading = {fleet.role for cell in cells for fleet in cell.fleets if fleet.is_load}
    keyed = {role for role in roles if any(_count_of(role) in cell.values for cell in cells)}
    ordered = sorted(roles, key=lambda role: (role in loading, role in keyed))
    return next((role for role in ordered if _grows(cells, role)), None)


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


def _combination_scaling(label: str, cells: Sequence[Cell], role: str) -> Iterator[Scaling]:
    """Yields the scaling of each operation and point, with one value of each cell, however often it has repeated."""
    set_rates = {(one.phase, one.label, role) for cell in cells for one in cell.phases for role in one.targets}
    for (phase, setting, row_role, name), each in points.by_key(cells).items():
        if (phase, setting, row_role) in set_rates:
            continue
        values = [
            (cell.cell, count, one.per_second)
            for cell, one in each
            if one.per_second is not None and (count := nodes_of(cell, role))
        ]
        if len({count for _, count, _ in values}) > 1:
            both = ", ".join(part for part in (label, setting) if part)
            yield _scaling(both, (phase, row_role, name), role, sorted(values, key=lambda value: (value[1], value[0])))


def _scaling(label: str, key: tuple[str, str, str], counted: str, values: Sequence[tuple[str, int, float]]) -> Scaling:
    phase, role, operation = key
    nodes, rates = [value[1] for value in values], [value[2] for value in values]
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
            for (cell, count, rate), efficiency in zip(values, each, strict=True)
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
