"""GET /groups/{unit}: a unit from all sides, by its name or by that of one of its groups."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.account.account import FRIDAY, OVERDUE, Account, calls, refusing
from tests.unit.account.asking import ask, get, patch
from tests.unit.chaos.build import event
from troop.chaos.aws.event_items import to_item
from troop.chaos.events import Event, Status
from troop.chaos.units import unit_to_url
from troop.shared.aws.dynamo import typed

MORNING = datetime(2026, 11, 20, 16, tzinfo=UTC)
"""08:00 in Los Angeles: the window opens in an hour."""


def _event(unit: str, days_ago: int = 0) -> Event:
    at = OVERDUE - timedelta(days=days_ago)
    return event(event_id=f"{at.date()}#{unit}", unit=unit, day=at.date(), status=Status.RECOVERED, at=at, group=unit)


class TestUnit:
    def test_from_all_sides(self, account: Account) -> None:
        account.group("web-v041", tags={"troop:probability": "0.5"})
        account.group("web-v042")
        account.policy("web", min_healthy=3, stop_alarms={"b", "a"}, owner="shop")
        account.clock.moment = OVERDUE
        account.decide()
        for days_ago in range(7):
            account.put("Events", to_item(_event("web", days_ago)))
        account.clock.moment = MORNING
        unit = get("/groups/web")
        events = unit.pop("events")
        assert [e["day"] for e in events] == [str((OVERDUE - timedelta(days=n)).date()) for n in range(5)]
        policy = unit.pop("policy")
        assert policy["probability"] == {"value": 0.5, "source": "tag of web-v041"}
        assert policy["min_healthy"] == {"value": 3, "source": "item"}
        assert policy["takes_part"] == {"value": True, "source": "settings"}
        assert policy["stop_alarms"] == {"value": ["a", "b"], "source": "item"}
        assert policy["until"] == {"value": None, "source": "settings"}
        decision = unit.pop("decision")
        assert decision["tick"] == "2026-11-20T22:46:00.000Z"
        assert (decision["reason"], decision["detail"]) == (
            "not-rolled",
            f"{decision['detail'][:6]} >= probability 0.5",
        )
        assert unit == {
            "unit": "web",
            "id": "web",
            "known": True,
            "groups": [
                {"group": "web-v041", "desired": 3, "in_service": 3, "protected": None, "inside": None},
                {"group": "web-v042", "desired": 3, "in_service": 3, "protected": None, "inside": None},
            ],
            "problems": [],
            "missing_alarms": ["a", "b"],
            "version": 0,
            "item": {"unit": "web", "min_healthy": 3, "stop_alarms": ["a", "b"], "owner": "shop"},
            "unrecovered": None,
            "left_for": None,
            "last_day": None,
            "next_possible": "2026-11-20T17:00:00.000Z",
            "outlook": {
                "state": "taking part",
                "takes_part": True,
                "reason": "outside-window",
                "why": "outside window: 08:00 is outside 09:00 to 15:00 America/Los_Angeles",
                "next_possible": "2026-11-20T17:00:00.000Z",
            },
            "changes": [],
            "malformed": [],
        }

    def test_unit_needs_few_calls_at_most(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        """At the most: its groups of the last decision are all gone, no other carries its tag, and none its name."""
        for n in range(60):
            account.group(f"web-v{n:02}", 0)
        account.decide()
        for n in range(60):
            account.drop_group(f"web-v{n:02}")
        with calls(monkeypatch) as operations:
            get("/groups/web")
        assert Counter(operations) == {"GetItem": 2, "BatchGetItem": 1, "Query": 3, "DescribeAutoScalingGroups": 4}

    def test_groups_by_the_last_decision(self, account: Account) -> None:
        account.group("web-v1", 0)
        account.group("web-v2", 0)
        account.decide()
        account.drop_group("web-v1")
        assert [g["group"] for g in get("/groups/web")["groups"]] == ["web-v2"]

    def test_groups_by_their_tag_before_any_decision(self, account: Account) -> None:
        account.group("one", 0, tags={"troop:unit": "shop"})
        account.group("two", 0, tags={"troop:unit": "shop"})
        account.group("shop", 0, tags={"troop:unit": "other"})
        unit = get("/groups/shop")
        assert (unit["known"], [g["group"] for g in unit["groups"]]) == (True, ["one", "two"])

    def test_a_group_of_that_name_before_any_decision(self, account: Account) -> None:
        account.group("db", 0)
        assert [g["group"] for g in get("/groups/db")["groups"]] == ["db"]

    def test_the_name_of_a_group_stands_for_its_unit(self, account: Account) -> None:
        account.group("web-v1", 0)  # of the unit web, by a pattern
        account.group("other", 0, tags={"troop:unit": "web"})
        account.decide()
        unit = get("/groups/web-v1")
        assert unit == get("/groups/web")
        assert (unit["unit"], [g["group"] for g in unit["groups"]]) == ("web", ["other", "web-v1"])

    def test_values_that_stray_under_the_name_of_a_group_can_be_removed(self, account: Account) -> None:
        account.group("web-v1", 0)
        account.policy("web-v1", opt_out=True)
        account.decide()
        assert get("/groups/web")["problems"] != []
        assert ask("PATCH", "/groups/web-v1", {"opt_out": None})[0] == 200
        account.clock.forward(minutes=1)
        account.decide()
        assert get("/groups/web")["problems"] == []
        assert get("/groups/web-v1") == get("/groups/web")
        assert ask("PATCH", "/groups/web-v1", {"unrecovered": False})[0] == 400

    def test_a_change_by_the_name_of_a_group_would_change_nothing_for_it(self, account: Account) -> None:
        account.group("web-v1", 0)
        account.group("shop", 0, tags={"troop:unit": "a/b"})
        account.group("cart", 0, tags={"troop:unit": "shop"})
        status, body = ask("PATCH", "/groups/web-v1", {"opt_out": True})
        assert (status, body["message"]) == (400, "'web-v1' is a group of unit 'web': change /groups/web")
        assert account.dynamodb.scan(TableName="GroupTags")["Items"] == []
        account.group("db", 0)
        account.decide()  # known as a unit by what was decided before it became another's
        account.drop_group("db")
        account.group("db", 0, tags={"troop:unit": "data"})
        assert get("/groups/db")["known"] is True
        assert ask("PATCH", "/groups/db", {"opt_out": True})[0] == 400
        # A name can be both: then it is the unit's.
        assert patch("/groups/shop", {"opt_out": True})["groups"][0]["group"] == "cart"

    def test_an_item_under_the_name_of_a_group_is_shown_for_what_it_is(self, account: Account) -> None:
        account.group("web-v1", 0)
        account.policy("web-v1", opt_out=True)
        unit = get("/groups/web-v1")
        assert (unit["unit"], unit["known"], unit["groups"]) == ("web-v1", False, [])

    def test_a_decision_whose_groups_have_gone_elsewhere(self, account: Account) -> None:
        account.group("db", 0)
        account.decide()
        account.autoscaling.create_or_update_tags(
            Tags=[
                {
                    "ResourceId": "db",
                    "ResourceType": "auto-scaling-group",
                    "Key": "troop:unit",
                    "Value": "data",
                    "PropagateAtLaunch": False,
                }
            ]
        )
        unit = get("/groups/db")
        assert (unit["unit"], [g["group"] for g in unit["groups"]]) == ("data", ["db"])
        assert unit == get("/groups/data")
        account.drop_group("db")
        unit = get("/groups/db")
        assert (unit["known"], unit["groups"], unit["decision"]["reason"]) == (True, [], "too-small")

    def test_a_protected_group_takes_no_part(self, account: Account) -> None:
        account.group("db", tags={"troop:protected": ""})
        account.policy("db", opt_in=True)
        account.clock.moment = MORNING
        unit = get("/groups/db")
        assert unit["policy"]["takes_part"] == {"value": False, "source": "tag troop:protected"}
        assert unit["next_possible"] is None
        account.group("db-new", tags={"troop:unit": "db"})  # which may be hit, and so the unit may
        account.decide()
        unit = get("/groups/db")
        assert [g["protected"] for g in unit["groups"]] == ["troop:protected", None]
        assert unit["policy"]["takes_part"] == {"value": True, "source": "item"}

    def test_missing_alarms_are_listed(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        account.alarm("there")
        account.group("web", 0)
        unit = patch("/groups/web", {"stop_alarms": ["nosuch", "there"], "success_alarms": ["other"]})
        assert unit["missing_alarms"] == ["other", "nosuch"]
        with calls(monkeypatch, refusing("DescribeAlarms", "Throttling")):
            assert get("/groups/web")["missing_alarms"] is None

    def test_an_item_alone(self, account: Account) -> None:
        account.policy("ledger", opt_out=True, until="2026-12-04")
        unit = get("/groups/ledger")
        assert (unit["known"], unit["groups"], unit["decision"]) == (False, [], None)
        assert unit["policy"]["takes_part"] == {"value": False, "source": "item"}
        assert unit["next_possible"] is None  # no group, no instance
        account.group("ledger")
        assert get("/groups/ledger")["next_possible"] == "2026-12-07T17:00:00.000Z"

    @pytest.mark.parametrize(
        "item",
        [
            {"a": {"B": b"\x00\xff"}, "b": {"BS": [b"b", b"a"]}, "c": {"NS": ["1", "2.5"]}},
            {"a": {"M": {"x": {"L": [{"NULL": True}, {"N": "1E+120"}]}}}, "b": {"SS": ["z", "y"]}, "c": {"N": "-0"}},
            {"version": {"S": "latest"}, "changed_at": {"BOOL": True}, "probability": {"NULL": True}},
        ],
    )
    def test_whatever_people_write_is_shown(self, account: Account, item: dict[str, Any]) -> None:
        account.put("GroupTags", {"unit": {"S": "web"}} | item)
        account.group("web", 0)
        unit = get("/groups/web")
        assert set(unit["item"]) == {"unit", *item}
        assert unit["problems"]
        assert unit["version"] == 0
        assert unit["next_possible"] is None
        assert get("/groups")["groups"][0]["problems"] == unit["problems"]

    @pytest.mark.parametrize(("stored", "left_for"), [({}, "unrecovered"), ({"left_for": "broken"}, "broken")])
    def test_a_unit_that_has_left_chaos(self, account: Account, stored: dict[str, str], left_for: str) -> None:
        left = {"key": "unit#web", "last_day": str(FRIDAY), "unrecovered": f"{FRIDAY}#web"}
        account.put("State", typed(left | stored))
        unit = get("/groups/web")
        assert (unit["unrecovered"], unit["left_for"]) == (f"{FRIDAY}#web", left_for)
        assert (unit["last_day"], unit["next_possible"]) == (str(FRIDAY), None)

    @pytest.mark.parametrize("unit", ["web/api v1", "ünïcode~%#?", "a" * 255, "..", "$(x)", "a" * 256])
    def test_any_name(self, account: Account, unit: str) -> None:
        account.group("g", 0, tags={"troop:unit": unit})
        (row,) = get("/groups")["groups"]
        assert (row["unit"], row["id"]) == (unit, unit_to_url(unit))
        assert get(f"/groups/{row['id']}")["unit"] == unit
        patch(f"/groups/{row['id']}", {"owner": "us"})
        assert get("/groups")["groups"][0]["group"] == "g"

    def test_unknown_unit_is_a_404_that_names_the_list(self, account: Account) -> None:
        status, body = ask("GET", "/groups/nobody")
        assert status == 404
        assert body["message"] == "unit 'nobody' is unknown: GET /groups lists groups and their units"

    @pytest.mark.parametrize("segment", ["web%2Fapi", "~2f", "~FF", "~20", "~00", "~0A", "~EF~BF~BF", "x" * 257])
    @pytest.mark.parametrize("method", ["GET", "PATCH"])
    def test_malformed_unit_is_refused(self, account: Account, segment: str, method: str) -> None:
        status, body = ask(method, f"/groups/{segment}", {} if method == "PATCH" else None)
        assert status == 400
        assert "unit" in body["message"]
