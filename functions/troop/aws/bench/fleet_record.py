"""What the table ``Runs`` holds of standing fleets alone: how many nodes there are to be, and how many were seen."""

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
    """``table``: Runs."""

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
        """Changes how many nodes there are to be, of a fleet that is open, and what it holds of the nodes in total.

        Args:
            most_nodes: of all open runs together; a fleet that does not grow is not held to it.

        Returns:
            False, and nothing is changed, when the fleet is not open, when its nodes are not ``before`` any more, or
            when somebody has changed the reservations meanwhile.

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
        """Writes down what a look has shown; of a fleet that is closed nothing is changed."""
        counts = {role: asdict(of_role) for role, of_role in seen.items()}
        with suppress(ConditionFailed):
            self._update(run, "SET seen = :seen, seen_at = :now", _IS_OPEN, {":seen": counts, ":now": moments.iso(now)})

    def _update(self, run: str, update: str, condition: str, values: dict[str, Any]) -> None:
        RunRows(self.client, self.table, self.sleep).update(run, RUN, update, condition, values)
