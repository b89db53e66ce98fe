"""Gives IAM the key ``dynamodb:LeadingKeys``: the partition keys of the items that a call names. MiniStack lacks it, so
every condition on it fails.

Each item of a transaction is checked as the call that it stands for, with the keys of the transaction's items of the
same table and action. A query has no such key here, so a statement that requires one refuses it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ministack.core import iam_actions, iam_evaluator
from ministack.services import dynamodb

from ._wrap import wrap

_KEYS = "dynamodb:LeadingKeys"
_PARTS = {"ConditionCheck": "ConditionCheckItem", "Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem"}

Item = tuple[str | None, str, str]
"""The action of a part of a transaction, else None; the table's name; the value of the item's partition key."""


def apply() -> None:
    @wrap(iam_actions, "dynamodb_service_context")
    def context(original: Callable[[bytes], dict[str, Any]], body: bytes) -> dict[str, Any]:
        try:
            named = list(_items(json.loads(body or b"{}")))
        except (AttributeError, KeyError, TypeError, ValueError):
            named = []  # malformed: the service refuses it
        return {**original(body), **({_KEYS: named} if named else {})}

    @wrap(iam_evaluator, "enforce")
    def enforce(original: Callable[..., Any], access_key_id: str, iam_action: str, *args: Any, **named: Any) -> Any:
        context = named.get("service_context") or {}
        if items := context.get(_KEYS):
            action, table = iam_action.partition(":")[2], _name(named["resource_arn"])
            keys = [key for operation, name, key in items if operation in (None, action) and name == table]
            named["service_context"] = {**context, _KEYS: keys}
        return original(access_key_id, iam_action, *args, **named)


def _items(request: Mapping[str, Any]) -> Iterator[Item]:
    for part in request.get("TransactItems", ()):
        for kind, named in part.items():
            yield from _item(named, _PARTS.get(kind, f"{kind}Item"))
    for table, named in request.get("RequestItems", {}).items():
        keys = named.get("Keys", ()) if isinstance(named, Mapping) else map(_batch_item, named)
        for key in keys:
            yield None, _name(table), _value(_name(table), key)
    if "Key" in request or "Item" in request:
        yield from _item(request, None)


def _item(named: Mapping[str, Any], action: str | None) -> Iterator[Item]:
    table = _name(named["TableName"])
    yield action, table, _value(table, named.get("Key") or named["Item"])


def _batch_item(write: Mapping[str, Any]) -> Mapping[str, Any]:
    key: Mapping[str, Any] = write["PutRequest"]["Item"] if "PutRequest" in write else write["DeleteRequest"]["Key"]
    return key


def _name(table: str) -> str:
    return table.rpartition("/")[2]


def _value(table: str, key: Mapping[str, Any]) -> str:
    schema = dynamodb._tables[table]["KeySchema"]
    partition = next(one["AttributeName"] for one in schema if one["KeyType"] == "HASH")
    return str(next(iter(key[partition].values())))
