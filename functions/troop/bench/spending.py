"""What a run has cost, of what is on record; and whether a further cell fits what is left of its budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from math import ceil
from typing import Any

from troop.bench import costs, names, prices
from troop.bench.billing import billed, hours, months, seconds_between
from troop.bench.costs import Cost, Item
from troop.bench.definition import ON_DEMAND
from troop.bench.estimate import OWN, TRAFFIC, Estimate
from troop.bench.limits import setting
from troop.bench.money import PER_SECOND, USD, ZERO, exact, rounded, shown, total
from troop.bench.prices import Prices, storage
from troop.bench.problems import Problem
from troop.bench.record import FINAL, Cell, CellStatus, Kind, Resource

FORMAT = "troop.terms/1"

UNKNOWN = "unknown"

MEASURED = frozenset({CellStatus.SUCCEEDED, CellStatus.INVALID})
"""Cells that have come so far that what was to go between the zones has, as far as anybody knows."""


@dataclass(frozen=True)
class CellTerms:
    """What is to be known of a cell to reckon its money.

    Attributes:
        expected: what an attempt is expected to cost.
        on_demand: the same of one on demand, as the last of several is.
        attempts: how many there may be.
        own: of that, Troop's own calls.
        hourly: of a standing fleet, what an hour of one node costs, by role; empty for one of an earlier version.
    """

    expected: Decimal
    on_demand: Decimal
    attempts: int
    own: Decimal
    cross_zone_gb: Decimal
    hourly: Mapping[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True)
class Terms:
    """By what a run's money is reckoned: written down once, when it is admitted.

    Attributes:
        prices: AWS's, and the file's for what AWS names no price of. Limits, budget and metrics go by them.
        budget: what the file allows the run to cost.
        ceiling: what the deployment allows it to cost, whatever the file says.
        of_file: the prices as the file's author sees them; None for a file without prices.
    """

    prices: Prices
    billing: str = PER_SECOND
    budget: Decimal | None = None
    cells: Mapping[str, CellTerms] = field(default_factory=dict)
    ceiling: Decimal | None = None
    of_file: Prices | None = None

    @property
    def limit(self) -> Decimal | None:
        """The lower one of budget and ceiling; None without either."""
        return min((one for one in (self.budget, self.ceiling) if one is not None), default=None)

    @property
    def limit_name(self) -> str:
        """Which of the two the limit is, in words."""
        return "the budget" if self.limit == self.budget else "the deployment's setting troop:max_run_cost"

    def expected(self, cell: str) -> Decimal:
        """Of one attempt, by its id; nothing of a cell that the terms do not know."""
        first, attempt = names.attempt_of(cell)
        cost = self.cells.get(first)
        if cost is None:
            return ZERO
        return cost.on_demand if 1 < cost.attempts == attempt else cost.expected


def terms_of(
    estimate: Estimate,
    book: Prices,
    attempts: Mapping[str, int],
    ceiling: Decimal | None = None,
    of_file: Prices | None = None,
) -> Terms:
    """The terms of a run that was estimated.

    Args:
        book: the prices it was estimated with.
        attempts: how many each cell may have.
        ceiling, of_file: as of :class:`Terms`.
    """
    cells = {
        cell.cell: CellTerms(
            rounded(cell.expected.amount),
            rounded(cell.on_demand),
            attempts[cell.cell],
            rounded(cell.own),
            cell.cross_zone_gb,
            {role: rounded(price) for role, price in cell.hourly.items()},
        )
        for cell in estimate.cells
    }
    return Terms(book, estimate.billing, estimate.budget, cells, ceiling, of_file)


# What it has cost


def actual(terms: Terms, cells: Iterable[Cell], resources: Iterable[Resource], now: datetime) -> Cost:
    """What some cells have cost so far, all attempts that are given together.

    A node is paid for from its start until it was seen to be gone, or until now.

    Args:
        cells: all of these, and of the resources only theirs.
        resources: as they are on record.
    """
    these = list(cells)
    ids = {cell.cell for cell in these}
    items: list[Item] = []
    for resource in resources:
        if resource.cell in ids and resource.created_at:
            items += _resource(terms, resource, resource.created_at, now)
    for cell in these:
        items += _of_cell(terms, cell)
    return costs.cost_of(items, terms.prices.currency)


def of_file(terms: Terms, cells: Iterable[Cell], resources: Iterable[Resource], now: datetime) -> Cost | None:
    """The same by the file's own prices; None for a file without any."""
    if terms.of_file is None:
        return None
    return actual(replace(terms, prices=terms.of_file), cells, resources, now)


