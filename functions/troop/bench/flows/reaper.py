"""Implements the reaper: it starts overdue teardowns, and removes what teardowns have left."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from troop.bench.aws.executions import Executions
from troop.bench.aws.run_table import RunTable
from troop.bench.aws.tagged_resources import described
from troop.bench.definition.money import ZERO
from troop.bench.definition.names import run_of_execution
from troop.bench.flows.cost_records import Increment, count, count_ended, reckon
from troop.bench.flows.inventory_reader import InventoryReader
from troop.bench.flows.teardown import remove_all
from troop.bench.records.record import Kind, Run, RunStatus
from troop.bench.removal import reaping, teardown
from troop.bench.removal.inventory import Inventory, left_behind
from troop.bench.removal.reaping import PATIENCE, Start
from troop.bench.removal.teardown import Seen
from troop.shared.errors import MissingRunError
from troop.shared.malformed import MalformedItemError
from troop.shared.metrics import BENCHMARK_KIND, FLEET_KIND

LEFT_BEHIND = "resources of the run were left behind"


@dataclass
class Reaped:
    """What one call found and did.

    Attributes:
        started: names of the teardowns that it started.
        removed: leftovers whose removal it requested, as text.
        off: whether the reaper is switched off: then it started and removed nothing.
        withheld: what it would have started or removed if it were on, as text.
        left_behind: resources with the tags of runs that stay, as text with the reason.
        failed: the parts that failed; all others were done.
        runs_open, nodes_alive: numbers by kind; only of a sweep.
        cost: what open runs, and what stays of ended runs, have cost since the previous sweep, by currency.
    """

    started: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    off: bool = False
    withheld: list[str] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    runs_open: Counter[str] = field(default_factory=Counter)
    nodes_alive: Counter[str] = field(default_factory=Counter)
    cost: dict[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True)
class Reaper:
    """Reaps the runs of one deployment.

    Attributes:
        is_off: reads whether the reaper is switched off. Then it only reads and reports.
    """

    runs: RunTable
    inventory_reader: InventoryReader
    executions: Executions
    is_off: Callable[[], bool]
    clock: Callable[[], datetime]

    def hear(self, detail: Mapping[str, Any]) -> Reaped:
        """Handles the end of an execution: starts the teardown that is still due, at once.

        Args:
            detail: of a "Step Functions Execution Status Change" event.
        """
        machine, name, status = detail["stateMachineArn"], detail["name"], detail["status"]
        start = None
        if machine in (self.executions.benchmark, self.executions.fleet):
            start = reaping.start_after_run(name, status, self.inventory_reader.run(run_of_execution(name)))
        elif machine == self.executions.teardown:
            work = _input(detail)
            start = reaping.start_after_teardown(
                name, work, status, self.inventory_reader.run(str(work.get("run", "")))
            )
        reaped = Reaped()
        if start:
            reaped.off = self.is_off()
            self._start(start, reaped)
        return reaped

    def sweep(self) -> Reaped:
        """Checks all runs that have not ended, and all existing resources. A part that fails does not stop the others.

        Raises:
            ClientError: the reaper's switch cannot be read; nothing was done.
        """
        reaped, now = Reaped(off=self.is_off()), self.clock()
        self._attempt(reaped, "the open runs", lambda: self._check_runs(now, reaped))
        self._attempt(reaped, "the resources", lambda: self._check_resources(now, reaped))
        return reaped

    def _check_runs(self, now: datetime, reaped: Reaped) -> None:
        teardowns = self.executions.teardowns()
        marked = self.runs.open_runs()
        reaped.failed += map(str, marked.malformed)
        open_runs = marked.items
        reaped.runs_open.update(map(_kind, open_runs))
        self._attempt(reaped, "the reservations of nodes", lambda: _repair_reservations(self.runs, open_runs, now))
        for run in open_runs:
            self._attempt(reaped, run.run, partial(self._overdue, run.run, teardowns, now, reaped))

    def _check_resources(self, now: datetime, reaped: Reaped) -> None:
        inventory, runs, malformed = self.inventory_reader.read_all()
        reaped.failed += [f"the resources of {run}, which stay: {why}" for run, why in malformed.items()]
        nodes = [one for one in inventory.ours if one.kind is Kind.INSTANCE and not one.going]
        reaped.nodes_alive.update(_kind(runs[one.run]) for one in nodes)
        # A resource that is already being removed, by anyone, was not left behind.
        stray = [one for one in reaping.strays(inventory.removable, runs, now) if not one.going]
        if stray:
            self._attempt(reaped, "the removal of leftovers", lambda: self._remove(stray, inventory, now, reaped))
        for open_run in self.runs.open_runs().items:
            ours = [one for one in inventory.ours if one.run == open_run.run]
            self._attempt(reaped, open_run.run, partial(self._count_cost, open_run.run, ours, now, reaped))
        left = self._left(inventory, runs, now)
        reaped.left_behind += [f"{one.kind.value} {one.id} of {one.run}: {why}" for one, why in left.items()]
        self._attempt(reaped, "the record of what stays", lambda: self._record_left(left, inventory, now, reaped))
        for run in runs.values():
            if run is not None and run.cells > 1 and run.closed_at is None and now < run.expires_at:
                removable = [one for one in inventory.removable if one.run == run.run]
                self._attempt(reaped, run.run, partial(self._left_cells, run.run, removable, now, reaped))

    def _left(self, inventory: Inventory, runs: Mapping[str, Run | None], now: datetime) -> dict[Seen, str]:
        """Returns what stays, with the reason.

        Of an ended run, that is everything. Of others it is what is protected and would otherwise be removed, and
        foreign resources that are old enough for their evidence to be visible.
        """
        due = set(reaping.strays(inventory.protected, runs, now)) | set(reaping.settled(inventory.unverified, now))

        def is_over(run: Run | None) -> bool:
            return run is not None and run.ended_at is not None

        return {one: why for one, why in inventory.left.items() if one in due or is_over(runs[one.run])}

    def _record_left(self, left: Mapping[Seen, str], inventory: Inventory, now: datetime, reaped: Reaped) -> None:
        """Records for each run what stays of it.

        An ended run continues to cost what its own resources cost. When one of these is gone, a teardown records that.
        """
        left_runs = self.runs.left_runs()
        reaped.failed += map(str, left_runs.malformed)
        behind = [run for run in self.runs.open_runs().items if run.left_behind]
        named = {run.run for run in (*left_runs.items, *behind)} | {one.run for one in left}
        for run in sorted(named):
            its = {one: why for one, why in left.items() if one.run == run}
            self._attempt(reaped, run, partial(self._record_left_of, run, its, inventory, now, reaped))

    def _record_left_of(
        self, run: str, left: Mapping[Seen, str], inventory: Inventory, now: datetime, reaped: Reaped
    ) -> None:
        record = self.inventory_reader.run(run)
        if record is None:
            return
        if record.ended_at is not None:
            resources = self.runs.resources.get_all(run)
            reckon(self.runs, run, None, resources, now)
            _add(count_ended(self.runs, self.runs.get(run)), reaped)
            if teardown.vanished(resources, inventory.every, []):
                self._start(Start(run, f"{run}-{now:%Y%m%dT%H%M}", RunStatus.FAILED, LEFT_BEHIND), reaped)
                return
            if not left and any(one.run == run for one in inventory.ours):
                return  # it still exists, and the teardown that removes it records that
        self.runs.leave_behind(record, left_behind(left))

    def _overdue(self, run: str, teardowns: list[str], now: datetime, reaped: Reaped) -> None:
        tearing_down = any(name.startswith(run) for name in teardowns)
        record = self.runs.get(run)
        start = reaping.overdue(record, self.executions.status(record), tearing_down, now)
        # Between the record and the status, the workflow of a fleet may have gone over to its next execution.
        if start and (start.stop or self.runs.get(run).execution == record.execution):
            self._start(start, reaped)

    def _count_cost(self, run: str, seen: list[Seen], now: datetime, reaped: Reaped) -> None:
        """Counts what an open run has cost so far, and stops a run that exceeds its limit."""
        increment, reason = count(self.runs, run, seen, now)
        _add(increment, reaped)
        record = self.runs.get(run)
        if reason and record.closed_at is None:
            if not reaped.off:
                self.runs.close(run, RunStatus.FAILED, reason, now)
            self._start(Start(run, f"{run}-{now:%Y%m%dT%H%M}", RunStatus.FAILED, reason, stop=True), reaped)

    def _left_cells(self, run: str, seen: list[Seen], now: datetime, reaped: Reaped) -> None:
        """Tears down cells again that are over but have leftovers; the run's other cells continue."""
        for cell in reaping.left_cells(seen, self.runs.cells.get_all(run), now):
            name = f"{run}-{cell}-"
            if any(one.startswith(name) for one in self.executions.teardowns()):
                continue
            self._tear_down(f"{name}{now:%Y%m%dT%H%M}", {"run": run, "cell": cell}, reaped)

    def _remove(
        self,
        stray: list[Seen],
        inventory: Inventory,
        now: datetime,
        reaped: Reaped,
    ) -> None:
        if reaped.off:
            reaped.withheld += described(stray, {})
            return
        self._attempt(
            reaped,
            "the record of leftovers",
            lambda: self.runs.resources.record_seen(teardown.unrecorded(stray, [], now), now),
        )
        # What is already being removed still blocks what depends on it. Foreign resources are not touched.
        runs_of_strays = {one.run for one in stray}
        around = [one for one in inventory.removable if one.run in runs_of_strays and (one in stray or one.going)]
        refused = remove_all(self.inventory_reader.tagged, around)
        reaped.removed += described(stray, refused)
        for run in sorted(runs_of_strays):
            # The teardown repeats its passes until all is gone, and records the result.
            start = Start(run, f"{run}-{now:%Y%m%dT%H%M}", RunStatus.FAILED, LEFT_BEHIND)
            self._attempt(reaped, run, partial(self._start, start, reaped))

    def _start(self, start: Start, reaped: Reaped) -> None:
        if start.stop and not reaped.off:
            self.executions.stop(self.runs.get(start.run), start.reason)
        self._tear_down(start.name, {"run": start.run, "status": start.status.value, "reason": start.reason}, reaped)

    def _tear_down(self, name: str, work: dict[str, str], reaped: Reaped) -> None:
        if reaped.off:
            reaped.withheld.append(f"the teardown {name}")
        elif self.executions.tear_down(name, work):
            reaped.started.append(name)

    def _attempt(self, reaped: Reaped, part: str, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception as error:  # noqa: BLE001 - all other parts must run
            reaped.failed.append(f"{part}: {type(error).__name__}: {error}")


def _add(increment: Increment | None, reaped: Reaped) -> None:
    if increment:
        reaped.cost[increment.currency] = reaped.cost.get(increment.currency, ZERO) + increment.amount


def _kind(run: Run | None) -> str:
    return FLEET_KIND if run is not None and run.standing is not None else BENCHMARK_KIND


def _input(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an execution's input; empty if the event omits it because it is long."""
    try:
        work = json.loads(detail.get("input") or "{}")
    except (ValueError, RecursionError):
        return {}
    return work if isinstance(work, dict) else {}


def _repair_reservations(runs: RunTable, open_runs: Iterable[Run], now: datetime) -> None:
    """Releases reservations without an open run, and reserves the nodes of open runs that lack a reservation.

    Transactions normally keep both consistent. This repairs runs that an earlier version admitted, and manual edits.

    Args:
        open_runs: from the index, which lags behind: each run is read again before a change.
    """
    known = runs.reservations.read()
    ids = {run.run for run in open_runs}
    for run in known.unknown(ids):
        with suppress(MalformedItemError):  # it may be open: its reservation stays
            record = _find(runs, run)
            if record is None or record.ended_at is not None:
                runs.reservations.release(run)
    for run in sorted(ids - set(known.nodes)):
        record = _find(runs, run)
        if record is not None and record.ended_at is None and now - record.at >= PATIENCE:
            nodes = sum(record.standing.desired.values()) if record.standing else record.nodes
            runs.reservations.reserve(run, nodes)


def _find(runs: RunTable, run: str) -> Run | None:
    try:
        return runs.get(run)
    except MissingRunError:
        return None
