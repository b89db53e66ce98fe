"""A claim that came to nothing is no termination: neither the day's count nor the unit's item tells of one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.account.account import FRIDAY, Account, Cut, calls, raising
from tests.unit.account.asking import get
from tests.unit.chaos.api.test_terminations import EVENT, executions, machine, post
from troop.chaos.events import Status
from troop.shared.aws.dynamo import typed

__all__ = ["machine"]
DAY, WEB = f"day#{FRIDAY}", f"{FRIDAY}#web"
BEFORE = {"key": "unit#web", "schema": 1, "last_day": "2026-11-18", "last_event": "2026-11-18#web"}


def _leashed_after(account: Account, item: dict[str, Any]) -> str:
    account.switch(leashed=True)
    status: str = account.terminate(item)["status"]
    account.switch(leashed=False)
    return status


def _abandoned_request(account: Account) -> None:
    """A request whose deployment is leashed before it is carried out."""
    assert post()[0] == 202
    (work,) = executions()
    assert _leashed_after(account, work) == "ABANDONED"


def test_a_request_that_came_to_nothing_leaves_the_day_to_the_schedule(account: Account) -> None:
    account.group("web")
    _abandoned_request(account)
    assert account.count(DAY) == account.count("in-flight") == 0
    unit = get("/groups/web")
    assert (unit["last_day"], unit["next_possible"]) == (None, "2026-11-20T22:46:00.000Z")
    (item,) = account.work(account.decide())
    assert account.terminate(item)["status"] == "TERMINATED"
    assert account.count(DAY) == 1
    assert get("/groups/web")["last_day"] == str(FRIDAY)


def test_abandoned_request_restores_the_last_termination_of_the_unit(account: Account) -> None:
    account.group("web", tags={"troop:min_days_between": "3"})
    account.dynamodb.put_item(TableName="State", Item=typed(BEFORE))
    _abandoned_request(account)
    assert account.state("unit#web") == BEFORE
    account.decide()
    assert account.decisions()["web"]["detail"] == "last on 2026-11-18, 2 business days ago; min_days_between 3"


def _claimed(account: Account, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A scheduled claim that was cut off before AWS was asked, to be carried on with."""
    account.group("web")
    item = account.item("web")

    with calls(monkeypatch, raising("UpdateItem", Cut())), pytest.raises(Cut):
        account.terminate(item)
    return item


def test_a_scheduled_claim_has_used_up_its_day(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """The day's event is on record, and there is one a day."""
    item = _claimed(account, monkeypatch)
    assert _leashed_after(account, item) == "ABANDONED"
    assert account.count(DAY) == 0
    assert account.decide()["count"] == 0
    decision = account.decisions()["web"]
    assert decision["reason"] == "already-today"
    assert decision["detail"] == "had its claim of 2026-11-20, which was abandoned: chaos was leashed"
    unit = get("/groups/web")
    assert (unit["last_day"], unit["next_possible"]) == (None, "2026-11-23T17:00:00.000Z")
    account.switch(leashed=True)
    account.decide()
    assert account.event(WEB).status is Status.ABANDONED, "what would have been terminated does not hide it"


def test_abandoned_request_that_reached_aws_uses_up_the_day(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    post()
    (work,) = executions()

    with calls(monkeypatch, raising("TerminateInstances", Cut())), pytest.raises(Cut):
        account.terminate(work)
    account.clock.moment = account.clock.moment.replace(hour=20)
    account.dynamodb.update_item(  # asked for in the morning
        TableName="Events",
        Key={"event_id": {"S": EVENT}},
        UpdateExpression="SET deadline = :then",
        ExpressionAttributeValues={":then": {"S": "2026-11-20T19:30:00.000Z"}},
    )
    account.sweep()
    assert account.event(EVENT).status is Status.ABANDONED
    account.clock.moment = account.clock.moment.replace(hour=22)
    assert account.decide()["count"] == 0
    assert "which was abandoned: the deadline passed and the instance lives, though AWS was asked" in str(
        account.decisions()["web"]["detail"]
    )
    assert get("/groups/web")["last_day"] is None


@pytest.mark.parametrize(
    ("table", "key", "update"),
    [
        ("State", {"key": {"S": "unit#web"}}, "SET last_event = :it"),  # edited by hand meanwhile
        ("Events", {"event_id": {"S": EVENT}}, "SET edited = :it REMOVE #before"),  # claimed by an earlier version
    ],
)
def test_unit_stays_without_a_valid_state_to_restore(account: Account, table: str, key: Any, update: str) -> None:
    account.group("web")
    post()
    names = {"ExpressionAttributeNames": {"#before": "before"}} if "#before" in update else {}
    account.dynamodb.update_item(
        TableName=table, Key=key, UpdateExpression=update, ExpressionAttributeValues={":it": {"S": "another"}}, **names
    )
    unit = account.state("unit#web")
    assert _leashed_after(account, executions()[0]) == "ABANDONED"
    assert account.state("unit#web") == unit
    assert account.count(DAY) == account.count("in-flight") == 0