def over_ceiling(terms: Terms, spent: Decimal) -> str | None:
    """Why a run that has cost so much must be stopped; None when it may go on."""
    if terms.ceiling is None or spent <= terms.ceiling:
        return None
    currency = terms.prices.currency
    return (
        f"it has cost {shown(spent, currency)}, more than the deployment's setting troop:max_run_cost allows: "
        f"{shown(terms.ceiling, currency)}"
    )


def _resource(terms: Terms, resource: Resource, created_at: datetime, now: datetime) -> Iterator[Item]:
    seconds = seconds_between(resource.started_at or created_at, resource.gone_at or now)
    role = resource.role or "nodes"
    if resource.kind is Kind.INSTANCE:
        kind, purchase = resource.instance_type or UNKNOWN, resource.purchase or ON_DEMAND
        price = terms.prices.hour(kind, purchase, resource.zone)
        yield Item(f"{role}, {kind}, {purchase}", hours(billed(seconds, terms.billing)), "node-hour", price)
    elif resource.kind is Kind.VOLUME and resource.disk:
        disk, gib_months = resource.disk, months(billed(seconds, PER_SECOND))
        for what, unit, size, month in storage(terms.prices, disk.type, disk.size_gib, disk.iops, disk.throughput_mib):
            yield Item(f"{role}, {what}", size * gib_months, unit, month)
    elif resource.kind is Kind.VOLUME:
        yield Item(f"{role}, storage {UNKNOWN}", months(billed(seconds, PER_SECOND)), "volume-month", None)


def _of_cell(terms: Terms, cell: Cell) -> Iterator[Item]:
    """What nobody has measured: as it was estimated, if the cell has come so far."""
    known = terms.cells.get(names.attempt_of(cell.cell)[0])
    if known is None:
        return
    if cell.status in MEASURED:
        yield Item(TRAFFIC, known.cross_zone_gb, "GB", terms.prices.cross_zone_gb)
    if cell.status is not CellStatus.PENDING and names.BOOT in cell.phases and terms.prices.currency == USD:
        yield Item(OWN, Decimal(1), "cell", known.own)


# Whether it goes on


def over_budget(terms: Terms, cell: str, cells: Iterable[Cell]) -> str | None:
    """Why a cell, or a further attempt at one, must not be launched: with it the run is expected to cost more than its
    limit, see :attr:`Terms.limit`. None when it fits, or when there is no limit.

    What the others have cost counts, and of those that are under way what they are expected to cost. Of two that begin
    at one time the one that comes later by (moment, id) gives way, so that they do not both.

    Args:
        cell: its id; if it has begun already, that is no reason against it.
        cells: all of the run as they are on record, itself included or not.
    """
    if terms.limit is None:
        return None
    every = {one.cell: one for one in cells}
    mine = _launched(every[cell]) if cell in every else None
    others = [one for one in every.values() if one.cell != cell]
    if mine is not None:
        others = [one for one in others if (at := _launched(one)) is None or (at, one.cell) < (mine, cell)]
    spent = sum((_committed(terms, one) for one in others), ZERO)
    if names.attempt_of(cell)[1] > 1:  # it must not take what cells need that have not begun
        spent += sum((terms.expected(one.cell) for one in others if one.status is CellStatus.PENDING), ZERO)
    expected = terms.expected(cell)
    left = terms.limit - spent
    if expected <= left:
        return None
    currency = terms.prices.currency
    return (
        f"{terms.limit_name} of {shown(terms.limit, currency)} does not allow it: "
        f"{shown(max(left, ZERO), currency)} is left, and it is expected to cost {shown(expected, currency, up=True)}"
    )


