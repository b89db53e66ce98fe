"""A run as it is kept, in memory: three scale steps, two repetitions of each, servers and drivers; one cell that has
failed, one that spot interrupted and that was run again. What it measured was merged by the code that does so.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

from troop.bench.admission.estimate import estimate
from troop.bench.admission.estimate import to_document as estimate_document
from troop.bench.admission.spending import terms_of
from troop.bench.definition import names, roster
from troop.bench.definition.definition import SPOT, Artifact, Benchmark, Fleet, Phase, to_document
from troop.bench.definition.plan import Plan, PlannedCell, Variant, to_plan_document
from troop.bench.definition.roster import Member, Roster
from troop.bench.fleets import type_facts
from troop.bench.fleets.type_facts import TypeFacts
from troop.bench.money.costs import Cost, Item, cost_of
from troop.bench.money.prices import Prices, VolumePrice
from troop.bench.records.record import Cell, CellStatus, Expected, Kind, Resource, Run, RunStatus
from troop.measure.device_samples import Device, DeviceSamples
from troop.measure.histogram import Histogram
from troop.measure.merge import Merger
from troop.measure.operations import Operation, PerSecond
from troop.measure.summary import EBS_EXCEEDED, LEVELS, NETWORK_EXCEEDED, SERIES, Clock, Samples, Summary
from troop.report import stored_record

AT = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
RUN = "20261120-150000-1f0c9b2e"
START = 1_795_187_100
"""When the first cell measures: seconds since 1970."""
WARM_UP, MEASURED = 10, 60
STEP = 1

STEPS = {"n3": (3, 1), "n6": (6, 2), "n12": (12, 4)}
"""Servers and drivers by scale step."""
A_SERVER = {"n3": 100.0, "n6": 98.0, "n12": 90.0}
"""Reads a second of a server: it grows a little less than linearly."""

PRICES = Prices(
    on_demand={"i4i.large": Decimal("0.2"), "c7g.large": Decimal("0.08")},
    spot={"i4i.large": {"a": Decimal("0.06"), "b": Decimal("0.07"), "c": Decimal("0.08")}},
    volumes={"gp3": VolumePrice(Decimal("0.09"))},
    cross_zone_gb=Decimal("0.02"),
)

TYPES = {
    "i4i.large": TypeFacts(2, 16_384, 468, 1, "ssd", "Up to 10 Gigabit", 0.781, 10.0, 78.125, 1250.0, 2500, 40_000),
    "c7g.large": TypeFacts(2, 4096, 0, 0, "", "Up to 12.5 Gigabit", 0.937, 12.5, 78.75, 1250.0, 3600, 40_000),
}

FILES = "files/read.py"


@dataclass
class InMemory:
    """What is kept, by name."""

    files: dict[str, bytes] = field(default_factory=dict)

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def names(self, below: str) -> Sequence[str]:
        return sorted(name for name in self.files if name.startswith(below))

    def without(self, *beginnings: str) -> InMemory:
        return InMemory({name: body for name, body in self.files.items() if not name.startswith(beginnings)})

    def put(self, bodies: Mapping[str, bytes]) -> InMemory:
        return InMemory({**self.files, **bodies})

    def changed(self, name: str, change: Callable[[Any], None]) -> InMemory:
        """With a JSON document that ``change`` has worked on."""
        document = json.loads(self.files[name])
        change(document)
        return self.put({name: json.dumps(document).encode()})


def benchmark(step: str, purchase: str = SPOT) -> Benchmark:
    servers, drivers = STEPS[step]
    return Benchmark(
        name="reads",
        description="Reads of a kibibyte",
        expires_after=7200,
        fleets=(
            Fleet("servers", servers, "i4i.large", 3, 300, 8, purchase=purchase),
            Fleet("drivers", drivers, "c7g.large", 1, 300, 8),
        ),
        phases=(
            Phase("prepare", ("servers", "drivers"), "prepare.sh", 600),
            Phase("measure", ("servers", "drivers"), "read.py", 600, True, WARM_UP, MEASURED),
        ),
        parameters={"threads": 50},
        artifacts=(Artifact("tool.tar", "ab" * 32, "https://example.org/tool-1.2.tar"),),
        files=("read.py",),
        attempts=3,
    )


def plan() -> Plan:
    cells: list[PlannedCell] = []
    for step in STEPS:
        for repetition in (1, 2):
            cell = names.cell_id(len(cells) + 1)
            cells.append(PlannedCell(cell, Variant(step, {}, repetition), benchmark(step)))
    return Plan(tuple(cells), 2)


def members(cell: str, step: str) -> Roster:
    servers, drivers = STEPS[step]
    number = int(names.attempt_of(cell)[0][1:]) * 100 + names.attempt_of(cell)[1] * 20
    nodes = [Member(f"i-{number + n:05x}", "drivers", n, "a", "10.0.0.1", "c7g.large") for n in range(drivers)]
    nodes += [
        Member(f"i-{number + n:05x}f", "servers", n, "abc"[n % 3], "10.0.1.1", "i4i.large", SPOT)
        for n in range(servers)
    ]
    return Roster(tuple(nodes), 0.02)


def coarse(micros: int) -> int:
    """The bucket of times over time: sixteen a doubling, and below 32 one each."""
    shift = max(micros.bit_length() - 5, 0)
    return (shift << 4) + (micros >> shift)


@cache
def latencies(seed: int, count: int) -> tuple[int, ...]:
    dice = random.Random(seed)
    return tuple(round(dice.lognormvariate(7.3, 0.6)) for _ in range(count))


def reads(rank: int, start: int, rate: int, seed: int, errors: int = 0) -> tuple[Operation, list[dict[int, int]]]:
    """What a driver has read at so many a second, and the same over time; slower while it warms up."""
    times, windows = Histogram(), []
    pool = latencies(seed, 997)
    at = rank
    for second in range(-WARM_UP, MEASURED):
        window: dict[int, int] = {}
        for _ in range(rate):
            micros = pool[at % len(pool)] * (3 if second < 0 else 1)
            at += 1
            if second >= 0:
                times.record(micros)
            window[coarse(micros)] = window.get(coarse(micros), 0) + 1
        windows.append(window)
    failed = [1 if 0 <= n - WARM_UP < errors else 0 for n in range(WARM_UP + MEASURED)]
    counts = PerSecond(start - WARM_UP, [rate] * (WARM_UP + MEASURED), failed)
    return Operation(times, {"timeout": errors} if errors else {}, counts, 1024 * times.count), windows


def samples(start: int, cpu: int) -> Samples:
    length = WARM_UP + MEASURED + 5
    values: dict[str, list[int | None]] = {
        name: [cpu if name == "cpu_user" else 10 if name in LEVELS else 1000] * length for name in SERIES
    }
    zeros: list[int | None] = [0] * length
    quiet = dict.fromkeys((*NETWORK_EXCEEDED, *EBS_EXCEEDED, "tcp_retransmits"), zeros)
    disk = {"operations": 4000, "reads": 3000, "writes": 1000, "read_bytes": 12_288_000, "write_bytes": 16_384_000}
    disk |= {"wait_micros": 8_000_000, "read_wait_micros": 3_000_000, "write_wait_micros": 5_000_000}
    disk |= {"queue_millis": 8000, "busy_millis": 1500}
    ssd: dict[str, list[int | None]] = {name: [value] * (length // 2) for name, value in disk.items()}
    devices = DeviceSamples(start - WARM_UP - 4, 2, {"nvme1n1": ssd}, {"nvme1n1": Device("instance-store", "", 468)})
    return Samples(start - WARM_UP - 3, 1, {**values, **quiet, "memory_used": [2**30] * length}, devices)


def results(cell: str, step: str, noise: float, errors: int = 0, start: int = START) -> dict[str, Any]:
    """A cell's results as they are kept."""
    servers, drivers = STEPS[step]
    rate = round(A_SERVER[step] * servers / drivers * noise)
    merger, over_time = Merger(), [dict[int, int]() for _ in range(WARM_UP + MEASURED)]
    cast = members(cell, step)
    for member in cast.members:
        operations = {}
        if member.role == "drivers":
            operations["read"], windows = reads(member.rank, start, rate, 1 + member.rank, errors)
            for mine, more in zip(over_time, windows, strict=True):
                for bucket, count in more.items():
                    mine[bucket] = mine.get(bucket, 0) + count
        summary = Summary(
            node=member.id,
            role=member.role,
            rank=member.rank,
            phase="measure",
            outcome="ok",
            started_at=start - WARM_UP - 0.5,
            ended_at=start + MEASURED + 0.2,
            exit_code=0,
            clock=Clock(0.001, 0.02),
            measured_from=float(start),
            measured_seconds=float(MEASURED),
            operations=operations,
            samples=samples(start, 700 if member.role == "servers" else 400),
        )
        merger.add(summary)
    merged = merger.document()
    counts = [[[bucket, window[bucket]] for bucket in sorted(window)] for window in over_time]
    read = merged["roles"]["drivers"]["operations"]["read"]
    read["over_time"] = {"from": start - WARM_UP, "step_seconds": STEP, "counts": counts}
    merged |= {"measured_from": float(start), "warm_up_seconds": float(WARM_UP), "separate": []}
    bought = {member.id: member.purchase for member in cast.members}
    for role in merged["roles"].values():
        for node, line in role["nodes"].items():
            line["purchase"] = bought[node]
    return {"format": "troop.results/1", "phases": [merged]}


