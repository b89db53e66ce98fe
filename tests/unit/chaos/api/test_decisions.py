"""``GET /decisions``: about a unit, of a day, page by page, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from tests.unit.account.account import FRIDAY, OVERDUE, Account, calls
from tests.unit.account.asking import ask, get
from troop.chaos.aws import decision_queries
from troop.chaos.aws.decision_table import SHARDS, day_shard, shard_of
from troop.chaos.wiring import tables
from troop.shared import moments
from troop.shared.api import cursors
from troop.shared.aws.dynamo import typed

NOON = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
"""Of the Friday, in Los Angeles."""


def pages(**query: Any) -> Iterator[list[dict[str, Any]]]:
    cursor: dict[str, str] = {}
    for _ in range(100):
        page = get("/decisions", **query, **cursor)
        yield page["decisions"]
        if not page["cursor"]:
            return
        cursor = {"cursor": page["cursor"]}
    pytest.fail("the listing does not end")


def listed(**query: Any) -> list[tuple[str, str]]:
    """(tick, unit) of all pages."""
    return [(d["tick"], d["unit"]) for page in pages(**query) for d in page]


def store(account: Account, unit: str, tick: datetime, day: date = FRIDAY, **more: Any) -> None:
    """A decision as ticks write them."""
    at = moments.iso(tick)
    item = {
        "unit": unit,
        "tick": at,
        "day": day.isoformat(),
        "day_shard": day_shard(day, shard_of(unit)),
        "at": f"{at}#{unit}",
        "reason": "not-rolled",
        "detail": "0.8123 >= probability 0.2",
        "groups": [unit],
        "calendar": "default",
    }
    account.dynamodb.put_item(TableName="Decisions", Item=typed(item | more))


@pytest.mark.parametrize(
    ("parameter", "words"), [("dya", "query.dya: is unknown, must be spelled day"), ("reason", "must be one of unit")]
)
def test_a_filter_that_there_is_not_is_refused(account: Account, parameter: str, words: str) -> None:
    """An answer without it would read like one with it."""
    more: dict[str, Any] = {parameter: "terminate"}
    status, answer = ask("GET", "/decisions", day="2026-11-20", **more)
    assert status == 400
    assert words in answer["message"]
    signature: dict[str, Any] = {"X-Amz-Date": "20261120T000000Z"}
    signed, _ = ask("GET", "/decisions", day="2026-11-20", **signature)
    assert signed == 200


def test_decisions_are_listed_by_unit_and_by_day(account: Account) -> None:
    account.group("web")
    account.policy("web", probability=0)
    account.clock.moment = NOON
    account.decide()
    ((decision,),) = pages(unit="web")
    assert decision["detail"].endswith(">= probability 0")
    assert 0 < decision.pop("rolled") < 1
    assert decision == {
        "unit": "web",
        "id": "web",
        "tick": "2026-11-20T20:00:00.000Z",
        "day": "2026-11-20",
        "time_zone": "America/Los_Angeles",
        "reason": "not-rolled",
        "detail": decision["detail"],
        "groups": ["web"],
        "probability": 0,
        "group": None,
        "instance_id": None,
    }
    for query in ({"day": FRIDAY}, {"day": FRIDAY, "unit": "web"}):
        assert [d | {"rolled": None} for d in get("/decisions", **query)["decisions"]] == [decision | {"rolled": None}]
    assert get("/decisions", day="2026-11-19") == {"decisions": [], "malformed": [], "cursor": None}
    assert get("/decisions", unit="nobody") == {"decisions": [], "malformed": [], "cursor": None}


def test_unit_with_an_unknown_calendar_is_listed_on_the_day_of_the_tick(account: Account) -> None:
    account.group("lost", tags={"troop:calendar": "nigth"})
    account.decide()
    for query in ({"unit": "lost"}, {"day": FRIDAY}, {"unit": "lost", "day": FRIDAY}):
        ((decision,),) = pages(**query)
        assert (decision["reason"], decision["day"], decision["time_zone"]) == ("malformed", str(FRIDAY), None)


def test_decision_to_terminate_names_its_target(account: Account) -> None:
    account.group("web")
    account.decide()
    ((decision,),) = pages(unit="web")
    assert (decision["reason"], decision["group"]) == ("terminate", "web")
    assert decision["instance_id"] in account.instances("web")


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
def test_the_pages_of_a_day_have_every_decision_once_and_the_newest_first(account: Account, limit: int) -> None:
    units = [f"u{number}" for number in range(15)]
    assert {shard_of(unit) for unit in units} > {0, 1}
    for tick in range(2):
        for unit in units:
            store(account, unit, NOON + timedelta(minutes=15 * tick))
    store(account, "u1", NOON + timedelta(days=1), FRIDAY + timedelta(days=1))
    decisions = listed(day=FRIDAY, limit=limit)
    assert len(decisions) == 30
    assert decisions == sorted(decisions, reverse=True)


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
@pytest.mark.parametrize("on", [{}, {"day": FRIDAY}])
def test_the_pages_of_a_unit(account: Account, limit: int, on: dict[str, Any]) -> None:
    ticks = [NOON + timedelta(minutes=15 * number) for number in range(8)]
    for tick in ticks:
        store(account, "web", tick)
        store(account, "web-2", tick)
    assert listed(unit="web", limit=limit, **on) == [(moments.iso(tick), "web") for tick in reversed(ticks)]


@pytest.mark.parametrize("zone_hours", [-11, 14])
def test_a_local_day_is_not_utcs(account: Account, zone_hours: int) -> None:
    """Where clocks are furthest from UTC's, the first and the last minute belong to the day, the next to none of it."""
    midnight = datetime(2026, 11, 20, tzinfo=UTC) - timedelta(hours=zone_hours)
    inside = [midnight, midnight + timedelta(hours=23, minutes=59)]
    for tick in inside:
        store(account, "web", tick)
    store(account, "web", midnight - timedelta(minutes=1), FRIDAY - timedelta(days=1))
    store(account, "web", midnight + timedelta(hours=24), FRIDAY + timedelta(days=1))
    assert listed(unit="web", day=FRIDAY) == [(moments.iso(tick), "web") for tick in reversed(inside)]


