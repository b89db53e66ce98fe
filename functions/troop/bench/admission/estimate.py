"""Estimates the expected and the highest possible cost of a run before its launch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import ceil
from typing import Any

from troop.bench.admission.overhead_cost import GET, PUT, REPORTS_HOUR, overhead_cost
from troop.bench.admission.snapshots import least_read_seconds
from troop.bench.definition import names
from troop.bench.definition.definition import ON_DEMAND, Benchmark, Fleet, Phase, Volume
from troop.bench.definition.limits import setting
from troop.bench.definition.money import (
    ENDPOINT,
    HOURLY,
    INITIALIZATION,
    PER_SECOND,
    S3_GETS,
    S3_PUTS,
    ZERO,
    Money,
    number,
    rounded,
    shown,
    total,
)
from troop.bench.definition.plan import Plan, PlannedCell, on_demand
from troop.bench.definition.problems import Problem
from troop.bench.measuring.verdicts import GRACE
from troop.bench.money import costs
from troop.bench.money.billing import billed, hours, months
from troop.bench.money.costs import Cost, Item
from troop.bench.money.prices import Prices, loading, storage
from troop.bench.records.record import PlannedStep
from troop.shared.formatting import USD
from troop.shared.settings import NO_LIMIT

FORMAT = "troop.estimate/1"

BOOT = 120
"""Typical seconds from launch until all nodes are ready: Amazon Linux boots within a minute, then a node fetches its
files, and the workflow polls.
"""

BETWEEN = 15
"""Seconds until the workflow notices the end of a phase and releases the next one."""

AFTER = 60
"""Seconds from the end of the last phase to the termination of the nodes: results are merged first."""

UNMEASURED_SHARE = 4
"""The expected time of a phase with neither ``measured`` nor ``expected`` is this fraction (1/4) of its time-out."""

MOST_BETWEEN, MOST_AFTER = 60, 600
""":data:`BETWEEN` and :data:`AFTER` if tasks fail and are retried."""

PAST_EXPIRY = 1800
"""Seconds after a run's expiry by which the reaper has removed everything."""

TRAFFIC, OWN = "traffic between zones, as stated", "Troop's own calls"
LICENSE, NODE_HOUR = "license, as stated", "node-hour"
REPORTS = "reports of health, and orders"
QUEUE_ENDPOINT, ZONE_HOUR = "endpoint of the queue", "zone-hour"
STATED, COUNTED = "as stated", "as counted"
REQUESTS: Mapping[str, tuple[str, Decimal]] = {
    S3_GETS: ("S3 GET requests", GET),
    S3_PUTS: ("S3 PUT and LIST requests", PUT),
}
"""Lines for the requests of scripts, and the price of one in USD."""

ROOT_VOLUME = "gp3"

BURSTABLE = re.compile(r"t[3-9][a-z]*\.")
"""The instance types that EC2 launches with unlimited CPU credits. T2 starts with a limit."""


@dataclass(frozen=True)
class CellEstimate:
    """The estimate of one cell.

    Attributes:
        label: what distinguishes it from the others.
        seconds: expected lifetime of its nodes.
        expected: expected cost of one attempt with the requested purchase options.
        on_demand: expected cost of an attempt on demand; of a standing fleet, with its backups in place of spot.
        most: cost with all time-outs and all attempts, without spot capacity.
        own: the part of ``expected`` for Troop's own calls.
        hourly: the most that one node costs for an hour, by role; for standing fleets, which can be resized.
        licenses: license fee of one node for an hour, by role; without roles that have none.
        requests: as in :class:`troop.bench.definition.money.Money`.
        endpoint: what an hour of its queue's endpoint costs in all of its zones; 0 without one.
        reports: price of the reports of one node for an hour, by role; without roles that are not watched.
    """

    cell: str
    label: str
    seconds: int
    expected: Cost
    on_demand: Decimal
    most: Decimal
    own: Decimal
    cross_zone_gb: Decimal
    hourly: Mapping[str, Decimal] = field(default_factory=dict)
    licenses: Mapping[str, Decimal] = field(default_factory=dict)
    requests: Mapping[str, Decimal] = field(default_factory=dict)
    endpoint: Decimal = ZERO
    reports: Mapping[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True)
