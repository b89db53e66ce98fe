"""Makes claims: one DynamoDB transaction that reserves the termination of one instance, or reports what prevents it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from troop.chaos.aws.event_items import to_item
from troop.chaos.aws.request_key import RequestKey
from troop.chaos.events import SCHEMA, Event, Status
from troop.chaos.facts import UnitState
from troop.chaos.policy import PARSERS
from troop.shared.aws.transact import ConditionFailed, transact
from troop.shared.state_keys import DAY, HIT, IN_FLIGHT, SELF_HALT, SWITCH, UNIT

HIT_LIFETIME = timedelta(days=366)
"""The time for which Troop knows that an instance had a lasting fault."""

_WORDS = {
    "already-today": "the day's event is already recorded",
    "switched": "chaos was halted or leashed while it was claimed",
    "halted": "the deployment halted itself while it was claimed",
    "policy-changed": "its policy was changed while it was claimed",
    "day-cap": "other claims were faster: max_per_day {max_per_day}",
    "in-flight": "other claims were faster: max_in_flight {max_in_flight}, or its instance is claimed for another unit",
    "unit-changed": "it was claimed, abandoned or removed from chaos in the meantime",
    "inside": "its instance had a fault inside while this one was claimed",
    "key-used": "the key already has an event",
}
"""The reasons to refuse a claim, with their sentences."""


class ClaimRefused(Exception):
    """A condition of the claim does not hold (any more).

    Attributes:
        reason: a key of ``_WORDS``.
        detail: a sentence.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")


