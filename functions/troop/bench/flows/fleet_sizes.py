"""Fits the groups of a standing fleet to the sizes that they should have, and records their nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from troop.bench.aws.fleet_record import FleetRecord
from troop.bench.aws.run_table import RunTable
from troop.bench.aws.standing_groups import StandingGroups, group_name
from troop.bench.definition import standing
from troop.bench.definition.standing import GroupStatus, Resize
from troop.bench.fleets import standing_backup
from troop.bench.fleets.standing_backup import Purchases
from troop.bench.flows.fleet_view import CELL, Reading, standing_of
from troop.bench.flows.inventory_reader import InventoryReader
from troop.bench.flows.launching import LONGEST
from troop.bench.living import draining
from troop.bench.living.draining import Change, Draining
from troop.bench.records.record import Kind, Resource
from troop.bench.removal import teardown

_COME_AND_GO = frozenset({Kind.INSTANCE, Kind.VOLUME})


@dataclass(frozen=True)
class WorkRound:
    """The result of one check of the work and the sizes.

    Attributes:
        withheld: resizes that wait, with the reason, as text.
        is_settled: whether nothing is to be expected soon.
        failures: what AWS refused; the next check tries again.
    """

    withheld: tuple[str, ...] = ()
    is_settled: bool = True
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class FleetSizes:
    """Resizes the groups of fleets."""

    runs: RunTable
    record: FleetRecord
    groups: StandingGroups
    inventory_reader: InventoryReader

    def check(self, reading: Reading) -> tuple[Reading, WorkRound]:
        """Resizes the groups to the desired sizes, and records what exists. Returns the reading as its claims left it.

        Groups of a fleet with a queue shrink by draining, see :mod:`troop.bench.living.draining`.

        Raises:
            RunClosedError: the fleet was closed in the meantime; nothing is launched for it.
            ClientError: AWS refused; the next check tries again.
        """
        bought = standing_backup.purchases(reading.fleet, reading.groups, reading.nodes, reading.at)
        decide = self._at_once if reading.fleet.queue is None else self._drained
        reading, changes = decide(reading, bought)
        withheld = self._change(reading, changes)
        is_settled = bought.is_settled and not reading.fleet.drains
        if reading.fleet.queue is not None and not changes and is_settled:
            self.record.release(reading.run, reading.fleet)
        return reading, WorkRound(withheld, is_settled)

    def _at_once(self, reading: Reading, bought: Purchases) -> tuple[Reading, Sequence[Change]]:
        """Returns the changes of groups whose nodes go at once.

        Overlapping checks of a role with a backup have seen different nodes. Only the one that first records its
        decision resizes such groups; another one could remove nodes by what it saw earlier.
        """
        fleet = reading.fleet
        # The desired sizes are read last: two checks can overlap, and the newer size must win.
        desired = standing_of(self.runs.get(reading.run)).desired
        own = {role: n for role, n in desired.items() if role not in fleet.backups}
        resizes = standing.resizes(reading.groups, own)
        if bought.resizes or bought.market != fleet.market:
            claimed = self.record.claim(reading.run, fleet, market=bought.market)
            if claimed is not None:
                reading, resizes = replace(reading, fleet=claimed), resizes + bought.resizes
        return reading, [Change(resize.role, resize.is_backup, resize=resize) for resize in resizes]

    def _drained(self, reading: Reading, bought: Purchases) -> tuple[Reading, Sequence[Change]]:
        """Returns the changes of groups whose nodes finish their tasks first. As above, only the check that records its
        decision carries it out.
        """
        fleet = reading.fleet
        assert fleet.queue is not None
        nodes = draining.Nodes(reading.nodes, reading.registered, reading.reports)
        targets = _targets(reading.groups, fleet.desired, fleet.backups, bought.resizes)
        decided = draining.decide(targets, nodes, fleet.drains, fleet.queue.lease, reading.at)
        if decided == Draining(fleet.drains, ()) and bought.market == fleet.market:
            return reading, ()
        claimed = self.record.claim(reading.run, fleet, market=bought.market, drains=decided.drains)
        return (reading, ()) if claimed is None else (replace(reading, fleet=claimed), decided.changes)

    def _change(self, reading: Reading, changes: Sequence[Change]) -> tuple[str, ...]:
        """Changes the groups, and records instances and volumes that are new or gone. Returns what was not changed.

        A group that must stay, because of ``troop:protected`` or an instance that is not the fleet's, keeps its size:
        Auto Scaling chooses which instances it terminates.

        Both happen under a launch right: no teardown concludes while it lasts, so nothing is created after its end.

        Raises:
            RunClosedError: the fleet was closed in the meantime; nothing is launched for it.
        """
        run, now = reading.run, reading.at
        inventory, resources = self.inventory_reader.read(run, CELL, only_present=True)
        seen = [one for one in inventory.every if one.kind in _COME_AND_GO]
        recorded = [one for one in resources if one.kind in _COME_AND_GO]
        ours = [one for one in inventory.ours if one.kind in _COME_AND_GO]
        new: list[Resource] = teardown.unrecorded(ours, recorded, now)
        stays = {one.name: why for one, why in inventory.protected.items() if one.kind is Kind.AUTO_SCALING_GROUP}
        named = [(group_name(run, CELL, change.role, change.is_backup), change) for change in changes]
        carried_out = [change for name, change in named if name not in stays]
        if carried_out or new:
            launch = self.runs.launches.begin(run, CELL, now + LONGEST)
            try:
                for change in carried_out:
                    self._carry_out(run, change)
                self.runs.resources.record_seen(new, now)
            finally:
                self.runs.launches.end(launch)
        self.runs.resources.gone(teardown.vanished(recorded, seen, []), now)
        resizes = [(name, change.resize) for name, change in named if name in stays]
        return tuple(f"{name} to {resize.size}: {stays[name]}" for name, resize in resizes if resize)

    def _carry_out(self, run: str, change: Change) -> None:
        self.groups.protect(run, CELL, change, change.protects, protects=True)
        self.groups.protect(run, CELL, change, change.releases, protects=False)
        if change.resize:
            self.groups.resize(run, CELL, change.resize)


def _targets(
    groups: Sequence[GroupStatus],
    desired: Mapping[str, int],
    backups: Mapping[str, int],
    resizes: Sequence[Resize],
) -> list[tuple[GroupStatus, int]]:
    """Returns the groups that exist with the sizes that they should have."""
    bought = {(resize.role, resize.is_backup): resize.size for resize in resizes}
    sizes = {(group.role, group.is_backup): group.desired for group in groups if group.role in backups} | bought
    return [(group, sizes.get((group.role, group.is_backup), desired[group.role])) for group in groups if group.exists]
