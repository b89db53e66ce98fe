"""The claim: whatever speaks against a termination refuses it, up to the transaction itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.unit.account.account import FRIDAY, Account, before, calls, refusing
from troop.chaos.aws.claim_transaction import ClaimRefused
from troop.chaos.events import Status
from troop.chaos.facts import UnitState
from troop.chaos.wiring.termination import termination
from troop.shared.aws.dynamo import typed

DAY = f"day#{FRIDAY}"


def _halt(a: Account) -> None:
    a.switch(halted=True)


def _leash(a: Account) -> None:
    a.switch(leashed=True)


def _opt_out(a: Account) -> None:
    a.policy("web", opt_out=True)


def _misspell(a: Account) -> None:
    a.policy("web", opt_uot=True)


def _shrink(a: Account) -> None:
    a.autoscaling.set_desired_capacity(AutoScalingGroupName="web", DesiredCapacity=1)


def _delete(a: Account) -> None:
    a.drop_group("web")


def _protect(a: Account) -> None:
    _tag(a, "troop:protected", "yes")


def _fleet(a: Account) -> None:
    _tag(a, "troop:fleet", "yes")


def _move(a: Account) -> None:
    _tag(a, "troop:unit", "other")


def _suspend(a: Account) -> None:
    a.autoscaling.suspend_processes(AutoScalingGroupName="web", ScalingProcesses=["Launch"])


def _refresh(a: Account) -> None:
    a.refreshes["web"] = "Baking"


def _halts_itself(a: Account) -> None:
    a.halt_itself()


def _unrecovered(a: Account) -> None:
    a.dynamodb.put_item(TableName="State", Item=typed({"key": "unit#web", "unrecovered": "2026-11-19#web"}))


def _broken(a: Account) -> None:
    left = {"key": "unit#web", "unrecovered": "2026-11-19#web", "left_for": "broken"}
    a.dynamodb.put_item(TableName="State", Item=typed(left))


def _used_up(a: Account) -> None:
    a.dynamodb.put_item(TableName="State", Item=typed({"key": DAY, "count": 20}))


def _full(a: Account) -> None:
    a.dynamodb.put_item(TableName="State", Item=typed({"key": "in-flight", "count": 5}))


def _close(a: Account) -> None:
    a.clock.forward(minutes=14)  # 15:00, on the minute


def _almost_close(a: Account) -> None:
    a.clock.forward(minutes=13, seconds=40)


def _late(a: Account) -> None:
    a.clock.forward(minutes=16)


def _hour_behind(a: Account) -> None:
    a.clock.forward(hours=-1)


def _tag(a: Account, key: str, value: str) -> None:
    tag = {"ResourceId": "web", "ResourceType": "auto-scaling-group", "PropagateAtLaunch": False}
    a.autoscaling.create_or_update_tags(Tags=[tag | {"Key": key, "Value": value}])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_halt, "halted"),
        (_halts_itself, "halted"),
        (_leash, "leashed"),
        (_opt_out, "opted-out"),
        (_misspell, "malformed"),
        (_shrink, "too-small"),
        (_delete, "group-deleted"),
        (_protect, "protected"),
        (_fleet, "protected"),
        (_move, "group-deleted"),
        (_suspend, "suspended"),
        (_refresh, "refreshing"),
        (_unrecovered, "unrecovered"),
        (_broken, "broken"),
        (_used_up, "day-cap"),
        (_full, "in-flight"),
        (_close, "outside-window"),
        (_almost_close, "outside-window"),
        (_late, "stale"),
        (_hour_behind, "stale"),
    ],
)
def test_change_before_the_last_check_refuses_the_claim(
    account: Account, change: Callable[[Account], None], reason: str
) -> None:
    account.group("web")
    (item,) = account.work(account.decide())
    change(account)
    before = account.gone()
    answer = account.terminate(item)
    assert (answer["status"], answer["reason"]) == ("REFUSED", reason)
    assert account.all_events() == []
    assert account.gone() == before
    decision = account.decisions()["web"]
    assert decision["reason"] == reason, "the tick's decision tells it"
    assert decision["detail"]
    assert "is to be terminated" not in decision["detail"]


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        (_halt, "switched", "chaos was halted or leashed while it was claimed"),
        (_leash, "switched", "chaos was halted or leashed while it was claimed"),
        (_halts_itself, "halted", "the deployment halted itself while it was claimed"),
        (_opt_out, "policy-changed", "its policy was changed while it was claimed"),
        (lambda a: a.policy("web", probability=1), "policy-changed", "its policy was changed while it was claimed"),
        (_used_up, "day-cap", "other claims were faster: max_per_day 20"),
        (_full, "in-flight", "other claims were faster: max_in_flight 5, or its instance is claimed for another unit"),
        (_unrecovered, "unit-changed", "it was claimed, abandoned or removed from chaos in the meantime"),
    ],
)
def test_change_between_the_last_check_and_the_claim_refuses_it(
    account: Account, monkeypatch: pytest.MonkeyPatch, change: Callable[[Account], None], reason: str, words: str
) -> None:
    account.group("web")
    (item,) = account.work(account.decide())
    with calls(monkeypatch, before("TransactWriteItems", lambda: change(account))):
        answer = account.terminate(item)
    assert (answer["status"], answer["reason"]) == ("REFUSED", reason)
    assert account.all_events() == []
    assert account.gone() == []
    decision = account.decisions()["web"]
    assert (decision["reason"], decision["detail"]) == (reason, words)


def test_decision_other_than_terminate_is_not_rewritten(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that says otherwise by now, nor one that has expired; and nothing fails for the telling's sake."""
    account.group("web")
    (item,) = account.work(account.decide())
    account.switch(halted=True)

    with calls(monkeypatch, refusing("UpdateItem", "InternalServerError")):
        assert account.terminate(item)["reason"] == "halted"
    assert account.decisions()["web"]["reason"] == "terminate"
    account.terminate(item)
    account.switch(halted=False, leashed=True)
    account.terminate(item)
    assert account.decisions()["web"]["reason"] == "halted"
    key = {"unit": {"S": "web"}, "tick": {"S": item["tick"]}}
    account.dynamodb.delete_item(TableName="Decisions", Key=key)
    assert account.terminate(item)["reason"] == "leashed"
    assert account.decisions() == {}


