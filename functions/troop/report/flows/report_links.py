"""Finds reports for the API, and starts making them again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from botocore.exceptions import ClientError

from troop.bench.aws.function_calls import ReportCalls
from troop.bench.aws.stored_runs import StoredReport, StoredRuns
from troop.bench.flows.run_service import RunService
from troop.bench.records.record import Run
from troop.report.aws.report_claims import ReportClaims
from troop.shared.errors import NoStoredResultsError, NotEndedError, TroopError

SOON = timedelta(minutes=17)
"""A run's first report can take this long after the run's end: the function may take three times five minutes."""


class NoReportError(TroopError):
    """The run has no report.

    Attributes:
        soon: whether the first report is still expected.
    """

    def __init__(self, run: str, soon: bool) -> None:
        self.soon = soon
        reason = "its report is not ready yet: try again" if soon else "it has no report (any more)"
        super().__init__(f"the run {run} has ended, and {reason}; POST /benchmarks/{run}/report makes it")


@dataclass(frozen=True)
class Link:
    """A report, and an address that serves it for at most an hour. Treat the address as a secret."""

    stored: StoredReport
    address: str


@dataclass(frozen=True)
class ReportLinks:
    """Finds and makes reports.

    Attributes:
        runs: the deployment's.
    """

    runs: RunService
    stored: StoredRuns
    calls: ReportCalls
    claims: ReportClaims
    clock: Callable[[], datetime]

    def find(self, run: str, name: str) -> Link:
        """Returns a run's report.

        Args:
            name: of the file, such as ``report.html``.

        Raises:
            MissingRunError: there is no such run.
            NotEndedError: the run has not ended.
            NoReportError: it has no report.
            ClientError: AWS refused.
        """
        record = self._ended(run)
        stored = self.stored.find(run, name)
        if stored is None:
            raise NoReportError(run, record.ended_at is not None and self.clock() - record.ended_at < SOON)
        return Link(stored, self.stored.address(run, name))

    def again(self, run: str) -> datetime:
        """Starts making a run's report again, with this version and from what is stored; that takes seconds or minutes.

        Within a minute it is made once, however often it is requested.

        Returns:
            When it was first requested.

        Raises:
            MissingRunError: there is no such run.
            NotEndedError: the run has not ended.
            NoStoredResultsError: nothing is stored to make it from.
            ClientError: AWS refused.
        """
        self._ended(run)
        if self.stored.find(run, "definition.json") is None:
            raise NoStoredResultsError(run)
        claim = self.claims.claim(run, self.clock())
        if claim.ours:
            try:
                self.calls.make(run)
            except ClientError:
                self.claims.release(run)  # so that the next request starts it again
                raise
        return claim.at

    def _ended(self, run: str) -> Run:
        record = self.runs.get(run)
        if record.ended_at is None:
            raise NotEndedError(run)
        return record
