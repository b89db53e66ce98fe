"""Beside tables with data of an earlier deployment, nothing is terminated until somebody decides about them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.account.account import Account, calls, refusing
from tests.unit.account.asking import ask, get, patch
from tests.unit.account.changing import recorded
from tests.unit.account.deployed import Deployed, decline, leave

LEASHED = pytest.mark.parametrize("settings", [{"leashed": True}], indirect=True)
OLD = "Troop-DataState-OLD"


@LEASHED
def test_a_deployment_is_not_unleashed_beside_data_of_an_earlier_one(deployed: Deployed, account: Account) -> None:
    """As after a plain `cdk deploy`: the opt-outs of the owners are in the other tables."""
    arn = leave(OLD, "State", full=True)
    status, body = ask("PATCH", "/switch", {"leashed": False, "reason": "game day"})
    assert status == 409
    for words in (
        f"{OLD} (State, made ",
        f"then the make deploy that it prints, with ADOPT={OLD}. ",
        "make deploy ADOPT=none",
        f"tag-resources --region eu-central-1 --tags troop:declined=yes --resource-arn-list {arn}; "
        "docs/guides/removing.md",
    ):
        assert words in body["message"]
    assert get("/switch")["leashed"] is True
    assert recorded(account) == []
    assert patch("/switch", {"halted": True})["halted"] is True, "the rest of the switch has nothing to do with it"
    decline(arn)
    assert patch("/switch", {"leashed": False})["leashed"] is False


@LEASHED
def test_empty_or_foreign_table_prevents_no_unleashing(deployed: Deployed) -> None:
    leave(OLD, "State")
    leave("Troop-Staging-DataState-1", "State", "Troop-Staging", full=True)
    leave("Troop-Else-1", "Else", full=True)
    assert patch("/switch", {"leashed": False})["leashed"] is False


@LEASHED
def test_unreadable_table_counts_as_full(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one that is encrypted with a key of another deployment."""
    leave(OLD, "State")
    with calls(monkeypatch, refusing("Scan", "AccessDeniedException")):
        assert ask("PATCH", "/switch", {"leashed": False})[0] == 409


@LEASHED
def test_who_is_unleashed_stays_so(deployed: Deployed, account: Account) -> None:
    account.switch(leashed=False)
    leave(OLD, "State", full=True)
    assert patch("/switch", {"leashed": False, "reason": "again"})["leashed"] is False


def on_demand(key: str) -> tuple[int, Any]:
    return ask("POST", "/terminations", {"group": "web", "idempotency_key": key})


def test_settings_that_unleash_wait_for_the_decision(deployed: Deployed, account: Account) -> None:
    account.unsettle()
    arn = leave(OLD, "State", full=True)
    account.group("web")
    assert get("/switch")["leashed"] is True
    assert account.decide()["reasons"] == {"leashed": 1}
    assert on_demand("k1")[1]["reason"] == "leashed"
    assert ask("PATCH", "/switch", {"leashed": False})[0] == 409
    assert account.gone() == []
    decline(arn)
    assert account.decide()["reasons"] == {"terminate": 1}
    assert get("/switch")["leashed"] is False
    leave("Troop-DataState-NEW", "State", full=True)
    assert account.decide()["reasons"] == {"terminate": 1}, "it is decided once"


@pytest.mark.parametrize("operation", ["GetResources", "DescribeTable"])
def test_tick_that_cannot_list_tables_decides_and_stays_leashed(
    deployed: Deployed, account: Account, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    account.unsettle()
    leave(OLD, "State")
    account.group("web")
    with calls(monkeypatch, refusing(operation, "AccessDeniedException")):
        assert account.decide()["reasons"] == {"leashed": 1}
        assert patch("/switch", {"halted": True}) | {"changed_at": None} == get("/switch") | {"changed_at": None}
        assert get("/switch")["halted"] is True


def test_settings_that_unleash_hold_at_the_first_request_too(
    deployed: Deployed, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TROOP_ON_DEMAND_MACHINE", deployed.machine)
    account.unsettle()
    account.group("web")
    assert on_demand("k1")[0] == 202


def test_settings_that_unleash_are_shown_before_the_first_tick(deployed: Deployed, account: Account) -> None:
    account.unsettle()
    assert get("/switch")["leashed"] is False


@pytest.mark.parametrize("leashed", [True, False])
def test_a_switch_that_was_used_decides(deployed: Deployed, account: Account, leashed: bool) -> None:
    account.unsettle()
    account.switch(leashed=leashed)
    leave(OLD, "State", full=True)
    account.group("web")
    assert account.decide()["reasons"] == {"leashed" if leashed else "terminate": 1}


@pytest.mark.parametrize("settings", [{"leashed": True}, {"leashed": False}], indirect=True)
def test_a_tick_looks_for_no_table_where_all_is_settled(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    with calls(monkeypatch) as operations:
        account.decide()
    assert "GetResources" not in operations
