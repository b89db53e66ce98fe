"""DynamoDB in memory: single writes, transactions, scans and the one index that workflows query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from tests.model import expressions
from troop.shared import tables

TABLES = (tables.EVENTS, tables.STATE, tables.GROUP_TAGS, tables.DECISIONS)
KEYS = {table.name: tuple(key for key in (table.partition, table.sort) if key) for table in TABLES}
INDEX_LAG = 3.0
"""Seconds within which a change may not be seen through an index."""

Item = Mapping[str, Any]
Watcher = Callable[[str, Item | None, Item], None]


def refusal(code: str, operation: str, message: str = "", **more: Any) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"RetryAttempts": 0}, **more}
    return ClientError(response, operation)


class Dynamo:
    """The tables of a deployment.

    Args:
        now: seconds, the true time.
        lagging: whether an index shows an item as it was before its last change, asked for changes just made.
        changed: told of every change, with the item before and after it; {} is no item.
    """

    def __init__(self, now: Callable[[], float], lagging: Callable[[], bool], changed: Watcher) -> None:
        self._now, self._lagging, self._changed = now, lagging, changed
        self.tables: dict[str, dict[tuple[str, ...], Item]] = {name: {} for name in KEYS}
        self._before: dict[tuple[str, tuple[str, ...]], tuple[float, Item | None]] = {}

    # What people, and the model itself, do

    def item(self, table: str, *key: str) -> dict[str, Any]:
        return dict(self.tables[table].get(key, {}))

    def write(self, table: str, item: Item) -> None:
        key = tuple(item[name]["S"] for name in KEYS[table])
        old = self.tables[table].get(key)
        self._before[table, key] = self._now(), old
        self.tables[table][key] = item
        self._changed(table, old, item)

    def drop(self, table: str, *key: str) -> None:
        if old := self.tables[table].pop(key, None):
            self._before[table, key] = self._now(), old
            self._changed(table, old, {})

    # What the client does

    def get_item(self, TableName: str, Key: Item, ConsistentRead: bool = False) -> dict[str, Any]:
        item = self.tables[TableName].get(_key(TableName, Key))
        return {} if item is None else {"Item": item}

    def batch_get_item(self, RequestItems: Mapping[str, Any]) -> dict[str, Any]:
        """Reads some items of some tables."""
        responses = {
            table: [self.tables[table][key] for one in keys["Keys"] if (key := _key(table, one)) in self.tables[table]]
            for table, keys in RequestItems.items()
        }
        return {"Responses": responses, "UnprocessedKeys": {}}

    def put_item(self, **request: Any) -> dict[str, Any]:
        self._check(request, request["Item"], "PutItem")
        self.write(request["TableName"], request["Item"])
        return {}

    def update_item(self, **request: Any) -> dict[str, Any]:
        self._check(request, request["Key"], "UpdateItem")
        new = self._update(request)
        return {"Attributes": new} if request.get("ReturnValues") == "ALL_NEW" else {}

    def delete_item(self, **request: Any) -> dict[str, Any]:
        self._check(request, request["Key"], "DeleteItem")
        self.drop(request["TableName"], *_key(request["TableName"], request["Key"]))
        return {}

    def transact_write_items(self, TransactItems: list[Any]) -> dict[str, Any]:
        parts = [(kind, part) for item in TransactItems for kind, part in item.items()]
        places = [(p["TableName"], _key(p["TableName"], p.get("Key") or p["Item"])) for _, p in parts]
        if len(set(places)) < len(places):
            raise refusal("ValidationException", "TransactWriteItems", "multiple operations on one item")
        held = [self._holds(part, part.get("Key") or part["Item"]) for _, part in parts]
        if not all(held):
            reasons = [{"Code": "None"} if one else {"Code": "ConditionalCheckFailed"} for one in held]
            raise refusal("TransactionCanceledException", "TransactWriteItems", CancellationReasons=reasons)
        for kind, part in parts:
            if kind == "Put":
                self.write(part["TableName"], part["Item"])
            elif kind == "Update":
                self._update(part)
            elif kind == "Delete":
                self.drop(part["TableName"], *_key(part["TableName"], part["Key"]))
        return {}

    def batch_write_item(self, RequestItems: Mapping[str, Any]) -> dict[str, Any]:
        for table, requests in RequestItems.items():
            for request in requests:
                self.write(table, request["PutRequest"]["Item"])
        return {"UnprocessedItems": {}}

    def scan(self, TableName: str, ConsistentRead: bool = False) -> dict[str, Any]:
        return {"Items": list(self.tables[TableName].values())}

    def query(self, **request: Any) -> dict[str, Any]:
        expressions.check_used(request)
        holds = expressions.condition(request["KeyConditionExpression"])
        names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
        table = request["TableName"]
        seen = [self._as_indexed(table, key, item) for key, item in self.tables[table].items()]
        items = sorted((i for i in seen if i and holds(i, names, values)), key=lambda i: str(i["at"]["S"]))
        if "FilterExpression" in request:
            fits = expressions.condition(request["FilterExpression"])
            items = [item for item in items if fits(item, names, values)]
        attributes = [names.get(name, name) for name in request["ProjectionExpression"].split(", ")]
        return {"Items": [{name: item[name] for name in attributes} for item in items]}

    def _as_indexed(self, table: str, key: tuple[str, ...], item: Item) -> Item | None:
        when, before = self._before.get((table, key), (0.0, None))
        if self._now() - when < INDEX_LAG and self._lagging():
            return before
        return item

    def _update(self, request: Mapping[str, Any]) -> Item:
        table, key = request["TableName"], _key(request["TableName"], request["Key"])
        old = self.tables[table].get(key)
        apply = expressions.update(request["UpdateExpression"])
        names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
        new = apply(old if old is not None else request["Key"], names, values)
        self.write(table, new)
        return new

    def _check(self, request: Mapping[str, Any], key: Item, operation: str) -> None:
        if not self._holds(request, key):
            raise refusal("ConditionalCheckFailedException", operation)

    def _holds(self, request: Mapping[str, Any], key: Item) -> bool:
        expressions.check_used(request)
        if not (text := request.get("ConditionExpression")):
            return True
        item = self.tables[request["TableName"]].get(_key(request["TableName"], key), {})
        names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
        return expressions.condition(text)(item, names, values)


def _key(table: str, item: Item) -> tuple[str, ...]:
    return tuple([item[name]["S"] for name in KEYS[table]])
