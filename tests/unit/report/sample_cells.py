"""Cells of made-up runs, with all that is measured in one: the same of the same arguments, every time."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from statistics import NormalDist
from typing import Any, TypeVar

from pydantic import BaseModel

from troop.measure.operations import TOTAL
from troop.report.document import (
    Bill,
    Cell,
    Charge,
    CrossZone,
    Fleet,
    Interruption,
    Line,
    Node,
    Operation,
    Phase,
    Point,
    Scaling,
    Separate,
    Series,
    Step,
    Use,
)

BEGAN = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
PERCENTILES = (0, 10, 25, 50, 75, 90, 95, 97.5, 99, 99.5, 99.9, 99.95, 99.99, 99.999)
ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
_NORMAL = NormalDist()
Part = TypeVar("Part", bound=BaseModel)


def changed(part: Part, **values: Any) -> Part:
    """Copies a part of a report, with other values."""
    return part.model_copy(update=values)


def measured(cell: str, servers: int, threads: int, repetition: int, steps: int = 132) -> Cell:
    dice = random.Random(f"{servers} {threads} {repetition}")
    drivers = max(1, servers // 3)
    rate = servers * (7900 if threads >= 200 else 5200) * (1 - 0.006 * servers) * dice.uniform(0.98, 1.02)
    base = threads / 160 * dice.uniform(0.95, 1.05)
    errors = {"connect-timeout": 3 * servers, "read-timeout": 34 * servers, "unavailable": 2}
    writes = changed(_operation("write", rate, base, 600, errors, dice), share=0.9)
    reads = changed(_operation("read", rate / 9, base * 1.7, 600, {}, dice), share=0.1)
    total = _operation(TOTAL, rate * 10 / 9, base * 1.1, 600, errors, dice)
    begun = BEGAN + timedelta(minutes=21 * int(cell[1:]))
    phases = ("launch", "boot", "ring", "measure", "collect", "teardown", "over")
    amount = 0.55 + 0.31 * servers
    return Cell(
        cell=cell,
        label=f"n{servers}, threads={threads}, repetition {repetition}",
        scale=f"n{servers}",
        values={"parameters.threads": threads},
        parameters={"threads": threads, "keys": 27000000},
        repetition=repetition,
        status="SUCCEEDED",
        steps=[Step(phase=name, at=begun + timedelta(minutes=3 * n)) for n, name in enumerate(phases)],
        fleets=[
            Fleet(
                role="servers",
                nodes=servers,
                instance_type="i4i.xlarge",
                zones=dict.fromkeys(ZONES, servers // 3),
                purchase={"spot": servers - 1, "on-demand": 1},
                hourly=0.15 * servers,
                load=False,
                charge=Charge(
                    instances=0.1412 * servers, storage=0.0088 * servers, committed={"1y": 0.2, "3y": 0.11 * servers}
                ),
            ),
            Fleet(
                role="drivers",
                nodes=drivers,
                instance_type="c6i.2xlarge",
                zones={ZONES[0]: drivers},
                purchase={"on-demand": drivers},
                hourly=0.385 * drivers,
                load=True,
                charge=Charge(instances=0.384 * drivers, storage=0.001 * drivers),
            ),
        ],
        interruptions=[
            Interruption(node="i-0a417", role="servers", action="rebalance-recommended", time="2026-11-20T10:21:07Z")
        ]
        if cell == "c002"
        else [],
        cost=bill(amount),
        hourly=amount * 2.9,
        system_hourly=0.15 * servers,
        cross_zone=CrossZone(stated_gb=40, estimated_gb=1.37 * servers, price=0.02),
        phases=[
            Phase(
                phase="measure",
                nodes=servers + drivers,
                measured_seconds=600,
                warm_up_seconds=60,
                measured_from=begun + timedelta(minutes=10),
                operations=[
                    changed(writes, cost_per_million=amount * 2.9 / 3600 / rate * 1e6),
                    changed(reads, cost_per_million=amount * 2.9 / 3600 / rate * 9e6),
                ],
                totals=[changed(total, cost_per_million=amount * 2.9 / 3600 / rate * 9e5)],
                use=[
                    Use(
                        role="servers",
                        nodes=servers,
                        cpu=83.2 + dice.uniform(-3, 3),
                        user=61.0,
                        system=14.2,
                        iowait=7.4,
                        steal=0.6,
                        memory_bytes=21.3 * 2**30,
                        disk_reads=310.0 * servers,
                        disk_writes=1840.0 * servers,
                        disk_read_bytes=12e6 * servers,
                        disk_write_bytes=96e6 * servers,
                        network_received_bytes=58e6 * servers,
                        network_sent_bytes=51e6 * servers,
                    ),
                    Use(
                        role="drivers",
                        nodes=drivers,
                        cpu=31.5 + dice.uniform(-3, 3),
                        user=24.0,
                        system=7.1,
                        iowait=0.1,
                        steal=0.0,
                        memory_bytes=1.8 * 2**30,
                        network_received_bytes=11e6 * servers,
                        network_sent_bytes=33e6 * servers,
                    ),
                ],
                series=list(_series(rate, base, servers, steps, dice)),
                members=[
                    Node(
                        node=f"i-{cell[1:]}{n:02x}{role[0]}",
                        role=role,
                        rank=n,
                        outcome="ok",
                        count=round(rate * 600 / drivers) if role == "drivers" else 0,
                        errors=37 * n,
                        zone=ZONES[n % 3],
                        purchase="on-demand" if role == "drivers" or n == 0 else "spot",
                        cpu=dice.uniform(76, 90) if role == "servers" else dice.uniform(28, 34),
                        iowait=dice.uniform(5, 9) if role == "servers" else 0.1,
                        clock_offset_seconds=dice.uniform(-0.002, 0.002),
                    )
                    for role, number in (("servers", servers), ("drivers", drivers))
                    for n in range(number)
                ],
                separate=[separate_row(n) for n in range(drivers)] if cell in ("c001", "c004") else [],
            )
        ],
    )


def _operation(
    name: str, rate: float, base: float, seconds: float, errors: dict[str, int], dice: random.Random
) -> Operation:
    tail = dice.uniform(0.9, 1.3)

    def at(percentile: float) -> float:
        z = _NORMAL.inv_cdf(min(max(percentile / 100, 0.0005), 1 - 1e-7))
        return base * math.exp(0.55 * z + 0.11 * tail * max(0.0, z) ** 2)

    highest = at(100)
    return Operation(
        role="drivers",
        operation=name,
        count=round(rate * seconds),
        per_second=rate,
        bytes_per_second=rate * 112,
        errors=errors,
        mean_ms=base * 1.2,
        p50_ms=at(50),
        p90_ms=at(90),
        p95_ms=at(95),
        p99_ms=at(99),
        p99_9_ms=at(99.9),
        max_ms=highest,
        distribution=[*((float(p), at(p)) for p in PERCENTILES), (100.0, highest)],
    )


def _series(rate: float, base: float, servers: int, steps: int, dice: random.Random) -> Iterator[Series]:
    step = 5 if steps <= 150 else 2
    warm = 60 // step

    def values(level: float, noise: float, start: float = 0.35) -> list[float | None]:
        return [
            level
            * (start + (1 - start) * min(1.0, n / warm) + dice.gauss(0, noise) + (2.5 * noise if n % 41 == 40 else 0))
            for n in range(steps)
        ]

    def one(role: str, operation: str | None, name: Any, points: list[float | None]) -> Series:
        return Series(role=role, operation=operation, name=name, start=-60, step_seconds=step, values=points)

    for operation, part, slower in ((TOTAL, 10 / 9, 1.1), ("write", 1.0, 1.0), ("read", 1 / 9, 1.7)):
        yield one("drivers", operation, "per_second", values(rate * part, 0.03))
        yield one("drivers", operation, "p50_ms", values(base * slower, 0.04, 1.6))
        yield one("drivers", operation, "p90_ms", values(base * slower * 2.2, 0.06, 1.7))
        yield one("drivers", operation, "p99_ms", values(base * slower * 4.6, 0.09, 1.9))
        yield one("drivers", operation, "max_ms", [abs(v or 0) for v in values(base * slower * 21, 0.4, 1.2)])
        yield one("drivers", operation, "mean_ms", values(base * slower * 1.2, 0.05, 1.6))
    errors = values(0.06 * servers, 0.9)
    yield one("drivers", "write", "errors_per_second", [max(0.0, value or 0) for value in errors])
    gap = values(83, 0.02)
    gap[70:73] = [None, None, None]
    yield one("servers", None, "cpu", gap)
    yield one("servers", None, "iowait", values(7, 0.2))
    yield one("servers", None, "steal", values(0.6, 0.2))
    for node in ("i-0a01", "i-0a02"):
        yield changed(one("servers", None, "cpu", values(80, 0.04)), node=node)
        for device in ("nvme1n1", "nvme2n1"):
            reads = one("servers", None, "disk_reads", values(150, 0.3))
            yield changed(reads, node=node, device=device)
    yield one("drivers", None, "cpu", values(31, 0.05))
    yield one("drivers", None, "iowait", values(0.1, 0.3))
    yield one("servers", None, "disk_reads", values(310 * servers, 0.2))
    yield one("servers", None, "disk_writes", values(1840 * servers, 0.06))
    yield one("servers", None, "disk_read_bytes", values(12e6 * servers, 0.2))
    yield one("servers", None, "disk_write_bytes", values(96e6 * servers, 0.06))
    yield one("servers", None, "network_received_bytes", values(58e6 * servers, 0.03))
    yield one("servers", None, "network_sent_bytes", values(51e6 * servers, 0.03))
    yield one("drivers", None, "network_received_bytes", values(11e6 * servers, 0.03))
    yield one("drivers", None, "network_sent_bytes", values(33e6 * servers, 0.03))


def separate_row(rank: int) -> Separate:
    return Separate(
        node=f"i-0d{rank}",
        role="drivers",
        rank=rank,
        tool="wrk",
        operation="GET /",
        count=812_345,
        per_second=13_539.1,
        errors={"timeout": 4},
        bytes_per_second=11.2e6,
        mean_ms=1.42,
        max_ms=88.1,
        percentiles={"50": 1.2, "75": 1.6, "90": 2.3, "99": 8.04},
    )


def bill(amount: float) -> Bill:
    return Bill(
        amount=amount,
        lines=[
            Line(
                what="servers, i4i.xlarge, spot",
                quantity=amount * 3.1,
                unit="node-hour",
                price=0.1412,
                amount=amount * 0.6,
                role="servers",
            ),
            Line(
                what="drivers, c6i.2xlarge, on-demand",
                quantity=amount * 0.7,
                unit="node-hour",
                price=0.384,
                amount=amount * 0.38,
                role="drivers",
            ),
            Line(what="storage, gp3", quantity=0.0312, unit="GiB-month", price=0.088, amount=0.0027),
            Line(what="traffic between zones", quantity=40, unit="GB", price=None, amount=None),
        ],
        unknown=["traffic between zones"],
    )


def scaling(cells: list[Cell], threads: tuple[int, ...]) -> Iterator[Scaling]:
    for each in threads:
        for operation in (0, 1):
            chosen = [cell for cell in cells if cell.values["parameters.threads"] == each and cell.phases]
            if not chosen:
                continue
            points = [(cell.cell, cell.fleets[0].nodes, cell.phases[0].operations[operation]) for cell in chosen]
            fewest = min(nodes for _, nodes, _ in points)
            first = [op.per_second or 0 for _, nodes, op in points if nodes == fewest]
            per_node = sum(first) / len(first) / fewest
            slope = per_node * 0.94
            yield Scaling(
                label=f"threads={each}",
                phase="measure",
                role="drivers",
                operation=points[0][2].operation,
                counted="servers",
                points=[
                    Point(
                        cell=cell,
                        nodes=nodes,
                        per_second=op.per_second or 0,
                        efficiency=(op.per_second or 0) / nodes / per_node,
                    )
                    for cell, nodes, op in points
                ],
                slope=slope,
                intercept=per_node * fewest - slope * fewest,
                r_squared=0.9984,
            )