def cost(amount: str) -> Cost:
    item = Item("servers, i4i.large, spot", Decimal(amount) / Decimal("0.07"), "node-hour", Decimal("0.07"))
    return replace(cost_of([item], "USD"), amount=Decimal(amount))


GOOD = {"c001": ("n3", 1.0), "c002": ("n3", 1.04), "c003": ("n6", 1.0), "c005-2": ("n12", 1.0), "c006": ("n12", 0.97)}
"""Cells that have SUCCEEDED: their scale step, and by how much they did more or less than others."""

FAILED, INTERRUPTED = "c004", "c005"


def recorded() -> list[Cell]:
    cells = []
    for one in plan().cells:
        n = int(one.cell[1:])
        phases = {
            phase: AT + timedelta(minutes=10 * n, seconds=seconds)
            for phase, seconds in (("launch", 0), ("boot", 20), ("prepare", 60), ("measure", 90), ("over", 200))
        }
        cell = Cell(RUN, one.cell, CellStatus.SUCCEEDED, "over", phases, variant=one.variant, cost=cost("0.02"))
        if one.cell == FAILED:
            cell = replace(
                cell, status=CellStatus.FAILED, reason="read.py failed: did you mean read?\nlast lines of i-1:"
            )
        if one.cell == INTERRUPTED:
            cells.append(replace(cell, cell=f"{INTERRUPTED}-2", attempt=2))
            cell = replace(cell, status=CellStatus.INVALID, reason="spot took i-0021cf back during the phase measure")
        cells.append(cell)
    return cells


