"""Computes what a side needs for a throughput: nodes and their cost per hour; and what it does for a cost.

Only the roles whose cost counts are scaled: drivers are as many as the throughput needs, whatever the system is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, linear_regression

from cli.bench.pricing import AS_BOUGHT, Pricing
from troop.bench.definition.money import MONTH_HOURS, TERMS
from troop.bench.records.record import CellStatus
from troop.report.comparison import Need
from troop.report.document import Cell, Operation
from troop.report.points import middle
from troop.report.scaling import combination, counted

_NEAR = 1e-9
"""Relative difference up to which floats count as equal."""

_DOUBLINGS, _HALVINGS = 40, 60
"""Steps of the search for a throughput: by factors of two until it costs too much, then by halves."""


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


def measured(
    cells: Sequence[Cell], like: Cell, each: Sequence[tuple[Cell, Operation]], pricing: Pricing = AS_BOUGHT
) -> list[Measured]:
    """Lists what a side has measured with the same combination of the matrix as a cell, from few nodes to many.

    Only the node count of the growing role, and what changes with it, may differ: more drivers for the same servers
    are not a step. Neither are nodes of other types, as of scale steps that are variants of the system.

    Args:
        each: what these cells have measured of one operation.
    """
    rates = {cell.cell: one.per_second for cell, one in each}
    good = [cell for cell in cells if cell.status == CellStatus.SUCCEEDED and _types_of(cell) == _types_of(like)]
    role = counted(good)
    reference = combination(like.values, role)
    steps: dict[tuple[tuple[str, int], ...], list[tuple[Cell, float]]] = {}
    for cell in good:
        rate = rates.get(cell.cell)
        if rate is not None and combination(cell.values, role) == reference:
            steps.setdefault(tuple(nodes_of(cell).items()), []).append((cell, rate))
    measurements = [
        Measured(dict(nodes), middle([rate for _, rate in alike]), _prices([cell for cell, _ in alike], pricing))
        for nodes, alike in steps.items()
    ]
    return sorted(measurements, key=lambda one: one.size)


def nodes_of(cell: Cell) -> dict[str, int]:
    return {fleet.role: fleet.nodes for fleet in cell.fleets}


def _types_of(cell: Cell) -> dict[str, str]:
    return {fleet.role: fleet.instance_type for fleet in cell.fleets}


def _prices(cells: Sequence[Cell], pricing: Pricing) -> dict[str, float | None]:
    """Returns the hourly price of a node by role: the mean, because Spot prices differ between repetitions."""
    prices: dict[str, float | None] = {}
    for role in nodes_of(cells[0]):
        each = [pricing.node(fleet) for cell in cells for fleet in cell.fleets if fleet.role == role]
        known = [price for price in each if price is not None]
        prices[role] = fmean(known) if len(known) == len(cells) else None
    return prices


def afford(
    steps: Sequence[Measured], own: Mapping[str, int], hourly: float, roles: Collection[str] | None = None
) -> Need | None:
    """Computes the most throughput, and its nodes, that a side reaches for a cost per hour.

    Args:
        steps, own, roles: as of :func:`need`.
        hourly: at least the cost of the compared cells.

    Returns:
        None if prices are unknown or zero, or the compared cells cost more.
    """
    start = next((step for step in steps if step.nodes == own), None)
    if start is None:
        return None

    def affordable(per_second: float) -> Need | None:
        one = need(steps, own, per_second, roles)
        return one if one and one.hourly is not None and one.hourly <= hourly * (1 + _NEAR) else None

    low, best = start.per_second, affordable(start.per_second)
    if best is None or not best.hourly:
        return None
    measured_there = best
    high = low
    for _ in range(_DOUBLINGS):
        high *= 2
        if (more := affordable(high)) is None:
            break
        low, best = high, more
    else:
        return None  # the cost does not grow with the throughput
    for _ in range(_HALVINGS):
        middle_rate = (low + high) / 2
        if (more := affordable(middle_rate)) is None:
            high = middle_rate
        else:
            low, best = middle_rate, more
    if best.nodes == measured_there.nodes:  # the search ends a rounding error above what these nodes do
        low, best = start.per_second, measured_there
    return best.model_copy(update={"per_second": float(f"{low:.9g}")})


def cost_ratio(
    sides: Sequence[tuple[Sequence[Measured], Mapping[str, int], Collection[str] | None]],
    mine: float,
    other: float,
    factor: float,
) -> float | None:
    """Computes the ratio of the hourly costs, B to A, if B did more or less by a factor.

    Args:
        sides: steps, own nodes and roles of A and B, as of :func:`need`.
        mine: the throughput of A, per second; ``other`` that of B with the factor.

    Returns:
        None if one cannot reach the other, or if prices are unknown.
    """
    (left_steps, left_nodes, left_roles), (right_steps, right_nodes, right_roles) = sides
    scaled = [replace(step, per_second=step.per_second * factor) for step in right_steps]
    target = max(mine, other)
    left = need(left_steps, left_nodes, target, left_roles)
    right = need(scaled, right_nodes, target, right_roles)
    return right.hourly / left.hourly if left and right and left.hourly and right.hourly is not None else None


def need(
    steps: Sequence[Measured], own: Mapping[str, int], per_second: float, roles: Collection[str] | None = None
) -> Need | None:
    """Computes the nodes, and their cost, for a throughput.

    Interpolates the number of nodes between two measured steps. Beyond the last step it follows the line through all
    steps (least squares); with a single step it grows in proportion. Numbers of nodes are rounded up.

    Args:
        steps: the measurements, from few nodes to many.
        own: the nodes of the compared cells, which are one of the steps.
        per_second: the throughput to reach, in operations per second.
        roles: the roles to scale and to count; None for all.

    Returns:
        None if more nodes do not increase the throughput, or it is zero.
    """
    steps = [step for step in steps if step.nodes.keys() == own.keys()]
    at = next((n for n, step in enumerate(steps) if step.nodes == own), None)
    if at is None or steps[at].per_second <= 0:
        return None
    if steps[at].per_second >= per_second * (1 - _NEAR):
        return _need(steps[at], {role: float(count) for role, count in own.items()}, "measured", roles)
    for below, above in zip(steps[at:], steps[at + 1 :], strict=False):
        if below.per_second < per_second <= above.per_second * (1 + _NEAR):
            if above.per_second <= per_second * (1 + _NEAR):
                return _need(above, {role: float(count) for role, count in above.nodes.items()}, "measured", roles)
            part = (per_second - below.per_second) / (above.per_second - below.per_second)
            between = {role: n + part * (above.nodes[role] - n) for role, n in below.nodes.items()}
            return _need(above, between, "interpolated", roles)
    return _beyond(steps, per_second, roles)


def _beyond(steps: Sequence[Measured], per_second: float, roles: Collection[str] | None) -> Need | None:
    last = steps[-1]
    scaled = [role for role in last.nodes if roles is None or role in roles]
    role = next((role for role in scaled if len({step.nodes[role] for step in steps}) > 1), None)
    if role is None:
        factor = per_second / last.per_second
        return _need(last, {name: count * factor for name, count in last.nodes.items()}, "extrapolated", roles)
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
    return _need(last, nodes, "extrapolated", roles)


def with_totals(one: Need, term: str | None) -> Need:
    """Returns the same with its cost for a month and for a term."""
    if one.hourly is None:
        return one
    total = round(one.hourly * TERMS[term], 2) if term else None
    return one.model_copy(update={"monthly": round(one.hourly * MONTH_HOURS, 2), "total": total})


def _need(step: Measured, nodes: Mapping[str, float], scaled: str, roles: Collection[str] | None) -> Need:
    counts = {role: count for role, count in nodes.items() if roles is None or role in roles}
    whole = {role: math.ceil(count * (1 - _NEAR)) for role, count in counts.items()}
    each = {role: step.prices.get(role) for role in whole}
    known = [price * whole[role] for role, price in each.items() if price is not None]
    hourly = round(math.fsum(known), 6) if len(known) == len(whole) else None
    return Need.model_validate({"nodes": whole, "hourly": hourly, "scaled": scaled})
