"""Terminate: looks again, claims, carries out; retried after any cut it carries on with the same instance."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.edge.account import FRIDAY, OVERDUE, Account, Cut, calls, cut_at
from troop import moments
from troop.aws.clients import client, termination_client
from troop.aws.dynamo import typed
from troop.chaos.claims import LAST_CALL
from troop.chaos.events import Status

WEB = f"{FRIDAY}#web"
DAY = f"day#{FRIDAY}"


def test_from_the_decision_to_the_event(account: Account) -> None:
    account.group("web", size=4)
    (item,) = account.work(account.decide())
    answer = account.terminate(item)
    assert answer == {"event_id": WEB, "status": "TERMINATED", "reason": "", "wait_seconds": 2}
    event = account.event(WEB)
    assert account.gone() == [event.instance_id]
    assert event.instance_id == account.decisions()["web"]["instance_id"]
    assert (event.group, event.desired, event.probability, event.method) == ("web", 4, 1.0, "crash")
    assert event.execution == item["execution"]
    assert event.at == event.attempted_at == event.terminated_at == OVERDUE
    assert event.deadline == OVERDUE + timedelta(minutes=10)
    assert account.count(DAY) == account.count("in-flight") == 1
    assert account.state("unit#web")["last_day"] == str(FRIDAY)
    assert account.events.open_ids() == [WEB]


def test_the_deadline_stays_inside_the_window(account: Account) -> None:
    account.group("web")
    account.clock.moment = datetime(2026, 11, 20, 22, 55, tzinfo=UTC)
    account.terminate(account.item("web"))
    assert account.event(WEB).deadline == datetime(2026, 11, 20, 23, 0, tzinfo=UTC)


def test_drain_goes_through_the_group(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web", tags={"troop:method": "drain"})
    with calls(monkeypatch, lambda number, operation, call: call()) as made:
        account.terminate(account.item("web"))
    assert "TerminateInstanceInAutoScalingGroup" in made
    assert "TerminateInstances" not in made
    assert account.gone() == [account.event(WEB).instance_id]


# What refuses


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


def _unrecovered(a: Account) -> None:
    a.dynamodb.put_item(TableName="State", Item=typed({"key": "unit#web", "unrecovered": "2026-11-19#web"}))


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
        (_used_up, "day-cap"),
        (_full, "in-flight"),
        (_close, "outside-window"),
        (_almost_close, "outside-window"),
        (_late, "stale"),
        (_hour_behind, "stale"),
    ],
)
def test_what_has_changed_since_the_decision_refuses(
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


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_halt, "switched"),
        (_leash, "switched"),
        (_opt_out, "policy-changed"),
        (lambda a: a.policy("web", probability=1), "policy-changed"),
        (_used_up, "day-cap"),
        (_full, "in-flight"),
        (_unrecovered, "unit-changed"),
    ],
)
def test_what_changes_between_the_last_look_and_the_claim_refuses_too(
    account: Account, monkeypatch: pytest.MonkeyPatch, change: Callable[[Account], None], reason: str
) -> None:
    account.group("web")
    item = account.item("web")

    def just_before(number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation == "TransactWriteItems":
            change(account)
        return call()

    with calls(monkeypatch, just_before):
        answer = account.terminate(item)
    assert (answer["status"], answer["reason"]) == ("REFUSED", reason)
    assert account.all_events() == []
    assert account.gone() == []


def test_a_policy_that_stayed_the_same_is_no_change(account: Account) -> None:
    account.group("web")
    account.policy("web", probability=1, stop_alarms={"a"}, reason="why not", min_healthy="2")
    client("cloudwatch").put_metric_alarm(
        AlarmName="a", EvaluationPeriods=1, ComparisonOperator="GreaterThanThreshold", Threshold=1.0,
        MetricName="m", Namespace="n", Period=60, Statistic="Sum",
    )  # fmt: skip
    client("cloudwatch").set_alarm_state(AlarmName="a", StateValue="OK", StateReason="test")
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


# Cuts, retries, lost answers


def test_cut_anywhere_a_retry_carries_on_with_the_same_instance(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.settings["max_in_flight"] = 1000
    account.group("whole")
    with calls(monkeypatch, lambda number, operation, call: call()) as made:
        account.terminate(account.item("whole"))
    assert made.count("TransactWriteItems") == made.count("TerminateInstances") == 1
    salt = made.index("GetSecretValue")
    cases = [(n - (n > salt), acted, op) for n, op in enumerate(made) if n != salt for acted in (False, True)]
    for number, acted, operation in cases:
        unit = account.group(f"u{number}{'acted' if acted else 'not'}")
        members = set(account.instances(unit))
        item = account.item(unit)
        with calls(monkeypatch, cut_at(number, acted)), pytest.raises(Cut, match=operation):
            account.terminate(item)
        account.dynamodb.update_item(  # room for all these events, without ending any
            TableName="State",
            Key={"key": {"S": "in-flight"}},
            UpdateExpression="SET #c = :zero",
            ExpressionAttributeNames={"#c": "count"},
            ExpressionAttributeValues={":zero": {"N": "0"}},
        )
        account.dynamodb.delete_item(TableName="State", Key={"key": {"S": DAY}})
        claimed = account.events.get(item["event_id"])
        answer = account.terminate(item)
        event = account.event(item["event_id"])
        assert (answer["status"], event.status) == ("TERMINATED", Status.TERMINATED), (operation, acted)
        assert members & set(account.gone()) == {event.instance_id}, (operation, acted)
        assert claimed is None or claimed.instance_id == event.instance_id


def test_an_answer_that_botocore_asked_for_twice_is_still_our_termination(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")

    def twice(number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation != "TerminateInstances":
            return call()
        call()  # the answer of this one is lost
        answer = call()
        answer["TerminatingInstances"][0]["PreviousState"] = {"Code": 32, "Name": "shutting-down"}
        answer["ResponseMetadata"]["RetryAttempts"] = 1
        return answer

    with calls(monkeypatch, twice):
        assert account.terminate(account.item("web"))["status"] == "TERMINATED"


def test_a_termination_is_measured_from_the_try_that_made_it(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    item = account.item("web")

    def answer_lost(number: int, operation: str, call: Callable[[], Any]) -> Any:
        answer = call()
        if operation == "TerminateInstances":
            raise Cut
        return answer

    with calls(monkeypatch, answer_lost), pytest.raises(Cut):
        account.terminate(item)
    account.clock.forward(seconds=20)
    assert account.terminate(item)["status"] == "TERMINATED"
    event = account.event(WEB)
    assert event.attempted_at == event.terminated_at == OVERDUE


@pytest.mark.parametrize("method", ["crash", "drain"])
def test_an_instance_that_somebody_else_terminated_is_not_ours(
    account: Account, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    account.group("web", tags={"troop:method": method})
    first = {"crash": "TerminateInstances", "drain": "DescribeAutoScalingInstances"}[method]
    done: list[str] = []

    def faster(number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation == first and not done:
            done.append(account.event(WEB).instance_id)
            account.ec2.terminate_instances(InstanceIds=done)
        return call()

    with calls(monkeypatch, faster):
        answer = account.terminate(account.item("web"))
    if method == "crash":
        assert answer["status"] == "GONE_ELSEWHERE"
        assert account.event(WEB).detail == "the instance was terminated by somebody else"
    else:
        assert answer["status"] in ("GONE_ELSEWHERE", "ABANDONED")
    assert account.gone() == done
    assert account.count("in-flight") == 0
    assert account.count(DAY) == 1
    assert account.events.open_ids() == []
    assert account.terminate(account.item("web"))["reason"] == "already-today"


def test_an_instance_in_standby_is_not_drained(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web", tags={"troop:method": "drain"})

    def standby(number: int, operation: str, call: Callable[[], Any]) -> Any:
        answer = call()
        if operation == "DescribeAutoScalingInstances":
            answer["AutoScalingInstances"][0]["LifecycleState"] = "Standby"
        return answer

    with calls(monkeypatch, standby):
        assert account.terminate(account.item("web"))["status"] == "ABANDONED"
    assert "has left the service" in account.event(WEB).detail
    assert account.gone() == []
    assert account.count("in-flight") == 0


def test_what_aws_refuses_is_kept_with_the_claim(account: Account) -> None:
    account.group("web")
    for instance in account.instances("web"):
        account.ec2.modify_instance_attribute(InstanceId=instance, DisableApiTermination={"Value": True})
    item = account.item("web")
    for _ in range(2):
        with pytest.raises(ClientError, match="OperationNotPermitted"):
            account.terminate(item)
    event = account.event(WEB)
    assert event.status is Status.CLAIMED
    assert event.detail.startswith("AWS said: ")
    account.clock.forward(minutes=12)
    account.sweep()
    event = account.event(WEB)
    assert event.status is Status.ABANDONED
    assert "the instance lives; AWS said" in event.detail
    assert account.gone() == []


@pytest.mark.parametrize("later", [timedelta(minutes=9, seconds=31), timedelta(hours=1), timedelta(hours=-1)])
def test_a_claim_past_its_time_is_left_to_the_sweep(
    account: Account, monkeypatch: pytest.MonkeyPatch, later: timedelta
) -> None:
    account.group("web")
    item = account.item("web")

    def no_further(number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation == "UpdateItem":
            raise Cut
        return call()

    with calls(monkeypatch, no_further), pytest.raises(Cut):
        account.terminate(item)
    account.clock.moment += later
    assert account.terminate(item)["status"] == "CLAIMED"
    assert account.gone() == []


def test_time_that_passes_on_the_way_to_the_call_counts(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")

    def slow(number: int, operation: str, call: Callable[[], Any]) -> Any:
        answer = call()
        if operation == "UpdateItem":
            account.clock.forward(minutes=10)
        return answer

    with calls(monkeypatch, slow):
        assert account.terminate(account.item("web"))["status"] == "CLAIMED"
    assert account.gone() == []


def test_a_halt_between_claim_and_call_is_heeded(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")

    def halting(number: int, operation: str, call: Callable[[], Any]) -> Any:
        answer = call()
        if operation == "TransactWriteItems" and WEB in account.events.open_ids():
            account.switch(halted=True)
        return answer

    with calls(monkeypatch, halting):
        assert account.terminate(account.item("web"))["status"] == "ABANDONED"
    assert account.gone() == []
    assert account.count("in-flight") == 0


def test_a_write_that_meets_a_transaction_waits_for_it(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    met: list[str] = []

    def busy(number: int, operation: str, call: Callable[[], Any]) -> Any:
        codes = {"UpdateItem": "TransactionConflictException", "TransactWriteItems": "TransactionCanceledException"}
        if operation in codes and met.count(operation) < 3:
            met.append(operation)
            error: Any = {"Error": {"Code": codes[operation], "Message": "busy"}}
            error["CancellationReasons"] = [{"Code": "None"}, {"Code": "TransactionConflict"}]
            raise ClientError(error, operation)
        return call()

    with calls(monkeypatch, busy):
        assert account.terminate(account.item("web"))["status"] == "TERMINATED"
    assert len(met) == 6


def test_a_refused_write_fails_the_step_and_nothing_dies(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")

    def refused(number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation == "UpdateItem":
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, operation)
        return call()

    with calls(monkeypatch, refused), pytest.raises(ClientError, match="AccessDenied"):
        account.terminate(account.item("web"))
    assert account.gone() == []


def test_calls_that_terminate_end_before_the_claim_does(account: Account) -> None:
    config = termination_client("ec2").meta.config
    attempts = config.retries["total_max_attempts"]
    worst_pauses = sum(min(2**n, 20) for n in range(attempts - 1))
    worst = attempts * (config.connect_timeout + config.read_timeout) + worst_pauses
    assert worst <= LAST_CALL.total_seconds()


def test_a_sweep_that_was_faster_is_what_counts(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")

    def sweep_first(number: int, operation: str, call: Callable[[], Any]) -> Any:
        answer = call()
        if operation == "TransactWriteItems" and WEB in account.events.open_ids():
            event = account.event(WEB)
            account.events.close(event, Status.ABANDONED, "by a sweep")
        return answer

    with calls(monkeypatch, sweep_first):
        assert account.terminate(account.item("web"))["status"] == "ABANDONED"
    assert account.gone() == []
    assert account.count("in-flight") == 0


def test_moments_on_record_are_utc_text_of_one_width(account: Account) -> None:
    account.group("web")
    account.terminate(account.item("web"))
    stored = account.dynamodb.get_item(TableName="Events", Key={"event_id": {"S": WEB}})["Item"]
    assert stored["at"] == {"S": f"2026-11-20T22:46:00.000Z#{WEB}"}
    assert stored["terminated_at"] == {"S": "2026-11-20T22:46:00.000Z"}
    assert moments.parse(stored["deadline"]["S"]) == OVERDUE + timedelta(minutes=10)