def too_many_nodes(terms: Terms, desired: Mapping[str, int], role: str, spent: Decimal, left: float) -> Problem | None:
    """Why a standing fleet must not be given another size: with it, it is expected to cost more than its limit, see
    :attr:`Terms.limit`. None when it fits, or when there is no limit.

    Args:
        desired: how many nodes each role is to have.
        role: which is to grow.
        spent: what it has cost so far.
        left: seconds until it expires.
    """
    hourly = {name: price for cell in terms.cells.values() for name, price in cell.hourly.items()}
    time = hours(max(int(left), 0))
    cost = {name: count * hourly.get(name, ZERO) * time for name, count in desired.items()}
    limit = terms.limit
    if limit is None or not cost.get(role) or spent + total(cost.values()) <= limit:
        return None
    others = total(amount for name, amount in cost.items() if name != role)
    most = max(0, int((limit - spent - others) // (hourly[role] * time)))
    currency = terms.prices.currency
    total_cost = spent + total(cost.values())
    if terms.limit == terms.budget:
        which = f"its budget is {shown(limit, currency)}"
    else:
        which = setting("max_run_cost", shown(limit, currency), str(ceil(total_cost)))
    allowed = (
        f"at most {most}: with so many it is expected to cost {shown(total_cost, currency, up=True)} until it expires, "
        f"and {which}"
    )
    return Problem(("count",), f"is {desired[role]}", allowed)


def _launched(cell: Cell) -> datetime | None:
    return cell.phases.get(names.LAUNCH)


def _committed(terms: Terms, cell: Cell) -> Decimal:
    if cell.cost is not None:
        return max(cell.cost.amount, terms.expected(cell.cell)) if cell.cost.unknown else cell.cost.amount
    if cell.status in FINAL and names.BOOT not in cell.phases:  # refused, or failed before anything cost
        return ZERO
    return ZERO if cell.status is CellStatus.PENDING or not cell.phases else terms.expected(cell.cell)


# As they are stored


def to_document(terms: Terms) -> dict[str, Any]:
    """As DynamoDB keeps it: amounts stay decimals. The reverse of :func:`from_document`."""
    cells = {
        name: {
            "expected": one.expected,
            "on_demand": one.on_demand,
            "attempts": one.attempts,
            "own": one.own,
            "cross_zone_gb": one.cross_zone_gb,
            "hourly": dict(one.hourly),
        }
        for name, one in terms.cells.items()
    }
    return {
        "format": FORMAT,
        "prices": prices.to_document(terms.prices),
        "billing": terms.billing,
        "budget": terms.budget,
        "cells": cells,
        "ceiling": terms.ceiling,
        "of_file": prices.to_document(terms.of_file) if terms.of_file else None,
    }


def from_document(document: Mapping[str, Any]) -> Terms:
    cells = {
        name: CellTerms(
            Decimal(str(one["expected"])),
            Decimal(str(one["on_demand"])),
            int(one["attempts"]),
            Decimal(str(one["own"])),
            Decimal(str(one["cross_zone_gb"])),
            {role: Decimal(str(price)) for role, price in one.get("hourly", {}).items()},
        )
        for name, one in document["cells"].items()
    }
    of_file = document.get("of_file")
    return Terms(
        prices.from_document(document["prices"]),
        document["billing"],
        exact(document.get("budget")),
        cells,
        exact(document.get("ceiling")),
        prices.from_document(of_file) if of_file else None,
    )
