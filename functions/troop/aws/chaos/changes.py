"""The table ``Changes``: who has changed what, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from troop import moments
from troop.aws.dynamo import plain, typed
from troop.chaos.changes import Author, Change
from troop.chaos.events import SCHEMA


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
            "schema": SCHEMA,
        }
        return {"Put": {"TableName": self.table, "Item": typed(item)}}

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
    )
