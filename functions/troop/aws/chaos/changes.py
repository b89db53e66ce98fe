"""The table ``Changes``: who has changed what, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from troop import moments
from troop.aws.dynamo import jsonable, plain, typed
from troop.chaos.changes import Author, Change
from troop.chaos.events import SCHEMA

_LONGEST_SORT_KEY = 1024
"""Bytes that DynamoDB takes. Whoever edits an item by hand can write more into it."""


@dataclass(frozen=True)
class ChangeTable:
    """Reads changes, and gives the part of a transaction that records one."""

    client: Any
    table: str

    def part(self, change: Change, author: Author) -> dict[str, Any]:
        """Records a change, in the transaction that makes it. Two changes of one moment differ in their requests."""
        item = {
            "subject": change.subject,
            "at": f"{moments.iso(change.at)}#{author.request_id}",
            "caller": change.caller,
            "changes": {key: {"old": old, "new": new} for key, (old, new) in change.values.items()},
            "replaces": change.replaces,
            "schema": SCHEMA,
        }
        return {"Put": {"TableName": self.table, "Item": typed(item)}}

    def recorded(self, subject: str, at: str, request_id: str) -> Change | None:
        """The change of a subject by one request, strongly consistent.

        Args:
            subject: ``unit#<unit>`` or ``switch``.
            at: the moment of the change, as the item has it in ``changed_at``.
            request_id: of the request, as in ``changed_request``.

        Returns:
            None where there is no such record, or one that the API has not written.
        """
        key = {"subject": subject, "at": f"{at}#{request_id}"}
        if any(len(part.encode(errors="replace")) > _LONGEST_SORT_KEY for part in key.values()):
            return None
        answer = self.client.get_item(TableName=self.table, Key=typed(key), ConsistentRead=True)
        try:
            return from_item(jsonable(plain(answer["Item"])))
        except (LookupError, ValueError, TypeError, AttributeError):
            return None  # there is none, or none that the API has written

    def latest(self, subject: str, count: int) -> list[Change]:
        """The last ``count`` changes of a subject, newest first; one query."""
        answer = self.client.query(
            TableName=self.table,
            KeyConditionExpression="#subject = :subject",
            ExpressionAttributeNames={"#subject": "subject"},
            ExpressionAttributeValues={":subject": {"S": subject}},
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=count,
        )
        return [from_item(plain(item)) for item in answer["Items"]]


def from_item(item: Mapping[str, Any]) -> Change:
    """A change from its item in plain values."""
    return Change(
        subject=item["subject"],
        at=moments.parse(item["at"].partition("#")[0]),
        caller=item["caller"],
        values={key: (value["old"], value["new"]) for key, value in item["changes"].items()},
        replaces=item.get("replaces"),
    )
