"""Computes the cost of a run from its record, and checks whether another cell fits into its budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from math import ceil
from typing import Any

from troop.bench.admission.estimate import (
    LICENSE,
    NODE_HOUR,
    OWN,
    QUEUE_ENDPOINT,
    REPORTS,
    TRAFFIC,
    ZONE_HOUR,
    Estimate,
    endpoint_item,
    requests,
)
from troop.bench.definition import names
from troop.bench.definition.definition import ON_DEMAND, SPOT
from troop.bench.definition.limits import setting
from troop.bench.definition.money import HOURLY, PER_SECOND, ZERO, rounded, shown, total
from troop.bench.definition.problems import Problem
from troop.bench.money import costs, prices
from troop.bench.money.billing import HOUR, billed, hours, months, seconds_between
from troop.bench.money.costs import Cost, Item
from troop.bench.money.prices import Prices, loading, storage
from troop.bench.records.record import FINAL, Cell, CellStatus, Kind, Resource
from troop.shared import codec
from troop.shared.codec import stored
from troop.shared.formatting import USD

FORMAT = "troop.terms/1"

UNKNOWN = "unknown"

MEASURED = frozenset({CellStatus.SUCCEEDED, CellStatus.INVALID})
"""Statuses of cells whose traffic between zones and requests count in full: as stated in the file, except for requests
that nodes have counted.
"""


@dataclass(frozen=True)
class CellTerms:
    """A cell's part of the terms.

    Attributes:
        expected: expected cost of an attempt.
        on_demand: expected cost of an attempt on demand, as the last of several is.
        attempts: maximum number of attempts.
        own: the part of ``expected`` for Troop's own calls.
        hourly: hourly cost of one node of a standing fleet, by role; empty for one of an earlier version.
        licenses: license fee of one node for an hour, by role; without roles that have none.
        requests: as in :class:`troop.bench.definition.money.Money`.
        endpoint: hourly cost of its queue's endpoint; 0 for none.
        reports: price of the reports of one node for an hour, by role; without roles that are not watched.
    """

    expected: Decimal
    on_demand: Decimal
    attempts: int
    own: Decimal
    cross_zone_gb: Decimal
    hourly: Mapping[str, Decimal] = field(default_factory=dict)
    licenses: Mapping[str, Decimal] = field(default_factory=dict)
    requests: Mapping[str, Decimal] = field(default_factory=dict)
    endpoint: Decimal = field(default=ZERO, metadata=stored(omit=True))
    reports: Mapping[str, Decimal] = field(default_factory=dict, metadata=stored(omit=True))


_PRICES, _FILE_PRICES = stored(encode=prices.to_document), stored("of_file", encode=prices.to_document)


@dataclass(frozen=True)
class Terms:
    """The terms for computing a run's cost, stored once at admission.

    Attributes:
        prices: AWS's, and the file's where AWS lists none; for limits, budget and metrics.
        budget: maximum cost by the file.
        ceiling: maximum cost by the deployment, regardless of the file.
        file_prices: prices for the author's figures; None for a file without prices.
    """

    prices: Prices = field(metadata=_PRICES)
    billing: str = field(default=PER_SECOND, metadata=stored(required=True))
    budget: Decimal | None = None
    cells: Mapping[str, CellTerms] = field(default_factory=dict, metadata=stored(required=True))
    ceiling: Decimal | None = None
    file_prices: Prices | None = field(default=None, metadata=_FILE_PRICES)

    @property
    def limit(self) -> Decimal | None:
        """The lower of budget and ceiling; None without both."""
        return min((one for one in (self.budget, self.ceiling) if one is not None), default=None)

    @property
    def limit_name(self) -> str:
        """A text for the limit: the budget or the setting."""
        return "the budget" if self.limit == self.budget else "the deployment's setting troop:max_run_cost"

    def expected(self, cell: str) -> Decimal:
        """Returns the expected cost of one attempt, by its id; 0 for an unknown cell."""
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
    file_prices: Prices | None = None,
) -> Terms:
    """Returns the terms of a run from its estimate.

    Args:
        book: the prices of the estimate.
        attempts: maximum number of attempts by cell.
        ceiling, file_prices: as in :class:`Terms`.
    """
    cells = {
        cell.cell: CellTerms(
            rounded(cell.expected.amount),
            rounded(cell.on_demand),
            attempts[cell.cell],
            rounded(cell.own),
            cell.cross_zone_gb,
            {role: rounded(price) for role, price in cell.hourly.items()},
            cell.licenses,
            cell.requests,
            rounded(cell.endpoint),
            cell.reports,
        )
        for cell in estimate.cells
    }
    return Terms(book, estimate.billing, estimate.budget, cells, ceiling, file_prices)


# Cost so far


def actual(terms: Terms, cells: Iterable[Cell], resources: Iterable[Resource], now: datetime) -> Cost:
    """Computes the cost of cells so far.

    A node costs from its start until it was seen to be gone, or until now.

    Args:
        cells: the cells to sum; each attempt is one.
        resources: on record; those of other cells are ignored.
    """
    these = list(cells)
    ids = {cell.cell for cell in these}
    items: list[Item] = []
    own = [resource for resource in resources if resource.cell in ids]
    for resource in own:
        if resource.created_at:
            items += _resource(terms, resource, resource.created_at, now)
    for cell in these:
        items += _cell_items(terms, cell)
    cost = costs.cost_of(items, terms.prices.currency)
    saved = _saved(terms, _uses(terms, own, now))
    return cost if saved is None else replace(cost, on_demand=cost.amount + saved)


@dataclass(frozen=True)
class Use:
    """The use of one node so far.

    Attributes:
        hours: billed ones.
        price: of one hour; None if unknown.
    """

    role: str
    instance_type: str
    purchase: str
    hours: Decimal
    price: Decimal | None


@dataclass(frozen=True)
class Bought:
    """What was bought for a role in one way.

    Attributes:
        nodes: number of nodes so far, including those that are gone.
        hours: their billed node-hours so far.
    """

    role: str
    purchase: str
    nodes: int
    hours: Decimal


def bought(terms: Terms, resources: Iterable[Resource], now: datetime) -> tuple[Bought, ...]:
    """Sums the nodes that are on record, by role and purchase."""
    sums: dict[tuple[str, str], Bought] = {}
    for use in _uses(terms, resources, now):
        key = use.role, use.purchase
        before = sums.get(key, Bought(*key, nodes=0, hours=ZERO))
        sums[key] = replace(before, nodes=before.nodes + 1, hours=before.hours + use.hours)
    return tuple(sums[key] for key in sorted(sums))


def _saved(terms: Terms, uses: Iterable[Use]) -> Decimal | None:
    """Computes what the hours of spot nodes would have cost more on demand; None if unknown, or without spot nodes."""
    saved: list[Decimal] = []
    for use in uses:
        if use.purchase == SPOT:
            listed = terms.prices.hour(use.instance_type, ON_DEMAND)
            if listed is None or use.price is None:
                return None
            saved.append(use.hours * (listed - use.price))
    return total(saved) if saved else None


def _uses(terms: Terms, resources: Iterable[Resource], now: datetime) -> Iterator[Use]:
    for one in resources:
        if one.kind is Kind.INSTANCE and one.created_at:
            kind, purchase = one.instance_type or UNKNOWN, one.purchase or ON_DEMAND
            seconds = seconds_between(one.started_at or one.created_at, one.gone_at or now)
            price = terms.prices.hour(kind, purchase, one.zone)
            node_hours = hours(billed(seconds, terms.billing))
            yield Use(one.role or "nodes", kind, purchase, node_hours, price)


def actual_at_file_prices(
    terms: Terms, cells: Iterable[Cell], resources: Iterable[Resource], now: datetime
) -> Cost | None:
    """Computes a run's cost with the file's prices; None for a file without prices."""
    if terms.file_prices is None:
        return None
    return actual(replace(terms, prices=terms.file_prices), cells, resources, now)


def over_ceiling(terms: Terms, spent: Decimal) -> str | None:
    """Returns why a run with this cost must be stopped; None if it may continue."""
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
        for use in _uses(terms, [resource], now):
            yield Item(f"{role}, {use.instance_type}, {use.purchase}", use.hours, NODE_HOUR, use.price)
            known = terms.cells.get(names.attempt_of(resource.cell)[0])
            if known and (fee := known.licenses.get(role)):
                yield Item(f"{role}, {LICENSE}", use.hours, NODE_HOUR, fee)
            if known and (price := known.reports.get(role)):
                yield Item(f"{role}, {REPORTS}", use.hours, NODE_HOUR, price)
    elif resource.kind is Kind.VOLUME and resource.disk:
        disk, gib_months = resource.disk, months(billed(seconds, PER_SECOND))
        for name, unit, size, month in storage(terms.prices, disk.type, disk.size_gib, disk.iops, disk.throughput_mib):
            yield Item(f"{role}, {name}", size * gib_months, unit, month)
        for name, unit, loaded, price in loading(terms.prices, disk.size_gib, disk.initialization_mib):
            yield Item(f"{role}, {name}", loaded, unit, price)
    elif resource.kind is Kind.ENDPOINT and resource.zones:
        yield endpoint_item(resource.zones, seconds, terms.prices)
    elif resource.kind is Kind.ENDPOINT:
        yield Item(f"{QUEUE_ENDPOINT}, {UNKNOWN} zones", hours(billed(seconds, HOURLY)), ZONE_HOUR, None)
    elif resource.kind is Kind.VOLUME:
        yield Item(f"{role}, storage {UNKNOWN}", months(billed(seconds, PER_SECOND)), "volume-month", None)


def _cell_items(terms: Terms, cell: Cell) -> Iterator[Item]:
    """Yields estimates of what is not measured, depending on the cell's progress."""
    known = terms.cells.get(names.attempt_of(cell.cell)[0])
    if known is None:
        return
    if cell.status in MEASURED:
        yield Item(TRAFFIC, known.cross_zone_gb, "GB", terms.prices.cross_zone_gb)
        yield from requests(known.requests, terms.prices.currency, cell.requests)
    if cell.status is not CellStatus.PENDING and names.BOOT in cell.phases and terms.prices.currency == USD:
        yield Item(OWN, Decimal(1), "cell", known.own)


