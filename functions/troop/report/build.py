"""A report of a run, made of what is kept of it and of nothing else: the same today and in a year, by a newer version.

One cell's results are held at a time, which is what most of the memory goes to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from troop.bench.record import CellStatus, RunStatus
from troop.bench.verdicts import name_some
from troop.report import cells as reading
from troop.report import trust
from troop.report.archive import Archive
from troop.report.document import Cell, Finding, Report, Run
from troop.report.money import money
from troop.report.scaling import scaling
from troop.report.sources import Sources, attempts, read
from troop.report.versions import versions

MOST_FINDINGS = 500
"""What is beyond is counted: nobody reads it."""


def build(archive: Archive, now: datetime, version: str, run: str = "") -> Report:
    """The report of what is kept. What is damaged or missing, but for the definition, is a finding.

    Args:
        now: when it is made.
        version: Troop's, of whoever makes it.
        run: the run's id, where there is no record to tell it.

    Raises:
        ReportError: there is no definition of a run, or it cannot be read.
    """
    sources = read(archive)
    prices = sources.record.terms.prices if sources.record and sources.record.terms else None
    cells: list[Cell] = []
    findings = [*sources.findings, *_of_run(sources)]
    for planned in sources.planned:
        cell, cell_findings = reading.cell(archive, planned, attempts(archive, sources, planned), prices)
        cells.append(cell)
        findings += cell_findings
    growth = scaling(cells, _roles(sources.definition))
    return Report(
        created_at=now,
        created_by=version,
        run=_run(sources, cells, run),
        money=money(sources),
        definition=sources.definition,
        versions=versions(archive, sources, cells),
        cells=cells,
        scaling=growth,
        findings=_ordered([*findings, *trust.of_growth(growth, cells)]),
    )


def _of_run(sources: Sources) -> Iterator[Finding]:
    record = sources.record
    if record is None:
        return
    if record.run.status != RunStatus.SUCCEEDED:
        reason = " ".join((record.run.reason or "no reason was recorded").split("\n")[0].split()).rstrip(".")
        yield Finding(severity="error", text=f"The run is {record.run.status.value}: {reason}.")
    if record.left:
        kinds = Counter(one.kind for one in record.left)
        what = ", ".join(f"{count} of {kind}" for kind, count in sorted(kinds.items()))
        text = (
            f"Not all that the run has created was seen to be gone when its record was kept ({what}): "
            f"{name_some(one.name for one in record.left)}. Look for it by the tag troop:run, and remove it by hand if "
            "it is still there."
        )
        yield Finding(severity="error", text=text)
    if record.terms is None:
        yield Finding(severity="warning", text="The run has no prices on record: what it has cost is not known.")
    elif record.run.cost is None:
        yield Finding(severity="warning", text="What the run has cost was not known when its record was kept.")


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


def _roles(definition: dict[str, Any]) -> list[str]:
    fleets = definition.get("fleets")
    return [*fleets] if isinstance(fleets, dict) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _ordered(findings: Sequence[Finding]) -> list[Finding]:
    """Errors first; else as they were found: of the run, then cell by cell, then of how it grows."""
    ordered = sorted(findings, key=lambda finding: finding.severity != "error")
    if len(ordered) <= MOST_FINDINGS:
        return ordered
    more = f"There are {len(ordered) - MOST_FINDINGS:,} more findings, of which none is told here."
    return [*ordered[:MOST_FINDINGS], Finding(severity="warning", text=more)]
