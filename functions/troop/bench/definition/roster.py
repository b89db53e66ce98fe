"""Parses the nodes' registrations and builds the roster that all nodes and their scripts get.

Nodes write their registrations, so everything in them is checked. Where and what a node is, EC2 says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, groupby, zip_longest
from types import MappingProxyType
from typing import Any

from troop.bench.definition.definition import ON_DEMAND, SPOT
from troop.measure.redaction import redacted

NODE_FORMAT = "troop.node/1"
FORMAT = "troop.roster/1"

UNKNOWN_UNCERTAINTY = 1.0
"""Assumed uncertainty in seconds of a clock that its node could not measure."""

LONGEST_ERROR = 1000


@dataclass(frozen=True)
class Node:
    """A node that has registered.

    Attributes:
        id: id of its instance.
        zone, address, instance_type, purchase: those of EC2, see :meth:`located`; until then empty.
        clock_uncertainty: seconds by which its clock may be wrong.
        error: why its agent failed.
    """

    id: str
    role: str
    zone: str = ""
    address: str = ""
    instance_type: str = ""
    purchase: str = ON_DEMAND
    clock_uncertainty: float = UNKNOWN_UNCERTAINTY
    error: str | None = None

    def located(self, instance: Mapping[str, Any]) -> Node:
        """Returns the node with the facts of its instance.

        Args:
            instance: EC2's description of a running instance.
        """
        return replace(
            self,
            zone=instance["Placement"]["AvailabilityZone"],
            address=instance["PrivateIpAddress"],
            instance_type=instance["InstanceType"],
            purchase=instance.get("InstanceLifecycle", ON_DEMAND),
        )


@dataclass(frozen=True)
class Member:
    """A node on the roster; ``rank`` counts from 0 within its role."""

    id: str
    role: str
    rank: int
    zone: str
    address: str
    instance_type: str
    purchase: str = ON_DEMAND


@dataclass(frozen=True)
class Roster:
    """All nodes of a cell.

    Attributes:
        members: ordered by role and rank.
        clock_uncertainty: the largest of all nodes, in seconds.
    """

    members: tuple[Member, ...]
    clock_uncertainty: float = UNKNOWN_UNCERTAINTY

    def ids(
        self, roles: Iterable[str] | None = None, limits: Mapping[str, int] = MappingProxyType({})
    ) -> frozenset[str]:
        """Returns the ids of all members, or of those of some roles.

        Args:
            limits: for some roles, the number of members with the lowest ranks to return.
        """
        selected = None if roles is None else frozenset(roles)
        return frozenset(
            m.id
            for m in self.members
            if (selected is None or m.role in selected) and m.rank < limits.get(m.role, m.rank + 1)
        )

    def spot(self) -> frozenset[str]:
        """Returns the ids of all spot instances."""
        return frozenset(m.id for m in self.members if m.purchase == SPOT)


def parse_node(instance_id: str, document: Any) -> Node:
    """Parses a node's registration. Returns a node with an error if it cannot be read.

    Args:
        instance_id: from the object's key, which is authoritative: the document must agree with it.
    """
    try:
        if document["format"] != NODE_FORMAT or document["id"] != instance_id:
            raise ValueError(f"it is of {document['id']!r} and the format {document['format']!r}")
        if (error := document.get("error")) is not None:
            return Node(instance_id, str(document.get("role", "")), error=redacted(str(error))[:LONGEST_ERROR])
        if not isinstance(role := document["role"], str):
            raise ValueError("role must be text")
        clock = document.get("clock")
        uncertainty = UNKNOWN_UNCERTAINTY if clock is None else float(clock["uncertainty_seconds"])
        if not 0 <= uncertainty < math.inf:
            raise ValueError("clock.uncertainty_seconds must be a number from 0")
        return Node(instance_id, role, clock_uncertainty=uncertainty)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return Node(instance_id, "", error=f"its registration cannot be read: {error!r}"[:LONGEST_ERROR])


def make_roster(nodes: Sequence[Node]) -> Roster:
    """Builds the roster of located nodes that registered without an error; their order does not matter.

    Rank i of a role is in its zone i mod zones, as long as all zones have nodes left. So with three zones, a script
    that selects every third node selects nodes of one zone.
    """
    members: list[Member] = []
    ordered = sorted(nodes, key=lambda n: (n.role, n.zone, n.id))
    for role, members_of_role in groupby(ordered, key=lambda n: n.role):
        zones = [list(zone_members) for _, zone_members in groupby(members_of_role, key=lambda n: n.zone)]
        ranked = [node for node in chain.from_iterable(zip_longest(*zones)) if node is not None]
        members += [Member(n.id, role, i, n.zone, n.address, n.instance_type, n.purchase) for i, n in enumerate(ranked)]
    worst = max((node.clock_uncertainty for node in nodes), default=UNKNOWN_UNCERTAINTY)
    return Roster(tuple(members), worst)


def to_document(roster: Roster) -> dict[str, Any]:
    """Converts to the stored document; the reverse of :func:`from_document`."""
    return {
        "format": FORMAT,
        "clock": {"uncertainty_seconds": roster.clock_uncertainty},
        "nodes": [asdict(member) for member in roster.members],
    }


def from_document(document: Mapping[str, Any]) -> Roster:
    """Reads a document that :func:`to_document` has built."""
    members = tuple(Member(**node) for node in document["nodes"])
    return Roster(members, float(document["clock"]["uncertainty_seconds"]))
