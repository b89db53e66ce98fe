"""What the key of a group has led to counts, whatever has become of the group since."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.account.account import Account, before, calls
from tests.unit.chaos.api.test_terminations import EVENT, executions, machine, post

__all__ = ["machine"]


def _move(account: Account, unit: str, group: str = "web") -> None:
    tag = {"Key": "troop:unit", "Value": unit, "ResourceId": group, "ResourceType": "auto-scaling-group"}
    account.autoscaling.create_or_update_tags(Tags=[tag | {"PropagateAtLaunch": False}])


def test_key_terminates_once_though_the_group_moved_to_another_unit(account: Account) -> None:
    account.group("web")
    _, first = post()
    account.terminate(executions()[0])
    _move(account, "shop")
    status, again = post()
    assert (status, again["event_id"], again["status"]) == (200, EVENT, "TERMINATED")
    assert account.all_events() == [EVENT]
    assert again["instance_id"] == first["instance_id"]


def test_the_unit_changes_between_two_tries_at_the_same_time(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    answers: list[tuple[int, Any]] = []

    def another_first() -> None:
        _move(account, "shop")
        answers.append(post())

    with calls(monkeypatch, before("TransactWriteItems", another_first)):
        _, second = post()
    assert answers[0][1]["event_id"] == second["event_id"] == "od#shop#k1"
    assert account.all_events() == ["od#shop#k1"]
    assert len(executions()) == 1


def test_a_request_is_answered_again_when_its_group_is_gone(account: Account) -> None:
    account.group("web")
    post()
    account.drop_group("web")
    status, again = post()
    assert (status, again["event_id"]) == (200, EVENT)


def test_event_of_a_key_is_on_record_for_ninety_days(account: Account) -> None:
    account.group("web")
    post()
    (item,) = [i for i in account.dynamodb.scan(TableName="State")["Items"] if i["key"]["S"].startswith("key#")]
    assert item["event_id"]["S"] == EVENT
    expires = datetime.fromtimestamp(int(item["expires_at"]["N"]), UTC)
    assert (expires - account.clock()).days in (89, 90)


def test_another_group_of_the_unit_is_another_request(account: Account) -> None:
    account.group("web")
    account.group("late", tags={"troop:unit": "web"})
    post()
    status, answer = post("late")
    assert status == 409
    assert "was used for group web" in answer["message"]


def test_a_key_whose_event_somebody_has_removed_terminates_nothing_more(account: Account) -> None:
    account.group("web")
    post()
    account.dynamodb.delete_item(TableName="Events", Key={"event_id": {"S": EVENT}})
    account.dynamodb.delete_item(TableName="State", Key={"key": {"S": "unit#web"}})
    status, answer = post()
    assert (status, answer["reason"]) == (409, "key-used")
    assert account.all_events() == []
