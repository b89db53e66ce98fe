"""Stores idempotency keys of terminations on demand: the event of a group's key, even if the group's unit changes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from troop.chaos.events import SCHEMA, Event
from troop.shared.aws.dynamo import typed
from troop.shared.state_keys import REQUEST_KEY

KEY_LIFETIME = timedelta(days=90)
"""The period in which Step Functions refuses to reuse an execution's name; the event itself is permanent."""


@dataclass(frozen=True)
class RequestKey:
    """A caller's key, for a group. Its item in the table ``State`` names its event, and expires."""

    group: str
    key: str

    @property
    def place(self) -> str:
        """The item's key. A digest has a fixed length, and two chosen names cannot collide."""
        return REQUEST_KEY + hashlib.sha256(json.dumps([self.group, self.key]).encode()).hexdigest()

    def record(self, table: str, event: Event) -> dict[str, Any]:
        """Returns the part of a claim's transaction that writes the item, on the condition that there is none.

        An expired item that still exists counts: DynamoDB removes items late, and the caller has read it before.
        """
        values = {":event": event.event_id, ":expires": int((event.at + KEY_LIFETIME).timestamp()), ":schema": SCHEMA}
        return {
            "Update": {
                "TableName": table,
                "Key": typed({"key": self.place}),
                "UpdateExpression": "SET event_id = :event, expires_at = :expires, #schema = :schema",
                "ConditionExpression": "attribute_not_exists(event_id)",
                "ExpressionAttributeNames": {"#schema": "schema"},
                "ExpressionAttributeValues": typed(values),
            }
        }
