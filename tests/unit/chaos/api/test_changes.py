"""PATCH /groups/{unit}: what is written, what is recorded, and how a unit is put back into chaos."""

from __future__ import annotations

from typing import Any

import pytest

from handlers import api
from tests.unit.account.account import FRIDAY, Account, before, calls, refusing
from tests.unit.account.asking import ANNA, ask, get, patch
from tests.unit.account.changing import BEN, NOW, recorded, stored
from troop.chaos.guards import REASONS
from troop.shared.aws.dynamo import plain, typed


class TestPolicy:
    def test_plain_attributes_that_people_can_edit(self, account: Account) -> None:
        account.group("web", 0)
        changes = {
            "opt_out": True,
            "until": "2026-12-04",
            "reason": "closing",
            "probability": 0.1,
            "min_healthy": 3,
            "stop_alarms": ["a", "b"],
        }
        unit = patch("/groups/web", changes)
        item = stored(account)
        assert recorded(account)[-1]["at"] == f"{NOW}#{item.pop('changed_request')['S']}"
        assert item == {
            "unit": {"S": "web"},
            "opt_out": {"BOOL": True},
            "until": {"S": "2026-12-04"},
            "reason": {"S": "closing"},
            "probability": {"N": "0.1"},
            "min_healthy": {"N": "3"},
            "stop_alarms": {"L": [{"S": "a"}, {"S": "b"}]},
            "version": {"N": "1"},
            "changed_at": {"S": NOW},
            "changed_by": {"S": ANNA},
            "schema": {"N": "1"},
        }
        assert (unit["known"], unit["version"], unit["problems"]) == (True, 1, [])
        assert unit["policy"]["takes_part"] == {"value": False, "source": "item"}
        assert unit == get("/groups/web")

    def test_opt_out_takes_effect_while_auto_scaling_throttles_reads_by_tag(
        self, account: Account, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        account.group("web", 0)
        throttled = refusing("DescribeAutoScalingGroups", "Throttling")
        seen: list[str] = []

        def intercept(number: int, name: str, call: Any) -> Any:
            seen.append(name)
            return throttled(number, name, call) if seen.count("DescribeAutoScalingGroups") > 1 else call()

        with calls(monkeypatch, intercept):
            ask("PATCH", "/groups/web", {"opt_out": True, "reason": "incident"})
        assert stored(account)["opt_out"] == {"BOOL": True}

    @pytest.mark.parametrize(
        ("more", "status"),
        [
            ({"until": "2026-11-19"}, 400),
            ({"until": "2026-11-19", "calendar": "default"}, 400),
            ({"until": "2026-11-20"}, 200),  # that day included
            ({"until": "2026-11-19", "opt_out": None}, 200),
        ],
    )
    def test_an_opt_out_that_is_over_is_refused(self, account: Account, more: dict[str, Any], status: int) -> None:
        account.policy("web", opt_out=True, reason="open-ended")
        code, answer = ask("PATCH", "/groups/web", {"opt_out": True} | more)
        assert code == status
        if status == 400:
            assert answer["code"] == "opt-out-over"
            assert "must be 2026-11-20 or later" in answer["message"]
            assert "until" not in plain(stored(account))

    def test_its_end_by_itself_is_that_of_an_opt_out(self, account: Account) -> None:
        for body, status in (
            ({"until": "2026-11-19"}, 400),
            ({"until": "2026-11-20"}, 200),
            ({"until": "2026-11-19", "opt_out": False}, 200),
        ):
            assert ask("PATCH", "/groups/web", body)[0] == status, body

    def test_null_removes_and_what_is_left_out_stays(self, account: Account) -> None:
        account.policy("web", opt_out="true", reason="by hand", comment="mine")
        patch("/groups/web", {"opt_out": None, "owner": "shop"})
        item = plain(stored(account))
        assert {k: item.get(k) for k in ("opt_out", "reason", "comment", "owner")} == {
            "opt_out": None,
            "reason": "by hand",
            "comment": "mine",
            "owner": "shop",
        }

    def test_the_record_says_who_when_and_from_what_to_what(self, account: Account) -> None:
        account.policy("web", opt_out="yes", min_healthy=2, stop_alarms={"a"})
        patch("/groups/web", {"opt_out": True, "min_healthy": 2, "stop_alarms": None, "owner": "us"}, BEN)
        (change,) = recorded(account)
        at, _, request = change.pop("at").partition("#")
        assert (at, request[0]) == (NOW, "r")
        assert change == {
            "subject": "unit#web",
            "caller": BEN,
            "schema": 1,
            "changes": {
                "opt_out": {"old": "yes", "new": True},
                "stop_alarms": {"old": {"a"}, "new": None},
                "owner": {"old": None, "new": "us"},
            },
        }
        assert get("/groups/web")["changes"] == [
            {
                "unit": "web",
                "at": NOW,
                "caller": BEN,
                "changes": {
                    "opt_out": {"old": "yes", "new": True},
                    "stop_alarms": {"old": ["a"], "new": None},
                    "owner": {"old": None, "new": "us"},
                },
            }
        ]

    def test_the_last_five_changes_newest_first(self, account: Account) -> None:
        for minimum in range(2, 9):
            patch("/groups/web", {"min_healthy": minimum})
            account.clock.forward(seconds=1)
        unit = get("/groups/web")
        assert [c["changes"]["min_healthy"]["new"] for c in unit["changes"]] == [8, 7, 6, 5, 4]
        assert unit["version"] == 7

    def test_a_method_is_a_set_of_faults_with_parameters_as_one_text(self, account: Account) -> None:
        account.group("web")
        unit = patch("/groups/web", {"method": "latency  seconds=60 delay=300,crash"})
        assert unit["item"]["method"] == unit["policy"]["method"]["value"] == "crash, latency delay=300 seconds=60"
        (row,) = get("/groups")["groups"]
        assert row["method"] == "crash, latency delay=300 seconds=60"

    def test_the_same_again_changes_nothing(self, account: Account) -> None:
        changes = {"opt_out": True, "probability": 0.25, "stop_alarms": ["a"], "until": "2026-12-04", "method": None}
        first = patch("/groups/web", changes)
        account.clock.forward(minutes=1)
        assert patch("/groups/web", changes, BEN) == first
        assert patch("/groups/web", {}, BEN) == first
        assert len(recorded(account)) == 1

    def test_a_unit_that_nothing_is_known_of_may_opt_out_ahead(self, account: Account) -> None:
        unit = patch("/groups/ledger", {"opt_out": True})
        assert (unit["known"], unit["groups"], unit["policy"]["takes_part"]["value"]) == (False, [], False)
        account.group("ledger")
        account.decide()
        assert account.decisions()["ledger"]["reason"] == "opted-out"

    def test_claim_based_on_an_earlier_policy_is_refused(self, account: Account) -> None:
        account.group("web")
        (item,) = account.work(account.decide())
        patch("/groups/web", {"opt_out": True})
        assert account.terminate(item)["reason"] == "opted-out"
        assert account.gone() == []
        assert "opted-out" in REASONS

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ({"probability": 2}, "body.probability: is 2, must be a number from 0 to 1"),
            ({"probability": 5e-324}, "must be 0, or a number of at least 1e-100"),
            ({"min_healthy": "few"}, "body.min_healthy: is 'few', must be a whole number from 1 to 10000"),
            ({"until": "2026-13-01"}, "body.until: is '2026-13-01', must be a date as YYYY-MM-DD"),
            ({"calendar": "moon"}, "body.calendar: is 'moon', must be one of default, night"),
            ({"method": "gently"}, "body.method: is 'gently', must be one of crash, shutdown, drain"),
            ({"method": "cpu lode=80"}, "must be cpu with parameters of load, processors, seconds, not lode"),
            ({"method": ["crash"]}, "must be one or more of crash, shutdown, drain, cpu"),
            ({"stop_alarms": [""]}, "body.stop_alarms: is [''], must be names separated by commas"),
            ({"recovery_within": 0}, "body.recovery_within: is 0, must be a whole number from 1 to 86400"),
            ({"optout": True}, "body: optout is unknown, must be spelled opt_out"),
            ({"unrecovered": True}, "body.unrecovered: is true, must be false"),
            ({"unrecovered": None}, "body.unrecovered"),
            ({"version": -1}, "body.version: is -1, must be at least 0"),
            ([], "body: "),
            ("text", "body is not a valid JSON document"),
            ('"text"', "body: "),
            (None, "body: is missing"),
            ("null", "body: is missing"),
            ("{", "body is not a valid JSON document"),
            ("[" * 100_000, "body is longer than 65536 characters"),
            ("[" * 60_000, "body is not a valid JSON document"),
            ('{"version": ' + "9" * 5000 + "}", "body is not a valid JSON document"),
            ('{"reason": "\\ud800"}', "it has half of a surrogate pair"),
            ('{"probability": NaN}', "NaN is not a number"),
        ],
    )
    def test_refusals_name_key_value_and_what_is_allowed(self, account: Account, body: Any, words: str) -> None:
        status, answer = ask("PATCH", "/groups/web", body)
        assert status == 400, answer
        assert words in answer["message"]
        assert stored(account) == {}
        assert recorded(account) == []

    def test_all_problems_at_once(self, account: Account) -> None:
        status, answer = ask("PATCH", "/groups/web", {"probability": 2, "until": "soon", "owner": "us"})
        assert status == 400
        assert answer["problems"] == [
            {"where": "body.probability", "problem": "is 2, must be a number from 0 to 1"},
            {"where": "body.until", "problem": "is 'soon', must be a date as YYYY-MM-DD"},
        ]

    @pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded"])
    def test_other_kinds_of_bodies(self, account: Account, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        real = api.handler

        def as_kind(event: dict[str, Any], context: Any) -> Any:
            return real(event | {"headers": {"content-type": kind}}, context)

        monkeypatch.setattr(api, "handler", as_kind)
        status, answer = ask("PATCH", "/groups/web", {"opt_out": True})
        assert (status, answer["message"]) == (400, f"the body's content type is {kind!r}: send application/json")


def _leave_chaos(account: Account, unit: str = "web") -> None:
    """As an event leaves it that was closed as UNRECOVERED."""
    item = {"key": f"unit#{unit}", "last_day": str(FRIDAY), "unrecovered": f"{FRIDAY}#{unit}"}
    account.dynamodb.put_item(TableName="State", Item=typed(item))
    account.dynamodb.update_item(
        TableName="State",
        Key={"key": {"S": "unrecovered"}},
        UpdateExpression="ADD #units :unit",
        ExpressionAttributeNames={"#units": "units"},
        ExpressionAttributeValues={":unit": {"SS": [unit]}},
    )


class TestPuttingBack:
    def test_a_unit_takes_part_again(self, account: Account) -> None:
        account.group("web")
        _leave_chaos(account)
        _leave_chaos(account, "db")
        unit = patch("/groups/web", {"unrecovered": False}, BEN)
        assert (unit["unrecovered"], unit["last_day"]) == (None, str(FRIDAY))
        assert account.state("unrecovered")["units"] == {"db"}
        assert account.state("unit#web") == {"key": "unit#web", "last_day": str(FRIDAY)}
        assert unit["changes"] == [
            {"unit": "web", "at": NOW, "caller": BEN, "changes": {"unrecovered": {"old": f"{FRIDAY}#web", "new": None}}}
        ]
        assert stored(account) == {}

    def test_a_broken_unit_takes_part_again(self, account: Account) -> None:
        account.group("web")
        _leave_chaos(account)
        account.change("State", {"key": "unit#web"}, left_for="broken")
        assert get("/groups/web")["outlook"]["reason"] == "broken"
        unit = patch("/groups/web", {"unrecovered": False})
        assert (unit["unrecovered"], unit["left_for"], unit["outlook"]["takes_part"]) == (None, None, True)
        assert account.state("unit#web") == {"key": "unit#web", "last_day": str(FRIDAY)}
        assert "units" not in account.state("unrecovered")

    def test_together_with_policy(self, account: Account) -> None:
        _leave_chaos(account)
        unit = patch("/groups/web", {"unrecovered": False, "probability": 0.1})
        assert set(unit["changes"][0]["changes"]) == {"unrecovered", "probability"}

    def test_the_last_one_leaves_no_set(self, account: Account) -> None:
        _leave_chaos(account)
        patch("/groups/web", {"unrecovered": False})
        assert "units" not in account.state("unrecovered")

    def test_one_that_never_left(self, account: Account) -> None:
        assert patch("/groups/web", {"unrecovered": False})["changes"] == []

    def test_one_that_leaves_again_in_between_is_put_back_from_there(
        self, account: Account, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _leave_chaos(account)

        def again() -> None:
            item = {"key": "unit#web", "unrecovered": "2026-11-21#web"}
            account.dynamodb.put_item(TableName="State", Item=typed(item))

        with calls(monkeypatch, before("TransactWriteItems", again)):
            unit = patch("/groups/web", {"unrecovered": False})
        assert unit["changes"][0]["changes"]["unrecovered"]["old"] == "2026-11-21#web"
