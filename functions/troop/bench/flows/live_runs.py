"""Shows what a benchmark does right now: one merge of the nodes' running summaries serves all viewers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from troop.bench.aws.live_claims import LiveClaims
from troop.bench.aws.live_store import LiveStore
from troop.bench.aws.run_table import RunTable
from troop.bench.records import live_view
from troop.bench.records.live_view import FRESH, OLDEST, CellView, LiveView, Watched
from troop.bench.records.record import Cell, Run
from troop.shared.errors import MissingRunError


@dataclass(frozen=True)
class LiveRuns:
    """The runs of a deployment, for people who watch.

    Attributes:
        clock: returns the current moment, aware.
    """

    runs: RunTable
    store: LiveStore
    claims: LiveClaims
    clock: Callable[[], datetime]

    def watch(self, run: str) -> Watched:
        """Returns the last merge of a run; merges anew if it is old, and nobody else does so.

        Raises:
            MissingRunError: there is no such run of a benchmark.
            ClientError: AWS refused.
        """
        record = self.runs.get(run)
        if record.standing is not None:
            raise MissingRunError(run)
        now = self.clock()
        if record.ended_at is not None:
            return Watched(record, None, now)
        last = self.store.merged(run)
        if (last is None or now - last.at >= FRESH) and self.claims.claim(run, now):
            last = self._merge(record, last, now)
            self.store.write(last)
        return Watched(record, last, now)

    def _merge(self, run: Run, last: LiveView | None, now: datetime) -> LiveView:
        cells = [self._cell(cell, last, now) for cell in live_view.running(self.runs.cells.get_all(run.run))]
        return LiveView(run.run, now, [view for view, _ in cells], sum(unread for _, unread in cells))

    def _cell(self, cell: Cell, last: LiveView | None, now: datetime) -> tuple[CellView, int]:
        """Returns one cell, and the number of its running summaries that could not be read."""
        before = last.cell(cell.cell) if last else None
        if not live_view.may_report(cell):
            return live_view.cell_view(cell, (), now, is_measured=False, before=before), 0
        benchmark = self.store.definition(cell.run, cell.cell)
        step = live_view.step_of(benchmark, cell) if benchmark else None
        if step is not None and not step.phase.is_measured:
            return live_view.cell_view(cell, (), now, is_measured=False, before=before), 0
        roster = self.store.roster(cell.run, cell.cell)
        lives, unread = self.store.summaries(cell.run, cell.cell, now - OLDEST, roster)
        expected = live_view.expected_nodes(benchmark, step) if benchmark and step else None
        is_measured = step.phase.is_measured if step else None
        view = live_view.cell_view(cell, lives, now, is_measured=is_measured, expected=expected, before=before)
        return view, unread
