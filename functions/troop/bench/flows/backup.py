"""Launches on demand the nodes that spot does not provide: the spot group keeps what it has, a backup group gets the
rest.

Every step can be repeated and continues from what it finds. There are never more nodes than the fleet's count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from troop.bench.aws.backup_groups import BackupGroups, GroupNow
from troop.bench.aws.cell_store import CellStore
from troop.bench.aws.fleets import Fleets
from troop.bench.aws.run_table import RunTable
from troop.bench.definition import names
from troop.bench.definition.definition import ON_DEMAND, Fleet, from_document
from troop.bench.fleets.fleet_requests import even_zones
from troop.bench.flows.launching import LONGEST, check_right
from troop.bench.records.record import Kind, Launch, Resource, Run
from troop.shared import moments


@dataclass(frozen=True)
class Backup:
    """Backs up the spot fleets of cells.

    Attributes:
        deployment: the stack's name.
        tags: of all groups, besides those that tell a run's.
    """

    deployment: str
    tags: Mapping[str, str]
    runs: RunTable
    store: CellStore
    groups: BackupGroups
    fleets: Fleets
    clock: Callable[[], datetime]

    def run(self, run: str, cell: str) -> float:
        """Backs up every spot fleet of a cell that is short of nodes. A fleet with unfinished launches is left for the
        next call.

        Returns:
            The seconds since the groups were made.

        Raises:
            RunClosedError: the run or the cell is closed; nothing more is created.
            MissingRunError: there is no such run or cell.
            LaunchImpossibleError: a group with the backup's name is not the run's, or is being deleted.
            LaunchTooLateError: it took too long.
        """
        record, its, now = self.runs.get(run), self.runs.cells.get(run, cell), self.clock()
        elapsed = (now - its.phases[names.BOOT]).total_seconds()
        if its.phase != names.BOOT or self.store.find(names.roster_key(run, cell)) is not None:
            return elapsed
        benchmark = from_document(self.store.read(names.cell_definition_key(run, cell)))
        launch = self.runs.launches.begin(run, cell, now + LONGEST)
        try:
            for fleet in benchmark.fleets:
                if fleet.is_spot:
                    self._fill(record, launch, fleet)
        finally:
            self.runs.launches.end(launch)
        return elapsed

    def _fill(self, record: Run, launch: Launch, fleet: Fleet) -> None:
        spot_name = names.fleet_name(launch.run, launch.cell, fleet.role)
        name, now = names.backup_name(launch.run, launch.cell, fleet.role), self.clock()
        spot, backup = self.groups.describe(spot_name), self.groups.describe(name)
        if backup:  # made by an earlier try, which may have ended right here
            self.fleets.keep(name, record.expires_at)
            self.runs.resources.created([Resource(launch.run, launch.cell, Kind.AUTO_SCALING_GROUP, name, now)], now)
        if spot is None or len(spot.members) + (backup.desired if backup else 0) >= fleet.count:
            return
        check_right(self.runs, launch, self.clock())
        self.groups.stop_launching(spot_name)
        spot = self.groups.describe(spot_name)  # it may have launched until now
        if spot is None or self.groups.is_launching(spot_name, spot.members):
            return
        self.groups.resize(spot_name, len(spot.members))
        rest = fleet.count - len(spot.members)
        if rest == 0 or (backup and backup.desired >= rest):
            return
        planned = Resource(launch.run, launch.cell, Kind.AUTO_SCALING_GROUP, name, planned_at=self.clock())
        self.runs.resources.plan([planned])
        check_right(self.runs, launch, self.clock())
        if backup:
            self.groups.resize(name, rest)
        else:
            own = names.tags(self.deployment, launch.run, launch.cell, moments.iso(record.expires_at))
            tags = names.fleet_tags({**self.tags, **own}, fleet.role)
            subnets = self._subnets(spot, rest)
            on_demand_fleet = replace(fleet, count=rest, purchase=ON_DEMAND, zones=len(subnets))
            self.fleets.group(name, on_demand_fleet, spot.template, subnets, tags)
            self.fleets.keep(name, record.expires_at)
        self.runs.resources.created([planned], self.clock())

    def _subnets(self, spot: GroupNow, rest: int) -> list[str]:
        """Returns the subnets for the rest of the nodes, so that all nodes together are spread evenly."""
        zone_of = {subnet.id: subnet.zone for subnet in self.fleets.subnets(spot.subnets)}
        counts = Counter(spot.members.values())
        zones = even_zones({zone: counts[zone] for zone in zone_of.values()}, rest)
        return [subnet for subnet, zone in sorted(zone_of.items()) if zone in zones]