def test_a_policy_that_stayed_the_same_is_no_change(account: Account) -> None:
    account.group("web")
    account.policy("web", probability=1, stop_alarms={"a"}, reason="why not", min_healthy="2")
    account.alarm("a", "OK")
    assert account.terminate(account.item("web"))["status"] == "TERMINATED"


@pytest.mark.parametrize("settings", [{"leashed": True}], indirect=True)
def test_a_deployment_leashed_by_its_settings_needs_its_switch_set(account: Account) -> None:
    account.group("web")
    assert account.terminate(account.item("web"))["reason"] == "leashed"
    account.switch(leashed=False)
    assert account.terminate(account.item("web"))["status"] == "TERMINATED"


def test_two_executions_have_one_termination_between_them(account: Account) -> None:
    account.group("web")
    first, second = account.item("web"), account.item("web")
    assert account.terminate(first)["status"] == "TERMINATED"
    answer = account.terminate(second)
    assert (answer["status"], answer["reason"]) == ("REFUSED", "already-today")
    assert len(account.gone()) == 1
    assert account.count(DAY) == 1


def test_an_instance_is_claimed_for_one_unit_at_a_time(account: Account) -> None:
    """Its group moves to another unit while the first claim is open."""
    account.group("web")
    account.terminate(account.item("web"))
    first = account.event(f"{FRIDAY}#web")
    claims, events = termination().claims, termination().events
    second = replace(first, event_id=f"{FRIDAY}#other", unit="other", status=Status.CLAIMED)
    with pytest.raises(ClaimRefused, match=r"in-flight: .* its instance is claimed for another unit"):
        claims.make(second, {}, UnitState(), max_per_day=20, max_in_flight=5)
    events.close(first, Status.RECOVERED, "")
    assert "instances" not in account.state("in-flight")
    assert claims.make(second, {}, UnitState(), max_per_day=20, max_in_flight=5).unit == "other"
    assert account.state("in-flight")["instances"] == {first.instance_id}
