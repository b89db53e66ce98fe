"""Converts DynamoDB's typed items to plain values and back."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from troop.shared import codec
from troop.shared.aws.throttling import READS, WRITES, Sleep, ThrottledError, repeat


class _Deserializer(TypeDeserializer):
    """Returns bytes, alone and in sets, as bytes: boto3's own type for them has no readable text. Recognises the types
    of most values faster than boto3 does.
    """

    def deserialize(self, value: Any) -> Any:
        if len(value) == 1:
            if "S" in value:
                return value["S"]
            if "M" in value:
                return {key: self.deserialize(inner) for key, inner in value["M"].items()}
        return super().deserialize(value)

    def _deserialize_b(self, value: Any) -> Any:
        return bytes(value)


class _Serializer(TypeSerializer):
    """Converts floats as well, and recognises the types of most values faster than boto3 does."""

    def serialize(self, value: Any) -> Any:
        if type(value) is str:
            return {"S": value}
        if type(value) is bool:
            return {"BOOL": value}
        if type(value) is dict:
            return {"M": {key: self.serialize(inner) for key, inner in value.items()}}
        if type(value) is list:
            return {"L": [self.serialize(inner) for inner in value]}
        return super().serialize(Decimal(repr(value)) if isinstance(value, float) else value)


_serialize = _Serializer().serialize
_deserialize = _Deserializer().deserialize


def typed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Converts plain values to DynamoDB's; floats become exact decimals of their shortest text, None is omitted."""
    return {key: _serialize(value) for key, value in values.items() if value is not None}


def plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a stored item to plain values; numbers stay ``Decimal``."""
    return {key: _deserialize(value) for key, value in item.items()}


def scan(client: Any, table: str) -> Iterator[dict[str, Any]]:
    """Yields all items of a table, strongly consistent, page by page."""
    for page in client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
        yield from map(plain, page["Items"])


def batch_get(
    client: Any,
    keys: Mapping[str, Sequence[Mapping[str, Any]]],
    sleep: Sleep = time.sleep,
) -> dict[str, list[dict[str, Any]]]:
    """Returns the items that exist, as plain values by table, strongly consistent. Makes one call, unless DynamoDB
    leaves keys unprocessed.

    Args:
        keys: typed keys by table, at most 100 in total, without duplicates.

    Raises:
        ThrottledError: the last call still left keys unprocessed.
    """
    rows_by_table: dict[str, list[dict[str, Any]]] = {table: [] for table in keys}
    left: Mapping[str, Any] = {t: {"Keys": list(ks), "ConsistentRead": True} for t, ks in keys.items() if ks}

    def once() -> None:
        nonlocal left
        answer = client.batch_get_item(RequestItems=left)
        for table, items in answer["Responses"].items():
            rows_by_table[table] += map(plain, items)
        left = answer.get("UnprocessedKeys") or {}
        if left:
            count = sum(len(one["Keys"]) for one in left.values())
            raise ThrottledError("BatchGetItem", f"{count} items of {', '.join(left)}")

    if left:
        repeat(once, READS, sleep)
    return rows_by_table


BATCH = 25
"""The most writes of :func:`batch_write`: DynamoDB's limit for a call."""


def batch_write(client: Any, table: str, writes: Sequence[Mapping[str, Any]], sleep: Sleep = time.sleep) -> None:
    """Writes items; unprocessed ones are sent again with backoff. Makes one call, unless DynamoDB leaves some.

    Args:
        writes: at most :data:`BATCH`, each ``{"PutRequest": ...}`` or ``{"DeleteRequest": ...}``.

    Raises:
        ThrottledError: some are still unprocessed after the last call.
    """
    left = list(writes)

    def once() -> None:
        nonlocal left
        answer = client.batch_write_item(RequestItems={table: left})
        left = answer.get("UnprocessedItems", {}).get(table, [])
        if left:
            raise ThrottledError("BatchWriteItem", f"{len(left)} items of {table}")

    repeat(once, WRITES, sleep)


def jsonable(value: Any) -> Any:
    """Converts values of :func:`plain` to JSON's types: sets become sorted lists, bytes Base64."""
    return codec.plain(list, value)
