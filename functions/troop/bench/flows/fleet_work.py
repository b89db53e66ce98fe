"""Fits the groups of a standing fleet to the sizes that they should have, and records their nodes."""

from __future__ import annotations

from dataclasses import dataclass

from troop.bench.aws.fleet_record import FleetRecord
from troop.bench.aws.run_table import RunTable
from troop.bench.aws.standing_groups import StandingGroups, group_name
from troop.bench.definition import standing
from troop.bench.fleets import standing_backup
from troop.bench.fleets.standing_backup import Purchases
from troop.bench.flows.fleet_view import CELL, Reading, standing_of
from troop.bench.flows.inventory_reader import InventoryReader
from troop.bench.flows.launching import LONGEST
from troop.bench.records.record import Kind, Resource
from troop.bench.removal import teardown

_COME_AND_GO = frozenset({Kind.INSTANCE, Kind.VOLUME})


@dataclass(frozen=True)
class WorkRound:
    """The result of one check.

    Attributes:
        withheld: resizes that wait, with the reason, as text.
        is_settled: whether nothing is to be expected soon.
    """

    withheld: tuple[str, ...] = ()
    is_settled: bool = True


@dataclass(frozen=True)
class FleetWork:
    """Resizes the groups of fleets."""

    runs: RunTable
    record: FleetRecord
    groups: StandingGroups
    inventory_reader: InventoryReader

    def check(self, reading: Reading) -> tuple[Reading, WorkRound]:
        """Resizes the groups to the desired sizes, and records what exists. Returns the reading as its claims left it.

        Raises:
            RunClosedError: the fleet was closed in the meantime; nothing is launched for it.
            ClientError: AWS refused; the next check tries again.
        """
        bought = standing_backup.purchases(reading.fleet, reading.groups, reading.nodes, reading.at)
        withheld = self._change(reading, bought)
        return reading, WorkRound(withheld, bought.is_settled)

    def _change(self, reading: Reading, bought: Purchases) -> tuple[str, ...]:
        """Resizes the groups, and records instances and volumes that are new or gone. Returns what was not resized.

        A group that must stay, because of ``troop:protected`` or an instance that is not the fleet's, keeps its size:
        Auto Scaling chooses which instances it terminates.

        Overlapping checks of a role with a backup have seen different nodes. Only the one that first records its
        decision resizes such groups; another one could remove nodes by what it saw earlier.

        Both happen under a launch right: no teardown concludes while it lasts, so nothing is created after its end.

        Raises:
            RunClosedError: the fleet was closed in the meantime; nothing is launched for it.
        """
        run, fleet, now = reading.run, reading.fleet, reading.at
        inventory, resources = self.inventory_reader.read(run, CELL)
        seen = [one for one in inventory.every if one.kind in _COME_AND_GO]
        recorded = [one for one in resources if one.kind in _COME_AND_GO]
        ours = [one for one in inventory.ours if one.kind in _COME_AND_GO]
        new: list[Resource] = teardown.unrecorded(ours, recorded, now)
        # The desired sizes are read last: two checks can overlap, and the newer size must win.
        desired = standing_of(self.runs.get(run)).desired
        own = {role: n for role, n in desired.items() if role not in fleet.backups}
        resizes = standing.resizes(reading.groups, own)
        is_new = bought.resizes or bought.market != fleet.market
        if is_new and self.record.claim(run, fleet, market=bought.market) is not None:
            resizes += bought.resizes
        stays = {one.name: why for one, why in inventory.protected.items() if one.kind is Kind.AUTO_SCALING_GROUP}
        named = [(group_name(run, CELL, resize.role, resize.is_backup), resize) for resize in resizes]
        resizes = tuple(resize for name, resize in named if name not in stays)
        if resizes or new:
            launch = self.runs.launches.begin(run, CELL, now + LONGEST)
            try:
                for resize in resizes:
                    self.groups.resize(run, CELL, resize)
                self.runs.resources.record_seen(new, now)
            finally:
                self.runs.launches.end(launch)
        self.runs.resources.gone(teardown.vanished(recorded, seen, []), now)
        return tuple(f"{name} to {resize.size}: {stays[name]}" for name, resize in named if name in stays)
