"""GET /groups: policy with its sources, and pages of bounded cost."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.account.account import Account, calls, changing, refusing
from tests.unit.account.asking import ask, get
from troop.shared.api import cursors
from troop.shared.aws.dynamo import typed

MORNING = datetime(2026, 11, 20, 16, tzinfo=UTC)
"""08:00 in Los Angeles: the window opens in an hour."""


class TestListing:
    def test_troops_own_fleets_are_no_units(self, account: Account) -> None:
        account.group("web")
        account.group("troop-run-c001-servers", tags={"troop:run": "run", "troop:fleet": "servers"})
        assert [row["unit"] for row in get("/groups")["groups"]] == ["web"]
        status, _ = ask("GET", "/groups/troop-run-c001-servers")
        assert status == 404, "and nobody is told that one takes part"

    def test_a_row_tells_policy_sources_and_state(self, account: Account) -> None:
        account.group("web-v042", tags={"troop:min_healthy": "3", "troop:owner": "ada"})
        account.policy("web", opt_out=True, probability="0.5", reason="closing", until="2026-11-30")
        account.put("State", typed({"key": "unit#web", "last_day": "2026-11-19", "unrecovered": "2026-11-19#web"}))
        assert get("/groups") == {
            "groups": [
                {
                    "group": "web-v042",
                    "unit": "web",
                    "id": "web",
                    "takes_part": False,
                    "protected": None,
                    "probability": 0.5,
                    "min_healthy": 3,
                    "calendar": "default",
                    "method": "crash",
                    "owner": "ada",
                    "reason": "closing",
                    "until": "2026-11-30",
                    "sources": {
                        "takes_part": "item",
                        "probability": "item",
                        "min_healthy": "tag of web-v042",
                        "calendar": "settings",
                        "method": "settings",
                        "owner": "tag of web-v042",
                        "reason": "item",
                        "until": "item",
                    },
                    "problems": [],
                    "desired": 3,
                    "in_service": 3,
                    "unrecovered": "2026-11-19#web",
                    "left_for": "unrecovered",
                    "last_day": "2026-11-19",
                    "outlook": {
                        "state": "opted out",
                        "takes_part": False,
                        "reason": "opted-out",
                        "why": "opted out by item until 2026-11-30: closing",
                        "next_possible": None,  # it has not recovered, either
                    },
                }
            ],
            "cursor": None,
        }

    def test_protected_group_takes_no_part_whatever_its_tags_say(self, account: Account) -> None:
        account.group("db", tags={"troop:protected": "no", "troop:opt_in": "true"})
        (row,) = get("/groups")["groups"]
        participation = (row["takes_part"], row["sources"]["takes_part"], row["protected"])
        assert participation == (False, "tag troop:protected", "troop:protected")

    def test_malformed_values_are_listed_as_problems(self, account: Account) -> None:
        account.group("web", tags={"troop:probability": "often"})
        (row,) = get("/groups")["groups"]
        assert row["problems"] == ["web: tag troop:probability is 'often': must be a number from 0 to 1"]
        assert (row["takes_part"], row["sources"]["takes_part"]) == (False, "malformed")

    def test_an_account_without_groups(self, account: Account) -> None:
        assert get("/groups") == {"groups": [], "cursor": None}

    def test_pages_join_into_the_whole(self, account: Account) -> None:
        names = [account.group(f"g{n}", 0) for n in range(7)]
        for size in (1, 3, 7, 50):
            seen: list[str] = []
            cursor: dict[str, str] = {}
            while True:
                page = get("/groups", limit=size, **cursor)
                assert len(page["groups"]) <= size
                seen += [row["group"] for row in page["groups"]]
                if page["cursor"] is None:
                    break
                cursor = {"cursor": page["cursor"]}
            assert seen == names, size

    def test_a_page_costs_few_calls_whatever_it_holds(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        for n in range(51):
            account.group(f"g{n:02}", 0)
            account.policy(f"g{n:02}", owner="us")
        # Two groups of one unit: a batch may not name a key twice.
        account.group("web-v1", 0)
        account.group("web-v2", 0)
        with calls(monkeypatch) as operations:
            page = get("/groups", limit=50)
            following = get("/groups", limit=50, cursor=page["cursor"])
        # The page, other groups by tag and, for a pattern's unit, by its last decision; the page's units, the switch.
        first = {"DescribeAutoScalingGroups": 2, "BatchGetItem": 2}
        second = {"DescribeAutoScalingGroups": 3, "Query": 1, "BatchGetItem": 2}
        assert Counter(operations) == Counter(first) + Counter(second)
        assert [row["unit"] for row in following["groups"]] == ["g50", "web", "web"]

    def test_unprocessed_keys_are_read_again(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        account.group("web", 0)
        account.policy("web", probability=0)

        def leave_policy_out(answer: Any) -> None:
            del answer["Responses"]["GroupTags"]
            keys = {"Keys": [{"unit": {"S": "web"}}], "ConsistentRead": True}
            answer["UnprocessedKeys"] = {"GroupTags": keys}

        monkeypatch.setattr("time.sleep", lambda seconds: None)
        with calls(monkeypatch, changing("BatchGetItem", leave_policy_out, times=1)) as operations:
            assert get("/groups")["groups"][0]["probability"] == 0
        assert operations.count("BatchGetItem") == 3

    def test_a_row_has_the_state_of_its_unit_from_groups_on_other_pages_too(self, account: Account) -> None:
        """Of a unit by tag, by the group of its name, and by a pattern; each with its strictest policy."""
        account.group("a", 1, tags={"troop:unit": "shop"})
        account.group("b", 1, tags={"troop:unit": "z"})
        account.group("web-v1", 1)
        account.group("web-v2", 3, tags={"troop:min_healthy": "5"})
        account.group("y", 3, tags={"troop:unit": "shop", "troop:opt_out": "true"})
        account.group("z", 3)
        account.decide()
        states, cursor = {}, None
        while True:
            page = get("/groups", limit=1, **({"cursor": cursor} if cursor else {}))
            for row in page["groups"]:
                states[row["group"]] = row["outlook"]
                assert row["outlook"] == get(f"/groups/{row['id']}")["outlook"], row["group"]
            if (cursor := page["cursor"]) is None:
                break
        assert {group: outlook["state"] for group, outlook in states.items()} == {
            "a": "opted out",
            "b": "taking part",
            "web-v1": "too small",
            "web-v2": "too small",
            "y": "opted out",
            "z": "taking part",
        }

    @pytest.mark.parametrize(
        ("query", "words"),
        [
            ({"limit": 0}, "must be at least 1"),
            ({"limit": 51}, "must be at most 50"),
            ({"cursor": "no"}, cursors.UNKNOWN),
            ({"cursor": cursors.encode("x", ["events"])}, "cursor belongs to a listing with other parameters"),
        ],
    )
    def test_refusals(self, account: Account, query: dict[str, Any], words: str) -> None:
        status, body = ask("GET", "/groups", **query)
        assert status == 400
        assert words in body["message"]

    @pytest.mark.parametrize("code", ["InvalidNextToken", "ValidationError"])
    def test_a_token_that_auto_scaling_no_longer_knows(
        self, account: Account, monkeypatch: pytest.MonkeyPatch, code: str
    ) -> None:
        account.group("a", 0)
        account.group("b", 0)
        cursor = get("/groups", limit=1)["cursor"]
        with calls(monkeypatch, refusing("DescribeAutoScalingGroups", code)):
            status, body = ask("GET", "/groups", limit=1, cursor=cursor)
        assert (status, body["message"]) == (400, "cursor has expired: start again without it")
