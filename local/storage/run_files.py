"""Writes the files of a run, as a deployment stores them, so that the product's own code makes the report.

The nodes are kernels of this machine. For their cost they count as instances of the file's type with its volumes, at
the prices of local AWS.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from cli.bench import report_source
from cli.bench.files import Source
from cli.commands.bench_report import page
from troop.bench.admission import spending
from troop.bench.admission.estimate import Estimate, estimate
from troop.bench.admission.estimate import to_document as estimate_document
from troop.bench.admission.spending import Terms, terms_of
from troop.bench.definition import names, roster
from troop.bench.definition.definition import Step, to_document
from troop.bench.definition.plan import PlannedCell, to_plan_document
from troop.bench.definition.roster import Member, Roster
from troop.bench.money.prices import Prices, VolumePrice
from troop.bench.records.record import Cell, CellStatus, Disk, Expected, Kind, Resource, Run, RunStatus
from troop.measure.merge import Merger
from troop.measure.summary import Summary
from troop.report import stored_record
from troop.report.cells import RESULTS_FORMAT
from troop.report.document import Report
from troop.shared import codec
from troop.shared.version import VERSION

from ..account import price_table
from ..account.config import REGION
from .kernel import Performance

ZONE = f"{REGION}a"
ROOT_DISK = "gp3"
GIB_IN_MIB = 1024


def write(folder: Path, source: Source, performances: Mapping[str, Performance]) -> None:
    """Writes the files of a run of one benchmark to a new folder.

    Args:
        performances: by layout, which is the scale step of a cell.
    """
    first = min(one.booted_at for one in performances.values())
    last = max(one.halted_at for one in performances.values())
    run = names.run_id(first, source.benchmark.name)
    prices = _prices(source)
    expected = estimate(source.plan, source.benchmark.money, prices)
    terms = terms_of(expected, prices, {one.cell: one.benchmark.attempts for one in source.plan.cells})
    files: dict[str, Any] = {
        "definition.json": to_document(source.benchmark),
        "plan.json": to_plan_document(source.plan),
        "estimate.json": estimate_document(expected),
    }
    cells: list[Cell] = []
    resources: list[Resource] = []
    for planned in source.plan.cells:
        performance = performances[str(planned.variant.scale)]
        its = list(_resources(run, planned, performance))
        cells.append(_cell(run, planned, performance, its, terms))
        resources += its
        for name, document in _cell_files(planned, performance, source.benchmark.name):
            files[f"{planned.cell}/{name}"] = document
    recorded = Run(
        run=run,
        name=source.benchmark.name,
        at=first,
        expires_at=last,
        requested_by="make storage",
        cells=len(cells),
        nodes=1,
        status=RunStatus.SUCCEEDED,
        ended_at=last,
        estimate=_expected(expected),
        cost=spending.actual(terms, cells, resources, last),
    )
    files["record.json"] = stored_record.document(recorded, cells, resources, terms, VERSION)
    for name, document in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, default=_plain), encoding="utf-8")


def write_report(folder: Path) -> Report:
    """Writes the report of a run's files beside them, as ``troop bench report`` does: ``report.html`` and
    ``report.json``.
    """
    report = report_source.folder_report(folder)
    (folder / names.REPORT_JSON).write_text(report.model_dump_json(), encoding="utf-8")
    (folder / names.REPORT_HTML).write_bytes(page(report))
    return report


def _plain(value: Any) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"{value!r} is not a value of JSON")


def _prices(source: Source) -> Prices:
    """Returns local AWS's prices of everything in a file."""
    types = {fleet.instance_type for fleet in source.benchmark.fleets}
    vcpus = {name: int(INSTANCE_TYPES[name]["VCpuInfo"]["DefaultVCpus"]) for name in types}
    listed = {usage: Decimal(amount) for usage, (amount, _) in price_table.VOLUMES.items()}
    gp3 = VolumePrice(
        listed["EBS:VolumeUsage.gp3"],
        (listed["EBS:VolumeP-IOPS.gp3"],),
        listed["EBS:VolumeP-Throughput.gp3"] / GIB_IN_MIB,
    )
    return Prices(
        on_demand={name: price_table.on_demand(name, count) for name, count in vcpus.items()},
        spot={name: {ZONE: price_table.spot(name, count, ZONE)} for name, count in vcpus.items()},
        volumes={ROOT_DISK: gp3},
    )


def _expected(its: Estimate) -> Expected:
    return Expected(its.expected, its.most, its.currency)


def _resources(run: str, planned: PlannedCell, performance: Performance) -> Iterator[Resource]:
    """Yields the instance and its volumes, for as long as the kernel ran."""
    fleet, began = planned.benchmark.fleets[0], performance.booted_at
    common: dict[str, Any] = {
        "planned_at": began,
        "created_at": began,
        "gone_at": performance.halted_at,
        "role": fleet.role,
    }
    yield Resource(
        run,
        planned.cell,
        Kind.INSTANCE,
        _node(planned),
        instance_type=fleet.instance_type,
        zone=ZONE,
        purchase=fleet.purchase,
        started_at=began,
        **common,
    )
    disks = [Disk(ROOT_DISK, fleet.root_volume_gib)]
    disks += [Disk(one.type, one.size_gib, one.iops, one.throughput_mib) for one in fleet.volumes]
    for number, disk in enumerate(disks):
        yield Resource(run, planned.cell, Kind.VOLUME, f"{_node(planned)}-{number}", disk=disk, **common)


def _node(planned: PlannedCell) -> str:
    return str(planned.variant.scale)


def _cell(run: str, planned: PlannedCell, performance: Performance, resources: list[Resource], terms: Terms) -> Cell:
    """Returns the record of a cell. Without the phase of booting, no calls of Troop's own have a cost."""
    its = performance.summaries[planned.benchmark.name]
    began = {step: datetime.fromtimestamp(summary.started_at, UTC) for step, summary in its.items()}
    phases = {names.LAUNCH: performance.booted_at, **began, names.OVER: performance.halted_at}
    cell = Cell(run, planned.cell, CellStatus.SUCCEEDED, names.OVER, phases, variant=planned.variant)
    return replace(cell, cost=spending.actual(terms, [cell], resources, performance.halted_at))


def _cell_files(planned: PlannedCell, performance: Performance, benchmark: str) -> Iterator[tuple[str, dict[str, Any]]]:
    cell, fleet = planned.benchmark, planned.benchmark.fleets[0]
    member = Member(_node(planned), fleet.role, 0, ZONE, "127.0.0.1", fleet.instance_type, fleet.purchase)
    summaries = performance.summaries[benchmark]
    phases = [_merged(step, summaries[step.name], member) for step in cell.steps if step.phase.is_measured]
    yield "definition.json", to_document(cell)
    yield "roster.json", roster.to_document(Roster((member,), 0.0))
    yield "results.json", {"format": RESULTS_FORMAT, "phases": phases}
    node = {"format": roster.NODE_FORMAT, **asdict(member), "kernel": performance.kernel}
    yield f"nodes/{member.id}.json", node


def _merged(step: Step, summary: Summary, member: Member) -> dict[str, Any]:
    """Returns the results of a measured phase, as the workflow stores them."""
    merger = Merger()
    merger.add(summary)
    merged = merger.document()
    merged["roles"][member.role]["nodes"][member.id]["purchase"] = member.purchase
    point = {} if step.point is None else codec.to_document(step.point)
    return merged | {"phase": step.phase_name} | {key: point[key] for key in ("repeat", "parameters") if key in point}