@dataclass(frozen=True)
class ClaimTransaction:
    """Makes claims.

    Attributes:
        leashed: the setting. If it is false, callers have checked that it has an effect, which then never ends.
        sleep: waits after a conflict with another transaction; an argument so that tests need not wait.
    """

    client: Any
    events: str
    state: str
    group_tags: str
    leashed: bool
    sleep: Callable[[float], None] = time.sleep

    def make(
        self,
        event: Event,
        policy_item: Mapping[str, Any],
        unit: UnitState,
        max_per_day: int,
        max_in_flight: int,
        key: RequestKey | None = None,
    ) -> Event:
        """Writes the event if all conditions hold, otherwise nothing. Returns the recorded event, with the unit's
        previous termination.

        Args:
            event: status CLAIMED.
            policy_item: the unit's item in ``GroupTags`` in DynamoDB's types, as read for the decision; its contents
                are compared, because edits by hand do not change its version.
            unit: the unit's state as read for the decision.
            key: the key, on demand, that has no event yet and refers to this one from now on.

        Raises:
            ClaimRefused: with the first condition that did not hold.
            ClientError: any other refusal by DynamoDB.
        """
        event = replace(event, before=unit.last)
        parts = {
            "already-today": self._event(event),
            "switched": self._switch(),
            "halted": self._not_halted_by_itself(),
            "policy-changed": self._policy(event.unit, policy_item),
            "day-cap": self._counter(f"{DAY}{event.day}", max_per_day),
            **({"key-used": key.record(self.state, event)} if key else {}),
            **({"inside": self._hit(event)} if event.injection else {}),
            "unit-changed": self._unit(event, unit),
            "in-flight": self._place(event, max_in_flight),
        }
        try:
            transact(self.client, list(parts.values()), self.sleep)
        except ConditionFailed as failed:
            reason = list(parts)[failed.part]
            words = _WORDS[reason].format(max_per_day=max_per_day, max_in_flight=max_in_flight)
            raise ClaimRefused(reason, words) from None
        return event

    def _event(self, event: Event) -> dict[str, Any]:
        return {
            "Put": {
                "TableName": self.events,
                "Item": to_item(event),
                "ConditionExpression": "attribute_not_exists(event_id) OR #status = :leashed",
                "ExpressionAttributeNames": {"#status": "status"},
                "ExpressionAttributeValues": {":leashed": {"S": Status.LEASHED.value}},
            }
        }

    def _switch(self) -> dict[str, Any]:
        unset = "" if self.leashed else "attribute_not_exists(leashed) OR "
        return {
            "ConditionCheck": {
                "TableName": self.state,
                "Key": {"key": {"S": SWITCH}},
                "ConditionExpression": f"(attribute_not_exists(halted) OR halted = :no) AND ({unset}leashed = :no)",
                "ExpressionAttributeValues": {":no": {"BOOL": False}},
            }
        }

    def _not_halted_by_itself(self) -> dict[str, Any]:
        return {
            "ConditionCheck": {
                "TableName": self.state,
                "Key": {"key": {"S": SELF_HALT}},
                "ConditionExpression": "attribute_not_exists(#key)",
                "ExpressionAttributeNames": {"#key": "key"},
            }
        }

    def _policy(self, unit: str, item: Mapping[str, Any]) -> dict[str, Any]:
        names = {f"#k{i}": key for i, key in enumerate(PARSERS)}
        values = {f":v{i}": item[key] for i, key in enumerate(PARSERS) if key in item}
        same = [f"#k{i} = :v{i}" if key in item else f"attribute_not_exists(#k{i})" for i, key in enumerate(PARSERS)]
        check: dict[str, Any] = {
            "TableName": self.group_tags,
            "Key": {"unit": {"S": unit}},
            "ConditionExpression": " AND ".join(same),
            "ExpressionAttributeNames": names,
        }
        return {"ConditionCheck": check | ({"ExpressionAttributeValues": values} if values else {})}

    def _counter(self, key: str, most: int) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": self.state,
                "Key": {"key": {"S": key}},
                "UpdateExpression": "SET #schema = :schema ADD #count :one",
                "ConditionExpression": "(attribute_not_exists(#count) OR #count < :most)",
                "ExpressionAttributeNames": {"#count": "count", "#schema": "schema"},
                "ExpressionAttributeValues": {
                    ":one": {"N": "1"},
                    ":most": {"N": str(most)},
                    ":schema": {"N": str(SCHEMA)},
                },
            }
        }

    def _place(self, event: Event, most: int) -> dict[str, Any]:
        """Counts a claim in flight, and reserves its instance: the group can move to another unit meanwhile."""
        part = self._counter(IN_FLIGHT, most)
        part["Update"]["UpdateExpression"] += ", #instances :instance"
        part["Update"]["ConditionExpression"] += " AND NOT contains(#instances, :id)"
        part["Update"]["ExpressionAttributeNames"]["#instances"] = "instances"
        part["Update"]["ExpressionAttributeValues"] |= {
            ":instance": {"SS": [event.instance_id]},
            ":id": {"S": event.instance_id},
        }
        return part

    def _hit(self, event: Event) -> dict[str, Any]:
        """Records that the instance has its only lasting fault: what one leaves behind could end a second one."""
        return {
            "Update": {
                "TableName": self.state,
                "Key": {"key": {"S": HIT + event.instance_id}},
                "UpdateExpression": "SET event_id = :event, expires_at = :expires, #schema = :schema",
                "ConditionExpression": "attribute_not_exists(event_id)",
                "ExpressionAttributeNames": {"#schema": "schema"},
                "ExpressionAttributeValues": {
                    ":event": {"S": event.event_id},
                    ":expires": {"N": str(int((event.at + HIT_LIFETIME).timestamp()))},
                    ":schema": {"N": str(SCHEMA)},
                },
            }
        }

    def _unit(self, event: Event, unit: UnitState) -> dict[str, Any]:
        values = {
            ":day": {"S": event.day.isoformat()},
            ":event": {"S": event.event_id},
            ":schema": {"N": str(SCHEMA)},
        }
        unchanged = "attribute_not_exists(last_day)"
        if unit.last_day:
            unchanged, values[":last"] = "last_day = :last", {"S": unit.last_day.isoformat()}
        # The event too: a day can have two on demand, and one of the previous night can still be in flight.
        if unit.last_event:
            unchanged, values[":before"] = f"{unchanged} AND last_event = :before", {"S": unit.last_event}
        else:
            unchanged += " AND attribute_not_exists(last_event)"
        # And the abandoned claim: one that was made and abandoned in between does not change the last event.
        if unit.abandoned:
            unchanged, values[":spent"] = f"{unchanged} AND abandoned_event = :spent", {"S": unit.abandoned.event_id}
        else:
            unchanged += " AND attribute_not_exists(abandoned_event)"
        return {
            "Update": {
                "TableName": self.state,
                "Key": {"key": {"S": UNIT + event.unit}},
                "UpdateExpression": "SET last_day = :day, last_event = :event, #schema = :schema",
                "ConditionExpression": f"attribute_not_exists(unrecovered) AND {unchanged}",
                "ExpressionAttributeNames": {"#schema": "schema"},
                "ExpressionAttributeValues": values,
            }
        }