class Estimate:
    """The estimate of a run.

    Attributes:
        unknown_types: instance types and purchase options without a price, such as ``c7g.large, spot``.
    """

    currency: str
    billing: str
    budget: Decimal | None
    cells: tuple[CellEstimate, ...]
    unknown_types: tuple[str, ...] = ()

    @property
    def expected(self) -> Decimal:
        return total(cell.expected.amount for cell in self.cells)

    @property
    def limited(self) -> Decimal:
        """The cost that budget and limits apply to. A standing fleet may run on its backups until it expires."""
        return total(cell.on_demand if cell.hourly else cell.expected.amount for cell in self.cells)

    @property
    def most(self) -> Decimal:
        return total(cell.most for cell in self.cells)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Everything without a price, which the figures leave out."""
        return tuple(dict.fromkeys(name for cell in self.cells for name in cell.expected.unknown))


def estimate(plan: Plan, money: Money, prices: Prices) -> Estimate:
    """Estimates the cost of all cells of a plan.

    Args:
        money: of the run's file; from a cell's own, only its traffic between zones and its requests count.
        prices: known prices of everything that the plan uses.
    """
    cells = tuple(
        _cell(planned.cell, planned.variant.label, planned.benchmark, money.billing, prices) for planned in plan.cells
    )
    # Backups for spot and the last attempt are on demand; a standing fleet without a backup waits for spot.
    unknown = {
        f"{fleet.instance_type}, {purchase}": None
        for planned in plan.cells
        for fleet in planned.benchmark.fleets
        for purchase in _purchases(planned, fleet)
        if prices.hour(fleet.instance_type, purchase) is None
    }
    return Estimate(prices.currency, money.billing, money.budget, cells, tuple(unknown))


def expected_of(phase: Phase) -> int:
    """Computes the expected seconds of a phase, or of one of its points."""
    if phase.expected is not None:
        return phase.expected
    return (
        phase.start_up + phase.warm_up + phase.measured if phase.is_measured else -(-phase.timeout // UNMEASURED_SHARE)
    )


def boot_seconds(benchmark: Benchmark) -> int:
    """Computes the expected seconds until all nodes are ready, with the time in which they read volumes."""
    read = max((least_read_seconds(volume) for fleet in benchmark.fleets for volume in fleet.volumes), default=0)
    return min(BOOT + read, benchmark.boot_timeout)


def expected_seconds(benchmark: Benchmark) -> int:
    """Computes the expected lifetime of a cell's nodes; a standing fleet lives until it expires."""
    if benchmark.standing:
        return benchmark.expires_after
    return sum(step.seconds for step in timetable(benchmark))


def timetable(benchmark: Benchmark) -> tuple[PlannedStep, ...]:
    """Lists the steps of a cell with their expected seconds, a phase with all its points in one."""
    phases = [
        PlannedStep(
            phase.name,
            sum(expected_of(step.phase) + BETWEEN for step in steps),
            sum(step.point is not None and not step.is_between for step in steps),
        )
        for phase in benchmark.phases
        if (steps := [step for step in benchmark.steps if step.phase_name == phase.name])
    ]
    return (PlannedStep(names.BOOT, boot_seconds(benchmark)), *phases, PlannedStep(names.TEARDOWN, AFTER))


def most_seconds(benchmark: Benchmark) -> int:
    """Computes the maximum lifetime of a cell's nodes: all time-outs, but not beyond the run's removal."""
    if benchmark.standing:
        return benchmark.expires_after + PAST_EXPIRY
    longest = benchmark.longest + (GRACE + MOST_BETWEEN) * len(benchmark.steps) + MOST_AFTER
    return min(longest, benchmark.expires_after + PAST_EXPIRY)


