"""Replaces nodes that do not come up, while their cell boots.

What is to be replaced is stored first, so that no node is replaced without being counted. A request that fails is
repeated by the next check.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from troop.bench.aws.cell_store import CellStore
from troop.bench.aws.fleet_reader import FleetReader
from troop.bench.aws.instance_facts import is_free_node, resources_of
from troop.bench.aws.run_table import RunTable
from troop.bench.definition import names
from troop.bench.definition.definition import Benchmark
from troop.bench.definition.roster import Node
from troop.bench.fleets import replacing
from troop.bench.fleets.booting import FleetStatus
from troop.bench.fleets.replacing import LEAST_PATIENCE, FailedNode, Moments
from troop.shared.moments import iso

FORMAT = "troop.replaced/1"


@dataclass(frozen=True)
class Replacing:
    """Replaces nodes of booting cells.

    Attributes:
        profile: ARN of the nodes' instance profile.
    """

    runs: RunTable
    store: CellStore
    reader: FleetReader
    profile: str
    clock: Callable[[], datetime]

    def replaced(self, run: str, cell: str) -> dict[str, str]:
        """Returns the roles of the nodes whose replacement was requested, by id."""
        listed = self.store.listed(names.replaced_prefix(run, cell))
        return {i: str(document["role"]) for i, document in self.store.documents(listed.values())}

    def failed_nodes(
        self,
        run: str,
        cell: str,
        benchmark: Benchmark,
        fleets: Sequence[FleetStatus],
        nodes: Mapping[str, Node],
        registered: Mapping[str, datetime],
        elapsed: float,
        replaced: Mapping[str, str],
        interrupted: frozenset[str],
    ) -> list[FailedNode]:
        """Returns the nodes to replace, see :func:`troop.bench.fleets.replacing.failed_nodes`. Reads the moments of
        launches only if a node can be silent.
        """
        waits = any(fleet.serving - nodes.keys() for fleet in fleets) and elapsed >= LEAST_PATIENCE
        described = self.reader.described(run, cell) if waits else {}
        launched = {i: one["LaunchTime"] for i, one in described.items() if "LaunchTime" in one}
        moments = Moments(self.clock(), launched, registered)
        return replacing.failed_nodes(benchmark, fleets, nodes, moments, replaced, interrupted)

    def replace(self, run: str, cell: str, benchmark: Benchmark, failed_nodes: Iterable[FailedNode]) -> None:
        """Records each node with its volumes, stores why it is replaced, keeps its console, and has it terminated. Any
        other instance stays, whoever has attached it to the group; so does a protected node.

        Raises:
            RunClosedError: the run or the cell is closed; its teardown removes everything.
        """
        failed_nodes = list(failed_nodes)
        if not failed_nodes:
            return
        prefix = names.replaced_prefix(run, cell)
        now, described = self.clock(), self.reader.described(run, cell)
        for failed_node in failed_nodes:
            if failed_node.id not in described or not is_free_node(described[failed_node.id], self.profile):
                continue
            resources = resources_of(described[failed_node.id], run, cell, benchmark.fleet(failed_node.role), now)
            self.runs.resources.created(resources, now)
            document = {"format": FORMAT, **asdict(failed_node), "at": iso(now)}
            self.store.put_once(f"{prefix}{failed_node.id}.json", json.dumps(document).encode(), "application/json")
            with suppress(BotoCoreError, ClientError):  # EC2 forgets it soon after the termination
                if console := self.reader.console(failed_node.id):
                    self.store.put_log(names.console_key(run, cell, failed_node.id), console)
            if self.reader.replace(failed_node.id):
                self.runs.resources.gone(resources, self.clock())
        stored = [document for _, document in self.store.documents(self.store.listed(prefix).values())]
        ordered = sorted(stored, key=lambda one: (one["at"], one["id"]))[: replacing.MOST_RECORDED]
        self.runs.cells.replaced(run, cell, [_recorded(one) for one in ordered])


def _recorded(document: Mapping[str, str]) -> dict[str, str]:
    node = {key: document[key] for key in ("id", "role", "at")}
    return {**node, "reason": document["reason"][: replacing.LONGEST_REASON]}
