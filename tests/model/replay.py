"""Replays the requests of the model's histories against another DynamoDB: both must answer alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from botocore.exceptions import ClientError

from tests.model import expressions
from tests.model.dynamo import TABLES, Dynamo
from tests.model.history import run
from tests.model.world import World
from tests.tables import create_table

OPERATIONS = ("get_item", "put_item", "update_item", "transact_write_items", "batch_write_item", "scan", "query")
SEEDS = (9, 19, 23, 30, 47, 66, 84, 95, 119)

Record = tuple[str, dict[str, Any], Any]


def _recorded(seed: int) -> tuple[list[Record], Mapping[str, Any]]:
    """The requests of a history, with what people wrote between them, and the tables at its end."""
    records: list[Record] = []
    worlds: list[World] = []
    inside = [False]

    def watch(world: World) -> None:
        worlds.append(world)
        dynamo = world.dynamo
        dynamo._lagging = lambda: False
        by_hand = dynamo.write
        for table, items in dynamo.tables.items():
            records.extend(("put_item", {"TableName": table, "Item": dict(item)}, {}) for item in items.values())

        def write(table: str, item: Mapping[str, Any]) -> None:
            if not inside[0]:
                records.append(("put_item", {"TableName": table, "Item": dict(item)}, {}))
            by_hand(table, item)

        dynamo.write = write  # type: ignore[method-assign]
        for operation in OPERATIONS:
            setattr(dynamo, operation, recorder(operation, getattr(dynamo, operation)))

    def recorder(operation: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def call(**request: Any) -> Any:
            inside[0] = True
            try:
                answer = act(**request)
            except ClientError as error:
                records.append((operation, request, _outcome(error)))
                raise
            finally:
                inside[0] = False
            records.append((operation, request, answer))
            return answer

        return call

    run(seed, prepare=watch)
    return records, worlds[0].dynamo.tables


def _outcome(error: ClientError) -> Any:
    return error.response["Error"]["Code"], [r["Code"] for r in error.response.get("CancellationReasons", [])]


def _comparable(value: Any) -> Any:
    if isinstance(value, Mapping):
        if value.keys() == {"N"}:
            return Decimal(value["N"])
        if value.keys() == {"SS"}:
            return sorted(value["SS"])
        return {k: _comparable(v) for k, v in value.items() if k not in ("ResponseMetadata", "UnprocessedItems")}
    if isinstance(value, list):
        return [_comparable(v) for v in value]
    return value


def answered(client: Any, operation: str, request: dict[str, Any]) -> Any:
    try:
        answer = getattr(client, operation)(**request)
    except ClientError as error:
        return _outcome(error)
    if operation in ("scan", "query"):
        return {"Items": answer["Items"]}
    return {k: v for k, v in answer.items() if k in ("Item", "Attributes")}


def _sorted(answer: Any) -> Any:
    return {"Items": _in_order(answer["Items"])} if isinstance(answer, dict) and "Items" in answer else answer


def _in_order(items: Iterable[Any]) -> list[Any]:
    """Sorts items whatever the order of their attributes and of sets is."""
    return sorted(map(_comparable, items), key=lambda one: json.dumps(one, sort_keys=True, default=str))


def replay(client: Any, seed: int) -> set[tuple[str, str, bool]]:
    """Replays one history against empty tables, and asserts that every answer and the tables at its end agree.

    Returns:
        Each operation with an expression that it used, and whether it was refused.
    """
    outcomes: set[tuple[str, str, bool]] = set()
    records, tables = _recorded(seed)
    for operation, request, answer in records:
        theirs = answered(client, operation, request)
        where = f"seed {seed}: {operation} {request}"
        assert _comparable(_sorted(theirs)) == _comparable(_sorted(answer)), where
        outcomes |= {(operation, text, isinstance(answer, tuple)) for text in _texts(request)}
    for name, items in tables.items():
        stored = client.get_paginator("scan").paginate(TableName=name).build_full_result()["Items"]
        assert _in_order(stored) == _in_order(items.values()), f"seed {seed}: {name}"
    return outcomes


def create_tables(client: Any) -> None:
    for described in TABLES:
        create_table(client, described)


def agree_on(client: Any, text: str) -> None:
    """Asserts that a condition holds on both sides or on neither."""
    used = {k: v for k, v in VALUES.items() if k in expressions.tokens(text)}
    request = {"TableName": "Events", "Item": ITEM, "ConditionExpression": text}
    request |= {"ExpressionAttributeValues": used} if used else {}
    ours = Dynamo(lambda: 0.0, lambda: False, lambda table, old, new: None)
    for table in (client, ours):
        table.put_item(TableName="Events", Item=ITEM)
    assert answered(client, "put_item", request) == answered(ours, "put_item", request)


def _texts(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        own = {v for k, v in value.items() if k.endswith("Expression")}
        return own.union(*[_texts(v) for v in value.values()])
    return set().union(*[_texts(v) for v in value]) if isinstance(value, list) else set()


ITEM = {
    "event_id": {"S": "e"},
    "n": {"N": "2"},
    "s": {"S": "b"},
    "open": {"S": "open"},
    "l": {"L": [{"N": "1.0"}]},
    "ss": {"SS": ["b"]},
}
VALUES = {":two": {"N": "2.0"}, ":b": {"S": "b"}, ":l": {"L": [{"N": "1.0"}]}, ":three": {"N": "3"}, ":c": {"S": "c"}}


CONDITIONS = (
    "n = :two",
    "n < :three",
    "n < :two",
    "zzz < :three",
    "zzz = :b",
    "s = :b AND n = :three",
    "s = :b OR n = :three AND s = :c",
    "(s = :c OR n = :two) AND l = :l",
    "attribute_not_exists(zzz) AND (attribute_not_exists(n) OR n < :three)",
    "attribute_not_exists(n)",
    "contains(ss, :b)",
    "n = :two AND NOT contains(ss, :c)",
    "NOT contains(zzz, :b)",
)
