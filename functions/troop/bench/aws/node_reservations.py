"""Stores the nodes that open runs hold, in one item of the table ``Runs``.

A run's entry is written in the transactions that create and end the run, so it cannot leak; removing it twice changes
nothing. Each write requires the version that its writer has read: only one of two admissions gets the last nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from troop.bench.aws.run_items import key
from troop.bench.aws.run_rows import RunRows
from troop.bench.records.record import SCHEMA
from troop.shared.aws.dynamo import plain, typed
from troop.shared.aws.transact import ConditionFailed
from troop.shared.errors import TroopError

KEY = key("reservations", "nodes")
TRIES = 8


class ReservationConflictError(TroopError):
    """Other requests keep changing the reservations."""

    def __init__(self) -> None:
        super().__init__("other requests start or end runs at the same time: try again in a few seconds")


@dataclass(frozen=True)
class Reservations:
    """How many of the deployment's nodes each open run or standing fleet reserves, at one moment.

    Attributes:
        nodes: by run.
        version: increases with each change, so that a write can require that nothing has changed since the read.
    """

    nodes: Mapping[str, int] = field(default_factory=dict)
    version: int = 0

    def others(self, run: str) -> dict[str, int]:
        """Returns the nodes that other runs hold, by run."""
        return {other: nodes for other, nodes in self.nodes.items() if other != run}

    def unknown(self, runs: Collection[str]) -> list[str]:
        """Lists the holders that are not among ``runs``."""
        return sorted(set(self.nodes) - set(runs))


@dataclass(frozen=True)
class NodeReservations:
    """The reservations of a deployment."""

    rows: RunRows

    def read(self) -> Reservations:
        """Reads the reservations, strongly consistent."""
        answer = self.rows.client.get_item(TableName=self.rows.table, Key=KEY, ConsistentRead=True)
        item = plain(answer.get("Item", {}))
        nodes = {run: int(count) for run, count in item.get("nodes", {}).items()}
        return Reservations(nodes, int(item.get("version", 0)))

    def reserving(self, known: Reservations, run: str, nodes: int) -> dict[str, Any]:
        """Returns the part of a transaction that sets a run's nodes, whatever it held before."""
        if not known.version:
            values = {":next": 1, ":nodes": {run: nodes}, ":schema": SCHEMA}
            return self._update("SET #nodes = :nodes", "attribute_not_exists(#version)", values)
        values = {":next": known.version + 1, ":known": known.version, ":count": nodes, ":schema": SCHEMA}
        return self._update("SET #nodes.#run = :count", "#version = :known", values, run)

    def releasing(self, known: Reservations, run: str) -> dict[str, Any]:
        """Returns the part of a transaction that releases a run's nodes; the run must be among the known ones."""
        values = {":next": known.version + 1, ":known": known.version, ":schema": SCHEMA}
        return self._update("REMOVE #nodes.#run SET", "#version = :known", values, run)

    def release(self, run: str) -> None:
        """Releases what a run holds; repeating it changes nothing.

        Raises:
            ReservationConflictError: others kept changing the reservations.
        """
        self._alone(run, None)

    def reserve(self, run: str, nodes: int) -> None:
        """Reserves nodes that a run has already, without checking any limit.

        Raises:
            ReservationConflictError: others kept changing the reservations.
        """
        self._alone(run, nodes)

    def _alone(self, run: str, nodes: int | None) -> None:
        for _ in range(TRIES):
            known = self.read()
            if known.nodes.get(run) == nodes:
                return
            part = self.releasing(known, run) if nodes is None else self.reserving(known, run, nodes)
            try:
                self.rows.write_all([part])
            except ConditionFailed:
                continue
            return
        raise ReservationConflictError

    def _update(self, change: str, condition: str, values: dict[str, Any], run: str | None = None) -> dict[str, Any]:
        separator = " " if change.endswith("SET") else ", "
        names = {"#nodes": "nodes", "#version": "version", "#schema": "schema"} | ({"#run": run} if run else {})
        return {
            "Update": {
                "TableName": self.rows.table,
                "Key": KEY,
                "UpdateExpression": f"{change}{separator}#version = :next, #schema = :schema",
                "ConditionExpression": condition,
                "ExpressionAttributeNames": names,
                "ExpressionAttributeValues": typed(values),
            }
        }
