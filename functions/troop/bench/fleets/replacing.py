"""Decides which nodes of a booting cell Auto Scaling must replace: those that report an error, and silent ones.

The number of replacements is limited. More failures than that have a common cause, which new nodes would meet, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from troop.bench.definition.definition import Benchmark, Fleet
from troop.bench.definition.roster import Node
from troop.bench.fleets.booting import FleetStatus

SURE, ONE_IN = 1, 50
"""The replacements in a fleet: one, and one more for every 50 of its nodes."""

LEAST_PATIENCE, TIMES = 180.0, 2.0
"""A node is silent if it has not registered within three minutes from its launch, and within twice the time of the
slowest node of its fleet that has.
"""

MOST_RECORDED, LONGEST_REASON = 20, 300
"""The nodes of a cell that its record lists, and the characters of each reason there; S3 and the report have all."""

AGAIN = "its replacement was requested before"
SILENT = "did not register within {:.0f} s from its launch"


@dataclass(frozen=True)
class FailedNode:
    """A node to replace, and why."""

    id: str
    role: str
    reason: str


@dataclass(frozen=True)
class Moments:
    """When EC2 launched the instances of a cell, and when S3 stored their registrations, by id."""

    now: datetime
    launched: Mapping[str, datetime] = field(default_factory=dict)
    registered: Mapping[str, datetime] = field(default_factory=dict)

    def boot_seconds(self, node: str) -> float | None:
        """Returns the seconds from a node's launch to its registration; None if one of them is unknown."""
        if node not in self.launched or node not in self.registered:
            return None
        return (self.registered[node] - self.launched[node]).total_seconds()

    def age(self, node: str) -> float:
        """Returns the seconds since a node's launch; 0 if unknown."""
        return (self.now - self.launched.get(node, self.now)).total_seconds()


def most(fleet: Fleet) -> int:
    """Returns the maximum number of replacements in a fleet."""
    return SURE + fleet.count // ONE_IN


def failed_nodes(
    benchmark: Benchmark,
    fleets: Iterable[FleetStatus],
    nodes: Mapping[str, Node],
    moments: Moments,
    replaced: Mapping[str, str],
    interrupted: frozenset[str] = frozenset(),
) -> list[FailedNode]:
    """Returns the nodes to replace, at most as many as their fleets allow. Also those of an earlier call that are
    still there: its request may have failed.

    Args:
        nodes: registrations by id.
        replaced: roles of the nodes to replace that earlier calls returned, by id.
        interrupted: ids of nodes that spot takes back; Auto Scaling replaces them by itself.
    """
    chosen = []
    for status in fleets:
        fleet = benchmark.fleet(status.role)
        there = (status.serving | status.starting) - status.leaving - interrupted
        chosen += [FailedNode(i, status.role, AGAIN) for i in sorted(there & replaced.keys())]
        there -= replaced.keys()
        failing = [*_broken(status.role, there, nodes), *_silent(fleet, there & status.serving, nodes, moments)]
        chosen += failing[: max(0, most(fleet) - sum(role == status.role for role in replaced.values()))]
    return chosen


def _broken(role: str, there: frozenset[str], nodes: Mapping[str, Node]) -> list[FailedNode]:
    return [
        FailedNode(i, role, nodes[i].error or "") for i in sorted(there & nodes.keys()) if nodes[i].error is not None
    ]


def _silent(fleet: Fleet, there: frozenset[str], nodes: Mapping[str, Node], moments: Moments) -> list[FailedNode]:
    """Returns the nodes that are silent although at least half of their fleet has registered. If most nodes are slow,
    replacements would be slow, too.
    """
    good = [i for i in there & nodes.keys() if nodes[i].error is None]
    seconds = [one for i in good if (one := moments.boot_seconds(i)) is not None]
    if 2 * len(good) < fleet.count or not seconds:
        return []
    patience = max(LEAST_PATIENCE, TIMES * max(seconds))
    silent = (i for i in there - nodes.keys() if moments.age(i) >= patience)
    return [
        FailedNode(i, fleet.role, SILENT.format(patience)) for i in sorted(silent, key=lambda i: (-moments.age(i), i))
    ]
