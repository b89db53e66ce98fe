"""Reads the stored data of a run as a whole: its definition, plan, estimate and record.

Only the definition is required. Other missing or damaged parts become findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from troop.bench.admission import estimate
from troop.bench.definition import names
from troop.bench.definition.definition import Benchmark, DefinitionError, from_document
from troop.bench.definition.plan import Variant, from_plan_document, on_demand
from troop.bench.fleets import type_facts
from troop.bench.fleets.type_facts import TypeFacts
from troop.bench.measuring.attempts import latest
from troop.bench.records import archive as files
from troop.bench.records.archive import Archive, DamagedError, ReportError
from troop.bench.records.record import Cell
from troop.report import stored_record
from troop.report.document import Finding
from troop.report.stored_record import RecordError, StoredRecord

MOST_ATTEMPTS = 5


@dataclass(frozen=True)
class PlannedCell:
    """A cell as it was planned.

    Attributes:
        cell: id of its first attempt.
        benchmark: None if neither the plan nor the cell's definition contains it.
    """

    cell: str
    variant: Variant = field(default_factory=Variant)
    benchmark: Benchmark | None = None


@dataclass(frozen=True)
class Sources:
    """The data of the whole run.

    Attributes:
        definition: as stored; the only required part.
        estimate: as stored; None if it is missing or unreadable, or if the record contains it.
        record: None for a run of an earlier version.
        types: facts of the instance types; empty for a run of an earlier version.
    """

    definition: dict[str, Any]
    planned: tuple[PlannedCell, ...]
    estimate: dict[str, Any] | None
    record: StoredRecord | None
    findings: tuple[Finding, ...]
    types: Mapping[str, TypeFacts] = field(default_factory=dict)


def read(archive: Archive) -> Sources:
    """Reads the data of the run as a whole.

    Raises:
        ReportError: the definition is missing or cannot be read.
    """
    findings: list[Finding] = []
    try:
        definition = files.document(archive, files.DEFINITION)
    except DamagedError as error:
        raise ReportError(f"{error}: a report needs this file; download it again from the results bucket") from None
    if definition is None:
        raise ReportError(
            f"{files.DEFINITION} is missing: a report needs the run's files, runs/RUN/ in the results bucket "
            "with all subfolders"
        )
    record = _record(archive, findings)
    planned = _planned_cells(archive, definition, record, findings)
    types = _types(archive, findings)
    return Sources(definition, planned, _estimate(archive, record, findings), record, tuple(findings), types)


def attempts(archive: Archive, sources: Sources, planned: PlannedCell) -> list[Cell | str]:
    """Returns all attempts at a cell, the one that counts last.

    They come from the record. Without one, they are the ids of the attempts that have files.
    """
    if sources.record is not None:
        its = [one for one in sources.record.cells if names.attempt_of(one.cell)[0] == planned.cell]
        return [*sorted(its, key=lambda one: names.attempt_of(one.cell)[1])] or [planned.cell]
    attempts: list[Cell | str] = [planned.cell]
    for number in range(2, MOST_ATTEMPTS + 1):
        attempt = names.attempt_id(planned.cell, number)
        if archive.read(f"{attempt}/{files.CELL_DEFINITION}") is None:
            break
        attempts.append(attempt)
    return attempts


def attempt_benchmark(planned: PlannedCell, cell: str) -> Benchmark | None:
    """Returns the benchmark of an attempt: the last of several attempts runs on demand."""
    if planned.benchmark is None:
        return None
    return (
        on_demand(planned.benchmark)
        if 1 < planned.benchmark.attempts == names.attempt_of(cell)[1]
        else planned.benchmark
    )


def _record(archive: Archive, findings: list[Finding]) -> StoredRecord | None:
    try:
        document = files.document(archive, files.RECORD)
        if document is not None:
            return stored_record.from_document(document)
    except (DamagedError, RecordError) as error:
        findings.append(Finding(severity="error", text=f"{_sentence(error)} {_WITHOUT_RECORD}"))
        return None
    text = f"{files.RECORD} is missing, as in runs of earlier versions of Troop. {_WITHOUT_RECORD}"
    findings.append(Finding(severity="warning", text=text))
    return None


_WITHOUT_RECORD = "Statuses are derived from the cells' results; reasons, costs and the teardown are unknown."


def _estimate(archive: Archive, record: StoredRecord | None, findings: list[Finding]) -> dict[str, Any] | None:
    if record is not None and record.run.estimate is not None:  # the record contains the same
        return None
    try:
        document = files.document(archive, files.ESTIMATE)
        if document is not None and document.get("format") != estimate.FORMAT:
            raise DamagedError(f"{files.ESTIMATE} has the format {document.get('format')!r}: must be {estimate.FORMAT}")
    except DamagedError as error:
        findings.append(Finding(severity="warning", text=f"{_sentence(error)} The expected cost is unknown."))
        return None
    if document is None:
        text = f"{files.ESTIMATE} is missing: the expected cost is unknown."
        findings.append(Finding(severity="warning", text=text))
    return document


def _types(archive: Archive, findings: list[Finding]) -> dict[str, TypeFacts]:
    try:
        document = files.document(archive, files.INSTANCE_TYPES)
        return {} if document is None else type_facts.from_document(document)
    except (DamagedError, ValueError) as error:
        text = f"{files.INSTANCE_TYPES} cannot be read ({error}): capacities and baselines of instances are unknown."
        findings.append(Finding(severity="warning", text=text))
        return {}


def _planned_cells(
    archive: Archive, definition: dict[str, Any], record: StoredRecord | None, findings: list[Finding]
) -> tuple[PlannedCell, ...]:
    planned: dict[str, PlannedCell] = {}
    try:
        if (document := files.document(archive, files.PLAN)) is not None:
            plan = from_plan_document(document)
            planned = {one.cell: PlannedCell(one.cell, one.variant, one.benchmark) for one in plan.cells}
    except (DamagedError, DefinitionError, ValueError) as error:
        text = f"{_sentence(error)} This report contains only cells that are in the record or have files."
        findings.append(Finding(severity="error", text=text))
    known = {names.attempt_of(cell.cell)[0]: cell.variant for cell in latest(record.cells)} if record else {}
    for cell in [*known] or ([] if planned else [*_cell_names(archive)]):
        if cell not in planned:
            planned[cell] = PlannedCell(cell, known.get(cell, Variant()), _own(archive, cell, definition))
    return tuple(planned[cell] for cell in sorted(planned))  # the plan has them in the order of their start


def _cell_names(archive: Archive) -> Iterator[str]:
    """Yields the cells that have files, and always the first one."""
    number = 1
    while number == 1 or archive.read(f"{names.cell_id(number)}/{files.CELL_DEFINITION}") is not None:
        yield names.cell_id(number)
        number += 1


def _own(archive: Archive, cell: str, definition: dict[str, Any]) -> Benchmark | None:
    """Returns the benchmark of a cell's own definition, or else that of the run."""
    with suppress(DamagedError, DefinitionError, ValueError):
        if (document := files.document(archive, f"{cell}/{files.CELL_DEFINITION}")) is not None:
            return from_document(document)
    with suppress(DefinitionError, ValueError):
        return from_document(definition)
    return None


def _sentence(error: Exception) -> str:
    text = str(error).rstrip(".")
    first = text.partition(" ")[0]
    return f"{text}." if "." in first else f"{text[:1].upper()}{text[1:]}."  # file names keep their case
