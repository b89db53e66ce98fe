"""Builds a report of a run from its stored data only, so that the result is the same at any time.

Only one cell's results are in memory at a time, because they need most of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from troop.bench.definition.names import DATA_LIFETIME, data_prefix
from troop.bench.measuring.verdicts import name_some
from troop.bench.records.archive import Archive
from troop.bench.records.record import CellStatus, RunStatus
from troop.report import baseline, trust
from troop.report import cells as reading
from troop.report.capacity import instance_types
from troop.report.document import Cell, Finding, Report, Run
from troop.report.run_cost import run_cost
from troop.report.scaling import scaling
from troop.report.sources import Sources, attempts, read
from troop.report.stored_record import StoredRecord
from troop.report.versions import versions
from troop.shared.garbage import without_collections

MOST_FINDINGS = 500
"""The most findings to list; the others are counted."""


_WITHOUT_SCRIPTS = {"launch", "boot", "collect", "teardown", "over"}


def build(archive: Archive, now: datetime, version: str, run: str = "") -> Report:
    """Builds the report. Missing or damaged data becomes a finding, except for the definition.

    Args:
        now: creation time.
        version: Troop's version.
        run: the run's id, used if there is no record.

    Raises:
        ReportError: the run's definition is missing or cannot be read.
    """
    with without_collections():
        return _build(archive, now, version, run)


def _build(archive: Archive, now: datetime, version: str, run: str) -> Report:
    sources = read(archive)
    terms = sources.record.terms if sources.record else None
    cells: list[Cell] = []
    findings = [*sources.findings, *_run_findings(sources)]
    for planned in sources.planned:
        cell, cell_findings = reading.cell(archive, planned, attempts(archive, sources, planned), terms, sources.types)
        cells.append(cell)
        findings += cell_findings
    against = _baseline(sources.definition)
    candidate = baseline.candidate(cells, against)
    growth = scaling(candidate, _roles(sources.definition))
    return Report(
        created_at=now,
        created_by=version,
        cpu_is_busy=True,
        run=_run(sources, cells, run),
        money=run_cost(sources),
        definition=sources.definition,
        versions=versions(archive, sources, cells),
        instance_types=instance_types(sources.types, _types(cells)),
        cells=cells,
        scaling=growth,
        baseline=against,
        ratios=baseline.ratios(cells, against),
        findings=_ordered([*findings, *trust.growth_findings(growth, candidate), *trust.timing_findings(cells)]),
    )


def _run_findings(sources: Sources) -> Iterator[Finding]:
    record = sources.record
    if record is None:
        return
    if record.run.status != RunStatus.SUCCEEDED:
        reason = trust.first_sentence(record.run.reason or "no reason was recorded")
        yield Finding(severity="error", text=f"The run is {record.run.status.value}: {reason}")
    if record.left:
        kinds = Counter(one.kind for one in record.left)
        kinds_text = ", ".join(f"{count} of {kind}" for kind, count in sorted(kinds.items()))
        text = (
            f"Resources of the run still existed when its record was written ({kinds_text}): "
            f"{name_some(one.name for one in record.left)}. Find them by the tag troop:run, and delete those that "
            "still exist."
        )
        yield Finding(severity="error", text=text)
    if sources.definition.get("own_data") is True:
        yield from _data(record)
    if record.terms is None:
        yield Finding(severity="warning", text="The record has no prices: the run's cost is unknown.")
    elif record.run.cost is None:
        yield Finding(severity="warning", text="The run's cost was unknown when its record was written.")


def _data(record: StoredRecord) -> Iterator[Finding]:
    """Yields where objects that scripts have created may still exist: of cells and attempts that did not succeed, whose
    nodes began, and whose teardown did not find them gone.
    """
    left = [
        one.cell
        for one in record.cells
        if one.status is not CellStatus.SUCCEEDED and one.phases.keys() - _WITHOUT_SCRIPTS and one.data_gone_at is None
    ]
    if left:
        prefixes = name_some(data_prefix(record.run.run, cell) for cell in left)
        text = (
            f"Objects that scripts created may still exist in the results bucket below {prefixes}, because the cell "
            "ended before they were deleted, and its teardown could not delete them. The bucket deletes them "
            f"{DATA_LIFETIME.days} days after their creation."
        )
        yield Finding(severity="warning", text=text)


def _run(sources: Sources, cells: Sequence[Cell], run: str) -> Run:
    definition, record = sources.definition, sources.record
    fields: dict[str, Any] = {
        "description": _text(definition.get("description")),
        "size": _text(definition.get("size")) or None,
    }
    if record is None:
        good = sum(cell.status == CellStatus.SUCCEEDED for cell in cells)
        status = RunStatus.SUCCEEDED if good == len(cells) else RunStatus.PARTIAL if good else reading.UNKNOWN
        return Run(run=run, name=_text(definition.get("name")), status=status, **fields)
    its = record.run
    return Run(
        run=its.run,
        name=its.name,
        status=its.status.value,
        reason=its.reason,
        requested_by=its.requested_by,
        at=its.at,
        ended_at=its.ended_at,
        **fields,
    )


def _types(cells: Sequence[Cell]) -> list[str]:
    return [name for cell in cells for fleet in cell.fleets for name in fleet.instance_type.split(", ")]


def _roles(definition: dict[str, Any]) -> list[str]:
    fleets = definition.get("fleets")
    return [*fleets] if isinstance(fleets, dict) else []


def _baseline(definition: dict[str, Any]) -> dict[str, Any]:
    baseline = definition.get("baseline")
    return baseline if isinstance(baseline, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _ordered(findings: Sequence[Finding]) -> list[Finding]:
    """Returns errors first, and otherwise keeps the order: the run, its cells, and its growth."""
    ordered = sorted(findings, key=lambda finding: finding.severity != "error")
    if len(ordered) <= MOST_FINDINGS:
        return ordered
    more = f"{len(ordered) - MOST_FINDINGS:,} more findings are not listed."
    return [*ordered[:MOST_FINDINGS], Finding(severity="warning", text=more)]
