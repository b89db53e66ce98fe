"""Idempotency keys of terminations on demand: what the key of a group has led to, whatever unit the group is of now."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from troop.aws.dynamo import typed
from troop.chaos.events import SCHEMA, Event
from troop.state_keys import REQUEST_KEY

KEY_LIFETIME = timedelta(days=90)
"""As long as Step Functions refuses the name of an execution again; the event itself stays for good."""


@dataclass(frozen=True)
class RequestKey:
    """A caller's key, for a group. Its item in the table ``State`` names the event it has led to, and expires."""

    group: str
    key: str

    @property
    def place(self) -> str:
        """The item's key. A digest: of one length, and no name that somebody chose can be taken for another's."""
        return REQUEST_KEY + hashlib.sha256(json.dumps([self.group, self.key]).encode()).hexdigest()

    def record(self, table: str, event: Event) -> dict[str, Any]:
        """The part of a claim's transaction that writes the item, on the condition that there is none.

        One that has expired and is still there counts: DynamoDB takes its time, and whoever asks has found it first.
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
