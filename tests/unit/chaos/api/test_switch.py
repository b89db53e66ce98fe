"""GET and PATCH /switch: what it says, what it stops, and who is on record for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.account.account import Account, before, calls
from tests.unit.account.asking import ANNA, ask, get, patch
from tests.unit.account.changing import BEN, NOW, recorded
from troop.shared.aws.dynamo import typed


class TestSwitch:
    def test_before_anybody_has_set_it_the_settings_hold(self, account: Account) -> None:
        assert get("/switch") == {
            "halted": False,
            "leashed": False,
            "reaper_off": False,
            "schedules_off": False,
            "changed_at": None,
            "changed_by": "",
            "reason": "",
            "halt": None,
            "halt_id": None,
            "itself": None,
        }

    @pytest.mark.parametrize("settings", [{"leashed": True}], indirect=True)
    def test_unleashing(self, account: Account) -> None:
        assert get("/switch")["leashed"] is True
        account.group("web")
        account.decide()
        assert account.decisions()["web"]["reason"] == "leashed"
        switch = patch("/switch", {"leashed": False, "reason": "game day"})
        assert switch == {
            "halted": False,
            "leashed": False,
            "reaper_off": False,
            "schedules_off": False,
            "changed_at": NOW,
            "changed_by": ANNA,
            "reason": "game day",
            "halt": None,
            "halt_id": None,
            "itself": None,
        }
        assert switch == get("/switch")
        account.clock.forward(minutes=1)
        account.decide()
        assert account.decisions()["web"]["reason"] == "terminate"

    def test_the_reaper_s_switch_is_apart_from_chaos_and_on_record(self, account: Account) -> None:
        switch = patch("/switch", {"reaper_off": True, "reason": "incident"}, BEN)
        assert (switch["reaper_off"], switch["halted"], switch["changed_by"]) == (True, False, BEN)
        assert recorded(account)[0]["changes"]["reaper_off"] == {"old": None, "new": True}
        account.group("web")
        account.decide()
        assert account.decisions()["web"]["reason"] == "terminate"
        assert patch("/switch", {"halted": True})["reaper_off"] is True
        assert patch("/switch", {"reaper_off": False})["reaper_off"] is False

    @pytest.mark.parametrize("settings", [{"benchmarks": False}], indirect=True)
    def test_without_benchmarks_there_is_no_reaper_to_switch(self, account: Account) -> None:
        status, body = ask("PATCH", "/switch", {"reaper_off": True})
        assert status == 403
        assert "troop:benchmarks" in body["message"]
        assert patch("/switch", {"halted": True})["halted"] is True

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
        first, second = recorded(account)
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
        assert len(recorded(account)) == 1

    def test_attributes_that_others_changed_meanwhile_stay(
        self, account: Account, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with calls(monkeypatch, before("TransactWriteItems", lambda: account.switch(halted=True, leashed=False))):
            switch = patch("/switch", {"leashed": True})
        assert (switch["halted"], switch["leashed"]) == (True, True)
        assert recorded(account)[0]["changes"]["leashed"] == {"old": False, "new": True}

    @pytest.mark.parametrize(
        "change", [{"leashed": True}, {"leashed": True, "reason": "calm"}, {"reason": "calm"}, {"reaper_off": True}]
    )
    def test_later_change_of_another_key_keeps_who_has_halted_and_why(
        self, account: Account, change: dict[str, Any]
    ) -> None:
        halt = {"at": NOW, "by": ANNA, "reason": "incident 4711"}
        assert patch("/switch", {"halted": True, "reason": "incident 4711"})["halt"] == halt
        account.clock.forward(minutes=5)
        switch = patch("/switch", change, BEN)
        assert (switch["halt"], switch["changed_by"]) == (halt, BEN)
        assert switch["reason"] == change.get("reason", "")
        assert patch("/switch", {"halted": False}, BEN)["halt"] is None
        assert "halt" not in account.state("switch")

    def test_whoever_halts_again_for_another_reason_is_the_one_who_has_halted(self, account: Account) -> None:
        patch("/switch", {"halted": True, "reason": "incident 4711"})
        assert patch("/switch", {"halted": True}, BEN)["halt"] == {"at": NOW, "by": BEN, "reason": ""}

    def test_halt_by_an_earlier_version_is_its_last_change_and_stays_so(self, account: Account) -> None:
        last = {"changed_at": NOW, "changed_by": ANNA, "changed_request": "x", "reason": "outage"}
        account.put("State", typed({"key": "switch", "halted": True, "leashed": False} | last))
        halt = {"at": NOW, "by": ANNA, "reason": "outage"}
        assert get("/switch")["halt"] == halt
        assert patch("/switch", {"leashed": True}, BEN)["halt"] == halt

    def test_malformed_switch_is_shown_as_far_as_possible(self, account: Account) -> None:
        item = {"key": "switch", "halted": True, "changed_at": "yesterday", "changed_by": 5, "reason": ["x"]}
        account.dynamodb.put_item(TableName="State", Item=typed(item))
        switch = get("/switch")
        assert (switch["halted"], switch["changed_at"], switch["changed_by"]) == (True, None, "5")
        assert switch["halt"] == {"at": None, "by": "5", "reason": "['x']"}

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ({"halted": "yes"}, "body.halted: is 'yes', must be true or false"),
            ({"leashed": None}, "body.leashed"),
            ({"halt": True}, "body: halt is unknown, must be spelled halted"),
            ({"reason": "x" * 257}, "body.reason: has 257 characters, must have at most 256 characters"),
        ],
    )
    def test_refusals(self, account: Account, body: Any, words: str) -> None:
        status, answer = ask("PATCH", "/switch", body)
        assert status == 400
        assert words in answer["message"]


class TestItsOwnHalt:
    def test_own_halt_is_shown_and_stops_everything(self, account: Account) -> None:
        account.group("web")
        (item,) = account.work(account.decide())
        account.halt_itself()
        switch = get("/switch")
        assert switch["halted"] is True
        assert switch["itself"] == {"at": NOW, "why": "2 causes broke units", "events": ["a", "b"]}
        assert get("/groups/web")["outlook"]["reason"] == "halted"
        assert account.terminate(item)["reason"] == "halted"
        account.clock.forward(minutes=1)
        account.decide()
        assert account.decisions()["web"]["detail"].startswith("the deployment halted itself at 2026-11-20T22:46:00Z")

    def test_to_resume_ends_it_and_forgets_what_was_broken(self, account: Account) -> None:
        account.halt_itself()
        account.clock.forward(minutes=5)
        switch = patch("/switch", {"halted": False, "reason": "repaired"}, BEN)
        assert (switch["halted"], switch["itself"], switch["changed_by"]) == (False, None, BEN)
        assert account.state("self-halt") == account.state("broken") == {}
        (record,) = recorded(account)
        assert record["caller"] == BEN
        assert record["changes"] == {
            "halted": {"old": None, "new": False},
            "reason": {"old": None, "new": "repaired"},
            "itself": {"old": {"at": NOW, "why": "2 causes broke units", "events": ["a", "b"]}, "new": None},
        }
        assert patch("/switch", {"halted": False, "reason": "repaired"}) == switch
        assert len(recorded(account)) == 1

    def test_a_second_one_after_the_same_words_is_ended_on_record(self, account: Account) -> None:
        for minute in (1, 2):
            account.halt_itself()
            account.clock.forward(minutes=1)
            assert patch("/switch", {"halted": False, "reason": "repaired"})["itself"] is None, minute
        assert [list(one["changes"]) for one in recorded(account)] == [["halted", "reason", "itself"], ["itself"]]
        assert get("/switch")["changed_at"] == "2026-11-20T22:48:00.000Z"

    def test_to_resume_ends_both_halts(self, account: Account) -> None:
        patch("/switch", {"halted": True})
        account.halt_itself()
        assert patch("/switch", {"halted": False})["halted"] is False

    @pytest.mark.parametrize("change", [{"halted": True}, {"leashed": True}, {"reason": "seen"}])
    def test_no_other_change_ends_it(self, account: Account, change: dict[str, Any]) -> None:
        account.halt_itself()
        assert patch("/switch", change)["itself"]
        assert account.state("broken")

    def test_without_it_a_resumption_forgets_nothing(self, account: Account) -> None:
        account.put("State", typed({"key": "broken", "events": []}))
        patch("/switch", {"halted": False})
        assert account.state("broken")

    def test_one_that_replaces_it_meanwhile_is_on_record(
        self, account: Account, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        account.halt_itself()
        with calls(monkeypatch, before("TransactWriteItems", lambda: account.halt_itself(why="another"))):
            assert patch("/switch", {"halted": False})["itself"] is None
        assert recorded(account)[0]["changes"]["itself"]["old"]["why"] == "another"

    def test_units_broken_meanwhile_are_forgotten_too(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        account.halt_itself()
        another = typed({"key": "broken", "events": [{"event_id": name} for name in "abc"], "version": "c"})
        with calls(monkeypatch, before("TransactWriteItems", lambda: account.put("State", another))):
            patch("/switch", {"halted": False})
        assert account.state("broken") == {}

    def test_one_that_nobody_can_read_halts(self, account: Account) -> None:
        account.put("State", typed({"key": "self-halt", "at": "yesterday"}))
        switch = get("/switch")
        assert switch["halted"] is True
        assert "of the table State is damaged: at " in switch["itself"]["why"]
        assert patch("/switch", {"halted": False})["halted"] is False


HALT, OTHER = "20261120-224600-0a1b2c3d", "20261120-224700-ffffffff"


def halt(halt_id: str | None = HALT, caller: str = ANNA, **more: Any) -> dict[str, Any]:
    switch: dict[str, Any] = patch(
        "/switch", {"halted": True, **({"halt_id": halt_id} if halt_id else {}), **more}, caller
    )
    return switch


def resume(halt_id: str = HALT) -> tuple[int, dict[str, Any]]:
    return ask("PATCH", "/switch", {"halted": False, "halt_id": halt_id})


class TestHaltOfManyDeployments:
    def test_its_id_is_shown_until_it_ends(self, account: Account) -> None:
        assert halt(reason="outage")["halt_id"] == get("/switch")["halt_id"] == HALT
        status, switch = resume()
        assert (status, switch["halted"], switch["halt_id"]) == (200, False, None)
        assert [one["changes"]["halt_id"] for one in recorded(account)] == [
            {"old": None, "new": HALT},
            {"old": HALT, "new": None},
        ]

    @pytest.mark.parametrize("first", [None, OTHER, "by hand", "itself"])
    def test_any_other_halt_stays_as_it_is(self, account: Account, first: str | None) -> None:
        if first == "itself":
            account.halt_itself()
        elif first == "by hand":
            account.switch(halted=True, leashed=False)
        else:
            halt(first, BEN, reason="mine")
        before, records = get("/switch"), len(recorded(account))
        account.clock.forward(minutes=5)
        assert halt(reason="outage") == before
        status, answer = resume()
        assert status == 409
        assert ("has halted itself" if first == "itself" else f"but not by {HALT}") in answer["message"]
        assert (get("/switch"), len(recorded(account))) == (before, records)

    def test_repetition_after_a_lost_answer_changes_nothing(self, account: Account) -> None:
        first = halt(reason="outage")
        account.clock.forward(minutes=5)
        assert halt(reason="outage") == first
        resumed = resume()[1]
        account.clock.forward(minutes=5)
        assert resume() == (200, resumed)
        assert len(recorded(account)) == 2

    @pytest.mark.parametrize("body", [{"halted": True}, {"halted": True, "reason": "mine"}])
    def test_person_who_halts_this_one_takes_the_halt_over(self, account: Account, body: dict[str, Any]) -> None:
        halt()
        assert patch("/switch", body, BEN)["halt_id"] is None
        assert resume()[0] == 409
        assert patch("/switch", {"halted": False})["halted"] is False

    def test_person_who_leashes_this_one_does_not(self, account: Account) -> None:
        halt()
        assert patch("/switch", {"leashed": True}, BEN)["halt_id"] == HALT
        assert resume()[1]["halted"] is False

    def test_person_who_resumes_this_one_ends_it(self, account: Account) -> None:
        halt()
        assert patch("/switch", {"halted": False}, BEN)["halt_id"] is None
        assert halt(OTHER)["halt_id"] == OTHER
        assert resume()[0] == 409

    @pytest.mark.parametrize("meanwhile", ["person", "another", "itself"])
    def test_halt_at_the_same_moment_survives_a_resume(
        self, account: Account, monkeypatch: pytest.MonkeyPatch, meanwhile: str
    ) -> None:
        halt()

        def again() -> None:
            if meanwhile == "itself":
                account.halt_itself()
            else:
                item = {"key": "switch", "halted": True, **({"halt_id": OTHER} if meanwhile == "another" else {})}
                account.put("State", typed(item))

        with calls(monkeypatch, before("TransactWriteItems", again)):
            assert resume()[0] == 409
        assert get("/switch")["halted"] is True

    def test_first_of_two_at_the_same_moment_wins(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        item = typed({"key": "switch", "halted": True, "halt_id": OTHER})
        with calls(monkeypatch, before("TransactWriteItems", lambda: account.put("State", item))):
            assert halt()["halt_id"] == OTHER
        assert recorded(account) == []

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ({"halt_id": HALT}, "must have halted beside halt_id"),
            ({"halt_id": HALT, "halted": True, "leashed": True}, "must have halted beside halt_id"),
            ({"halt_id": "x", "halted": True}, "body.halt_id: "),
        ],
    )
    def test_id_without_a_halt_is_refused(self, account: Account, body: dict[str, Any], words: str) -> None:
        status, answer = ask("PATCH", "/switch", body)
        assert status == 400
        assert words in answer["message"]
