"""Computes what a side needs for a throughput: the nodes of all its fleets, and their cost per hour."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

from cli.bench.noise import middle
from troop.bench.record import CellStatus
from troop.report.comparison import Need
from troop.report.document import Cell, Fleet
from troop.report.scaling import combination, counted
from troop.report.totals import rows_of

_NEAR = 1e-9
"""Relative difference up to which floats count as equal."""

Operation = tuple[str, str, str]
"""Phase, role and name."""


@dataclass(frozen=True)
class Measured:
    """The throughput and prices of cells with the same nodes.

    Attributes:
        nodes: the number of nodes by role.
        per_second: operations per second, the geometric mean of the repetitions.
        prices: the price of one node for an hour, by role; None if unknown.
    """

    nodes: Mapping[str, int]
    per_second: float
    prices: Mapping[str, float | None]

    @property
    def size(self) -> int:
        return sum(self.nodes.values())


def rate_of(cell: Cell, operation: Operation) -> float | None:
    """Returns a cell's rate of an operation, per second; None if it has not measured one."""
    phase, role, name = operation
    for one in cell.phases:
        for row in rows_of(one):
            if (one.phase, row.role, row.operation) == (phase, role, name):
                return row.per_second
    return None


def measured(cells: Sequence[Cell], like: Cell, operation: Operation) -> list[Measured]:
    """Lists what a side has measured with the same combination of the matrix as a cell, from few nodes to many.

    Only the node count of the growing role, and what changes with it, may differ: more drivers for the same servers
    are not a step.
    """
    good = [cell for cell in cells if cell.status == CellStatus.SUCCEEDED]
    role = counted(good)
    reference = combination(like.values, role)
    steps: dict[tuple[tuple[str, int], ...], list[tuple[Cell, float]]] = {}
    for cell in good:
        rate = rate_of(cell, operation)
        if rate is not None and combination(cell.values, role) == reference:
            steps.setdefault(tuple(nodes_of(cell).items()), []).append((cell, rate))
    measurements = [
        Measured(dict(nodes), middle([rate for _, rate in alike]), _prices([cell for cell, _ in alike]))
        for nodes, alike in steps.items()
    ]
    return sorted(measurements, key=lambda one: one.size)


def nodes_of(cell: Cell) -> dict[str, int]:
    return {fleet.role: fleet.nodes for fleet in cell.fleets}


def _prices(cells: Sequence[Cell]) -> dict[str, float | None]:
    """Returns the hourly price of a node by role: the mean, because Spot prices differ between repetitions."""
    prices: dict[str, float | None] = {}
    for role in nodes_of(cells[0]):
        each = [_price(fleet) for cell in cells for fleet in cell.fleets if fleet.role == role]
        known = [price for price in each if price is not None]
        prices[role] = fmean(known) if len(known) == len(cells) else None
    return prices


def _price(fleet: Fleet) -> float | None:
    """Returns the hourly price of one node of a fleet."""
    return fleet.hourly / fleet.nodes if fleet.hourly is not None and fleet.nodes else None


def need(steps: Sequence[Measured], own: Mapping[str, int], per_second: float) -> Need | None:
    """Computes the nodes, and their cost, for a throughput.

    Interpolates the number of nodes between two measured steps. Beyond the last step it follows the line through all
    steps (least squares); with a single step it grows in proportion. Numbers of nodes are rounded up.

    Args:
        steps: the measurements, from few nodes to many.
        own: the nodes of the compared cells, which are one of the steps.
        per_second: the throughput to reach, in operations per second.

    Returns:
        None if more nodes do not increase the throughput, or it is zero.
    """
    steps = [step for step in steps if step.nodes.keys() == own.keys()]
    at = next((n for n, step in enumerate(steps) if step.nodes == own), None)
    if at is None or steps[at].per_second <= 0:
        return None
    if steps[at].per_second >= per_second * (1 - _NEAR):
        return _need(steps[at], {role: float(count) for role, count in own.items()}, "measured")
    for below, above in zip(steps[at:], steps[at + 1 :], strict=False):
        if below.per_second < per_second <= above.per_second * (1 + _NEAR):
            if above.per_second <= per_second * (1 + _NEAR):
                return _need(above, {role: float(count) for role, count in above.nodes.items()}, "measured")
            part = (per_second - below.per_second) / (above.per_second - below.per_second)
            between = {role: n + part * (above.nodes[role] - n) for role, n in below.nodes.items()}
            return _need(above, between, "interpolated")
    return _beyond(steps, per_second)


def _beyond(steps: Sequence[Measured], per_second: float) -> Need | None:
    last = steps[-1]
    role = next((role for role in last.nodes if len({step.nodes[role] for step in steps}) > 1), None)
    if role is None:
        factor = per_second / last.per_second
        return _need(last, {name: count * factor for name, count in last.nodes.items()}, "extrapolated")
    counts = [step.nodes[role] for step in steps]
    slope, intercept = linear_regression(counts, [step.per_second for step in steps])
    if slope <= 0:
        return None
    node_count = (per_second - intercept) / slope
    if node_count <= last.nodes[role]:  # the last step is below the line: continue from it with the line's slope
        node_count = last.nodes[role] + (per_second - last.per_second) / slope
    nodes = {}
    for name in last.nodes:
        grows, base = linear_regression(counts, [step.nodes[name] for step in steps])
        nodes[name] = max(base + grows * node_count, last.nodes[name])
    return _need(last, nodes, "extrapolated")


def _need(step: Measured, nodes: Mapping[str, float], scaled: str) -> Need:
    whole = {role: math.ceil(count * (1 - _NEAR)) for role, count in nodes.items()}
    each = {role: step.prices.get(role) for role in whole}
    known = [price * whole[role] for role, price in each.items() if price is not None]
    hourly = round(math.fsum(known), 6) if len(known) == len(whole) else None
    return Need.model_validate({"nodes": whole, "hourly": hourly, "scaled": scaled})
