"""The runbook's command that halts without the API: what the table then says to everything that terminates."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.runbook import halt_by_hand
from tests.unit.account.account import WEB, Account, calls, changing
from tests.unit.account.asking import ask, get, patch
from tests.unit.account.changing import BEN, recorded
from troop.chaos.events import Status


def halt(account: Account) -> None:
    """Makes the call that the command makes, with the names of its options."""
    aws, service, operation, *options = halt_by_hand()
    assert (aws, service, operation) == ("aws", "dynamodb", "update-item")
    arguments = dict(zip(options[::2], options[1::2], strict=True))
    assert arguments.pop("--table-name") == "$(output StateTable)"
    account.dynamodb.update_item(
        TableName="State",
        Key=json.loads(arguments.pop("--key")),
        UpdateExpression=arguments.pop("--update-expression"),
        ExpressionAttributeValues=json.loads(arguments.pop("--expression-attribute-values")),
    )
    assert not arguments


def test_no_tick_decides_to_terminate_after_it(account: Account) -> None:
    account.group("web")
    halt(account)
    account.decide()
    assert account.decisions()["web"]["reason"] == "halted"


def test_halt_by_hand_prevents_a_claim(account: Account) -> None:
    account.group("web")
    (item,) = account.work(account.decide())
    halt(account)
    assert account.terminate(item)["reason"] == "halted"
    assert account.gone() == account.all_events() == []


def test_halt_by_hand_abandons_a_claim(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    with calls(monkeypatch, changing("TransactWriteItems", lambda _: halt(account), times=1)):
        assert account.terminate(account.item("web"))["status"] == "ABANDONED"
    assert account.event(WEB).status is Status.ABANDONED
    assert account.gone() == []


def test_nothing_is_claimed_on_demand(account: Account) -> None:
    account.group("web")
    halt(account)
    status, answer = ask("POST", "/terminations", {"group": "web", "idempotency_key": "k"})
    assert (status, answer["reason"]) == (409, "halted")


@pytest.mark.parametrize("before", [None, {"leashed": False, "reason": "game day"}])
def test_nobody_else_is_named_for_it_and_a_resume_takes_it_back(
    account: Account, before: dict[str, Any] | None
) -> None:
    if before:
        assert patch("/switch", before)["leashed"] is False
    halt(account)
    by_hand = {"changed_at": None, "changed_by": "", "reason": "halted by hand"}
    assert (
        get("/switch")
        == {"halted": True, "leashed": False, "reaper_off": False, "schedules_off": False}
        | {"halt": {"at": None, "by": "", "reason": "halted by hand"}, "halt_id": None, "itself": None}
        | by_hand
    )
    resumed = patch("/switch", {"halted": False, "reason": "over"}, BEN)
    assert (resumed["halted"], resumed["changed_by"], resumed["reason"]) == (False, BEN, "over")
    assert recorded(account)[-1]["changes"]["halted"] == {"old": True, "new": False}


def test_halt_by_hand_replaces_others_and_no_later_change_signs_it(account: Account) -> None:
    patch("/switch", {"halted": True, "reason": "outage"})
    halt(account)
    assert patch("/switch", {"leashed": True}, BEN)["halt"] == {"at": None, "by": "", "reason": "halted by hand"}


def test_halt_of_many_deployments_does_not_own_it(account: Account) -> None:
    patch("/switch", {"halted": True, "halt_id": "20261120-224600-0a1b2c3d"})
    halt(account)
    assert ask("PATCH", "/switch", {"halted": False, "halt_id": "20261120-224600-0a1b2c3d"})[0] == 409
