"""Groups the cost of a report by cell and role, and computes what the system costs while it stays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from troop.bench.admission.estimate import NODE_HOUR
from troop.bench.definition.money import MONTH_HOURS, TERMS
from troop.report.document import Cell, Charge, Fleet, Line, Phase, Report
from troop.report.fleets import system
from troop.report.formatting import cell_name
from troop.report.totals import rows_of

DAY = 24 * 3600
LEAST_IOPS = 50
"""Operations a second below which a system does not depend on its disks: the price of their operations says nothing. A
slow volume does not reach a hundred.
"""


@dataclass(frozen=True)
class RoleBill:
    """The cost of one role in one cell.

    Attributes:
        fleet: None if only the bill names the role.
        node_hours: billed hours of its nodes: a fleet that starts later or ends earlier has fewer.
        amount: of nodes, storage and licenses; None for a cell without a bill.
        hourly: of all its nodes.
        by_term: cost of all its nodes for a whole term, by term; None without a price.
    """

    role: str
    fleet: Fleet | None
    node_hours: float | None
    amount: float | None
    hourly: float | None
    by_term: dict[str, float | None]


@dataclass(frozen=True)
class CellBill:
    """The cost of one cell.

    Attributes:
        others: lines that belong to no role, such as traffic between zones.
        hourly, by_term: of the system, without roles that only generate load.
    """

    name: str
    cell: Cell
    roles: list[RoleBill]
    others: list[Line]
    hourly: float | None
    by_term: dict[str, float | None]

    @property
    def rows(self) -> int:
        return len(self.roles) + len(self.others) + 1


@dataclass(frozen=True)
class Rate:
    """A measured throughput and its price.

    Attributes:
        per_day: operations a day at the measured rate.
        monthly: cost of the system for a month.
        per_million: cost of the system for a million operations.
    """

    name: str
    operation: str
    per_second: float
    per_day: float
    monthly: float | None
    per_million: float | None


@dataclass(frozen=True)
class DiskRate:
    """The measured operations of a system's disks, and their price.

    Attributes:
        reads, writes: per second of all its nodes. Each whole disk counts, so a cache's disk does, too.
        per_thousand: hourly cost of the system for a thousand of them per second.
    """

    name: str
    reads: float
    writes: float
    per_thousand: float | None


def lines(report: Report) -> list[Line]:
    """Returns the lines of the run's bill, those of the same item one after another: prices differ between zones."""
    every = report.money.actual.lines if report.money.actual else []
    firsts = {line.what: place for place, line in reversed(list(enumerate(every)))}
    roles = {line.role: firsts[line.what] for line in reversed(every) if line.role}
    return sorted(
        every, key=lambda line: (roles.get(line.role, len(every)) if line.role else len(every), firsts[line.what])
    )


def bills(cells: Iterable[Cell]) -> list[CellBill]:
    """Returns the bill of each cell that has fleets or a cost."""
    return [_bill(cell) for cell in cells if cell.fleets or cell.cost]


def rates(cells: Iterable[Cell]) -> list[Rate]:
    """Returns each measured throughput with what it costs to keep it up: of operations with a total, only the total.
    One that planned faults have changed is left out.
    """
    return [
        Rate(
            name=", ".join(part for part in (cell_name(cell), phase.setting) if part),
            operation=f"{operation.operation} of {operation.role}",
            per_second=operation.per_second,
            per_day=operation.per_second * DAY,
            monthly=monthly(cell.system_hourly),
            per_million=operation.cost_per_million,
        )
        for cell in cells
        for phase in cell.phases
        for operation in rows_of(phase)
        if operation.per_second and operation.share is None and not phase.faults
    ]


def disk_rates(cells: Iterable[Cell]) -> list[DiskRate]:
    """Returns the operations of the disks of each cell and phase whose system uses its disks."""
    return [rate for cell in cells for phase in cell.phases if (rate := _disk_rate(cell, phase))]


def _disk_rate(cell: Cell, phase: Phase) -> DiskRate | None:
    tested = {fleet.role for fleet in system(cell.fleets)}
    uses = [use for use in phase.use if use.role in tested]
    reads = math.fsum(use.disk_reads or 0 for use in uses)
    writes = math.fsum(use.disk_writes or 0 for use in uses)
    if reads + writes < LEAST_IOPS:
        return None
    hourly = cell.system_hourly
    return DiskRate(
        name=", ".join(part for part in (cell_name(cell), phase.setting) if part),
        reads=reads,
        writes=writes,
        per_thousand=None if hourly is None else hourly / (reads + writes) * 1000,
    )


def monthly(hourly: float | None) -> float | None:
    """Returns the cost of a month, which has :data:`MONTH_HOURS` hours."""
    return None if hourly is None else hourly * MONTH_HOURS


def term_cost(charge: Charge | None, term: str) -> float | None:
    """Returns the cost of a fleet for a whole term; None without a price for that term."""
    if charge is None or charge.storage is None:
        return None
    instances = next((price for name, price in charge.committed.items() if name == term), None)
    return None if instances is None else (instances + charge.storage + charge.license) * TERMS[term]


def _bill(cell: Cell) -> CellBill:
    lines = cell.cost.lines if cell.cost else []
    fleets = {fleet.role: fleet for fleet in cell.fleets}
    roles = dict.fromkeys([*fleets, *(line.role for line in lines if line.role)])
    tested = system(cell.fleets)
    return CellBill(
        name=cell_name(cell),
        cell=cell,
        roles=[_role(role, fleets.get(role), [line for line in lines if line.role == role]) for role in roles],
        others=[line for line in lines if line.role is None],
        hourly=cell.system_hourly,
        by_term={term: _known_sum([term_cost(fleet.charge, term) for fleet in tested]) for term in TERMS},
    )


def _role(role: str, fleet: Fleet | None, lines: Sequence[Line]) -> RoleBill:
    nodes = [line.quantity for line in lines if line.unit == NODE_HOUR and not line.what.startswith(f"{role}, license")]
    amounts = [line.amount for line in lines if line.amount is not None]
    return RoleBill(
        role=role,
        fleet=fleet,
        node_hours=math.fsum(nodes) if nodes else None,
        amount=math.fsum(amounts) if amounts else None,
        hourly=fleet.hourly if fleet else None,
        by_term={term: term_cost(fleet.charge if fleet else None, term) for term in TERMS},
    )


def _known_sum(amounts: Sequence[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return math.fsum(known) if known and len(known) == len(amounts) else None