def cell_cost(benchmark: Benchmark, seconds: int, own: Decimal, billing: str, prices: Prices) -> Cost:
    """Computes the cost of one attempt whose nodes live for ``seconds``.

    Args:
        own: cost of Troop's own calls.
    """
    reports = _reports(benchmark, prices)
    items = [
        item for one in benchmark.fleets for item in _fleet(one, seconds, billing, prices, reports.get(one.role, ZERO))
    ]
    if benchmark.queue:
        items.append(endpoint_item(benchmark.zones, seconds, prices))
    items.append(Item(TRAFFIC, benchmark.money.cross_zone_gb or ZERO, "GB", prices.cross_zone_gb))
    items += requests(benchmark.money.requests, prices.currency)
    if prices.currency == USD:  # prices of these calls in other currencies are not known
        items.append(Item(OWN, Decimal(1), "cell", own))
    return costs.cost_of(items, prices.currency)


def endpoint_item(zones: int, seconds: float, prices: Prices) -> Item:
    """Returns the line of a queue's endpoint, which AWS bills by the started hour in each zone, however a file bills
    its nodes.
    """
    return Item(QUEUE_ENDPOINT, zones * hours(billed(seconds, HOURLY)), ZONE_HOUR, prices.endpoint)


def requests(stated: Mapping[str, Decimal], currency: str, counted: Mapping[str, int] | None = None) -> Iterator[Item]:
    """Yields the lines of requests; none in a currency in which their prices are not known.

    Args:
        stated: as in :class:`troop.bench.definition.money.Money`.
        counted: by nodes during the run; they take the place of stated ones of their kind.
    """
    counted = counted or {}
    if currency == USD:
        for name, (title, price) in REQUESTS.items():
            how = COUNTED if name in counted else STATED
            yield Item(f"{title}, {how}", Decimal(counted.get(name, stated.get(name, ZERO))), "request", price)


def _cell(cell: str, label: str, benchmark: Benchmark, billing: str, prices: Prices) -> CellEstimate:
    seconds, dear = expected_seconds(benchmark), _dear(benchmark, prices)
    boot = boot_seconds(benchmark)
    phases = [step.phase for step in benchmark.steps]
    measured = [phase for phase in phases if phase.is_measured]
    watched, longest = sum(map(expected_of, measured)), sum(phase.timeout + GRACE for phase in measured)
    own = overhead_cost(benchmark, boot, [expected_of(phase) for phase in phases], watched)
    most_own = overhead_cost(benchmark, benchmark.boot_timeout, [phase.timeout + GRACE for phase in phases], longest)
    most = cell_cost(dear, most_seconds(benchmark), most_own, billing, prices).amount
    # A role that starts without nodes costs nothing yet, but the prices of its nodes must be known all the same.
    unknown = cell_cost(benchmark.grown, seconds, own, billing, prices).unknown
    return CellEstimate(
        cell=cell,
        label=label,
        seconds=seconds,
        expected=replace(cell_cost(benchmark, seconds, own, billing, prices), unknown=unknown),
        on_demand=cell_cost(dear, seconds, own, billing, prices).amount,
        most=most * benchmark.attempts,
        own=own if prices.currency == USD else Decimal(0),
        cross_zone_gb=benchmark.money.cross_zone_gb or ZERO,
        hourly=_hourly(benchmark, prices) if benchmark.standing else {},
        licenses={fleet.role: fleet.license_fee for fleet in benchmark.fleets if fleet.license_fee},
        requests=benchmark.money.requests,
        endpoint=benchmark.zones * (prices.endpoint or ZERO) if benchmark.queue else ZERO,
        reports=_reports(benchmark, prices),
    )


