"""Stores the attributes of standing fleets in the table ``Runs``: the desired nodes, and the nodes last seen."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from troop.bench.aws.node_reservations import NodeReservations
from troop.bench.aws.run_items import RUN, key
from troop.bench.aws.run_rows import RunRows
from troop.bench.definition.limits import no_room
from troop.bench.definition.living import RoleDigest
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.definition.standing import Counts, Standing, reserved
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
        fleet: Standing,
        desired: Mapping[str, int],
        caller: str,
        now: datetime,
        most_nodes: int,
    ) -> bool:
        """Changes the desired nodes of an open fleet, and its reservation. Nodes of a fleet with a queue stay for a
        while when they go: then it keeps its reservation for them, see :meth:`release`.

        Args:
            fleet: as it was read.
            caller: ARN of the caller, or :data:`~troop.bench.definition.standing.ITSELF`.
            most_nodes: of all open runs together; it does not limit a fleet that does not grow.

        Returns:
            False, and nothing is changed, if the fleet is not open, its desired nodes are others by now, or the
            reservations have changed meanwhile.

        Raises:
            BadBenchmarkError: other runs hold too many nodes.
        """
        rows = RunRows(self.client, self.table, self.sleep)
        reservations = NodeReservations(rows)
        known, nodes, before = reservations.read(), reserved(desired, fleet.backups), dict(fleet.desired)
        grows = nodes > reserved(before, fleet.backups)
        if grows and (problem := no_room(("count",), nodes, known.others(run), most_nodes)):
            raise BadBenchmarkError([problem])
        held = nodes if fleet.queue is None else max(nodes, known.nodes.get(run, 0))
        values = {":desired": dict(desired), ":before": before, ":now": moments.iso(now), ":caller": caller}
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
            transact(self.client, [change, reservations.reserving(known, run, held)], self.sleep)
        except ConditionFailed:
            return False
        return True

    def release(self, run: str, fleet: Standing) -> None:
        """Reduces a fleet's reservation to its desired nodes, after the last of its nodes has drained. Does nothing if
        the fleet was resized meanwhile, or another request has changed the reservations: the next check tries again.
        """
        reservations = NodeReservations(RunRows(self.client, self.table, self.sleep))
        known, nodes = reservations.read(), reserved(fleet.desired, fleet.backups)
        if known.nodes.get(run, 0) <= nodes:
            return
        check = {
            "ConditionCheck": {
                "TableName": self.table,
                "Key": key(run, RUN),
                "ConditionExpression": f"{_IS_OPEN} AND desired = :desired",
                "ExpressionAttributeValues": typed({":desired": dict(fleet.desired)}),
            }
        }
        with suppress(ConditionFailed):
            transact(self.client, [check, reservations.reserving(known, run, nodes)], self.sleep)

    def extend(self, run: str, before: datetime, expires_at: datetime) -> bool:
        """Moves the end of an open fleet.

        Returns:
            False, and nothing is changed, if the fleet is not open, or its end is no longer ``before``.
        """
        values = {":before": moments.iso(before), ":after": moments.iso(expires_at)}
        return self._update(run, "SET expires_at = :after", f"{_IS_OPEN} AND expires_at = :before", values)

    def count_submitted(self, run: str, tasks: int) -> None:
        """Adds to the number of tasks that a fleet's queue has accepted. A lost answer counts nothing twice.

        Raises:
            ConditionFailed: there is no such fleet.
            ClientError: DynamoDB refused.
        """
        count = {
            "Update": {
                "TableName": self.table,
                "Key": key(run, RUN),
                "UpdateExpression": "ADD submitted :tasks",
                "ConditionExpression": "attribute_exists(desired)",
                "ExpressionAttributeValues": typed({":tasks": tasks}),
            }
        }
        transact(self.client, [count], self.sleep)

    def wake(self, run: str, before: datetime, now: datetime) -> bool:
        """Records that submitted tasks wake an open fleet. Returns False, and changes nothing, if it was woken since
        ``before``.
        """
        values = {":before": moments.iso(before), ":now": moments.iso(now)}
        condition = f"{_IS_OPEN} AND (attribute_not_exists(woken_at) OR woken_at <= :before)"
        return self._update(run, "SET woken_at = :now", condition, values)

    def claim(self, run: str, standing: Standing, **changes: Any) -> Standing | None:
        """Records what a check of an open fleet has decided, and with it the right to act on that now.

        Args:
            standing: the record that the decision is based on.
            changes: the attributes of :class:`Standing` that the decision changes.

        Returns:
            The record after the claim, for further claims of the same check. None, and nothing is changed, if another
            check has decided since, or the fleet was resized or closed.
        """
        after = replace(standing, **changes, decisions=standing.decisions + 1)
        document, names = codec.to_document(after), [*changes, "decisions"]
        values = {f":{name}": document[name] for name in names if name in document}
        values[":desired"] = dict(standing.desired)
        last = "attribute_not_exists(#decisions)"
        if standing.decisions:
            values[":before"], last = standing.decisions, "#decisions = :before"
        update = "SET " + ", ".join(f"#{name} = :{name}" for name in names if name in document)
        if removed := [f"#{name}" for name in names if name not in document]:
            update += " REMOVE " + ", ".join(removed)
        condition = f"{_IS_OPEN} AND desired = :desired AND {last}"
        return after if self._update(run, update, condition, values, {f"#{name}": name for name in names}) else None

    def mark_sent(self, run: str, standing: Standing, key: str) -> Standing | None:
        """Records that people were notified of a check that this claim has announced.

        Args:
            standing: the record as the claim left it.
            key: of the announcement.

        Returns:
            The record after that, for further claims. None, and nothing is changed, if the fleet was closed, or another
            check has taken the notification on since.
        """
        entry = standing.announced[key]
        values = {":sent": True, ":one": 1, ":at": moments.iso(entry.at)}
        update, condition = "SET announced.#key.sent = :sent ADD decisions :one", "announced.#key.#at = :at"
        if not self._update(run, update, f"{_IS_OPEN} AND {condition}", values, {"#key": key, "#at": "at"}):
            return None
        after = {**standing.announced, key: replace(entry, sent=True)}
        return replace(standing, announced=after, decisions=standing.decisions + 1)

    def record_seen(
        self, run: str, counts: Mapping[str, Counts], digests: Mapping[str, RoleDigest], now: datetime
    ) -> None:
        """Records the nodes that a check found, and their health; a closed fleet stays as it is."""
        values: dict[str, Any] = {
            ":seen": {role: asdict(own) for role, own in counts.items()},
            ":now": moments.iso(now),
        }
        update, names = "SET seen = :seen, seen_at = :now", dict[str, str]()
        if digests:
            update, names["#digest"] = f"{update}, #digest = :digest", "digest"
            values[":digest"] = {role: codec.to_document(one) for role, one in digests.items()}
        self._update(run, update, _IS_OPEN, values, names)

    def _update(
        self, run: str, update: str, condition: str, values: dict[str, Any], names: dict[str, str] | None = None
    ) -> bool:
        """Changes the item if the condition holds. Returns whether it does."""
        try:
            RunRows(self.client, self.table, self.sleep).update(run, RUN, update, condition, values, names)
        except ConditionFailed:
            return False
        return True
