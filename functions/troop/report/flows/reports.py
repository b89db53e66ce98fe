"""Makes the report of an ended run from its record and its stored results, as often as requested."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from troop.bench.aws.run_table import RunTable
from troop.bench.aws.stored_runs import StoredRuns
from troop.bench.definition import names
from troop.bench.records.archive import DEFINITION
from troop.bench.records.record import Run
from troop.report import stored_record
from troop.report.build import build
from troop.report.html import report_page
from troop.shared.errors import NoStoredResultsError, NotEndedError


@dataclass(frozen=True)
class ReportOutcome:
    """What was written: the number of cells and findings in the report, and sizes in bytes."""

    cells: int
    findings: int
    json_bytes: int
    html_bytes: int


@dataclass(frozen=True)
class Reports:
    """Makes the reports of a deployment.

    Attributes:
        script: returns the program that draws charts, which every page includes.
        version: Troop's version.
    """

    runs: RunTable
    stored: StoredRuns
    script: Callable[[], str]
    clock: Callable[[], datetime]
    version: str

    def make(self, run: str) -> ReportOutcome | None:
        """Stores the run's record beside its results, and makes the report of all that is stored. Returns None for a
        standing fleet, which has no report.

        Raises:
            MissingRunError: there is no such run.
            NotEndedError: the run has not ended.
            NoStoredResultsError: nothing is stored (any more); nothing is written.
            ReportError: the stored results cannot be read.
            ClientError: AWS refused; a retry is safe.
        """
        record = self.runs.get(run)
        if record.standing is not None:
            return None
        if record.ended_at is None:
            raise NotEndedError(run)
        if self.stored.find(run, DEFINITION) is None:
            raise NoStoredResultsError(run)
        self._keep_record(record)
        report = build(self.stored.stored_run(run), self.clock(), self.version, run)
        as_json = report.model_dump_json().encode()
        as_html = report_page(report, self.script()).encode()
        self.stored.write(run, names.REPORT_JSON, as_json)
        self.stored.write(run, names.REPORT_HTML, as_html)
        return ReportOutcome(len(report.cells), len(report.findings), len(as_json), len(as_html))

    def _keep_record(self, record: Run) -> None:
        run = record.run
        cells = self.runs.cells.with_figures(run).whole()
        document = stored_record.document(
            record, cells, self.runs.resources.get_all(run), self.runs.terms(run), self.version
        )
        self.stored.write(run, names.RECORD, json.dumps(document, indent=2).encode())