def run() -> Run:
    return Run(
        run=RUN,
        name="reads",
        at=AT,
        expires_at=AT + timedelta(hours=2),
        requested_by="arn:aws:iam::111122223333:user/ada",
        cells=6,
        nodes=20,
        status=RunStatus.PARTIAL,
        ended_at=AT + timedelta(hours=1),
        reason="5 of 6 cells succeeded; c004 FAILED: read.py failed on 1 node",
        estimate=Expected(Decimal("0.2"), Decimal("1.5"), "USD", Decimal(2)),
        cost=cost("0.14"),
    )


@cache
def archive() -> InMemory:
    """All that is kept of the run. It is shared: ``put``, ``without`` and ``changed`` make others of it."""
    planned = plan()
    expected = estimate(planned, planned.cells[0].benchmark.money, PRICES)
    terms = terms_of(expected, PRICES, {one.cell: one.benchmark.attempts for one in planned.cells})
    cells = recorded()
    nodes = []
    documents: dict[str, Any] = {
        "definition.json": to_document(benchmark("n3")),
        "plan.json": to_plan_document(planned),
        "estimate.json": estimate_document(expected),
        "instance-types.json": type_facts.to_document(TYPES),
        "images/arm64.json": {"id": "ami-0abc", "root_device": "/dev/xvda"},
    }
    steps = {one.cell: one.variant.scale or "" for one in planned.cells}
    for cell in cells:
        step = steps[names.attempt_of(cell.cell)[0]]
        cast = members(cell.cell, step)
        documents[f"{cell.cell}/definition.json"] = to_document(benchmark(step))
        documents[f"{cell.cell}/roster.json"] = roster.to_document(cast)
        if cell.cell in GOOD:
            start = START + 600 * int(cell.cell[1:4])
            errors = 3 if cell.cell == "c003" else 0
            documents[f"{cell.cell}/results.json"] = results(cell.cell, *GOOD[cell.cell], errors, start)
        for member in cast.members:
            node = {"format": "troop.node/1", **asdict(member), "kernel": "6.1.150-1.amzn2023", "agent": "c0ffee" * 10}
            documents[f"{cell.cell}/nodes/{member.id}.json"] = node
            nodes.append(
                Resource(
                    RUN,
                    cell.cell,
                    Kind.INSTANCE,
                    member.id,
                    AT,
                    AT,
                    AT + timedelta(hours=1),
                    role=member.role,
                    instance_type=member.instance_type,
                    zone=member.zone,
                    purchase=member.purchase,
                )
            )
    taken = {"format": "troop.interruption/1", "id": "i-0021cf", "role": "servers", "action": "terminate"}
    documents[f"{INTERRUPTED}/interruptions/i-0021cf.json"] = {**taken, "time": "2026-11-20T15:52:00Z"}
    documents["record.json"] = stored_record.document(run(), cells, nodes, terms, "0.2")
    files = {name: json.dumps(document, default=float).encode() for name, document in documents.items()}
    return InMemory({**files, FILES: b"print()\n"})


def close(mine: float | None, other: float, part: float = 1e-6) -> bool:
    return mine is not None and math.isclose(mine, other, rel_tol=part)
