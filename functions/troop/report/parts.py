"""Reads the parts of a report that were stored with the results of its cells, see
:mod:`troop.bench.results.figures`.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from pydantic import Field

from troop.bench.records import archive as files
from troop.bench.records.archive import Archive
from troop.bench.results.figures import FORMAT
from troop.report.document import Curve, FallenOperation, Operation, Part, Series, Use


class Figures(Part):
    """The figures of a phase. Operations are without costs, and loads without bursts."""

    operations: list[Operation]
    totals: list[Operation]
    use: list[Use]
    series: list[Series]
    incomplete: list[str]
    curve: Curve | None = None
    fallen: list[FallenOperation] = Field(default=[])


class PhasePart(Part):
    """A phase: its results without what the figures are computed from, and its figures."""

    results: dict[str, Any]
    figures: Figures


class CellPart(Part):
    """A cell's part of a report. ``sha256`` is that of its ``results.json``, and ``head`` the rest of these."""

    format: str
    sha256: str
    head: dict[str, Any]
    phases: list[PhasePart]

    @property
    def results(self) -> dict[str, Any]:
        return {**self.head, "phases": [one.results for one in self.phases]}


def stored(archive: Archive, cell: str) -> CellPart | None:
    """Returns a cell's stored part; None without one, or if it is of another version or of other results."""
    try:
        body = archive.read(f"{cell}/{files.REPORT_PART}")
        if body is None or not files.is_flat(body):
            return None
        part = CellPart.model_validate_json(body)
        results = archive.read(f"{cell}/{files.RESULTS}") if part.format == FORMAT else None
    except ValueError:
        return None
    return part if results is not None and sha256(results).hexdigest() == part.sha256 else None
