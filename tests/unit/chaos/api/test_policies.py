"""GET /policies: every item that people have written, whether or not a group of its unit exists."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.account.account import Account, calls
from tests.unit.account.asking import ask, get, patch
from troop.shared.api import cursors


def test_items_with_and_without_a_group(account: Account) -> None:
    account.group("web", 0)
    account.group("plain", 0)
    patch("/groups/web", {"probability": 0.5})
    account.policy("not/yet", opt_out=True, stop_alarms={"b", "a"})
    policies = {policy["unit"]: policy for policy in get("/policies")["policies"]}
    assert set(policies) == {"web", "not/yet"}
    assert policies["not/yet"] == {
        "unit": "not/yet",
        "id": "not~2Fyet",
        "version": 0,
        "item": {"unit": "not/yet", "opt_out": True, "stop_alarms": ["a", "b"]},
    }
    assert (policies["web"]["version"], policies["web"]["item"]["probability"]) == (1, 0.5)
    assert policies["web"]["item"] == get("/groups/web")["item"]


def test_nothing_has_been_set(account: Account) -> None:
    assert get("/policies") == {"policies": [], "cursor": None}


def test_pages_join_into_the_whole(account: Account) -> None:
    names = {f"unit {n} of seven" for n in range(7)}
    for name in names:
        account.policy(name, owner="us")
    for size in (1, 3, 7, 100):
        seen: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = get("/policies", limit=size, **cursor)
            assert len(page["policies"]) <= size
            seen += [policy["unit"] for policy in page["policies"]]
            if page["cursor"] is None:
                break
            cursor = {"cursor": page["cursor"]}
        assert (len(seen), set(seen)) == (7, names), size


def test_a_page_is_one_read(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(101):
        account.policy(f"u{n}", owner="us")
    with calls(monkeypatch) as operations:
        assert get("/policies", limit=100)["cursor"]
    assert operations == ["Scan"]


@pytest.mark.parametrize("unit", [" ", "x" * 257, "bell\x07"])
def test_an_item_that_no_unit_can_have_has_no_address(account: Account, unit: str) -> None:
    account.policy(unit, opt_out=True)
    (policy,) = get("/policies")["policies"]
    assert (policy["unit"], policy["id"]) == (unit, None)


def test_whatever_people_write_is_shown(account: Account) -> None:
    item = {"unit": {"S": "web"}, "a": {"B": b"\x00\xff"}, "version": {"S": "latest"}, "until": {"NULL": True}}
    account.dynamodb.put_item(TableName="GroupTags", Item=item)
    (policy,) = get("/policies")["policies"]
    assert policy == {
        "unit": "web",
        "id": "web",
        "version": 0,
        "item": {"unit": "web", "a": "AP8=", "version": "latest", "until": None},
    }


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"limit": 0}, "must be at least 1"),
        ({"limit": 101}, "must be at most 100"),
        ({"cursor": "no"}, cursors.UNKNOWN),
        ({"cursor": cursors.encode("web", ["groups"])}, "cursor belongs to a listing with other parameters"),
        ({"cursor": cursors.encode("x" * 2049, ["policies"])}, cursors.UNKNOWN),
    ],
)
def test_refusals(account: Account, query: dict[str, Any], words: str) -> None:
    status, body = ask("GET", "/policies", **query)
    assert status == 400
    assert words in body["message"]
