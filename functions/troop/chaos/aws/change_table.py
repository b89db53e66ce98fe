"""Reads and writes the table ``Changes``: the author and time of every change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from troop.chaos.changes import Author, Change
from troop.chaos.events import SCHEMA
from troop.shared import moments
from troop.shared.aws.dynamo import jsonable, plain, typed
from troop.shared.malformed import Read, read

_LONGEST_SORT_KEY = 1024
"""DynamoDB's limit in bytes, which a value that was edited by hand can exceed."""


@dataclass(frozen=True)
class ChangeTable:
    """Reads changes, and makes the part of a transaction that records one."""

    client: Any
    table: str

    def part(self, change: Change, author: Author) -> dict[str, Any]:
        """Records a change, in the same transaction. Two changes of one moment differ in their requests."""
        item = {
            "subject": change.subject,
            "at": f"{moments.iso(change.at)}#{author.request_id}",
            "caller": change.caller,
            "changes": {key: {"old": old, "new": new} for key, (old, new) in change.values.items()},
            "replaces": change.replaces,
            "schema": SCHEMA,
        }
        return {"Put": {"TableName": self.table, "Item": typed(item)}}

    def find(self, subject: str, at: str, request_id: str) -> Change | None:
        """Returns the change of a subject by one request, strongly consistent.

        Args:
            subject: ``unit#<unit>`` or ``switch``.
            at: the moment of the change, as in the item's ``changed_at``.
            request_id: the id of the request, as in ``changed_request``.

        Returns:
            None if there is no such record, or if the API did not write it.
        """
        key = {"subject": subject, "at": f"{at}#{request_id}"}
        if any(len(part.encode(errors="replace")) > _LONGEST_SORT_KEY for part in key.values()):
            return None
        answer = self.client.get_item(TableName=self.table, Key=typed(key), ConsistentRead=True)
        try:
            return from_item(jsonable(plain(answer["Item"])))
        except (LookupError, ValueError, TypeError, AttributeError):
            return None  # no record, or not from the API

    def latest(self, subject: str, count: int) -> Read[Change]:
        """Lists the last ``count`` changes of a subject, newest first; one query."""
        answer = self.client.query(
            TableName=self.table,
            KeyConditionExpression="#subject = :subject",
            ExpressionAttributeNames={"#subject": "subject"},
            ExpressionAttributeValues={":subject": {"S": subject}},
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=count,
        )
        return read(map(plain, answer["Items"]), from_item, lambda item: f"Changes: {item['subject']}, {item['at']}")


def from_item(item: Mapping[str, Any]) -> Change:
    """Converts an item in plain values to a change."""
    return Change(
        subject=item["subject"],
        at=moments.parse(item["at"].partition("#")[0]),
        caller=item["caller"],
        values={key: (value["old"], value["new"]) for key, value in item["changes"].items()},
        replaces=item.get("replaces"),
    )
