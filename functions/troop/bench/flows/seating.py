"""Assigns the ranks of a standing fleet whose file has ``ranks``, and writes the roster that its nodes read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from troop.bench.aws.cell_store import CellStore
from troop.bench.aws.fleet_reader import FleetReader
from troop.bench.definition import names
from troop.bench.definition.roster import Node
from troop.bench.definition.standing import GroupStatus, Place
from troop.bench.fleets import ranks
from troop.bench.fleets.ranks import Ranks


@dataclass(frozen=True)
class Seating:
    """Reads the instances of a fleet, and keeps its roster in the results bucket."""

    reader: FleetReader
    store: CellStore

    def seat(self, run: str, cell: str, desired: Mapping[str, int], groups: Sequence[GroupStatus]) -> bool:
        """Gives ranks to new nodes. Addresses and zones are those of EC2.

        A node loses its rank when it leaves its group, or when EC2 says that it has ended. An answer of EC2 that omits
        it is not enough, because two nodes would then run with one rank.

        Of two overlapping checks, only one changes the roster, because S3 accepts a change only of the state that it is
        based on.

        Returns:
            Whether every rank has a node.

        Raises:
            ClientError: AWS refused; the next check tries again.
        """
        key = names.roster_key(run, cell)
        stored, version = self.store.find_version(key)
        before = Ranks() if stored is None else ranks.from_document(stored)
        members = [(one.id, group.role) for group in groups for one in group.members if one.place is not Place.LEAVING]
        instances = self.reader.described(run, cell)
        gone = self.reader.ended(run, cell).gone if any(one not in instances for one, _ in members) else frozenset()
        nodes = [
            Node(node, role).located(instances[node]) if node in instances else Node(node, role)
            for node, role in members
            if node not in gone
        ]
        after = ranks.assign(before, desired, nodes)
        if stored is None or after != before:
            self.store.replace(key, ranks.to_document(after), version)
        return ranks.is_settled(after, desired)
