"""Stores the attributes of standing fleets in the table ``Runs``: the desired nodes, and the nodes last seen."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from troop import moments
from troop.aws.bench.node_reservations import NodeReservations
from troop.aws.bench.run_items import RUN, key
from troop.aws.bench.run_rows import RunRows
from troop.aws.dynamo import typed
from troop.aws.transact import ConditionFailed, Sleep, transact
from troop.bench.limits import no_room
from troop.bench.problems import BadBenchmarkError
from troop.bench.standing import Counts

_IS_OPEN = "attribute_exists(desired) AND attribute_not_exists(closed_at)"


@dataclass(frozen=True)
class FleetRecord:
    """The record of standing fleets.

    Attributes:
        table: Runs.
    """

    client: Any
    table: str
    sleep: Sleep = time.sleep

    def scale(
        self,
        run: str,
        before: Mapping[str, int],
        desired: Mapping[str, int],
        caller: str,
        now: datetime,
        most_nodes: int,
    ) -> bool:
        """Changes the desired nodes of an open fleet, and its reservation.

        Args:
            most_nodes: of all open runs together; it does not limit a fleet that does not grow.

        Returns:
            False, and nothing is changed, if the fleet is not open, its desired nodes are no longer ``before``, or the
            reservations have changed meanwhile.

        Raises:
            BadBenchmarkError: other runs hold too many nodes.
        """
        rows = RunRows(self.client, self.table, self.sleep)
        reservations = NodeReservations(rows)
        known, nodes = reservations.read(), sum(desired.values())
        if nodes > sum(before.values()) and (problem := no_room(("count",), nodes, known.others(run), most_nodes)):
            raise BadBenchmarkError([problem])
        values = {":desired": dict(desired), ":before": dict(before), ":now": moments.iso(now), ":caller": caller}
        change = {
            "Update": {
                "TableName": self.table,
                "Key": key(run, RUN),
                "UpdateExpression": "SET desired = :desired, scaled_at = :now, scaled_by = :caller",
                "ConditionExpression": f"{_IS_OPEN} AND desired = :before",
                "ExpressionAttributeValues": typed(values),
            }
        }
        try:
            transact(self.client, [change, reservations.reserving(known, run, nodes)], self.sleep)
        except ConditionFailed:
            return False
        return True

    def saw(self, run: str, seen: Mapping[str, Counts], now: datetime) -> None:
        """Records the nodes that a check found; a closed fleet stays as it is."""
        counts = {role: asdict(of_role) for role, of_role in seen.items()}
        with suppress(ConditionFailed):
            self._update(run, "SET seen = :seen, seen_at = :now", _IS_OPEN, {":seen": counts, ":now": moments.iso(now)})

    def _update(self, run: str, update: str, condition: str, values: dict[str, Any]) -> None:
        RunRows(self.client, self.table, self.sleep).update(run, RUN, update, condition, values)