def _hourly(benchmark: Benchmark, prices: Prices) -> dict[str, Decimal]:
    ones, reports = (replace(fleet, count=1) for fleet in _dear(benchmark, prices).fleets), _reports(benchmark, prices)
    lines = {one.role: _fleet(one, 3600, PER_SECOND, prices, reports.get(one.role, ZERO)) for one in ones}
    return {role: costs.cost_of(items, prices.currency).amount for role, items in lines.items()}


def _reports(benchmark: Benchmark, prices: Prices) -> dict[str, Decimal]:
    """Returns the price of the reports of one node for an hour, by watched role; none in other currencies than USD."""
    return dict.fromkeys(benchmark.watched_roles, REPORTS_HOUR) if prices.currency == USD else {}


def _dear(benchmark: Benchmark, prices: Prices) -> Benchmark:
    """Returns the benchmark on demand, as backups and the last attempt are; unchanged if on-demand prices are unknown.
    Of a standing fleet, only the roles with a backup are on demand.
    """
    dear = on_demand(benchmark)
    if benchmark.standing:
        pairs = zip(benchmark.fleets, dear.fleets, strict=True)
        dear = replace(benchmark, fleets=tuple(other if own.backup else own for own, other in pairs))
    known = all(prices.hour(fleet.instance_type, ON_DEMAND) is not None for fleet in dear.fleets if not fleet.is_spot)
    return dear if known else benchmark


def _purchases(planned: PlannedCell, fleet: Fleet) -> tuple[str, ...]:
    is_fixed = planned.benchmark.standing and not fleet.backup
    return (fleet.purchase,) if is_fixed else (fleet.purchase, ON_DEMAND)


def price_problems(plan: Plan, prices: Prices) -> Iterator[Problem]:
    """Lists maximum prices of spot nodes above the price on demand, which a spot node never costs."""
    for fleet in _with_max_price(plan):
        listed = prices.hour(fleet.instance_type, ON_DEMAND)
        if listed is not None and fleet.max_price is not None and fleet.max_price > listed:
            allowed = (
                f"at most {number(listed)}, the price of {fleet.instance_type} on demand, or left out: AWS never "
                "charges more for spot"
            )
            yield Problem(("fleets", fleet.role, "max_price"), f"is {number(fleet.max_price)}", allowed)


def price_warnings(plan: Plan, prices: Prices) -> Iterator[str]:
    """Yields sentences about maximum prices for which spot has no nodes now."""
    for fleet in _with_max_price(plan):
        zones = prices.spot.get(fleet.instance_type, {})
        lowest = min(zones.values(), default=None)
        if lowest is not None and fleet.max_price is not None and fleet.max_price < lowest:
            its = f"its max_price of {number(fleet.max_price)} is below the present spot price, {number(lowest)}"
            yield f"{fleet.role} gets no spot nodes now: {its}"


def traffic_warnings(plan: Plan) -> Iterator[str]:
    """Yields a sentence about roles in several zones whose traffic the file does not state."""
    cells = [planned.benchmark for planned in plan.cells if planned.benchmark.money.cross_zone_gb is None]
    roles = sorted({fleet.role for cell in cells for fleet in cell.fleets if fleet.zones > 1})
    if roles:
        standing = any(cell.standing for cell in cells)
        remedy = "" if standing else ": state the GB as traffic.cross_zone_gb, 0 for none"
        yield f"these figures leave out traffic between the zones of {', '.join(roles)}, 2 cents a GB{remedy}"


def credit_warnings(plan: Plan) -> Iterator[str]:
    """Yields a sentence about instance types whose processors can cost more than the price of an hour."""
    every = {kind for planned in plan.cells for fleet in planned.benchmark.fleets for kind in fleet.types}
    if types := sorted(kind for kind in every if BURSTABLE.match(kind)):
        yield (
            f"nodes of {', '.join(types)} can cost more than their price: beyond their baseline, EC2 bills CPU credits "
            "by the hour of a vCPU, which these figures leave out"
        )


