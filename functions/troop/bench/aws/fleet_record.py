"""Stores the attributes of standing fleets in the table ``Runs``: the desired nodes, and the nodes last seen."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from troop.bench.aws.node_reservations import NodeReservations
from troop.bench.aws.run_items import RUN, key
from troop.bench.aws.run_rows import RunRows
from troop.bench.definition.limits import no_room
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.definition.standing import Counts, Market, Standing, reserved
from troop.shared import codec, moments
from troop.shared.aws.dynamo import typed
from troop.shared.aws.throttling import Sleep
from troop.shared.aws.transact import ConditionFailed, transact

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
        backups: Collection[str] = (),
    ) -> bool:
        """Changes the desired nodes of an open fleet, and its reservation.

        Args:
            most_nodes: of all open runs together; it does not limit a fleet that does not grow.
            backups: roles with a backup group.

        Returns:
            False, and nothing is changed, if the fleet is not open, its desired nodes are no longer ``before``, or the
            reservations have changed meanwhile.

        Raises:
            BadBenchmarkError: other runs hold too many nodes.
        """
        rows = RunRows(self.client, self.table, self.sleep)
        reservations = NodeReservations(rows)
        known, nodes = reservations.read(), reserved(desired, backups)
        if nodes > reserved(before, backups) and (problem := no_room(("count",), nodes, known.others(run), most_nodes)):
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

    def decide(self, run: str, standing: Standing, market: Mapping[str, Market]) -> bool:
        """Records what the next check of an open fleet must know, and with it the right to resize its groups now.

        Args:
            standing: the record that the decision is based on.

        Returns:
            False, and nothing is changed, if another check has decided since, or the fleet was resized or closed.
        """
        values = {
            ":market": {role: codec.to_document(one) for role, one in market.items()},
            ":next": standing.decisions + 1,
            ":before": standing.decisions,
            ":desired": dict(standing.desired),
        }
        last = "decisions = :before" if standing.decisions else "attribute_not_exists(decisions)"
        if not standing.decisions:
            del values[":before"]
        condition = f"{_IS_OPEN} AND desired = :desired AND {last}"
        try:
            self._update(run, "SET market = :market, decisions = :next", condition, values)
        except ConditionFailed:
            return False
        return True

    def record_counts(self, run: str, counts: Mapping[str, Counts], now: datetime) -> None:
        """Records the nodes that a check found; a closed fleet stays as it is."""
        values = {":seen": {role: asdict(own) for role, own in counts.items()}, ":now": moments.iso(now)}
        with suppress(ConditionFailed):
            self._update(run, "SET seen = :seen, seen_at = :now", _IS_OPEN, values)

    def _update(self, run: str, update: str, condition: str, values: dict[str, Any]) -> None:
        RunRows(self.client, self.table, self.sleep).update(run, RUN, update, condition, values)
