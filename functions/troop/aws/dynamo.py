"""DynamoDB's typed items to plain values and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

_serialize = TypeSerializer().serialize
_deserialize = TypeDeserializer().deserialize


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


def _decimals(value: Any) -> Any:
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, Mapping):
        return {k: _decimals(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_decimals(v) for v in value]
    return value
