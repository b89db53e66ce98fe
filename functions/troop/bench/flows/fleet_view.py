"""Reads the state of a standing fleet: its record, its groups, its nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from troop.bench.aws.cell_store import CellStore, Listed, document, newest
from troop.bench.aws.standing_groups import StandingGroups
from troop.bench.definition import names
from troop.bench.definition.roster import Node, parse_node
from troop.bench.definition.standing import GroupStatus, Standing
from troop.bench.living.report import MOST_BYTES, Report, parse_report
from troop.bench.records.record import Run
from troop.measure.summary import MOST_BYTES as MOST_OF_A_DOCUMENT
from troop.shared.errors import MissingRunError

CELL = names.cell_id(1)
"""The only cell of a fleet."""

MOST_READ = 500
"""The most registrations that one check reads, newest first: any of them may report a failure."""


MOST_REPORTS = 1_000
"""The most reports that one check reads, newest first; a node whose report is older is silent."""

MOST_BY_ID = 1_000
"""The most nodes whose objects are read by their ids; of more, only the newest are read, which a listing tells."""


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
    """Reads the state of a standing fleet.

    Attributes:
        role_id: id of the nodes' role, with which the keys of what they write begin. With it, the objects of up to
            ``MOST_BY_ID`` nodes are read without a listing, which would grow with all nodes that the fleet ever had.
    """

    groups: StandingGroups
    store: CellStore
    role_id: str = ""

    def describe(self, run: str, fleet: Standing) -> tuple[list[GroupStatus], dict[str, Node]]:
        """Returns the groups, and the registrations of their instances by id. A registration that is not read counts as
        a node of its group's role.
        """
        groups = self.groups.describe(run, CELL, fleet.desired, fleet.backups)
        return groups, self._registrations(run, groups)[0]

    def read(self, record: Run, now: datetime) -> Reading:
        """Reads everything that a check decides by.

        Args:
            record: of the fleet, which was read before ``now``.

        Raises:
            MissingRunError: it is a benchmark's run.
        """
        run, fleet = record.run, standing_of(record)
        groups = self.groups.describe(run, CELL, fleet.desired, fleet.backups)
        nodes, registered = self._registrations(run, groups)
        return Reading(record, fleet, now, groups, nodes, registered, self._reports(run, fleet, groups))

    def _reports(self, run: str, fleet: Standing, groups: Iterable[GroupStatus]) -> dict[str, Report]:
        its = {member.id for group in groups if group.role in fleet.watched for member in group.members}
        prefix = names.reports_prefix(run, CELL)
        written = self._by_id(prefix, its, MOST_BYTES + 1)
        listed = newest(self._listed(prefix, its - written.keys()).values(), MOST_REPORTS)
        bodies = [*written.values(), *self.store.beginnings(listed, MOST_BYTES + 1)]
        reports = (parse_report(names.node_of(one.key), one.modified, body) for one, body in bodies)
        return {one.id: one for one in reports}

    def _registrations(self, run: str, groups: Iterable[GroupStatus]) -> tuple[dict[str, Node], dict[str, datetime]]:
        """Returns the registrations, and when each of them was written, by id."""
        its = {member.id: group.role for group in groups for member in group.members}
        prefix = names.nodes_prefix(run, CELL)
        written = self._by_id(prefix, its, MOST_OF_A_DOCUMENT + 1)
        listed = self._listed(prefix, its.keys() - written.keys())
        nodes = {i: Node(i, its[i]) for i in listed}
        nodes |= {i: parse_node(i, document(body)) for i, (_, body) in written.items()}
        for i, one in self.store.documents(newest(listed.values(), MOST_READ)):
            nodes[i] = parse_node(i, one)
        objects = {i: one for i, (one, _) in written.items()} | listed
        return nodes, {i: one.modified for i, one in objects.items()}

    def _by_id(self, prefix: str, ids: Collection[str], most: int) -> dict[str, tuple[Listed, bytes]]:
        """Reads what nodes have written below a prefix by their ids, if these are known to be few."""
        if not self.role_id or len(ids) > MOST_BY_ID:
            return {}
        keys = [f"{prefix}{self.role_id}:{i}.json" for i in sorted(ids)]
        return {names.node_of(one.key): (one, body) for one, body in self.store.present(keys, most)}

    def _listed(self, prefix: str, ids: Collection[str]) -> dict[str, Listed]:
        """Lists what these nodes have written below a prefix: those that have just begun have written nothing yet."""
        return {i: one for i, one in self.store.listed(prefix).items() if i in ids} if ids else {}


def standing_of(record: Run) -> Standing:
    """Returns the part of a record that only standing fleets have.

    Raises:
        MissingRunError: it is a benchmark's run.
    """
    if record.standing is None:
        raise MissingRunError(record.run)
    return record.standing
