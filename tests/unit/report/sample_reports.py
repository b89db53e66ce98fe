"""Reports as runs give them, made up: small and large, whole, torn and hostile."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from tests.unit.cli.reports import against_baseline
from tests.unit.report.sample_cells import BEGAN, bill, changed, measured, scaling, separate_row
from troop.measure.operations import TOTAL
from troop.report import instance_limits, saturation, trust
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
    ReplacedNode,
    Report,
    Run,
    Scaling,
    Series,
    Step,
    Use,
    Version,
)

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \"'&amp; \u2028 日本語 ‮ {{ 7*7 }} ]]> -->"


def study(steps: tuple[int, ...] = (3, 6, 12), threads: tuple[int, ...] = (50, 200), repetitions: int = 3) -> Report:
    """A ring that grows, with drivers that grow with it; one cell was run twice, the last one has failed."""
    cells, number = [], 0
    for servers in steps:
        for each in threads:
            for repetition in range(1, repetitions + 1):
                number += 1
                cells.append(measured(f"c{number:03}", servers, each, repetition))
    last = cells[-1]
    cells[-1] = changed(
        last,
        status="FAILED",
        reason="measure failed on i-0c7d1: exit code 1: NoHostAvailable: 10.0.1.17:9042 refused the connection",
        phases=[],
        steps=last.steps[:-2],
    )
    cells[1] = changed(
        cells[1],
        attempt=2,
        earlier=[
            Attempt(
                cell=cells[1].cell,
                status="INVALID",
                reason="i-0a417 (servers) was taken back by spot while the cell measured",
                amount=0.41,
            )
        ],
    )
    return Report(
        created_at=BEGAN + timedelta(hours=7),
        created_by="0.1.0",
        cpu_is_busy=True,
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
        money=Money(expected=31.2, most=118.75, budget=60, actual=changed(bill(33.4178), on_demand=50)),
        definition=DEFINITION,
        versions=[
            Version(what="machine image", version="ami-0d1c2b3a4e5f60718 (al2023-ami-2023.9.20261110.0-kernel-6.1)"),
            Version(what="kernel", version="6.1.158-180.294.amzn2023.x86_64"),
            Version(what="cassandra", version="apache-cassandra-5.0.6-bin.tar.gz (sha256 50033c31dc62)"),
            Version(what="agent", version="0.1.0"),
        ],
        cells=cells,
        scaling=list(scaling(cells, threads)),
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


def sweep() -> Report:
    """Three parameters that vary independently of one another, twice each."""
    cells: list[Cell] = []
    for nodes in (3, 6):
        for threads in (1, 50, 400):
            for size in (1, 10):
                for repetition in (1, 2):
                    cell = measured(f"c{len(cells) + 1:03}", nodes, threads, repetition, steps=15)
                    values = {"parameters.threads": threads, "parameters.kilobytes": size}
                    cells.append(changed(cell, values=values, parameters={"threads": threads, "kilobytes": size}))
    return changed(study(repetitions=1), cells=cells, scaling=[], findings=[])


def single() -> Report:
    """One cell of one fleet, whose reads have two kinds and all sorts of errors; all went well."""
    cell = changed(measured("c001", 3, 50, 1), label="", scale=None, values={})
    return changed(
        study(),
        run=Run(run="20261120-093000-0a0b0c0d", name="s3-range-read", status="SUCCEEDED", at=BEGAN),
        cells=[cell],
        scaling=[],
        findings=[],
        money=Money(expected=0.4, most=1.2),
        definition={"name": "s3-range-read", "expires_after": "2h"},
    )


TIERS = ("drivers", "nginx", "web", "authentication", "data")


def tiers() -> Report:
    """One cell of five roles with two points: few operations, inexact clocks, slow disks."""
    one = single()
    cell = one.cells[0]
    steps = cell.phases[0].series
    cpu = next(each for each in steps if each.name == "cpu" and not each.node)
    series = [each for each in steps if each.operation == TOTAL]
    for place, role in enumerate(TIERS):
        for name, part in (("cpu", 1 - 0.15 * place), ("iowait", 0.1), ("steal", 0.01), ("user", 0.7), ("system", 0.2)):
            values = [None if value is None else round(value * part, 2) for value in cpu.values]
            series.append(changed(cpu, role=role, name=name, values=values))
    phases = [
        changed(
            cell.phases[0],
            label=f"threads={threads}",
            point=point,
            parameters={"threads": threads},
            operations=[
                changed(each, operation=f"{kind}:{each.operation}", count=16, errors={})
                for kind in ("browser", "mobile")
                for each in cell.phases[0].operations
            ],
            totals=[changed(each, errors={}) for each in cell.phases[0].totals],
            use=[
                Use(role=role, nodes=1, cpu=83.0 - 12 * place, iowait=4.0 * place) for place, role in enumerate(TIERS)
            ],
            members=[
                Node(
                    node=f"i-{place}",
                    role=role,
                    rank=0,
                    outcome="ok",
                    count=64,
                    errors=0,
                    clock_uncertainty_seconds=0.4,
                )
                for place, role in enumerate(TIERS)
            ],
            series=series,
            separate=[],
        )
        for point, threads in enumerate((50, 200))
    ]
    fleets = [Fleet(role=role, nodes=1, instance_type="c7g.large", load=role == "drivers") for role in TIERS]
    whole = changed(cell, phases=phases, fleets=fleets, cost=None, hourly=1.0)
    findings = [*saturation.findings(whole, {}), *trust.findings(whole), *instance_limits.findings(whole, {})]
    return changed(one, cells=[whole], findings=findings)


def crowd(nodes: int = 60) -> Report:
    """One cell, each of whose many servers has its own CPU over time, the slowest first."""
    one = single()
    (phase,) = one.cells[0].phases
    cpu = next(each for each in phase.series if each.name == "cpu" and not each.node)
    whole = [each for each in phase.series if not each.node]
    lines = [changed(cpu, node=f"i-{n:02}") for n in range(nodes)]
    phase = changed(phase, series=[*whole, *lines], separate=[])
    return changed(one, cells=[changed(one.cells[0], phases=[phase])])


def apart() -> Report:
    """One cell, whose tool tells nothing that could be put together."""
    one = single()
    cell = one.cells[0]
    phase = changed(cell.phases[0], operations=[])
    return changed(one, cells=[changed(cell, phases=[phase])])


def against() -> Report:
    """Six cells that have measured a candidate and its baseline."""
    return against_baseline()


def hostile() -> Report:
    """Whatever can be text is an attack, or far too long."""
    long = "parameters.consistency=" + "LOCAL_QUORUM" * 30
    cell = measured("c001", 3, 50, 1)
    phase = cell.phases[0]
    attacked = changed(
        cell,
        label=HOSTILE,
        reason=HOSTILE,
        status=HOSTILE,
        values={HOSTILE: HOSTILE},
        fleets=[Fleet(role=HOSTILE, nodes=1, instance_type=HOSTILE, zones={HOSTILE: 1}, purchase={HOSTILE: 1})],
        interruptions=[Interruption(node=HOSTILE, role=HOSTILE, action=HOSTILE, time=HOSTILE)],
        replaced_nodes=[ReplacedNode(node=HOSTILE, role=HOSTILE, reason=HOSTILE)],
        earlier=[Attempt(cell=HOSTILE, status=HOSTILE, reason=HOSTILE)],
        steps=[Step(phase=HOSTILE, at=BEGAN)],
        cost=Bill(amount=1, lines=[Line(what=HOSTILE, quantity=1, unit=HOSTILE, price=None, amount=None)]),
        phases=[
            changed(
                phase,
                phase=HOSTILE,
                operations=[
                    changed(one, operation=HOSTILE, role=HOSTILE, errors={HOSTILE: 3}) for one in phase.operations
                ],
                series=[changed(one, role=HOSTILE, operation=one.operation and HOSTILE) for one in phase.series],
                use=[Use(role=HOSTILE, nodes=1, cpu=50)],
                members=[Node(node=HOSTILE, role=HOSTILE, rank=0, outcome=HOSTILE, count=1, errors=1)],
                separate=[changed(separate_row(0), tool=HOSTILE, operation=HOSTILE)],
            )
        ],
    )
    stretched = changed(measured("c002", 6, 50, 1), label=long)
    return changed(
        study(),
        run=Run(run=HOSTILE, name=HOSTILE, description=HOSTILE, size=HOSTILE, status=HOSTILE, reason=HOSTILE),
        definition={HOSTILE: HOSTILE, "script": "\ud800 half a pair", "list": [HOSTILE, {HOSTILE: [HOSTILE]}]},
        versions=[Version(what=HOSTILE, version=HOSTILE)],
        cells=[attacked, stretched],
        scaling=[
            Scaling(
                label=HOSTILE,
                phase=HOSTILE,
                role=HOSTILE,
                operation=HOSTILE,
                counted=HOSTILE,
                points=[Point(cell=HOSTILE, nodes=1, per_second=1.0)],
            )
        ],
        findings=[Finding(severity="error", cell=HOSTILE, text=HOSTILE)],
    )


def bare() -> Report:
    """What can be missing is; numbers that are none; cells and phases without anything in them."""
    nothing = Operation(role="drivers", operation="read", count=0, per_second=None)
    odd = changed(nothing, operation="odd", per_second=math.nan, max_ms=math.inf, distribution=[(50.0, math.nan)])
    series = Series(role="drivers", operation=None, name="cpu", start=0, step_seconds=1, values=[None, math.nan])
    return Report(
        created_at=BEGAN,
        created_by="0.1.0",
        cpu_is_busy=True,
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
                        series=[series, changed(series, values=[])],
                        members=[Node(node="i-1", role="drivers", rank=0, outcome="lost", count=0, errors=0)],
                    )
                ],
            ),
        ],
        scaling=[Scaling(phase="measure", role="drivers", operation="read", counted="drivers", points=[])],
    )


def empty() -> Report:
    """A run that came to nothing."""
    return changed(bare(), cells=[], scaling=[])


def many(cells: int = 200, steps: int = 300) -> Report:
    """As many cells as there can be, with as many steps over time as there can be."""
    one = study(repetitions=1)
    all_cells = [measured(f"c{n + 1:03}", 3 + 3 * (n % 4), 50 + n // 8, 1 + n % 2, steps) for n in range(cells)]
    threads = tuple(dict.fromkeys(50 + n // 8 for n in range(cells)))
    return changed(one, cells=all_cells, scaling=list(scaling(all_cells, threads)), findings=[])


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
