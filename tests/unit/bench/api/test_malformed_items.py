"""Items that somebody edited by hand, of every table and with every attribute wrong: they hide nothing else."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.account.account import EXHAUSTIVE
from tests.unit.account.asking import ask, patch
from tests.unit.account.bench import Half, post
from tests.unit.bench.api.test_schedules import group, schedule
from troop.chaos.aws.event_items import to_item
from troop.chaos.events import Event, Status

__all__ = ["group"]

WRONG: list[dict[str, Any] | None] = [
    None,
    {"S": "x"},
    {"N": "1E+100"},
    {"L": [{"N": "1"}, {"M": {}}]},
    {"M": {"a": {"S": "x"}}},
    {"BOOL": True},
    {"B": b"\xff\x00"},
    {"NS": ["1", "2"]},
    {"S": "9999-99-99T00:00:00.000Z"},
    {"NULL": True},
]
"""What an attribute becomes; None removes it."""


@pytest.fixture
def full(half: Half) -> Half:
    """An account with two items of each kind, and more of some."""
    account = half.account
    account.group("web-v1", 3)
    account.policy("web", probability="0.5", owner="o")
    for reason in ("one", "two"):
        patch("/groups/web", {"reason": reason})
        account.decide()
        account.clock.forward(seconds=900)
    for days in (0, 1):
        at = account.clock() - timedelta(days=days)
        values: dict[str, Any] = {"unit": "web", "day": at.date(), "status": Status.RECOVERED, "at": at}
        values |= {"group": "web-v1", "instance_id": f"i-{days}", "zone": "a", "method": "crash", "rolled": 0.1}
        event = Event(event_id=f"{at.date()}#web", probability=0.5, desired=2, terminated_at=at, **values)
        account.dynamodb.put_item(TableName="Events", Item=to_item(event))
    for key in ("k1", "k2"):
        assert post(key=key)[0] == 202
    assert schedule("first")[0] == schedule("second")[0] == 201
    return half


ROUTES = {
    "Events": ("/events", "/events?unit=web", "/groups/web", "/simianarmy/api/v1/chaos?since=0", "/events/ONE"),
    "Decisions": ("/decisions?unit=web", "/decisions?day=2026-11-20", "/groups/web"),
    "Changes": ("/groups/web",),
    "Runs": ("/benchmarks", "/benchmarks/ONE", "/benchmarks/ONE/live", "/benchmarks/ONE?cell=c001"),
    "State": ("/benchmarks/schedules",),
}
"""Reads of each table's items; ONE is the edited item's own id."""


def indexed(half: Half, table: str) -> set[str]:
    """The attributes that are keys of the table or of an index."""
    description = half.account.dynamodb.describe_table(TableName=table)["Table"]
    return {one["AttributeName"] for one in description["AttributeDefinitions"]}


def edits(half: Half, table: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yields items, and what somebody makes of them."""
    description = half.account.dynamodb.describe_table(TableName=table)["Table"]
    keys, index_keys = {key["AttributeName"] for key in description["KeySchema"]}, indexed(half, table)
    number = 0
    for item in half.account.dynamodb.scan(TableName=table)["Items"]:
        if table == "State" and not item["key"]["S"].startswith(("bench-schedule", "scheduled-cost")):
            continue
        # A schedule without a digest was removed, and another name is no malformed one.
        for attribute in sorted(item.keys() - keys - {"digest", "name"}):
            number += 1
            for n, value in enumerate(WRONG):
                is_other_type = value is not None and attribute in index_keys and "S" not in value
                if is_other_type or not (EXHAUSTIVE or n == number % len(WRONG) or n == (number + 4) % len(WRONG)):
                    continue
                edited = copy.deepcopy(item)
                edited.pop(attribute)
                yield item, edited | ({attribute: value} if value else {})


def names(body: Any) -> set[str]:
    """The items in an answer, by what identifies them."""
    lists = [body.get(key) or [] for key in ("events", "decisions", "changes", "runs", "cells", "schedules")]
    keys = ("event_id", "tick", "at", "run", "cell", "name")
    return {str(next(one[key] for key in keys if key in one)) for some in lists for one in some}


@pytest.mark.parametrize("table", sorted(ROUTES))
def test_a_malformed_item_hides_no_other(full: Half, table: str) -> None:
    dynamodb = full.account.dynamodb
    number = 0
    for item, edited in edits(full, table):
        one = item.get("run", item.get("event_id", {"S": ""}))["S"].replace("#", "~")
        paths = [path.replace("ONE", one) for path in ROUTES[table] if one != "reservations" or "ONE" not in path]
        before = {path: answer_of(path) for path in paths}
        dynamodb.put_item(TableName=table, Item=edited)
        for path in paths:
            status, body = answer_of(path)
            where = (path, {key: value for key, value in edited.items() if item.get(key) != value}, body)
            assert status < 500, where
            assert status in (before[path][0], 409), where
            if status == 200 and isinstance(body, dict):
                missing = names(before[path][1]) - names(body)
                number += len(body.get("malformed", ()))
                assert len(missing) <= 1 or body.get("schedules") == [], where
                changed = {key for key in item if edited.get(key) != item[key]}
                if missing and not changed & indexed(full, table):  # it is not in the index then
                    assert body["malformed"], where
        dynamodb.put_item(TableName=table, Item=item)
    assert number


def answer_of(path: str) -> tuple[int, Any]:
    path, _, query = path.partition("?")
    name, _, value = query.partition("=")
    parameters: dict[str, Any] = {name: value} if name else {}
    return ask("GET", path, **parameters)
