"""Makes the report and the line of an ended run from its record and its stored results, as often as requested;
announces that a scheduled benchmark has changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from troop.bench.aws.run_table import RunTable
from troop.bench.aws.stored_runs import StoredRuns
from troop.bench.definition import names
from troop.bench.records.archive import DEFINITION
from troop.bench.records.line import Line
from troop.bench.records.record import Run
from troop.report import stored_record
from troop.report.aws.announcements import Announcements
from troop.report.build import build
from troop.report.change_news import alike, findings, news
from troop.report.html import report_page
from troop.report.lines import line_of
from troop.shared.benchmark_change import BenchmarkChange
from troop.shared.errors import NoStoredResultsError, NotEndedError

_LATEST = timedelta(days=1)
"""The most time since a run's end in which its report announces a change. Later ones are about the past."""

_MOST_READ = 1000
"""The most lines of a benchmark, of all its sizes and schedules, among which those of one schedule are searched."""

_TRIES = 3


@dataclass(frozen=True)
class ReportOutcome:
    """What was written: the number of cells and findings in the report, and sizes in bytes.

    Attributes:
        changed_from: the first run after a change that was announced; None for none.
    """

    cells: int
    findings: int
    json_bytes: int
    html_bytes: int
    changed_from: str | None = None


@dataclass(frozen=True)
class Reports:
    """Makes the reports of a deployment.

    Attributes:
        announcements: the changes that were announced.
        script: returns the program that draws charts, which every page includes.
        version: Troop's version.
    """

    runs: RunTable
    stored: StoredRuns
    announcements: Announcements
    script: Callable[[], str]
    clock: Callable[[], datetime]
    version: str

    def make(self, run: str) -> ReportOutcome | None:
        """Stores the run's record beside its results, and makes the report and the line of all that is stored. Returns
        None for a standing fleet, which has no report.

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
        line = line_of(record, report)
        self.runs.lines.put(line)
        lines = alike(self.runs.lines.newest(line.name, _MOST_READ), line)
        report = report.model_copy(update={"findings": [*report.findings, *findings(lines)]})
        as_json = report.model_dump_json().encode()
        as_html = report_page(report, self.script()).encode()
        self.stored.write(run, names.REPORT_JSON, as_json)
        self.stored.write(run, names.REPORT_HTML, as_html)
        change = self._announce(lines) if self.clock() - record.ended_at < _LATEST else None
        return ReportOutcome(
            len(report.cells), len(report.findings), len(as_json), len(as_html), change.run if change else None
        )

    def _announce(self, lines: Sequence[Line]) -> BenchmarkChange | None:
        """Announces that the runs of a schedule measure another level than before, if that is new. Returns the change
        that it announces.
        """
        line = lines[-1]
        if not line.schedule:
            return None
        for _ in range(_TRIES):
            known = self.announcements.read(line)
            new = news(lines, known.announcements)
            if new is None:
                return None
            if self.announcements.announce(line, new, known, self.clock()):
                return new.change
        return None  # the next run announces it

    def _keep_record(self, record: Run) -> None:
        run = record.run
        cells = self.runs.cells.with_figures(run).whole()
        document = stored_record.document(
            record, cells, self.runs.resources.get_all(run), self.runs.terms(run), self.version
        )
        self.stored.write(run, names.RECORD, json.dumps(document, indent=2).encode())
