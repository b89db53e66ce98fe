"""PATCH /groups/{unit} and /switch: what is written, what is recorded, and what happens when two do it at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from handlers import api
from tests.unit.edge.account import FRIDAY, Account, calls
from tests.unit.edge.asking import ANNA, ask, get, patch
from troop import wiring
from troop.api import switch
from troop.aws.dynamo import plain, typed
from troop.chaos.changes import Author
from troop.chaos.guards import REASONS

BEN = "arn:aws:iam::123456789012:user/ben"
NOW = "2026-11-20T22:46:00.000Z"

Intercept = Callable[[int, str, Callable[[], Any]], Any]


def _item(account: Account, unit: str = "web") -> dict[str, Any]:
    answer = account.dynamodb.get_item(TableName="GroupTags", Key={"unit": {"S": unit}})
    item: dict[str, Any] = answer.get("Item", {})
    return item


def _changes(account: Account) -> list[dict[str, Any]]:
    items = [plain(item) for item in account.dynamodb.scan(TableName="Changes")["Items"]]
    return sorted(items, key=lambda item: str(item["at"]))


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


def _before(operation: str, do: Callable[[], None], times: int = 1) -> Intercept:
    """Does something right before the first calls of an operation: what another request does in between."""
    left = [times]

    def intercept(number: int, called: str, call: Callable[[], Any]) -> Any:
        if called == operation and left[0]:
            left[0] -= 1
            do()
        return call()

    return intercept


class TestPolicy:
    def test_plain_attributes_that_people_can_edit(self, account: Account) -> None:
        account.group("web", 0)
        wanted = {
            "opt_out": True,
            "until": "2026-12-04",
            "reason": "closing",
            "probability": 0.1,
            "min_healthy": 3,
            "stop_alarms": ["a", "b"],
        }
        found = patch("/groups/web", wanted)
        assert _item(account) == {
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
        assert (found["known"], found["version"], found["problems"]) == (True, 1, [])
        assert found["policy"]["takes_part"] == {"value": False, "source": "item"}
        assert found == get("/groups/web")

    def test_null_removes_and_what_is_left_out_stays(self, account: Account) -> None:
        account.policy("web", opt_out="true", reason="by hand", comment="mine")
        patch("/groups/web", {"opt_out": None, "owner": "shop"})
        item = plain(_item(account))
        assert {k: item.get(k) for k in ("opt_out", "reason", "comment", "owner")} == {
            "opt_out": None,
            "reason": "by hand",
            "comment": "mine",
            "owner": "shop",
        }

    def test_the_record_says_who_when_and_from_what_to_what(self, account: Account) -> None:
        account.policy("web", opt_out="yes", min_healthy=2, stop_alarms={"a"})
        patch("/groups/web", {"opt_out": True, "min_healthy": 2, "stop_alarms": None, "owner": "us"}, BEN)
        (change,) = _changes(account)
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
        found = get("/groups/web")
        assert [c["changes"]["min_healthy"]["new"] for c in found["changes"]] == [8, 7, 6, 5, 4]
        assert found["version"] == 7

    def test_the_same_again_changes_nothing(self, account: Account) -> None:
        wanted = {"opt_out": True, "probability": 0.25, "stop_alarms": ["a"], "until": "2026-12-04", "method": None}
        first = patch("/groups/web", wanted)
        account.clock.forward(minutes=1)
        assert patch("/groups/web", wanted, BEN) == first
        assert patch("/groups/web", {}, BEN) == first
        assert len(_changes(account)) == 1

    def test_a_unit_that_nothing_is_known_of_may_opt_out_ahead(self, account: Account) -> None:
        found = patch("/groups/ledger", {"opt_out": True})
        assert (found["known"], found["groups"], found["policy"]["takes_part"]["value"]) == (False, [], False)
        account.group("ledger")
        account.decide()
        assert account.decisions()["ledger"]["reason"] == "opted-out"

    def test_a_claim_made_on_what_was_read_before_is_refused(self, account: Account) -> None:
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
            ({"probability": 5e-324}, "must be 0, or at least 1e-100"),
            ({"min_healthy": "few"}, "body.min_healthy: is 'few', must be a whole number from 1 to 10000"),
            ({"until": "2026-13-01"}, "body.until: is '2026-13-01', must be a date as YYYY-MM-DD"),
            ({"calendar": "moon"}, "body.calendar: is 'moon', must be one of default, night"),
            ({"method": "gently"}, "body.method: is 'gently', must be one of crash, drain"),
            ({"stop_alarms": [""]}, "body.stop_alarms: is [''], must be names parted by commas"),
            ({"optout": True}, "body: optout is unknown, must be spelled opt_out"),
            ({"unrecovered": True}, "body.unrecovered: Input should be False"),
            ({"unrecovered": None}, "body.unrecovered"),
            ({"version": -1}, "body.version: Input should be greater than or equal to 0"),
            ([], "body: "),
            ("text", "body is no JSON document"),
            ('"text"', "body: "),
            (None, "body: Field required"),
            ("null", "body: Field required"),
            ("{", "body is no JSON document"),
            ("[" * 100_000, "body is longer than 65536 characters"),
            ("[" * 60_000, "body is no JSON document"),
            ('{"version": ' + "9" * 5000 + "}", "body is no JSON document"),
            ('{"reason": "\\ud800"}', "body.reason"),
            ('{"probability": NaN}', "body.probability: is nan, must be a number from 0 to 1"),
        ],
    )
    def test_refusals_name_key_value_and_what_is_allowed(self, account: Account, body: Any, words: str) -> None:
        status, answer = ask("PATCH", "/groups/web", body)
        assert status == 400, answer
        assert words in answer["message"]
        assert _item(account) == {}
        assert _changes(account) == []

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


class TestAtOnce:
    def test_a_version_that_is_another_by_now(self, account: Account) -> None:
        first = patch("/groups/web", {"owner": "us"})
        assert patch("/groups/web", {"owner": "shop", "version": first["version"]})["version"] == 2
        status, body = ask("PATCH", "/groups/web", {"owner": "them", "version": 1})
        assert status == 409
        assert body["message"] == "version is 1, that of unit 'web' is 2: get it, and decide again what to change"
        assert plain(_item(account))["owner"] == "shop"

    def test_a_version_that_changes_in_between(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        patch("/groups/web", {"owner": "us"})
        other = _before("TransactWriteItems", lambda: _aside(account, "min_healthy", 5))
        with calls(monkeypatch, other):
            status, body = ask("PATCH", "/groups/web", {"owner": "them", "version": 1})
        assert (status, "that of unit 'web' is 2" in body["message"]) == (409, True)

    @pytest.mark.parametrize("first", [{}, {"owner": "us"}])
    def test_two_at_once_lose_nothing(
        self, account: Account, monkeypatch: pytest.MonkeyPatch, first: dict[str, Any]
    ) -> None:
        if first:
            patch("/groups/web", first)
        other = _before("TransactWriteItems", lambda: _aside(account, "min_healthy", 5))
        with calls(monkeypatch, other):
            found = patch("/groups/web", {"probability": 0.5}, BEN)
        assert (found["item"]["min_healthy"], found["item"]["probability"]) == (5, 0.5)
        assert found["version"] == len(_changes(account)) == (3 if first else 2)

    def test_an_edit_by_hand_in_between_is_neither_lost_nor_left_out_of_the_record(
        self, account: Account, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By hand: no version is bumped."""
        account.policy("web", opt_out=False)
        by_hand = _before("TransactWriteItems", lambda: account.policy("web", opt_out="true", reason="by hand"))
        with calls(monkeypatch, by_hand):
            found = patch("/groups/web", {"opt_out": None})
        assert found["item"]["reason"] == "by hand"
        assert found["changes"][0]["changes"] == {"opt_out": {"old": "true", "new": None}}

    def test_others_all_the_time(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        numbers = iter(range(100))
        other = _before("TransactWriteItems", lambda: account.policy("web", version=next(numbers)), times=100)
        with calls(monkeypatch, other):
            status, body = ask("PATCH", "/groups/web", {"owner": "us"})
        assert status == 409
        assert body["message"] == "others are changing unit 'web' at the same time: get it, and try again"
        assert _changes(account) == []

    def test_other_transactions_all_the_time(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        def conflict(number: int, operation: str, call: Callable[[], Any]) -> Any:
            if operation != "TransactWriteItems":
                return call()
            response: Any = {
                "Error": {"Code": "TransactionCanceledException"},
                "CancellationReasons": [{"Code": "TransactionConflict"}],
            }
            raise ClientError(response, operation)

        with calls(monkeypatch, conflict):
            assert ask("PATCH", "/groups/web", {"owner": "us"})[0] == 409
            assert ask("PATCH", "/switch", {"halted": True})[0] == 409

    def test_nothing_is_changed_without_a_record(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        account.dynamodb.delete_table(TableName="Changes")
        assert ask("PATCH", "/groups/web", {"owner": "us"})[0] == 500
        assert ask("PATCH", "/switch", {"halted": True})[0] == 500
        assert _item(account) == {}
        assert account.state("switch") == {}


def _aside(account: Account, key: str, value: int) -> None:
    """What another request writes."""
    wiring.editor().unit("web", {key: value}, False, None, Author(BEN, "aside"))


class TestPuttingBack:
    def test_a_unit_takes_part_again(self, account: Account) -> None:
        account.group("web")
        _leave_chaos(account)
        _leave_chaos(account, "db")
        found = patch("/groups/web", {"unrecovered": False}, BEN)
        assert (found["unrecovered"], found["last_day"]) == (None, str(FRIDAY))
        assert account.state("unrecovered")["units"] == {"db"}
        assert account.state("unit#web") == {"key": "unit#web", "last_day": str(FRIDAY)}
        assert found["changes"] == [
            {"at": NOW, "caller": BEN, "changes": {"unrecovered": {"old": f"{FRIDAY}#web", "new": None}}}
        ]
        assert _item(account) == {}

    def test_together_with_policy(self, account: Account) -> None:
        _leave_chaos(account)
        found = patch("/groups/web", {"unrecovered": False, "probability": 0.1})
        assert set(found["changes"][0]["changes"]) == {"unrecovered", "probability"}

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

        with calls(monkeypatch, _before("TransactWriteItems", again)):
            found = patch("/groups/web", {"unrecovered": False})
        assert found["changes"][0]["changes"]["unrecovered"]["old"] == "2026-11-21#web"


class TestSwitch:
    def test_before_anybody_has_set_it_the_settings_hold(self, account: Account) -> None:
        assert get("/switch") == {
            "halted": False,
            "leashed": False,
            "changed_at": None,
            "changed_by": "",
            "reason": "",
        }

    @pytest.mark.parametrize("settings", [{"leashed": True}], indirect=True)
    def test_unleashing(self, account: Account) -> None:
        assert get("/switch")["leashed"] is True
        account.group("web")
        account.decide()
        assert account.decisions()["web"]["reason"] == "leashed"
        found = patch("/switch", {"leashed": False, "reason": "game day"})
        assert found == {
            "halted": False,
            "leashed": False,
            "changed_at": NOW,
            "changed_by": ANNA,
            "reason": "game day",
        }
        assert found == get("/switch")
        account.clock.forward(minutes=1)
        account.decide()
        assert account.decisions()["web"]["reason"] == "terminate"

    def test_halting_stops_what_is_on_its_way(self, account: Account) -> None:
        account.group("web")
        (item,) = account.work(account.decide())
        patch("/switch", {"halted": True})
        assert account.terminate(item)["reason"] == "halted"
        assert account.gone() == []

    def test_the_record(self, account: Account) -> None:
        patch("/switch", {"halted": True, "reason": "outage"})
        account.clock.forward(minutes=5)
        assert patch("/switch", {"halted": False}, BEN)["reason"] == ""
        first, second = _changes(account)
        assert first["changes"] == {
            "halted": {"old": None, "new": True},
            "reason": {"old": None, "new": "outage"},
        }
        assert second["changes"] == {
            "halted": {"old": True, "new": False},
            "reason": {"old": "outage", "new": None},
        }
        assert (first["subject"], first["caller"], second["caller"]) == ("switch", ANNA, BEN)

    def test_the_same_again_and_nothing_change_nothing(self, account: Account) -> None:
        first = patch("/switch", {"halted": True, "reason": "outage"})
        account.clock.forward(minutes=5)
        assert patch("/switch", {"halted": True, "reason": "outage"}, BEN) == first
        assert patch("/switch", {}, BEN) == first
        assert len(_changes(account)) == 1

    def test_what_others_set_in_between_stays(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        with calls(monkeypatch, _before("TransactWriteItems", lambda: account.switch(halted=True, leashed=False))):
            found = patch("/switch", {"leashed": True})
        assert (found["halted"], found["leashed"]) == (True, True)
        assert _changes(account)[0]["changes"]["leashed"] == {"old": False, "new": True}

    def test_what_people_write_by_hand_is_shown_as_far_as_it_can_be(self, account: Account) -> None:
        item = {"key": "switch", "halted": True, "changed_at": "yesterday", "changed_by": 5, "reason": ["x"]}
        account.dynamodb.put_item(TableName="State", Item=typed(item))
        found = get("/switch")
        assert (found["halted"], found["changed_at"], found["changed_by"]) == (True, None, "5")

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ({"halted": "yes"}, "body.halted: Input should be a valid boolean"),
            ({"leashed": None}, "body.leashed"),
            ({"halt": True}, "body: halt is unknown, must be spelled halted"),
            ({"reason": "x" * 257}, "body.reason"),
        ],
    )
    def test_refusals(self, account: Account, body: Any, words: str) -> None:
        status, answer = ask("PATCH", "/switch", body)
        assert status == 400
        assert words in answer["message"]


class TestEveryRequest:
    def test_leaves_a_line_that_says_whose_it_was(self, account: Account, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO")
        ask("PATCH", "/switch", {"halted": "maybe"}, BEN)
        (line,) = [vars(record) for record in caplog.records if record.message == "request"]
        asked = {key: line[key] for key in ("method", "path", "caller", "status", "levelname")}
        assert asked == {"method": "PATCH", "path": "/switch", "caller": BEN, "status": 400, "levelname": "INFO"}

    def test_a_defect_is_a_500_that_says_where_to_look(self, account: Account) -> None:
        account.dynamodb.delete_table(TableName="State")
        status, body = ask("GET", "/switch")
        assert (status, body["statusCode"]) == (500, 500)
        assert "look for request r in the log" in body["message"]
        assert "ResourceNotFound" not in body["message"]

    def test_an_answer_that_is_not_what_its_model_says_is_no_fault_of_the_caller(
        self, account: Account, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(switch.SwitchOut, "of", lambda view: {"halted": "what?"})
        assert ask("GET", "/switch")[0] == 500
