"""The reaper: starts teardowns that should have been, and removes what they have left."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from troop.aws.bench.executions import Executions
from troop.aws.bench.leftovers import Leftovers, described
from troop.aws.bench.runs import RunTable
from troop.bench import reaping, teardown
from troop.bench.money import ZERO
from troop.bench.names import RUN
from troop.bench.reaping import Start
from troop.bench.record import Kind, Run, RunStatus
from troop.bench.teardown import Seen
from troop.errors import MissingRunError
from troop.flows.bench.reckoning import count
from troop.flows.bench.reservations import mend_reservations
from troop.flows.bench.teardown import remove_all
from troop.metrics import OF_A_BENCHMARK, OF_A_FLEET

LEFT_BEHIND = "something of it was left behind"


@dataclass
class Reaped:
    """What one call has found and done.

    Attributes:
        started: names of the teardowns that were started.
        removed: what was left behind, in words; each was asked to go.
        failed: what could not be looked at or done; the rest was.
        runs_open, nodes_alive: how many there are, by kind; of a sweep alone.
        cost: what open runs have cost since the sweep before, by currency.
    """

    started: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    runs_open: Counter[str] = field(default_factory=Counter)
    nodes_alive: Counter[str] = field(default_factory=Counter)
    cost: dict[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True)
class Reaper:
    """Looks after the runs of one deployment."""

    runs: RunTable
    leftovers: Leftovers
    executions: Executions
    clock: Callable[[], datetime]

    def hear(self, detail: Mapping[str, Any]) -> Reaped:
        """After an execution has ended: starts the teardown that is still to be made, at once.

        Args:
            detail: of a "Step Functions Execution Status Change" event.
        """
        machine, name, status = detail["stateMachineArn"], detail["name"], detail["status"]
        start = None
        if machine in (self.executions.benchmark, self.executions.fleet):
            start = reaping.heard_of_run(name, status, self._run(name))
        elif machine == self.executions.teardown:
            work = _input(detail)
            start = reaping.heard_of_teardown(name, work, status, self._run(str(work.get("run", ""))))
        reaped = Reaped()
        if start:
            self._start(start, reaped)
        return reaped

    def sweep(self) -> Reaped:
        """Looks at everything: all runs that have not ended, and all that exists. What fails stops nothing else."""
        reaped, now = Reaped(), self.clock()
        self._attempt(reaped, "the open runs", lambda: self._look_at_runs(now, reaped))
        self._attempt(reaped, "what is left", lambda: self._look_at_all(now, reaped))
        return reaped

    def _look_at_runs(self, now: datetime, reaped: Reaped) -> None:
        teardowns = self.executions.teardowns()
        open_runs = self.runs.open_runs()
        reaped.runs_open.update(map(_kind, open_runs))
        self._attempt(reaped, "the reservations of nodes", lambda: mend_reservations(self.runs, open_runs, now))
        for run in open_runs:
            self._attempt(reaped, run.run, partial(self._overdue, run.run, teardowns, now, reaped))

    def _look_at_all(self, now: datetime, reaped: Reaped) -> None:
        seen = self.leftovers.find()
        runs = {run: self._run(run) for run in sorted({one.run for one in seen})}
        nodes = [one for one in seen if one.kind is Kind.INSTANCE and not one.going]
        reaped.nodes_alive.update(_kind(runs[one.run]) for one in nodes)
        # What has been asked to go, though by whom does not matter, was not left behind.
        stray = [one for one in reaping.strays(seen, runs, now) if not one.going]
        if stray:
            self._remove(stray, seen, runs, now, reaped)
        for open_run in self.runs.open_runs():
            of_run = [one for one in seen if one.run == open_run.run]
            self._attempt(reaped, open_run.run, partial(self._count_cost, open_run.run, of_run, now, reaped))
        for run in runs.values():
            if run is not None and run.cells > 1 and run.closed_at is None and now < run.expires_at:
                of_run = [one for one in seen if one.run == run.run]
                self._attempt(reaped, run.run, partial(self._left_cells, run.run, of_run, now, reaped))

    def _overdue(self, run: str, teardowns: list[str], now: datetime, reaped: Reaped) -> None:
        tearing_down = any(name.startswith(run) for name in teardowns)
        record = self.runs.get(run)
        start = reaping.overdue(record, self.executions.status(record), tearing_down, now)
        if start:
            self._start(start, reaped)

    def _count_cost(self, run: str, seen: list[Seen], now: datetime, reaped: Reaped) -> None:
        """Counts what an open run has cost by now, and stops one that has cost more than it may."""
        increment, reason = count(self.runs, run, seen, now)
        if increment:
            reaped.cost[increment.currency] = reaped.cost.get(increment.currency, ZERO) + increment.amount
        record = self.runs.get(run)
        if reason and record.closed_at is None:
            self.runs.close(run, RunStatus.FAILED, reason, now)
            self._start(Start(run, f"{run}-{now:%Y%m%dT%H%M}", RunStatus.FAILED, reason, stop=True), reaped)

    def _left_cells(self, run: str, seen: list[Seen], now: datetime, reaped: Reaped) -> None:
        """Tears down, once more, cells that are over; the others of the run go on."""
        for cell in reaping.left_cells(seen, self.runs.cells.of(run), now):
            name = f"{run}-{cell}-"
            if any(one.startswith(name) for one in self.executions.teardowns()):
                continue
            if self.executions.tear_down(f"{name}{now:%Y%m%dT%H%M}", {"run": run, "cell": cell}):
                reaped.started.append(f"{name}{now:%Y%m%dT%H%M}")

    def _remove(
        self,
        stray: list[Seen],
        seen: list[Seen],
        runs: Mapping[str, Run | None],
        now: datetime,
        reaped: Reaped,
    ) -> None:
        known = [one for one in stray if runs[one.run] is not None]
        self._attempt(reaped, "the record", lambda: self.runs.resources.found(teardown.unrecorded(known, [], now), now))
        # What is going already still holds back what it works with; what is nobody's business here is not touched.
        runs_of_strays = {one.run for one in stray}
        around = [one for one in seen if one.run in runs_of_strays and (one in stray or one.going)]
        refused = remove_all(self.leftovers, around)
        reaped.removed += described(stray, refused)
        for run in sorted({one.run for one in known}):
            # It looks until all of it is gone, and says so in the record.
            start = Start(run, f"{run}-{now:%Y%m%dT%H%M}", RunStatus.FAILED, LEFT_BEHIND)
            self._attempt(reaped, run, partial(self._start, start, reaped))

    def _start(self, start: Start, reaped: Reaped) -> None:
        if start.stop:
            self.executions.stop(self.runs.get(start.run), start.reason)
        work = {"run": start.run, "status": start.status.value, "reason": start.reason}
        if self.executions.tear_down(start.name, work):
            reaped.started.append(start.name)

    def _run(self, run: str) -> Run | None:
        if not RUN.fullmatch(run):
            return None
        try:
            return self.runs.get(run)
        except MissingRunError:
            return None

    def _attempt(self, reaped: Reaped, what: str, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception as error:  # noqa: BLE001 - whatever it is, the others must be looked at
            reaped.failed.append(f"{what}: {type(error).__name__}: {error}")


def _kind(run: Run | None) -> str:
    return OF_A_FLEET if run is not None and run.standing is not None else OF_A_BENCHMARK


def _input(detail: Mapping[str, Any]) -> dict[str, Any]:
    """An execution's input, which is left out of the event when it is long; empty then."""
    try:
        work = json.loads(detail.get("input") or "{}")
    except ValueError:
        return {}
    return work if isinstance(work, dict) else {}
