"""Measures how long the report of a large run takes to build, how much memory it needs, and its size.

    python -m perf.report [--seconds 300] [--cells 200] [--without-parts]

The files are synthetic, but the product's code merges their measured phases. Each cell has servers and a quarter as
many drivers, samples of every second, and reads with log-normal times. Each report is built in its own process.
"build" covers everything from bytes to bytes: reading all cells, building the report, and writing it as JSON. Each
cell has its part of the report, as the product stores it beside the results; runs of earlier versions have none.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from perf import peak_mb
from perf.merge import START, times
from troop.bench.admission.spending import Terms
from troop.bench.definition import names, roster
from troop.bench.definition.definition import Benchmark, Fleet, Phase, to_document
from troop.bench.definition.plan import Plan, PlannedCell, Variant, to_plan_document
from troop.bench.definition.roster import Member, Roster
from troop.bench.flows.cell_steps import Results
from troop.bench.money.prices import Prices, VolumePrice
from troop.bench.records.record import Cell, CellStatus, Run, RunStatus
from troop.measure.merge import Merger
from troop.measure.operations import Operation, PerSecond
from troop.measure.summary import LEVELS, SERIES, Clock, Samples, Summary
from troop.report import stored_record
from troop.report.build import build

RUNS = ((1, 20), (200, 20), (6, 348))
"""Numbers of cells, and of nodes in each cell."""

AT = datetime.fromtimestamp(START, UTC)
A_DRIVER = 2000
"""Requests per second of a driver."""
WARM_UP = 30
PRICES = Prices(
    on_demand={"i4i.large": Decimal("0.2"), "c7g.large": Decimal("0.08")}, volumes={"gp3": VolumePrice(Decimal("0.09"))}
)


@dataclass
class SyntheticRun:
    """A run whose cells all have the same files."""

    files: dict[str, bytes]
    cell: dict[str, bytes]

    def read(self, name: str) -> bytes | None:
        folder, _, below = name.partition("/")
        return self.files.get(name) or (self.cell.get(below) if names.CELL.fullmatch(folder) else None)

    def names(self, below: str) -> Sequence[str]:
        return [name for name in self.files if name.startswith(below)]


def benchmark(nodes: int, seconds: int) -> Benchmark:
    drivers = nodes // 5
    fleets = (
        Fleet("servers", nodes - drivers, "i4i.large", 3, 300, 8),
        Fleet("drivers", drivers, "c7g.large", 1, 300, 8),
    )
    phase = Phase("measure", ("servers", "drivers"), "read.py", seconds + 600, True, WARM_UP, seconds)
    return Benchmark("reads", "", 7200, fleets, (phase,), {})


def results(cast: Roster, seconds: int) -> dict[str, bytes]:
    merger, dice, length = Merger(), Random(1), WARM_UP + seconds
    counts = PerSecond(START - WARM_UP, [A_DRIVER] * length, [int(n % 7 == 0) for n in range(length)])
    for member in cast.members:
        histogram = times(A_DRIVER * seconds, dice) if member.role == "drivers" else None
        series: dict[str, list[int | None]] = {
            name: [dice.randrange(240 if name in LEVELS else 10**8) for _ in range(length)] for name in SERIES
        }
        merger.add(
            Summary(
                node=member.id,
                role=member.role,
                rank=member.rank,
                phase="measure",
                outcome="ok",
                started_at=START - WARM_UP - 1.0,
                ended_at=START + seconds + 0.5,
                clock=Clock(0.001, 0.02),
                measured_from=float(START),
                measured_seconds=float(seconds),
                operations={"read": Operation(histogram, {"timeout": 3}, replace(counts), 10**9)} if histogram else {},
                samples=Samples(START - WARM_UP, 1, series),
            )
        )
    phase = merger.document()
    step = [[bucket, 1 + A_DRIVER // (bucket - 99)] for bucket in range(100, 260)]
    windows = {"from": START - WARM_UP, "step_seconds": 2, "counts": [step] * (length // 2)}
    phase["roles"]["drivers"]["operations"]["read"]["over_time"] = windows
    phase |= {"measured_from": float(START), "warm_up_seconds": float(WARM_UP)}
    stored = Results()
    stored.add(phase)
    body, part = stored.bodies([])
    return {"results.json": body, "report-part.json": part or b""}


def synthetic_run(cells: int, nodes: int, seconds: int, with_parts: bool = True) -> SyntheticRun:
    definition = benchmark(nodes, seconds)
    planned = [
        PlannedCell(names.cell_id(n + 1), Variant(None, {"parameters.threads": n // 2}, n % 2 + 1), definition)
        for n in range(cells)
    ]
    members = [
        Member(f"i-{role}{n:014x}", role, n, "abc"[n % 3], "10.0.0.1", kind)
        for role, kind, count in (
            ("drivers", "c7g.large", definition.fleet("drivers").count),
            ("servers", "i4i.large", definition.fleet("servers").count),
        )
        for n in range(count)
    ]
    cast = Roster(tuple(members), 0.02)
    began = {"launch": AT, "boot": AT + timedelta(seconds=20), "measure": AT + timedelta(seconds=90)}
    run = Run(names.run_id(AT, "perf"), "reads", AT, AT + timedelta(hours=2), "", cells, nodes, RunStatus.SUCCEEDED)
    recorded = [Cell(run.run, one.cell, CellStatus.SUCCEEDED, phases=began, variant=one.variant) for one in planned]
    documents: dict[str, Any] = {
        "definition.json": to_document(definition),
        "plan.json": to_plan_document(Plan(tuple(planned))),
        "record.json": stored_record.document(run, recorded, [], Terms(PRICES), "perf"),
    }
    files = {name: json.dumps(document).encode() for name, document in documents.items()}
    cell_files = {"roster.json": json.dumps(roster.to_document(cast)).encode(), **results(cast, seconds)}
    if not with_parts:
        del cell_files["report-part.json"]
    return SyntheticRun(files, cell_files)


def measure(cells: int, nodes: int, seconds: int, with_parts: bool) -> str:
    """Measures one run; returns a line of the table."""
    run = synthetic_run(cells, nodes, seconds, with_parts)
    before, began = peak_mb(), time.perf_counter()
    document = build(run, AT, "perf").model_dump_json().encode()
    took = time.perf_counter() - began
    packed = gzip.compress(document, 6)
    sizes = f"{len(run.cell['results.json']) / 1e6:>12.1f}{len(document) / 1e6:>9.1f}{len(packed) / 1e6:>9.1f}"
    return f"{cells:>6}{nodes:>7}{sizes}{took:>9.2f}{peak_mb() - before:>9.0f}{peak_mb():>9.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=300, help="measured seconds")
    parser.add_argument("--cells", type=int, help="one run of as many cells with 20 nodes (default: three runs)")
    parser.add_argument("--without-parts", action="store_true", help="of cells that have no parts of the report")
    options = parser.parse_args()
    print(f"{options.seconds} s measured; sizes and memory in MB")
    print(f"{'cells':>6}{'nodes':>7}{'a results':>12}{'report':>9}{'packed':>9}{'build s':>9}{'more':>9}{'memory':>9}")
    context = multiprocessing.get_context("spawn")
    for cells, nodes in [(options.cells, 20)] if options.cells else RUNS:
        with context.Pool(1) as pool:
            print(pool.apply(measure, (cells, nodes, options.seconds, not options.without_parts)), flush=True)


if __name__ == "__main__":
    main()
