"""Reports as the API has them: where one is to be got, and having one made again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from botocore.exceptions import ClientError

from troop.aws.bench.report_calls import ReportCalls
from troop.aws.bench.report_claims import ReportClaims
from troop.aws.bench.stored_runs import StoredReport, StoredRuns
from troop.bench.record import Run
from troop.errors import NoStoredResultsError, NotEndedError, TroopError
from troop.flows.bench.benchmarks import Benchmarks

SOON = timedelta(minutes=17)
"""So long after a run's end its first report may still be about to come: the function may take three times five."""


class NoReportError(TroopError):
    """The run has no report.

    Attributes:
        soon: whether one is about to come.
    """

    def __init__(self, run: str, soon: bool) -> None:
        self.soon = soon
        what = "its report is about to come: ask again" if soon else "it has no report (any more)"
        super().__init__(f"the run {run} has ended, and {what}; POST /benchmarks/{run}/report makes it")


@dataclass(frozen=True)
class Link:
    """A report, and where it can be got for at most an hour. The address is as good as a key."""

    stored: StoredReport
    address: str


@dataclass(frozen=True)
class ReportLinks:
    """``benchmarks``: the deployment's runs."""

    benchmarks: Benchmarks
    stored: StoredRuns
    calls: ReportCalls
    claims: ReportClaims
    clock: Callable[[], datetime]

    def find(self, run: str, name: str) -> Link:
        """A run's report.

        Args:
            name: of the file, such as ``report.html``.

        Raises:
            MissingRunError: there is no such run.
            NotEndedError: it goes on.
            NoReportError: it has none.
            ClientError: AWS refused.
        """
        record = self._ended(run)
        stored = self.stored.find(run, name)
        if stored is None:
            raise NoReportError(run, record.ended_at is not None and self.clock() - record.ended_at < SOON)
        return Link(stored, self.stored.address(run, name))

    def again(self, run: str) -> datetime:
        """Has a run's report made by this version, of what is kept of it. That takes some seconds, or minutes. Within a
        minute it is made once, however often this is asked: the answer is when it was asked for first.

        Raises:
            MissingRunError: there is no such run.
            NotEndedError: it goes on.
            NothingKeptError: there is nothing to make it of.
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
                self.claims.release(run)  # so that whoever asks again is not told that it is being made
                raise
        return claim.at

    def _ended(self, run: str) -> Run:
        record = self.benchmarks.get(run)
        if record.ended_at is None:
            raise NotEndedError(run)
        return record
