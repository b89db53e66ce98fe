"""What is kept of a run as a whole, read and understood: what was to be done, and what became of it.

All of it but the definition may be missing, or damaged; what that costs the report is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from troop.bench import estimate, kept_record, names
from troop.bench.attempts import latest
from troop.bench.definition import Benchmark, DefinitionError, from_document
from troop.bench.kept_record import KeptRecord, RecordError
from troop.bench.plan import Variant, from_plan_document, on_demand
from troop.bench.record import Cell
from troop.report import kept as files
from troop.report.document import Finding
from troop.report.kept import DamagedError, Kept, ReportError

MOST_ATTEMPTS = 5


@dataclass(frozen=True)
class Wanted:
    """A cell as it was to be done.

    Attributes:
        cell: its first attempt's id.
        benchmark: None where neither the plan nor the cell's own definition tells it.
    """

    cell: str
    variant: Variant = field(default_factory=Variant)
    benchmark: Benchmark | None = None


@dataclass(frozen=True)
class Sources:
    """What is known of the whole run.

    Attributes:
        definition: as it is kept; the only part that must be there.
        estimate: as it is kept; None when there is none that can be read, or the record has it.
        record: None of a run of an earlier version.
    """

    definition: dict[str, Any]
    wanted: tuple[Wanted, ...]
    estimate: dict[str, Any] | None
    record: KeptRecord | None
    findings: tuple[Finding, ...]


def read(kept: Kept) -> Sources:
    """All that is kept of the run as a whole.

    Raises:
        ReportError: there is no definition, or it cannot be read.
    """
    findings: list[Finding] = []
    try:
        definition = files.document(kept, files.DEFINITION)
    except DamagedError as error:
        raise ReportError(f"{error}: without it there is no report; fetch it again from the results bucket") from None
    if definition is None:
        raise ReportError(
            f"there is no {files.DEFINITION}: a report is made of what is kept of a run, runs/RUN/ in the results "
            "bucket, with all that lies below it"
        )
    record = _record(kept, findings)
    wanted = _wanted(kept, definition, record, findings)
    return Sources(definition, wanted, _estimate(kept, record, findings), record, tuple(findings))


def attempts(kept: Kept, sources: Sources, wanted: Wanted) -> list[Cell | str]:
    """All attempts at a cell, the one that counts last: as they are on record; or where there is no record, the ids of
    those that have left something.
    """
    if sources.record is not None:
        its = [one for one in sources.record.cells if names.attempt_of(one.cell)[0] == wanted.cell]
        return [*sorted(its, key=lambda one: names.attempt_of(one.cell)[1])] or [wanted.cell]
    found: list[Cell | str] = [wanted.cell]
    for number in range(2, MOST_ATTEMPTS + 1):
        attempt = names.attempt_id(wanted.cell, number)
        if kept.read(f"{attempt}/{files.CELL_DEFINITION}") is None:
            break
        found.append(attempt)
    return found


def of_attempt(wanted: Wanted, cell: str) -> Benchmark | None:
    """The benchmark of an attempt: the last one of several is on demand."""
    if wanted.benchmark is None:
        return None
    return (
        on_demand(wanted.benchmark) if 1 < wanted.benchmark.attempts == names.attempt_of(cell)[1] else wanted.benchmark
    )


def _record(kept: Kept, findings: list[Finding]) -> KeptRecord | None:
    try:
        found = files.document(kept, files.RECORD)
        if found is not None:
            return kept_record.from_document(found)
    except (DamagedError, RecordError) as error:
        findings.append(Finding(severity="error", text=f"{_sentence(error)} {_WITHOUT_RECORD}"))
        return None
    text = f"There is no {files.RECORD}, as of runs of earlier versions of Troop. {_WITHOUT_RECORD}"
    findings.append(Finding(severity="warning", text=text))
    return None


_WITHOUT_RECORD = (
    "So statuses are told by which cells have results, and nothing is known of reasons, costs, and whether all is gone."
)


def _estimate(kept: Kept, record: KeptRecord | None, findings: list[Finding]) -> dict[str, Any] | None:
    if record is not None and record.run.estimate is not None:  # which says the same
        return None
    try:
        found = files.document(kept, files.ESTIMATE)
        if found is not None and found.get("format") != estimate.FORMAT:
            raise DamagedError(f"{files.ESTIMATE} has the format {found.get('format')!r}: must be {estimate.FORMAT}")
    except DamagedError as error:
        findings.append(Finding(severity="warning", text=f"{_sentence(error)} What the run was to cost is not known."))
        return None
    if found is None:
        text = f"There is no {files.ESTIMATE}: what the run was to cost is not known."
        findings.append(Finding(severity="warning", text=text))
    return found


def _wanted(
    kept: Kept, definition: dict[str, Any], record: KeptRecord | None, findings: list[Finding]
) -> tuple[Wanted, ...]:
    planned: dict[str, Wanted] = {}
    try:
        if (found := files.document(kept, files.PLAN)) is not None:
            plan = from_plan_document(found)
            planned = {one.cell: Wanted(one.cell, one.variant, one.benchmark) for one in plan.cells}
    except (DamagedError, DefinitionError, ValueError) as error:
        text = f"{_sentence(error)} Only cells that are on record, or have left something, are in this report."
        findings.append(Finding(severity="error", text=text))
    known = {names.attempt_of(cell.cell)[0]: cell.variant for cell in latest(record.cells)} if record else {}
    for cell in [*known] or ([] if planned else [*_found(kept)]):
        if cell not in planned:
            planned[cell] = Wanted(cell, known.get(cell, Variant()), _own(kept, cell, definition))
    return tuple(planned.values())


def _found(kept: Kept) -> Iterator[str]:
    """Cells that have left something; the first one in any case."""
    number = 1
    while number == 1 or kept.read(f"{names.cell_id(number)}/{files.CELL_DEFINITION}") is not None:
        yield names.cell_id(number)
        number += 1


def _own(kept: Kept, cell: str, definition: dict[str, Any]) -> Benchmark | None:
    """What a cell itself was told; or else the whole run."""
    with suppress(DamagedError, DefinitionError, ValueError):
        if (found := files.document(kept, f"{cell}/{files.CELL_DEFINITION}")) is not None:
            return from_document(found)
    with suppress(DefinitionError, ValueError):
        return from_document(definition)
    return None


def _sentence(error: Exception) -> str:
    text = str(error).rstrip(".")
    first = text.partition(" ")[0]
    return f"{text}." if "." in first else f"{text[:1].upper()}{text[1:]}."  # a file's name stays as it is