def queue_warnings(plan: Plan) -> Iterator[str]:
    """Yields a sentence about what the estimate of a fleet with a queue leaves out."""
    if any(planned.benchmark.queue for planned in plan.cells):
        yield (
            "these figures leave out the requests to SQS, about 4 a task, and a cent a GB through the endpoint of the "
            "queue"
        )


def growth_warnings(plan: Plan, figures: Estimate, prices: Prices, ceiling: Decimal | None = None) -> Iterator[str]:
    """Yields a sentence about the cost of fleets that grow with their backlog.

    Args:
        figures: of the plan.
        prices: of the figures.
        ceiling: the deployment's maximum cost of a run.
    """
    for planned in plan.cells:
        grown = planned.benchmark.grown
        if grown == planned.benchmark:
            continue
        cost = _cell(planned.cell, "", grown, figures.billing, prices).on_demand
        nodes = sum(fleet.count for fleet in grown.fleets)
        sentence = f"with {nodes} nodes all the time, to which scale can grow it, it would cost "
        sentence += shown(cost, figures.currency, up=True)
        limit = min((one for one in (figures.budget, ceiling) if one is not None), default=None)
        if limit is not None and cost > limit:
            sentence += f": Troop adds no nodes for which {shown(limit, figures.currency)} are not enough"
        yield sentence


def _with_max_price(plan: Plan) -> Iterable[Fleet]:
    every = (fleet for planned in plan.cells for fleet in planned.benchmark.fleets)
    return {(fleet.role, fleet.instance_type, fleet.max_price): fleet for fleet in every if fleet.max_price}.values()


def _fleet(fleet: Fleet, seconds: int, billing: str, prices: Prices, reports: Decimal) -> Iterator[Item]:
    """Yields the lines of a fleet.

    Args:
        reports: price of the reports of one node for an hour; 0 if it is not watched.
    """
    price = prices.hour(fleet.instance_type, fleet.purchase)
    quantity = fleet.count * hours(billed(seconds, billing))
    yield Item(f"{fleet.role}, {fleet.instance_type}, {fleet.purchase}", quantity, NODE_HOUR, price)
    if fleet.license_fee:
        yield Item(f"{fleet.role}, {LICENSE}", quantity, NODE_HOUR, fleet.license_fee)
    if reports:
        yield Item(f"{fleet.role}, {REPORTS}", quantity, NODE_HOUR, reports)
    gib_months = months(billed(seconds, PER_SECOND))
    for disk in (Volume("", fleet.root_volume_gib, ROOT_VOLUME), *fleet.volumes):
        for name, unit, size, month in storage(prices, disk.type, disk.size_gib, disk.iops, disk.throughput_mib):
            yield Item(f"{fleet.role}, {name}", fleet.count * size * gib_months, unit, month)
    for volume in fleet.volumes:
        for name, unit, loaded, price in loading(prices, volume.size_gib, volume.rate):
            yield Item(f"{fleet.role}, {name}", fleet.count * loaded, unit, price)


