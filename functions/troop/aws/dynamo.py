"""DynamoDB's typed items to plain values and back."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer


class _Deserializer(TypeDeserializer):
    """Gives bytes, alone and in sets, as bytes: boto3's own type for them cannot be told as text."""

    def _deserialize_b(self, value: Any) -> Any:
        return bytes(value)


_serialize = TypeSerializer().serialize
_deserialize = _Deserializer().deserialize

BATCH_TRIES = 5
"""Most calls that :func:`batch_get` makes."""


def typed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values as DynamoDB's; floats become exact decimals of their shortest text, None is left out."""
    return {key: _serialize(_decimals(value)) for key, value in values.items() if value is not None}


def plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """A stored item as plain values; numbers stay ``Decimal``."""
    return {key: _deserialize(value) for key, value in item.items()}


def scan(client: Any, table: str) -> Iterator[dict[str, Any]]:
    """All items of a table, strongly consistent, page by page."""
    for page in client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
        yield from map(plain, page["Items"])


def batch_get(
    client: Any,
    keys: Mapping[str, Sequence[Mapping[str, Any]]],
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, list[dict[str, Any]]]:
    """The items that exist, in plain values by table, strongly consistent: one call, unless DynamoDB leaves some out.

    Args:
        keys: typed keys by table, 100 in all at most, none of them twice.

    Raises:
        RuntimeError: when some are still left out of the last call.
    """
    rows_by_table: dict[str, list[dict[str, Any]]] = {table: [] for table in keys}
    left: Mapping[str, Any] = {t: {"Keys": list(ks), "ConsistentRead": True} for t, ks in keys.items() if ks}
    for attempt in range(BATCH_TRIES):
        if not left:
            return rows_by_table
        if attempt:
            sleep(0.05 * 2**attempt)
        answer = client.batch_get_item(RequestItems=left)
        for table, items in answer["Responses"].items():
            rows_by_table[table] += map(plain, items)
        left = answer.get("UnprocessedKeys") or {}
    if left:
        raise RuntimeError("not all items could be read: DynamoDB throttles " + ", ".join(left))
    return rows_by_table


def jsonable(value: Any) -> Any:
    """What :func:`plain` gives, in JSON's types: sets as sorted lists, bytes as Base64."""
    if isinstance(value, Decimal):
        whole = value == value.to_integral_value() and abs(value) < 10**15
        return int(value) if whole else float(value)
    if isinstance(value, Mapping):
        return {key: jsonable(inner) for key, inner in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(jsonable, value))  # of one type, as DynamoDB keeps them
    if isinstance(value, (list, tuple)):
        return [jsonable(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def _decimals(value: Any) -> Any:
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, Mapping):
        return {k: _decimals(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_decimals(v) for v in value]
    return value
