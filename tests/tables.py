"""Tables in an emulated DynamoDB, as a deployment has them."""

from __future__ import annotations

from typing import Any

from troop.shared.tables import Table


def create_table(dynamodb: Any, table: Table, name: str = "") -> None:
    """A table with its indices, without a stream, in which nothing expires.

    Args:
        name: another than the stack calls it.
    """
    schemas = [(table.partition, table.sort), *((one.partition, one.sort) for one in table.indices)]
    keys = {key for schema in schemas for key in schema if key}
    numbers = {one.partition for one in table.indices if one.numbered}
    indices = [
        {"IndexName": one.name, "KeySchema": _schema(one.partition, one.sort), "Projection": _projection(one.projected)}
        for one in table.indices
    ]
    dynamodb.create_table(
        TableName=name or table.name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=_schema(table.partition, table.sort),
        AttributeDefinitions=[
            {"AttributeName": key, "AttributeType": "N" if key in numbers else "S"} for key in sorted(keys)
        ],
        **({"GlobalSecondaryIndexes": indices} if indices else {}),
    )


def _schema(partition: str, sort: str) -> list[dict[str, str]]:
    keys = {"HASH": partition, "RANGE": sort}
    return [{"AttributeName": name, "KeyType": kind} for kind, name in keys.items() if name]


def _projection(attributes: tuple[str, ...] | None) -> dict[str, Any]:
    return (
        {"ProjectionType": "ALL"}
        if attributes is None
        else {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(attributes)}
    )
