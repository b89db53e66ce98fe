"""Reads the state of a standing fleet: its record, its groups, its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from troop.bench.aws.cell_store import CellStore, Listed, newest
from troop.bench.aws.standing_groups import StandingGroups
from troop.bench.definition import names
from troop.bench.definition.roster import Node, parse_node
from troop.bench.definition.standing import GroupStatus, Standing
from troop.bench.living.report import MOST_BYTES, Report, parse_report
from troop.bench.records.record import Run
from troop.shared.errors import MissingRunError

CELL = names.cell_id(1)
"""The only cell of a fleet."""

MOST_READ = 500
"""The most registrations that one check reads, newest first: any of them may report a failure."""


MOST_REPORTS = 1_000
"""The most reports that one check reads, newest first; a node whose report is older is silent."""


@dataclass(frozen=True)
class Reading:
    """What one check has read of a fleet, which all of its decisions rest on.

    Attributes:
        record: the fleet's record as it was read.
        fleet: the part of the record that only standing fleets have; after a claim, as the claim left it.
        at: after the record was read, and before anything else was.
        nodes: registrations by id.
        registered: when each of them was written, by the clock of S3.
        reports: the newest report of each node, if it was read; of roles whose nodes report.
    """

    record: Run
    fleet: Standing
    at: datetime
    groups: list[GroupStatus]
    nodes: Mapping[str, Node]
    registered: Mapping[str, datetime] = field(default_factory=dict)
    reports: Mapping[str, Report] = field(default_factory=dict)

    @property
    def run(self) -> str:
        """The id of the fleet."""
        return self.record.run


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
        return groups, self._nodes(groups, self._listed(run, groups).values())

    def read(self, record: Run, now: datetime) -> Reading:
        """Reads everything that a check decides by.

        Args:
            record: of the fleet, which was read before ``now``.

        Raises:
            MissingRunError: it is a benchmark's run.
        """
        run, fleet = record.run, standing_of(record)
        groups = self.groups.describe(run, CELL, fleet.desired, fleet.backups)
        listed = self._listed(run, groups)
        registered = {i: one.modified for i, one in listed.items()}
        nodes = self._nodes(groups, listed.values())
        return Reading(record, fleet, now, groups, nodes, registered, self._reports(run, fleet, groups))

    def _reports(self, run: str, fleet: Standing, groups: Iterable[GroupStatus]) -> dict[str, Report]:
        its = {member.id for group in groups if group.role in fleet.watched for member in group.members}
        if not its:
            return {}
        listed = [one for i, one in self.store.listed(names.reports_prefix(run, CELL)).items() if i in its]
        bodies = self.store.beginnings(newest(listed, MOST_REPORTS), MOST_BYTES + 1)
        reports = (parse_report(names.node_of(one.key), one.modified, body) for one, body in bodies)
        return {one.id: one for one in reports}

    def _listed(self, run: str, groups: Iterable[GroupStatus]) -> dict[str, Listed]:
        its = {member.id for group in groups for member in group.members}
        prefix = names.nodes_prefix(run, CELL)
        return {i: one for i, one in self.store.listed(prefix).items() if i in its} if its else {}

    def _nodes(self, groups: Iterable[GroupStatus], listed: Iterable[Listed]) -> dict[str, Node]:
        its = {member.id: group.role for group in groups for member in group.members}
        objects = list(listed)
        nodes = {i: Node(i, its[i]) for i in (names.node_of(one.key) for one in objects)}
        for i, document in self.store.documents(newest(objects, MOST_READ)):
            nodes[i] = parse_node(i, document)
        return nodes


def standing_of(record: Run) -> Standing:
    """Returns the part of a record that only standing fleets have.

    Raises:
        MissingRunError: it is a benchmark's run.
    """
    if record.standing is None:
        raise MissingRunError(record.run)
    return record.standing
