"""Reads and writes items of the table ``Runs``, and binds a write to a run that is still open."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from troop.bench.aws.run_items import CELL, RUN, key
from troop.shared.aws.dynamo import typed
from troop.shared.aws.throttling import Sleep
from troop.shared.aws.transact import ConditionFailed, transact, write
from troop.shared.errors import MissingRunError, RunClosedError
from troop.shared.tables import Index

MOST_PARTS = 100
"""The most items that one transaction can write or check."""

IS_OPEN = "attribute_exists(#item) AND attribute_not_exists(closed_at)"
"""The condition on the item of a run or a cell; ``#item`` is the attribute ``item``."""


class BadCursor(ValueError):
    """A cursor that no page ended with."""


@dataclass(frozen=True)
class RunRows:
    """The table's items. All reads are strongly consistent, except :meth:`page`."""

    client: Any
    table: str
    sleep: Sleep = time.sleep

    def find(self, run: str, item: str) -> dict[str, Any] | None:
        """Returns an item by its sort key; None if there is none."""
        answer = self.client.get_item(TableName=self.table, Key=key(run, item), ConsistentRead=True)
        row: dict[str, Any] | None = answer.get("Item")
        return row

    def get(self, run: str, cell: str | None = None) -> dict[str, Any]:
        """Returns the item of a run, or of one of its cells.

        Raises:
            MissingRunError: there is no such run or cell.
        """
        row = self.find(run, _item_of(cell))
        if row is None:
            raise MissingRunError(run, cell)
        return row

    def beginning(
        self, run: str, beginning: str, attributes: Sequence[str] = (), without: str | None = None
    ) -> Iterable[dict[str, Any]]:
        """Returns the items whose sort keys begin with this text, in their order.

        Args:
            attributes: those to return; by default all.
            without: an attribute; DynamoDB reads items that have it, and does not return them.
        """
        names = {f"#{name}": name for name in (*attributes, "run", "item", *([without] if without else []))}
        only = {"ProjectionExpression": ", ".join(f"#{name}" for name in attributes)} if attributes else {}
        if without:
            only["FilterExpression"] = f"attribute_not_exists(#{without})"
        pages = self.client.get_paginator("query").paginate(
            TableName=self.table,
            KeyConditionExpression="#run = :run AND begins_with(#item, :beginning)",
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=typed({":run": run, ":beginning": beginning}),
            ConsistentRead=True,
            **only,
        )
        return (item for page in pages for item in page["Items"])

    def page(
        self, index: Index, partition: str, item: str, limit: int, cursor: str | None = None
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Returns at most ``limit`` items from an index, newest first, by one query; fewer if they have more than a
        megabyte. Also returns the cursor of the next page; None on the last one.

        Args:
            item: the sort key that all items of the index have.

        Raises:
            BadCursor: no page ended with this cursor.
        """
        query: dict[str, Any] = {
            "TableName": self.table,
            "IndexName": index.name,
            "ScanIndexForward": False,
            "KeyConditionExpression": "#partition = :partition",
            "ExpressionAttributeNames": {"#partition": index.partition},
            "ExpressionAttributeValues": typed({":partition": partition}),
            "Limit": limit,
        }
        if cursor is not None:
            run = cursor.partition("#")[2]
            if not run:
                raise BadCursor(cursor)
            query["ExclusiveStartKey"] = key(run, item) | typed({index.partition: partition, index.sort: cursor})
        answer = self.client.query(**query)
        last = answer.get("LastEvaluatedKey")
        return answer["Items"], str(last[index.sort]["S"]) if last else None

    def update(
        self,
        run: str,
        item: str,
        update: str,
        condition: str,
        values: dict[str, Any],
        names: dict[str, str] | None = None,
    ) -> None:
        """Changes one item.

        Raises:
            ConditionFailed: the condition failed; nothing is changed.
        """
        # DynamoDB accepts no empty map.
        named: dict[str, Any] = {"ExpressionAttributeNames": names} if names else {}
        if values:
            named["ExpressionAttributeValues"] = typed(values)
        write(
            self.client.update_item,
            self.sleep,
            TableName=self.table,
            Key=key(run, item),
            UpdateExpression=update,
            ConditionExpression=condition,
            **named,
        )

    def write_all(self, parts: list[dict[str, Any]]) -> None:
        """Writes any number of transaction parts, in as few transactions as possible."""
        for i in range(0, len(parts), MOST_PARTS):
            transact(self.client, parts[i : i + MOST_PARTS], self.sleep)

    def write_while_open(self, run: str, cell: str, parts: list[dict[str, Any]]) -> None:
        """Writes any number of transaction parts, in as few transactions as possible. Stops once the run or the cell is
        closed.

        Raises:
            RunClosedError: the run or the cell is closed.
            MissingRunError: there is no such run or cell.
        """
        checks = [
            {
                "ConditionCheck": {
                    "TableName": self.table,
                    "Key": key(run, item),
                    "ConditionExpression": IS_OPEN,
                    "ExpressionAttributeNames": {"#item": "item"},
                }
            }
            for item in (RUN, CELL + cell)
        ]
        each = MOST_PARTS - len(checks)
        for i in range(0, len(parts), each):
            try:
                transact(self.client, [*checks, *parts[i : i + each]], self.sleep)
            except ConditionFailed as failed:
                raise self.closed_or_missing(run, cell if failed.part else None) from None

    def closed_or_missing(self, run: str, cell: str | None = None) -> RunClosedError | MissingRunError:
        """Returns the error for a write that failed because the run or the cell is not open."""
        row = self.find(run, _item_of(cell))
        return MissingRunError(run, cell) if row is None else RunClosedError(run, cell)


def _item_of(cell: str | None) -> str:
    return CELL + cell if cell else RUN
