"""Reads and writes the table ``Changes``: the author and time of every change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from troop.chaos.changes import Author, Change
from troop.chaos.events import SCHEMA
from troop.shared import moments
from troop.shared.aws.dynamo import jsonable, plain, typed
from troop.shared.errors import TroopError
from troop.shared.malformed import Malformed, read
from troop.shared.tables import CHANGES_BY_TIME

_LONGEST_SORT_KEY = 1024
"""DynamoDB's limit in bytes, which a value that was edited by hand can exceed."""


class BadPosition(ValueError):
    """The position is not the end of any page of the listing."""


class IndexUnfinishedError(TroopError):
    """DynamoDB still fills the index of all changes. CloudFormation ends an update without waiting for that
    (AWS::DynamoDB::Table, "GlobalSecondaryIndexes").
    """

    def __init__(self) -> None:
        super().__init__(
            f"the index {CHANGES_BY_TIME.name} of the table Changes is still being built: try again in some minutes, "
            "or list the changes of one unit, or of the switch"
        )


@dataclass(frozen=True)
class ChangeFilter:
    """A filter of changes: the range includes ``since`` but not ``until``. None means any.

    Attributes:
        subject: ``unit#<unit>`` or ``switch``.
    """

    subject: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class ChangePage:
    """A page, newest first, without the malformed changes. ``position`` continues after it; None at the end."""

    changes: tuple[Change, ...]
    position: str | None
    malformed: tuple[Malformed, ...] = ()


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
            "owner": change.owner or None,
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

    def page(self, change_filter: ChangeFilter, limit: int, position: str | None = None) -> ChangePage:
        """Lists at most ``limit`` changes, newest first, after ``position`` (of an earlier page with the same filter);
        one query. Those of one subject are read strongly consistent.

        Raises:
            BadPosition: the position lies outside the listing, where DynamoDB would refuse to start.
            IndexUnfinishedError: the changes of all subjects cannot be listed yet.
        """
        low, high = moments.key_range(change_filter.since, change_filter.until)
        subject = change_filter.subject
        key, value = (CHANGES_BY_TIME.partition, SCHEMA) if subject is None else ("subject", subject)
        query: dict[str, Any] = {
            "TableName": self.table,
            "KeyConditionExpression": "#key = :key AND #at BETWEEN :low AND :high",
            "ExpressionAttributeNames": {"#key": key, "#at": "at"},
            "ExpressionAttributeValues": typed({":key": value, ":low": low, ":high": high}),
            "ScanIndexForward": False,
            "Limit": limit,
            **({"IndexName": CHANGES_BY_TIME.name} if subject is None else {"ConsistentRead": True}),
        }
        if position is not None:
            at, _, owner = position.partition(" ")
            fits = len(at.encode()) <= _LONGEST_SORT_KEY and low <= at <= high
            if not (fits and owner and subject in (None, owner)):
                raise BadPosition(position)
            query["ExclusiveStartKey"] = typed({key: value, "subject": owner, "at": at})
        try:
            answer = self.client.query(**query)
        except ClientError as error:
            if "backfilling" in error.response["Error"].get("Message", ""):
                raise IndexUnfinishedError from None
            raise
        last = plain(answer.get("LastEvaluatedKey", {}))
        changes = read(map(plain, answer["Items"]), from_item, lambda item: f"Changes: {item['subject']}, {item['at']}")
        return ChangePage(changes.items, f"{last['at']} {last['subject']}" if last else None, changes.malformed)


def from_item(item: Mapping[str, Any]) -> Change:
    """Converts an item in plain values to a change."""
    return Change(
        subject=item["subject"],
        at=moments.parse(item["at"].partition("#")[0]),
        caller=item["caller"],
        values={key: (value["old"], value["new"]) for key, value in item["changes"].items()},
        replaces=item.get("replaces"),
        owner=str(item.get("owner") or ""),
    )