def problems(estimate: Estimate, money: Money, ceiling: Decimal | None = None) -> Iterator[Problem]:
    """Lists reasons why a run may not begin.

    Args:
        ceiling: the deployment's maximum cost of a run. It requires that all prices are known, because it cannot limit
            anything without a price.
    """
    by_hand = "set in the file, above 0 (USD an hour, such as prices: {{{}: 0.1}})"
    if ceiling is not None and (unpriced := _unpriced(estimate)):
        phrase = setting("max_run_cost", shown(ceiling, estimate.currency), NO_LIMIT)
        types = estimate.unknown_types
        remedy = by_hand.format(types[0].split(",")[0]) if types else "known, or set in the file"
        if not types and any(name.endswith(f", {INITIALIZATION}") for name in unpriced):
            remedy = (
                f"set in the file: see https://aws.amazon.com/ebs/pricing (such as prices: {{{INITIALIZATION}: 0.0012}}"
            )
            remedy += ", USD a GiB of snapshot data at 100 MiB/s)"
        elif not types and QUEUE_ENDPOINT in unpriced:
            remedy = f"set in the file: see https://aws.amazon.com/privatelink/pricing (such as prices: {{{ENDPOINT}: "
            remedy += "0.01}, USD an hour in one zone)"
        yield Problem(("prices",), f"of {'; '.join(unpriced)} are unknown", f"{remedy}: {phrase}")
    elif estimate.unknown_types and not money.accept_unknown_prices:
        first = estimate.unknown_types[0].split(",")[0]
        allowed = f"{by_hand.format(first)}, or accepted by accept_unknown_prices: true"
        yield Problem(("prices",), f"of {'; '.join(estimate.unknown_types)} are unknown", allowed)
    cost, how = estimate.limited, "" if estimate.limited == estimate.expected else " if its backups run on demand"
    if ceiling is not None and cost > ceiling:
        expected = shown(cost, estimate.currency, up=True)
        phrase = setting("max_run_cost", shown(ceiling, estimate.currency), str(ceil(cost)))
        allowed = f"expected to cost at most {shown(ceiling, estimate.currency)}: {phrase}"
        yield Problem(("fleets",), f"are expected to cost {expected}{how}", allowed)
    if money.budget is not None and cost > money.budget:
        enough, most = (shown(amount, estimate.currency, up=True) for amount in (cost, estimate.most))
        allowed = f"at least what it is expected to cost{how}, {enough} ({most} at most)"
        yield Problem(("budget",), f"is {number(money.budget)}", allowed)


def _unpriced(estimate: Estimate) -> list[str]:
    """Lists everything without a price: instance types, and other lines."""
    rest = (name for name in estimate.unknown if not any(f", {kind}" in name for kind in estimate.unknown_types))
    return [*estimate.unknown_types, *rest]


def warnings(estimate: Estimate, ceiling: Decimal | None = None, at_file_prices: Estimate | None = None) -> list[str]:
    """Returns sentences about limits of the estimate.

    Args:
        ceiling: the deployment's maximum cost of a run.
        at_file_prices: the estimate with the file's prices; None for a file without prices.
    """
    sentences = []
    others = (name for name in estimate.unknown_types if not any(name in line for line in estimate.unknown))
    if missing := [*estimate.unknown, *others]:
        sentences.append(f"these figures leave out what has no known price: {', '.join(missing)}")
    if estimate.budget is not None and estimate.budget < estimate.most:
        most = shown(estimate.most, estimate.currency, up=True)
        sentences.append(f"it can cost {most}, more than its budget of {shown(estimate.budget, estimate.currency)}")
    if ceiling is not None and estimate.limited <= ceiling < estimate.most:
        most, held = shown(estimate.most, estimate.currency, up=True), shown(ceiling, estimate.currency)
        sentences.append(f"it can cost {most}: Troop stops it once it has cost more than troop:max_run_cost, {held}")
    if at_file_prices is not None:
        expected, most = (
            shown(amount, at_file_prices.currency, up=True) for amount in (at_file_prices.expected, at_file_prices.most)
        )
        sentences.append(
            f"with the file's prices, it is expected to cost {expected}, at most {most}; limits, budget and alarms "
            "use AWS's prices"
        )
    return sentences


def to_document(estimate: Estimate) -> dict[str, Any]:
    """Converts to the stored and published document, with amounts as decimals rounded to a millionth."""
    return {
        "format": FORMAT,
        "currency": estimate.currency,
        "billing": estimate.billing,
        "budget": estimate.budget,
        "expected": rounded(estimate.expected),
        "most": rounded(estimate.most),
        "unknown": list(estimate.unknown),
        "cells": [_cell_document(cell) for cell in estimate.cells],
    }


def _cell_document(cell: CellEstimate) -> Mapping[str, Any]:
    return {
        "cell": cell.cell,
        "label": cell.label,
        "seconds": cell.seconds,
        "expected": rounded(cell.expected.amount),
        "most": rounded(cell.most),
        "items": [costs.item_document(item) for item in cell.expected.items],
    }
