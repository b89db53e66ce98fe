"""Implements the steps of a teardown: close, remove until nothing is left, conclude. Each can be repeated or
interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from troop.bench.aws.cell_data import CellData, Deletion
from troop.bench.aws.run_table import RunTable
from troop.bench.aws.tagged_resources import Refusals, TaggedResources, described
from troop.bench.definition import names
from troop.bench.flows.cost_records import Increment, count_ended, reckon
from troop.bench.flows.inventory_reader import InventoryReader
from troop.bench.records.record import FINAL, CellStatus, LeftBehind, Run, RunStatus
from troop.bench.removal import teardown
from troop.bench.removal.inventory import left_behind
from troop.bench.removal.teardown import Seen, TeardownIncompleteError, TeardownProgress, removable

_CELL_STATUS = {RunStatus.STOPPED: CellStatus.STOPPED}
"""The status of an unfinished cell by the outcome of its run; otherwise FAILED."""


@dataclass(frozen=True)
class Work:
    """A teardown to do.

    Attributes:
        cell: one cell of the run, which stays open; None for the whole run.
        status: the run's final status, unless it was closed before.
        reason: why that is not SUCCEEDED.
        passes: the number of passes so far.
        quiet: the number of latest passes that found nothing.
    """

    run: str
    cell: str | None
    status: RunStatus
    reason: str | None
    passes: int
    quiet: int

    @classmethod
    def parse(cls, event: Mapping[str, Any]) -> Work:
        """Parses the workflow's input, or the answer of an earlier step: ``{"run", "cell"?, "status"?, "reason"?,
        "passes"?, "quiet"?}``. Empty strings count as absent.
        """
        return cls(
            run=event["run"],
            cell=event.get("cell") or None,
            status=RunStatus(event.get("status") or RunStatus.FAILED),
            reason=event.get("reason") or None,
            passes=int(event.get("passes") or 0),
            quiet=int(event.get("quiet") or 0),
        )


@dataclass(frozen=True)
class Concluded:
    """What follows from a conclusion; for a single cell, nothing does.

    Attributes:
        ended: the run, if this conclusion ended it; None if it had ended before.
        report: whether to make a report: for a benchmark's run, not for a standing fleet.
        cost: the part of the run's cost that the metric must count; None for nothing.
        left_behind: what stays, also of a cell.
    """

    ended: Run | None = None
    report: bool = False
    cost: Increment | None = None
    left_behind: tuple[LeftBehind, ...] = ()


@dataclass(frozen=True)
class Teardown:
    """Tears down runs and cells of this deployment.

    Attributes:
        data: the objects that scripts create; None in a deployment that does not allow any.
    """

    runs: RunTable
    inventory_reader: InventoryReader
    clock: Callable[[], datetime]
    data: CellData | None

    def close(self, work: Work) -> None:
        """Closes the run or the cell: nothing is launched for it any more. The first caller to close a run sets its
        outcome.

        Raises:
            MissingRunError: there is no such run or cell.
        """
        now = self.clock()
        if work.cell is not None:
            self.runs.cells.close(work.run, work.cell, now)
        else:
            self.runs.close(work.run, work.status, work.reason, now)
        for cell in [work.cell] if work.cell else [cell.cell for cell in self.runs.cells.get_all(work.run)]:
            self.runs.cells.change(work.run, cell, phase=names.TEARDOWN, at=now)

    def remove(self, work: Work) -> TeardownProgress:
        """Starts the removal of all that may be removed, and records what was seen and what is gone. What is
        protected, or not the run's own, is not waited for.

        Raises:
            TeardownIncompleteError: it has taken too long.
            ClientError: AWS does not list what exists; a retry is safe.
        """
        # Launches are read first: the inventory below then shows what a launch that has ended since has created.
        now = self.clock()
        launching = teardown.current(self.runs.launches.get_all(work.run), work.cell, now)
        inventory, resources = self.inventory_reader.read(work.run, work.cell)
        recorded = [r for r in resources if work.cell in (None, r.cell)]
        self.runs.resources.record_seen(teardown.unrecorded(inventory.ours, recorded, now), now)
        self.runs.resources.gone(teardown.vanished(recorded, inventory.every, launching), now)
        refused = remove_all(self.inventory_reader.tagged, inventory.removable)
        remaining = described(inventory.removable, refused) + [
            f"the launch of cell {launch.cell}" for launch in launching
        ]
        deletions = [] if remaining else self._delete_data(work, now)
        if work.passes < teardown.DATA_PASSES:
            late = [one.cell for one in deletions if not one.over and one.problem is None]
            remaining += [f"objects that scripts of cell {cell} created" for cell in late]
        progress = teardown.after(work.passes, work.quiet, remaining)
        problems = tuple(f"cell {one.cell}: {one.problem}" for one in deletions if one.problem)
        return replace(progress, deleted=sum(one.deleted for one in deletions), undeleted=problems)

    def _delete_data(self, work: Work, now: datetime) -> list[Deletion]:
        """Deletes the objects of cells on record, when no node is left that could create more. A problem does not stop
        the teardown: the bucket's lifecycle rule deletes these objects later. Those of a standing fleet are results,
        and left to this rule.
        """
        if self.data is None or self.runs.get(work.run).standing is not None:
            return []
        cells = [one.cell for one in self.runs.cells.get_all(work.run) if work.cell in (None, one.cell)]
        deletions = self.data.delete(work.run, cells)
        for one in deletions:
            if one.over:
                self.runs.cells.data_gone(work.run, one.cell, now)
        return deletions

    def conclude(self, work: Work) -> Concluded:
        """Records that nothing removable is left of the cell, or of the run and all its cells, and records what stays.

        Raises:
            TeardownIncompleteError: a resource on record may still exist, and has no reason to stay.
        """
        now = self.clock()
        inventory, resources = self.inventory_reader.read(work.run, work.cell)
        stays = {one.key for one in inventory.left}
        unsure = [
            r for r in resources if work.cell in (None, r.cell) and not r.gone_at and teardown.key_of(r) not in stays
        ]
        if unsure:
            words = ", ".join(f"{r.kind.value} {r.name}" for r in unsure[: teardown.NAMED])
            raise TeardownIncompleteError(f"these may still exist: {words}; start the teardown of {work.run} again")
        if work.cell is not None:
            self.runs.cells.change(work.run, work.cell, phase=names.OVER, at=now)
            reckon(self.runs, work.run, work.cell, resources, now)
            return Concluded(left_behind=left_behind(inventory.left))
        run = self.runs.get(work.run)
        for cell in self.runs.cells.get_all(work.run):
            if cell.status not in FINAL:
                status = _CELL_STATUS.get(run.outcome or RunStatus.FAILED, CellStatus.FAILED)
                self.runs.cells.change(work.run, cell.cell, status=status, reason=run.reason or "the run was torn down")
            self.runs.cells.change(work.run, cell.cell, phase=names.OVER, at=now)
        for launch in self.runs.launches.get_all(work.run):
            self.runs.launches.end(launch)
        reckon(self.runs, work.run, None, resources, now)
        ended = self.runs.conclude(work.run, now)
        cost = count_ended(self.runs, ended)
        ended = self.runs.leave_behind(ended, left_behind(inventory.left))
        return Concluded(
            ended if run.ended_at is None else None, run.standing is None, cost, left_behind=ended.left_behind
        )


def remove_all(tagged: TaggedResources, seen: Iterable[Seen]) -> Refusals:
    """Starts the removal of everything that may go now, and then of what those removals allow."""
    left, refused = list(seen), Refusals()
    while these := [one for one in removable(left) if one not in refused]:
        refused |= tagged.remove(these)
        requested = {one for one in these if one not in refused}
        left = [replace(one, going=True) if one in requested else one for one in left]
    return refused