# Limits


def over_budget(terms: Terms, cell: str, cells: Iterable[Cell]) -> str | None:
    """Returns why an attempt at a cell must not be launched: with it, the run's expected cost exceeds its limit, see
    :attr:`Terms.limit`. None if it fits, or without a limit.

    The actual cost of finished cells and the expected cost of running cells count. Of two cells that begin at the same
    time, only the later one by (moment, id) gives way.

    Args:
        cell: the id of the attempt; it may have begun already.
        cells: all cells of the run on record, with or without this one.
    """
    if terms.limit is None:
        return None
    every = {one.cell: one for one in cells}
    mine = _launched(every[cell]) if cell in every else None
    others = [one for one in every.values() if one.cell != cell]
    if mine is not None:
        others = [one for one in others if (at := _launched(one)) is None or (at, one.cell) < (mine, cell)]
    spent = sum((_committed(terms, one) for one in others), ZERO)
    if names.attempt_of(cell)[1] > 1:  # another attempt must leave enough for cells that have not begun
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


@dataclass(frozen=True)
class Budget:
    """What a standing fleet can pay for.

    Attributes:
        terms: their limit counts, see :attr:`Terms.limit`; without one, everything fits.
        spent: its cost so far.
        left: seconds until it expires.
    """

    terms: Terms
    spent: Decimal
    left: float

    def too_many(self, before: Mapping[str, int], desired: Mapping[str, int]) -> Problem | None:
        """Returns a problem if a role would grow beyond what the limit can pay for until the end; None otherwise.

        Args:
            before, desired: desired number of nodes by role.
        """
        role = next((name for name, count in desired.items() if count > before[name]), None)
        if role is None or (limit := self.terms.limit) is None or (cost := self.expected(desired)) <= limit:
            return None
        price = self._prices.get(role, ZERO) * hours(max(int(self.left), 0))
        if not price:
            return None
        most = max(0, desired[role] - ceil((cost - limit) / price))
        allowed = (
            f"at most {most}: as requested, it is expected to cost {shown(cost, self.terms.prices.currency, up=True)} "
            f"until it expires, but {self._limit(limit, cost)}"
        )
        return Problem(("count",), f"is {desired[role]}", allowed)

    def too_long(self, desired: Mapping[str, int]) -> Problem | None:
        """Returns a problem if the limit cannot pay for these nodes until the end; None otherwise."""
        limit, cost, left = self.terms.limit, self.expected(desired), int(self.left)
        if limit is None or cost <= limit:
            return None
        an_hour = self._an_hour(desired)
        most = int((limit - self.spent) / an_hour * HOUR) if an_hour and limit > self.spent else 0
        currency = self.terms.prices.currency
        allowed = (
            f"at most {most // HOUR} h {most % HOUR // 60} min from now: with {shown(an_hour, currency, up=True)} an "
            f"hour, it is expected to cost {shown(cost, currency, up=True)}, but {self._limit(limit, cost)}"
        )
        return Problem(("expires_at",), f"is {left // HOUR} h {left % HOUR // 60} min from now", allowed)

    def expected(self, desired: Mapping[str, int]) -> Decimal:
        """Computes what the fleet is expected to have cost at its end, with these nodes until then."""
        return self.spent + self._an_hour(desired) * hours(max(int(self.left), 0))

    def _an_hour(self, desired: Mapping[str, int]) -> Decimal:
        """Returns what such a fleet costs an hour, with its backups in place of spot."""
        nodes = total(count * self._prices.get(role, ZERO) for role, count in desired.items())
        return nodes + total(cell.endpoint for cell in self.terms.cells.values())

    @property
    def _prices(self) -> dict[str, Decimal]:
        return {role: price for cell in self.terms.cells.values() for role, price in cell.hourly.items()}

    def _limit(self, limit: Decimal, cost: Decimal) -> str:
        """Returns a phrase about a limit that a cost exceeds."""
        currency = self.terms.prices.currency
        if limit == self.terms.budget:
            return f"its budget is {shown(limit, currency)}"
        return setting("max_run_cost", shown(limit, currency), str(ceil(cost)))


def _launched(cell: Cell) -> datetime | None:
    return cell.phases.get(names.LAUNCH)


def _committed(terms: Terms, cell: Cell) -> Decimal:
    if cell.cost is not None:
        return max(cell.cost.amount, terms.expected(cell.cell)) if cell.cost.unknown else cell.cost.amount
    if cell.status in FINAL and names.BOOT not in cell.phases:  # refused, or failed before anything cost money
        return ZERO
    return ZERO if cell.status is CellStatus.PENDING or not cell.phases else terms.expected(cell.cell)


def to_document(terms: Terms) -> dict[str, Any]:
    """Converts to values for DynamoDB, with amounts as decimals."""
    return {"format": FORMAT, **codec.to_document(terms)}
