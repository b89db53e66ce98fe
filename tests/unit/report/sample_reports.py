"""Reports and comparisons as runs give them, made up: small and large, whole, torn and hostile."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from statistics import NormalDist
from typing import Any

from troop.report.comparison import Comparison, Equal, Figure, Need, Row, Side, Spread
from troop.report.document import (
    Attempt,
    Bill,
    Cell,
    Finding,
    Fleet,
    Interruption,
    Line,
    Money,
    Node,
    Operation,
    Phase,
    Point,
    Report,
    Run,
    Scaling,
    Separate,
    Series,
    Step,
    Use,
    Version,
)

BEGAN = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
PERCENTILES = (0, 10, 25, 50, 75, 90, 95, 97.5, 99, 99.5, 99.9, 99.95, 99.99, 99.999)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \"'&amp; \u2028 日本語 ‮ {{ 7*7 }} ]]> -->"
ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
_NORMAL = NormalDist()


def study(steps: tuple[int, ...] = (3, 6, 12), threads: tuple[int, ...] = (50, 200), repetitions: int = 3) -> Report:
    """A ring that grows, with drivers that grow with it; one cell was run twice, the last one has failed."""
    cells, number = [], 0
    for servers in steps:
        for each in threads:
            for repetition in range(1, repetitions + 1):
                number += 1
                cells.append(_measured(f"c{number:03}", servers, each, repetition))
    last = cells[-1]
    cells[-1] = last.model_copy(
        update={
            "status": "FAILED",
            "reason": "measure failed on i-0c7d1: exit code 1: NoHostAvailable: 10.0.1.17:9042 refused the connection",
            "phases": [],
            "steps": last.steps[:-2],
        }
    )
    cells[1] = cells[1].model_copy(
        update={
            "attempt": 2,
            "earlier": [
                Attempt(
                    cell=cells[1].cell,
                    status="INVALID",
                    reason="i-0a417 (servers) was taken back by spot while the cell measured",
                    amount=0.41,
                )
            ],
        }
    )
    return Report(
        made_at=BEGAN + timedelta(hours=7),
        made_by="0.1.0",
        run=Run(
            run="20261120-093000-7c1f2a9e",
            name="cassandra-write",
            description="Small rows written to a ring of Cassandra servers in three zones, three copies of each, by "
            "drivers whose number grows with the ring.",
            size="study",
            status="PARTIAL",
            reason=f"{len(cells) - 1} of {len(cells)} cells succeeded",
            requested_by="arn:aws:sts::123456789012:assumed-role/Engineer/kim",
            at=BEGAN,
            ended_at=BEGAN + timedelta(hours=6, minutes=12),
        ),
        money=Money(expected=31.2, most=118.75, budget=60, actual=_bill(33.4178)),
        definition=DEFINITION,
        versions=[
            Version(what="machine image", version="ami-0d1c2b3a4e5f60718 (al2023-ami-2023.9.20261110.0-kernel-6.1)"),
            Version(what="kernel", version="6.1.158-180.294.amzn2023.x86_64"),
            Version(what="cassandra", version="apache-cassandra-5.0.6-bin.tar.gz (sha256 50033c31dc62)"),
            Version(what="agent", version="0.1.0"),
        ],
        cells=cells,
        scaling=list(_scaling(cells, threads)),
        findings=[
            Finding(
                severity="warning", cell="c002", text="1 node was taken back by spot: the first attempt is INVALID"
            ),
            Finding(severity="error", cell=cells[-1].cell, text=cells[-1].reason or ""),
            Finding(
                severity="warning",
                cell="c004",
                text="the clock of i-0c402 was off by 0.31 s: what it did by the second is shifted as much",
            ),
        ],
    )


def single() -> Report:
    """One cell of one fleet, whose reads have two kinds and all sorts of errors; all went well."""
    cell = _measured("c001", 3, 50, 1).model_copy(update={"label": "", "scale": None, "values": {}})
    return study().model_copy(
        update={
            "run": Run(run="20261120-093000-0a0b0c0d", name="s3-range-read", status="SUCCEEDED", at=BEGAN),
            "cells": [cell],
            "scaling": [],
            "findings": [],
            "money": Money(expected=0.4, most=1.2),
            "definition": {"name": "s3-range-read", "expires_after": "2h"},
        }
    )


def apart() -> Report:
    """One cell, whose tool tells nothing that could be put together."""
    one = single()
    cell = one.cells[0]
    phase = cell.phases[0].model_copy(update={"operations": []})
    return one.model_copy(update={"cells": [cell.model_copy(update={"phases": [phase]})]})


def hostile() -> Report:
    """Whatever can be text is an attack, or far too long."""
    long = "parameters.consistency=" + "LOCAL_QUORUM" * 30
    cell = _measured("c001", 3, 50, 1)
    phase = cell.phases[0]
    attacked = cell.model_copy(
        update={
            "label": HOSTILE,
            "reason": HOSTILE,
            "status": HOSTILE,
            "values": {HOSTILE: HOSTILE},
            "fleets": [Fleet(role=HOSTILE, nodes=1, instance_type=HOSTILE, zones={HOSTILE: 1}, purchase={HOSTILE: 1})],
            "interruptions": [Interruption(node=HOSTILE, role=HOSTILE, action=HOSTILE, time=HOSTILE)],
            "earlier": [Attempt(cell=HOSTILE, status=HOSTILE, reason=HOSTILE)],
            "steps": [Step(phase=HOSTILE, at=BEGAN)],
            "cost": Bill(amount=1, lines=[Line(what=HOSTILE, quantity=1, unit=HOSTILE, price=None, amount=None)]),
            "phases": [
                phase.model_copy(
                    update={
                        "phase": HOSTILE,
                        "operations": [
                            one.model_copy(update={"operation": HOSTILE, "role": HOSTILE, "errors": {HOSTILE: 3}})
                            for one in phase.operations
                        ],
                        "series": [
                            one.model_copy(update={"role": HOSTILE, "operation": one.operation and HOSTILE})
                            for one in phase.series
                        ],
                        "use": [Use(role=HOSTILE, nodes=1, cpu=50)],
                        "members": [Node(node=HOSTILE, role=HOSTILE, rank=0, outcome=HOSTILE, count=1, errors=1)],
                        "separate": [_separate(0).model_copy(update={"tool": HOSTILE, "operation": HOSTILE})],
                    }
                )
            ],
        }
    )
    stretched = _measured("c002", 6, 50, 1).model_copy(update={"label": long})
    return study().model_copy(
        update={
            "run": Run(run=HOSTILE, name=HOSTILE, description=HOSTILE, size=HOSTILE, status=HOSTILE, reason=HOSTILE),
            "definition": {HOSTILE: HOSTILE, "script": "\ud800 half a pair", "list": [HOSTILE, {HOSTILE: [HOSTILE]}]},
            "versions": [Version(what=HOSTILE, version=HOSTILE)],
            "cells": [attacked, stretched],
            "scaling": [
                Scaling(
                    label=HOSTILE,
                    phase=HOSTILE,
                    role=HOSTILE,
                    operation=HOSTILE,
                    counted=HOSTILE,
                    points=[Point(cell=HOSTILE, nodes=1, per_second=1.0)],
                )
            ],
            "findings": [Finding(severity="error", cell=HOSTILE, text=HOSTILE)],
        }
    )


def bare() -> Report:
    """What can be missing is; numbers that are none; cells and phases without anything in them."""
    nothing = Operation(role="drivers", operation="read", count=0, per_second=None)
    odd = nothing.model_copy(
        update={"operation": "odd", "per_second": math.nan, "max_ms": math.inf, "distribution": [(50.0, math.nan)]}
    )
    series = Series(role="drivers", operation=None, name="cpu", start=0, step_seconds=1, values=[None, math.nan])
    return Report(
        made_at=BEGAN,
        made_by="0.1.0",
        run=Run(run="r", name="bare", status="FAILED"),
        money=Money(),
        definition={},
        cells=[
            Cell(cell="c001", status="FAILED"),
            Cell(cell="c002", status="STOPPED", phases=[Phase(phase="measure", nodes=0, measured_seconds=0)]),
            Cell(
                cell="c003",
                status="SUCCEEDED",
                cost=Bill(amount=0, unknown=["drivers, c7g.large"]),
                phases=[
                    Phase(
                        phase="measure",
                        nodes=1,
                        measured_seconds=1,
                        operations=[nothing, odd],
                        use=[Use(role="drivers", nodes=1)],
                        series=[series, series.model_copy(update={"values": []})],
                        members=[Node(node="i-1", role="drivers", rank=0, outcome="lost", count=0, errors=0)],
                    )
                ],
            ),
        ],
        scaling=[Scaling(phase="measure", role="drivers", operation="read", counted="drivers", points=[])],
    )


def empty() -> Report:
    """A run that came to nothing."""
    return bare().model_copy(update={"cells": [], "scaling": []})


def many(cells: int = 200, steps: int = 300) -> Report:
    """As many cells as there can be, with as many steps over time as there can be."""
    one = study(repetitions=1)
    made = [_measured(f"c{n + 1:03}", 3 + 3 * (n % 4), 50 + n // 8, 1 + n % 2, steps) for n in range(cells)]
    threads = tuple(dict.fromkeys(50 + n // 8 for n in range(cells)))
    return one.model_copy(update={"cells": made, "scaling": list(_scaling(made, threads)), "findings": []})


DEFINITION: dict[str, Any] = {
    "name": "cassandra-write",
    "expires_after": "8h",
    "fleets": {
        "servers": {"count": 3, "instance_type": "i4i.xlarge", "zones": 3, "purchase": "spot"},
        "drivers": {"count": 1, "instance_type": "c6i.2xlarge"},
    },
    "phases": [
        {"name": "ring", "roles": ["servers"], "script": "start.py", "timeout": "20m"},
        {
            "name": "measure",
            "roles": ["servers", "drivers"],
            "script": "measure.py",
            "start_together": True,
            "warm_up": "1m",
            "measured": "10m",
            "timeout": "20m",
        },
    ],
    "scale": {
        "n3": {"fleets.servers.count": 3, "fleets.drivers.count": 1},
        "n6": {"fleets.servers.count": 6, "fleets.drivers.count": 2},
        "n12": {"fleets.servers.count": 12, "fleets.drivers.count": 4},
    },
    "matrix": {"parameters.threads": [50, 200]},
    "repetitions": 3,
    "parameters": {"driver": "latte", "keys": 27000000, "rate": 0, "ratio": "1:1"},
    "artifacts": [{"name": "cassandra", "source": "https://archive.apache.org/dist/cassandra/5.0.6/x.tar.gz"}],
}


def _measured(cell: str, servers: int, threads: int, repetition: int, steps: int = 132) -> Cell:
    dice = random.Random(f"{servers} {threads} {repetition}")
    drivers = max(1, servers // 3)
    rate = servers * (7900 if threads >= 200 else 5200) * (1 - 0.006 * servers) * dice.uniform(0.98, 1.02)
    base = threads / 160 * dice.uniform(0.95, 1.05)
    writes = _operation("write", rate, base, 600, {"timeout": 37 * servers, "unavailable": 2}, dice)
    reads = _operation("read", rate / 9, base * 1.7, 600, {}, dice)
    begun = BEGAN + timedelta(minutes=21 * int(cell[1:]))
    phases = ("launch", "boot", "ring", "measure", "collect", "teardown", "over")
    amount = 0.55 + 0.31 * servers
    return Cell(
        cell=cell,
        label=f"n{servers}, threads={threads}, repetition {repetition}",
        scale=f"n{servers}",
        values={"parameters.threads": threads},
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
            ),
            Fleet(
                role="drivers",
                nodes=drivers,
                instance_type="c6i.2xlarge",
                zones={ZONES[0]: drivers},
                purchase={"on-demand": drivers},
            ),
        ],
        interruptions=[
            Interruption(node="i-0a417", role="servers", action="rebalance-recommended", time="2026-11-20T10:21:07Z")
        ]
        if cell == "c002"
        else [],
        cost=_bill(amount),
        hourly=amount * 2.9,
        phases=[
            Phase(
                phase="measure",
                nodes=servers + drivers,
                measured_seconds=600,
                warm_up_seconds=60,
                measured_from=begun + timedelta(minutes=10),
                operations=[
                    writes.model_copy(update={"cost_per_million": amount * 2.9 / 3600 / rate * 1e6}),
                    reads.model_copy(update={"cost_per_million": amount * 2.9 / 3600 / rate * 9e6}),
                ],
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
                separate=[_separate(n) for n in range(drivers)] if cell in ("c001", "c004") else [],
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

    def one(role: str, operation: str | None, name: Any, found: list[float | None]) -> Series:
        return Series(role=role, operation=operation, name=name, start=-60, step_seconds=step, values=found)

    for operation, part, slower in (("write", 1.0, 1.0), ("read", 1 / 9, 1.7)):
        yield one("drivers", operation, "per_second", values(rate * part, 0.03))
        yield one("drivers", operation, "p50_ms", values(base * slower, 0.04, 1.6))
        yield one("drivers", operation, "p99_ms", values(base * slower * 4.6, 0.09, 1.9))
        yield one("drivers", operation, "max_ms", [abs(v or 0) for v in values(base * slower * 21, 0.4, 1.2)])
        yield one("drivers", operation, "mean_ms", values(base * slower * 1.2, 0.05, 1.6))
    errors = values(0.06 * servers, 0.9)
    yield one("drivers", "write", "errors_per_second", [max(0.0, value or 0) for value in errors])
    gap = values(83, 0.02)
    gap[70:73] = [None, None, None]
    yield one("servers", None, "cpu", gap)
    yield one("servers", None, "iowait", values(7, 0.2))
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


def _separate(rank: int) -> Separate:
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


def _bill(amount: float) -> Bill:
    return Bill(
        amount=amount,
        lines=[
            Line(
                what="servers, i4i.xlarge, spot",
                quantity=amount * 3.1,
                unit="node-hour",
                price=0.1412,
                amount=amount * 0.6,
            ),
            Line(
                what="drivers, c6i.2xlarge, on-demand",
                quantity=amount * 0.7,
                unit="node-hour",
                price=0.384,
                amount=amount * 0.38,
            ),
            Line(what="storage, gp3", quantity=0.0312, unit="GiB-month", price=0.088, amount=0.0027),
            Line(what="traffic between zones", quantity=40, unit="GB", price=None, amount=None),
        ],
        unknown=["traffic between zones"],
    )


def _scaling(cells: list[Cell], threads: tuple[int, ...]) -> Iterator[Scaling]:
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


def compared(repetitions: int = 3, variants: int = 4) -> Comparison:
    """Two runs of a study: writes became faster beyond the noise, reads of many threads fell below the limit."""
    dice = random.Random(7)
    rows = [
        _compared(
            f"n{3 * 2 ** (n // 2)}, threads={(50, 200)[n % 2]}" + f", batch={n}" * (n > 7), operation, repetitions, dice
        )
        for n in range(variants)
        for operation in ("write", "read")
    ]
    return Comparison(
        made_at=BEGAN,
        made_by="0.1.0",
        fail_below=0.95,
        a=Side(
            name="20261113-100412-1f0c9b2e",
            run="20261113-100412-1f0c9b2e",
            benchmark="cassandra-write",
            cells=12,
            fleets="3 to 12 servers (i4i.xlarge), 1 to 4 drivers (c6i.2xlarge)",
        ),
        b=Side(
            name="candidate/report.json",
            run="20261120-093000-7c1f2a9e",
            benchmark="cassandra-write",
            cells=12,
            fleets="3 to 12 servers (i4g.xlarge), 1 to 4 drivers (c6i.2xlarge)",
        ),
        rows=rows,
        unmatched=["A alone has n24, threads=50"],
        warnings=["A and B had different instance types: servers i4i.xlarge, i4g.xlarge"],
    )


def compared_with_attacks() -> Comparison:
    """Whatever can be text is an attack; times of one side are missing."""
    one = compared()
    row = one.rows[0].model_copy(
        update={
            "label": HOSTILE,
            "operation": HOSTILE,
            "times": [Figure(name="p99_ms", a=None, b=Spread(median=1, low=1, high=1, repetitions=1), ratio=None)],
        }
    )
    side = Side(name=HOSTILE, run=HOSTILE, benchmark=HOSTILE, cells=1, fleets=HOSTILE)
    changes = {"a": side, "b": side, "rows": [row], "unmatched": [HOSTILE], "warnings": [HOSTILE]}
    return one.model_copy(update=changes)


def nothing_in_common() -> Comparison:
    """Not one row."""
    return compared().model_copy(update={"rows": [], "fail_below": None, "warnings": [], "unmatched": []})


def _compared(label: str, operation: str, repetitions: int, dice: random.Random) -> Row:
    ratio = 1.12 if operation == "write" else 0.91 if "threads=200" in label else 0.995
    half = 0.03 if repetitions > 1 else None
    base = dice.uniform(20_000, 60_000)
    times: list[Figure] = []
    for name, ms in (
        ("mean_ms", 1.1),
        ("p50_ms", 0.8),
        ("p90_ms", 2.0),
        ("p95_ms", 2.9),
        ("p99_ms", 7.4),
        ("p99_9_ms", 21.0),
        ("max_ms", 640.0),
    ):
        a, b = _spread(ms, repetitions, dice), _spread(ms / ratio, repetitions, dice)
        times.append(Figure.model_validate({"name": name, "a": a, "b": b, "ratio": b.median / a.median}))
    return Row(
        label=label,
        phase="measure",
        role="drivers",
        operation=operation,
        a=_spread(base, repetitions, dice),
        b=_spread(base * ratio, repetitions, dice),
        ratio=ratio,
        low=None if half is None else ratio - half,
        high=None if half is None else ratio + half,
        exceeds_noise=None if half is None else abs(ratio - 1) > half,
        regression=ratio < 0.95,
        times=times,
        errors_a=0.00001,
        errors_b=0.0,
        equal=Equal(
            per_second=base * max(1, ratio),
            a=Need(nodes={"servers": 7, "drivers": 3}, hourly=3.42, scaled="interpolated"),
            b=Need(
                nodes={"servers": 6, "drivers": 2}, hourly=None if label.startswith("n12") else 2.87, scaled="measured"
            ),
            hourly_ratio=None if label.startswith("n12") else 0.839,
        )
        if operation == "write"
        else None,
    )


def _spread(value: float, repetitions: int, dice: random.Random) -> Spread:
    found = sorted(value * dice.uniform(0.97, 1.03) for _ in range(repetitions))
    return Spread(median=found[len(found) // 2], low=found[0], high=found[-1], repetitions=repetitions)