def test_a_page_is_a_bounded_read(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_queries, "EXAMINED", 3)
    for number in range(40):  # of the day before, in a zone where they fall into the same hours of UTC
        store(account, "web", NOON + timedelta(minutes=number), FRIDAY + timedelta(days=1))
    store(account, "web", NOON - timedelta(minutes=1))
    with calls(monkeypatch) as operations:
        first = get("/decisions", unit="web", day=FRIDAY)
    assert first["decisions"] == []
    assert first["cursor"]
    assert operations == ["Query"] * decision_queries.READS
    assert len(listed(unit="web", day=FRIDAY)) == 1
    with calls(monkeypatch) as operations:
        get("/decisions", unit="web")
    assert operations == ["Query"]
    with calls(monkeypatch) as operations:
        get("/decisions", day=FRIDAY)
    assert operations == ["Query"] * SHARDS


def test_a_part_that_dynamodb_cuts_short_hides_nothing(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        store(account, f"u{number}", NOON)
    whole = listed(day=FRIDAY)
    queries = tables.decision_queries()
    real = queries.client.query

    def one_megabyte_is_one_item(**query: Any) -> Any:
        return real(**query | {"Limit": 1})

    monkeypatch.setattr(queries.client, "query", one_megabyte_is_one_item)
    assert listed(day=FRIDAY) == whole
    assert len(whole) == 12


def test_decisions_of_earlier_versions_are_listed_for_their_unit(account: Account) -> None:
    old = {
        "unit": "web",
        "tick": moments.iso(NOON),
        "reason": "malformed",
        "detail": "calendar is 'x'",
        "policy": {"probability": {"value": 0.2, "source": "settings"}, "calendar": {"value": "x", "source": "item"}},
    }
    account.dynamodb.put_item(TableName="Decisions", Item=typed(old))
    ((decision,),) = pages(unit="web")
    assert (decision["day"], decision["probability"], decision["time_zone"], decision["groups"]) == (
        None,
        0.2,
        None,
        [],
    )
    assert get("/groups/web")["decision"]["reason"] == "malformed"


@pytest.mark.parametrize("settings", [{"decision_retention_days": 7}], indirect=True)
def test_decisions_expire_after_the_retention_of_the_settings(account: Account) -> None:
    account.group("web")
    account.decide()
    assert account.decisions()["web"]["expires_at"] == (OVERDUE + timedelta(days=7)).timestamp()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"day": "20261120"}, "must be a date as YYYY-MM-DD"),
        ({"day": "1795219200"}, "must be a date as YYYY-MM-DD"),
        ({}, "unit or day is required"),
        ({"limit": 0, "unit": "web"}, "limit"),
        ({"limit": 101, "unit": "web"}, "limit"),
        ({"unit": ""}, "unit"),
        ({"unit": "u" * 257}, "unit"),
        ({"day": "yesterday"}, "day"),
        ({"day": "2026-02-30"}, "day"),
        ({"unit": "web", "cursor": "x"}, "cursor does not come from this API"),
    ],
)
def test_bad_query_is_refused(account: Account, query: dict[str, Any], message: str) -> None:
    status, answer = ask("GET", "/decisions", **query)
    assert (status, message in answer["message"]) == (400, True), answer


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_the_ends_of_time(account: Account, day: str) -> None:
    assert get("/decisions", unit="web", day=day)["decisions"] == get("/decisions", day=day)["decisions"] == []


def test_a_cursor_belongs_to_its_listing(account: Account) -> None:
    for number in range(3):
        store(account, "web", NOON + timedelta(minutes=number))
    cursor = get("/decisions", unit="web", limit=1)["cursor"]
    status, answer = ask("GET", "/decisions", unit="db", cursor=cursor)
    assert (status, "other parameters" in answer["message"]) == (400, True)


@pytest.mark.parametrize("query", [{"unit": "web"}, {"unit": "web", "day": "2026-11-20"}, {"day": "2026-11-20"}])
@pytest.mark.parametrize("position", ["~", "\x00", "~" * 24, "2026-11-20T20:00:00.000Z" + "x" * 1100])
def test_a_forged_cursor_is_no_server_error(account: Account, query: dict[str, Any], position: str) -> None:
    day = date.fromisoformat(query["day"]) if "day" in query else None
    cursor = cursors.encode(position, ["decisions", query.get("unit"), day])
    refused = "unit" in query or len(position) > 1024  # where DynamoDB would refuse to start
    assert ask("GET", "/decisions", **query, cursor=cursor)[0] == (400 if refused else 200)
