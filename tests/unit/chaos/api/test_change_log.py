"""GET /changes: who changed what and when, in all units and the switch; pages of bounded cost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.account.account import Account, calls, refusing
from tests.unit.account.asking import ANNA, ask, get, patch
from tests.unit.account.changing import BEN, NOW
from troop.shared.api import cursors
from troop.shared.aws.dynamo import typed

LATER = "2026-11-20T22:46:10.000Z"


def _three(account: Account) -> None:
    """Two units and the switch are changed, ten seconds after one another."""
    patch("/groups/web", {"opt_out": True, "reason": "closing"})
    account.clock.forward(seconds=10)
    patch("/switch", {"halted": True, "reason": "incident"}, BEN)
    account.clock.forward(seconds=10)
    patch("/groups/db", {"min_healthy": 3})


def _listed(body: Any) -> list[tuple[str | None, list[str]]]:
    return [(change["unit"], sorted(change["changes"])) for change in body["changes"]]


def test_changes_of_all_units_and_the_switch_newest_first(account: Account) -> None:
    _three(account)
    body = get("/changes")
    assert body["changes"] == [
        {
            "unit": "db",
            "at": "2026-11-20T22:46:20.000Z",
            "caller": ANNA,
            "changes": {"min_healthy": {"old": None, "new": 3}},
        },
        {
            "unit": None,
            "at": LATER,
            "caller": BEN,
            "changes": {"halted": {"old": None, "new": True}, "reason": {"old": None, "new": "incident"}},
        },
        {
            "unit": "web",
            "at": NOW,
            "caller": ANNA,
            "changes": {"opt_out": {"old": None, "new": True}, "reason": {"old": None, "new": "closing"}},
        },
    ]
    assert (body["cursor"], body["malformed"]) == (None, [])


@pytest.mark.parametrize(
    ("query", "units"),
    [
        ({"unit": "web"}, ["web"]),
        ({"unit": "we"}, []),
        ({"switch": "true"}, [None]),
        ({"since": LATER}, ["db", None]),
        ({"until": LATER}, ["web"]),
        ({"since": "2026-11-20T23:46:10+01:00", "until": "2026-11-20T22:46:20Z"}, [None]),
        ({"unit": "web", "since": LATER}, []),
    ],
)
def test_filters_by_unit_switch_and_time(account: Account, query: dict[str, str], units: list[str | None]) -> None:
    _three(account)
    assert [change["unit"] for change in get("/changes", **query)["changes"]] == units


@pytest.mark.parametrize("query", [{}, {"unit": "web"}])
def test_pages_list_every_change_once_by_one_query_each(
    account: Account, monkeypatch: pytest.MonkeyPatch, query: dict[str, str]
) -> None:
    for minimum in range(2, 7):  # several of one moment
        patch("/groups/web", {"min_healthy": minimum})
    seen: list[int] = []
    cursor: dict[str, str] = {}
    for _ in range(3):
        with calls(monkeypatch) as operations:
            body = get("/changes", limit=2, **query, **cursor)
        assert operations == ["Query"]
        seen += [change["changes"]["min_healthy"]["new"] for change in body["changes"]]
        cursor = {"cursor": body["cursor"]}
    assert (sorted(seen), body["cursor"]) == ([2, 3, 4, 5, 6], None)


def test_record_without_any_newer_attribute_is_listed(account: Account) -> None:
    """As the first version of Troop wrote it."""
    item = {
        "subject": "unit#old",
        "at": "2025-01-01T00:00:00.000Z#r0",
        "caller": ANNA,
        "changes": {"owner": {"old": None, "new": "us"}},
        "schema": 1,
    }
    account.put("Changes", typed(item))
    assert _listed(get("/changes")) == [("old", ["owner"])]


def test_malformed_change_is_named_beside_the_others(account: Account) -> None:
    _three(account)
    account.put("Changes", typed({"subject": "unit#x", "at": f"{NOW}#r", "schema": 1, "caller": ANNA}))
    body = get("/changes")
    assert [change["unit"] for change in body["changes"]] == ["db", None, "web"]
    assert [one["item"] for one in body["malformed"]] == [f"Changes: unit#x, {NOW}#r"]


@pytest.mark.parametrize(
    ("cause", "status", "message"),
    [
        ("Cannot read from backfilling global secondary index: by-time", 503, "is still being built: try again"),
        ("The provided key element does not match the schema", 500, "the request failed"),
    ],
)
def test_index_that_an_update_still_builds_is_named(
    account: Account, monkeypatch: pytest.MonkeyPatch, cause: str, status: int, message: str
) -> None:
    with calls(monkeypatch, refusing("Query", "ValidationException", message=cause)):
        answer, body = ask("GET", "/changes")
    assert (answer, message in body["message"]) == (status, True)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"unit": "web", "switch": "true"}, "unit and switch exclude each other"),
        ({"since": LATER, "until": NOW}, "until is before since"),
        ({"since": "yesterday"}, "query.since: "),
        ({"units": "web"}, "query.units: is unknown, must be"),
        ({"cursor": "mine"}, cursors.UNKNOWN),
        ({"cursor": cursors.encode(f"{NOW}#r", ["changes", None, None, None])}, cursors.UNKNOWN),
        ({"cursor": cursors.encode(f"{NOW}#{'r' * 1100} switch", ["changes", None, None, None])}, cursors.UNKNOWN),
        (
            {"unit": "web", "cursor": cursors.encode(f"{NOW}#r unit#db", ["changes", "unit#web", None, None])},
            cursors.UNKNOWN,
        ),
    ],
)
def test_bad_requests_are_refused_with_the_remedy(account: Account, query: dict[str, Any], message: str) -> None:
    status, body = ask("GET", "/changes", **query)
    assert status == 400
    assert message in body["message"]
