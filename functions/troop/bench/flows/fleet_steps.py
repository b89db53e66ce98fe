"""Implements the steps of a standing fleet's workflow besides its launch: open, keep and settle it.

Each step can be repeated at any time. The step keep can also run at any other moment, because it uses only the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from troop.bench.aws.cell_store import CellStore, newest
from troop.bench.aws.fleet_record import FleetRecord
from troop.bench.aws.run_table import RunTable
from troop.bench.aws.standing_groups import StandingGroups, group_name
from troop.bench.definition import names, standing
from troop.bench.definition.roster import Node, parse_node
from troop.bench.definition.standing import GroupStatus, Standing
from troop.bench.fleets import standing_backup
from troop.bench.fleets.booting import SETTLED
from troop.bench.fleets.standing_backup import Purchases
from troop.bench.flows.inventory_reader import InventoryReader
from troop.bench.flows.launching import LONGEST
from troop.bench.flows.seating import Seating
from troop.bench.measuring import verdicts
from troop.bench.measuring.verdicts import State
from troop.bench.records.record import CellStatus, Kind, Resource, Run, RunStatus
from troop.bench.removal import teardown
from troop.shared.errors import MissingRunError, RunClosedError

CELL = names.cell_id(1)
"""The only cell of a fleet."""

MOST_READ = 500
"""The most registrations that one check reads, newest first: any of them may report a failure."""

EXPIRED = "its time has expired: expires_after"

_COME_AND_GO = frozenset({Kind.INSTANCE, Kind.VOLUME})


@dataclass(frozen=True)
class FleetView:
    """Reads the state of a standing fleet."""

    groups: StandingGroups
    store: CellStore

    def describe(self, run: str, fleet: Standing) -> tuple[list[GroupStatus], dict[str, Node]]:
        """Returns the groups, and the registrations of their instances by id. A registration that is not read counts as
        a node of its group's role.
        """
        groups = self.groups.describe(run, CELL, fleet.desired, fleet.backups)
        its = {member.id: group.role for group in groups for member in group.members}
        prefix = names.nodes_prefix(run, CELL)
        listed = {i: one for i, one in self.store.listed(prefix).items() if i in its} if its else {}
        nodes = {i: Node(i, its[i]) for i in listed}
        for i, document in self.store.documents(newest(listed.values(), MOST_READ)):
            nodes[i] = parse_node(i, document)
        return groups, nodes


@dataclass(frozen=True)
class FleetRound:
    """The result of one check for the workflow: WAITING, or DONE when the fleet is over.

    Attributes:
        wait_seconds: until the next check.
        withheld: resizes that wait, with the reason, as text.
    """

    state: State
    wait_seconds: int = 0
    withheld: tuple[str, ...] = ()


@dataclass(frozen=True)
class FleetSteps:
    """The steps of a standing fleet."""

    runs: RunTable
    record: FleetRecord
    view: FleetView
    inventory_reader: InventoryReader
    seating: Seating
    clock: Callable[[], datetime]

    def open(self, run: str, execution: str) -> None:
        """Marks the fleet as running.

        Raises:
            RunClosedError: it was closed before.
            MissingRunError: there is no such fleet.
        """
        self.runs.set_running(run, execution)

    def keep(self, run: str) -> FleetRound:
        """Resizes the groups to the desired sizes, records what exists, and returns when to check again.

        Raises:
            MissingRunError: there is no such fleet.
            ClientError: AWS refused; the next check tries again.
        """
        record, its, now = self.runs.get(run), self.runs.cells.get(run, CELL), self.clock()
        fleet = standing_of(record)
        left = (record.expires_at - now).total_seconds()
        if record.closed_at is not None or left <= 0:
            return FleetRound(State.DONE)
        if its.phase == names.LAUNCH:  # called before anything exists
            return FleetRound(State.WAITING, standing.FIRST_WAIT)
        elapsed = (now - its.phases[names.BOOT]).total_seconds()
        groups, nodes = self.view.describe(run, fleet)
        gone = dict.fromkeys(group.role for group in groups if not group.exists)
        if gone and elapsed >= SETTLED:
            reason = f"the Auto Scaling group of the fleet {', '.join(gone)} was deleted"
            self.runs.cells.change(run, CELL, status=CellStatus.FAILED, reason=reason)
            return FleetRound(State.DONE)
        try:
            bought = standing_backup.purchases(fleet, groups, nodes, now)
            withheld = self._change(run, fleet, groups, bought, now)
        except RunClosedError:
            return FleetRound(State.DONE)
        counts = standing.counted(groups, nodes)
        self.record.record_counts(run, counts, now)
        if standing.is_complete(fleet.desired, counts, fleet.backups) and names.STANDING not in its.phases:
            self.runs.cells.change(run, CELL, phase=names.STANDING, at=now)
        wait = standing.wait(elapsed, left)
        if fleet.ranks:
            wait = min(wait, standing_backup.LONGEST_WAIT)  # a replacement waits for its rank
            self.seating.seat(run, CELL, fleet.desired, groups)
        wait = wait if bought.is_settled else min(wait, standing_backup.LONGEST_WAIT)
        return FleetRound(State.WAITING, wait, withheld)

    def settle(self, run: str, error: str = "", cause: str = "") -> tuple[RunStatus, str | None]:
        """Returns the fleet's final status, and the reason.

        Args:
            error: with which a step finally failed; "" if none did.
        """
        record, its = self.runs.get(run), self.runs.cells.get(run, CELL)
        if record.closed_at is not None and record.outcome is not None:
            return record.outcome, record.reason
        if its.status is CellStatus.FAILED:
            return RunStatus.FAILED, its.reason
        if error:
            return RunStatus.FAILED, verdicts.error_text(error, cause)
        if self.clock() >= record.expires_at:
            return RunStatus.STOPPED, EXPIRED
        return RunStatus.FAILED, "its workflow ended without a result"

    def _change(
        self, run: str, fleet: Standing, groups: Sequence[GroupStatus], bought: Purchases, now: datetime
    ) -> tuple[str, ...]:
        """Resizes the groups, and records instances and volumes that are new or gone. Returns what was not resized.

        A group that must stay, because of ``troop:protected`` or an instance that is not the fleet's, keeps its size:
        Auto Scaling chooses which instances it terminates.

        Overlapping checks of a role with a backup have seen different nodes. Only the one that first records its
        decision resizes such groups; another one could remove nodes by what it saw earlier.

        Both happen under a launch right: no teardown concludes while it lasts, so nothing is created after its end.

        Raises:
            RunClosedError: the fleet was closed in the meantime; nothing is launched for it.
        """
        inventory, resources = self.inventory_reader.read(run, CELL)
        seen = [one for one in inventory.every if one.kind in _COME_AND_GO]
        recorded = [one for one in resources if one.kind in _COME_AND_GO]
        ours = [one for one in inventory.ours if one.kind in _COME_AND_GO]
        new: list[Resource] = teardown.unrecorded(ours, recorded, now)
        # The desired sizes are read last: two checks can overlap, and the newer size must win.
        desired = standing_of(self.runs.get(run)).desired
        resizes = standing.resizes(groups, {role: n for role, n in desired.items() if role not in fleet.backups})
        if (bought.resizes or bought.market != fleet.market) and self.record.decide(run, fleet, bought.market):
            resizes += bought.resizes
        stays = {one.name: why for one, why in inventory.protected.items() if one.kind is Kind.AUTO_SCALING_GROUP}
        named = [(group_name(run, CELL, resize.role, resize.is_backup), resize) for resize in resizes]
        resizes = tuple(resize for name, resize in named if name not in stays)
        if resizes or new:
            launch = self.runs.launches.begin(run, CELL, now + LONGEST)
            try:
                for resize in resizes:
                    self.view.groups.resize(run, CELL, resize)
                self.runs.resources.record_seen(new, now)
            finally:
                self.runs.launches.end(launch)
        self.runs.resources.gone(teardown.vanished(recorded, seen, []), now)
        return tuple(f"{name} to {resize.size}: {stays[name]}" for name, resize in named if name in stays)


def standing_of(record: Run) -> Standing:
    """Returns the part of a record that only standing fleets have.

    Raises:
        MissingRunError: it is a benchmark's run.
    """
    if record.standing is None:
        raise MissingRunError(record.run)
    return record.standing
