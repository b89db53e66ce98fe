"""Terminate: looks again, claims, carries out; retried after any cut it carries on with the same instance."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.edge.account import FRIDAY, OVERDUE, Account, Cut, calls, cut_at
from troop import moments
from troop.aws.clients import termination_client
from troop.aws.shields import MOST_LOOKS, Asking
from troop.chaos.claims import LAST_CALL
from troop.chaos.events import Status
from troop.flows.terminate import TRIES, TerminationForbiddenError

WEB = f"{FRIDAY}#web"
DAY = f"day#{FRIDAY}"


def test_from_the_decision_to_the_event(account: Account) -> None:
    account.group("web", size=4)
    (item,) = account.work(account.decide())
    answer = account.terminate(item)
    assert answer == {"event_id": WEB, "status": "TERMINATED", "reason": "", "wait_seconds": 45}
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


# Cuts, retries, lost answers


def test_cut_anywhere_a_retry_carries_on_with_the_same_instance(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads may be cut as well; the model test does so. Here it is what changes something."""
    account.group("whole")
    with calls(monkeypatch, lambda number, operation, call: call()) as made:
        account.terminate(account.item("whole"))
    assert made.count("TransactWriteItems") == made.count("TerminateInstances") == 1
    salt = made.index("GetSecretValue")  # kept from the first time, and not asked for again
    changing = [(n - (n > salt), op) for n, op in enumerate(made) if not op.startswith(("Get", "Describe"))]
    assert [op for _, op in changing] == ["TransactWriteItems", "UpdateItem", "TerminateInstances", "UpdateItem"]
    cases = [(n, acted, op) for n, op in changing for acted in (False, True)]
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


ATTRIBUTES = {"termination": "DisableApiTermination", "stop": "DisableApiStop"}


def protect(account: Account, *instances: str, kind: str = "termination") -> None:
    for instance in instances:
        account.ec2.modify_instance_attribute(InstanceId=instance, **{ATTRIBUTES[kind]: {"Value": True}})


@pytest.mark.parametrize("method", ["crash", "drain"])
@pytest.mark.parametrize("kind", ATTRIBUTES)
def test_what_ec2_protects_is_not_chosen(account: Account, method: str, kind: str) -> None:
    """Auto Scaling would terminate it all the same: whoever protected it did not mean that."""
    account.group("web", size=3, tags={"troop:method": method})
    first, spared, left = account.instances("web")
    protect(account, first, spared, kind=kind)
    (item,) = account.work(account.decide())
    assert account.decisions()["web"]["instance_id"] == left
    assert account.terminate(item)["status"] == "TERMINATED"
    assert account.gone() == [left]


def test_where_ec2_protects_all_the_decision_says_so(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web", size=12)
    protect(account, *account.instances("web"))
    item = account.item("web")
    with calls(monkeypatch, lambda number, operation, call: call()) as made:
        assert account.decide()["count"] == 0
        answer = account.terminate(item)
    assert account.decisions()["web"]["reason"] == answer["reason"] == "protected-instances"
    assert made.count("DescribeInstanceAttribute") == 2 * MOST_LOOKS, "by either, however large the group is"
    assert account.all_events() == []
    assert account.gone() == []


def test_a_tick_does_not_ask_for_ever_what_ec2_protects(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("api", "web"):
        protect(account, *account.instances(account.group(name, size=2)))
    monkeypatch.setattr(Asking.__init__, "__defaults__", (1,))
    with calls(monkeypatch, lambda number, operation, call: call()) as made:
        items = account.work(account.decide())
    assert made.count("DescribeInstanceAttribute") == 1
    assert {item["unit"] for item in items} == {"api", "web"}
    assert {account.terminate(item)["reason"] for item in items} == {"protected-instances"}


def refusing(operation: str, code: str, retries: int = 0) -> Callable[[int, str, Callable[[], Any]], Any]:
    def intercept(number: int, asked: str, call: Callable[[], Any]) -> Any:
        if asked != operation:
            return call()
        error: Any = {"Error": {"Code": code, "Message": "it may not"}, "ResponseMetadata": {"RetryAttempts": retries}}
        raise ClientError(error, operation)

    return intercept


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "UnauthorizedOperation"])
def test_a_tick_asks_no_more_once_ec2_has_been_asked_too_often(
    account: Account, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """Each further call would take its retries' time, of which Decide has five minutes for all."""
    for name in ("api", "web"):
        account.group(name)
    with calls(monkeypatch, refusing("DescribeInstanceAttribute", code)) as made:
        assert account.decide()["count"] == 2
    assert made.count("DescribeInstanceAttribute") == (1 if code == "RequestLimitExceeded" else 2)


def test_what_was_protected_between_two_tries_lives(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web", tags={"troop:method": "drain"})
    item = account.item("web")
    busy = refusing("TerminateInstanceInAutoScalingGroup", "ScalingActivityInProgress")
    with calls(monkeypatch, busy), pytest.raises(ClientError):
        account.terminate(item)
    protect(account, account.event(WEB).instance_id)
    assert account.terminate(item)["status"] == "CLAIMED"
    assert account.gone() == []
    assert "is protected by EC2 now" in account.event(WEB).detail


def test_where_it_cannot_be_told_what_ec2_protects_nothing_dies(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")
    with calls(monkeypatch, refusing("DescribeInstanceAttribute", "UnauthorizedOperation")):
        (item,) = account.work(account.decide())  # others must not go without their tick
        with pytest.raises(ClientError, match="UnauthorizedOperation"):
            account.terminate(item)
    assert account.all_events() == []
    assert account.gone() == []


def test_an_instance_that_is_protected_after_all_is_given_up_at_once(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")

    def protecting(number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation == "TerminateInstances":
            protect(account, account.event(WEB).instance_id)
        return call()

    with calls(monkeypatch, protecting):
        assert account.terminate(account.item("web"))["status"] == "ABANDONED"
    assert account.event(WEB).detail.startswith("AWS refused: ")
    assert "disableApiTermination" in account.event(WEB).detail
    assert account.gone() == account.events.open_ids() == []
    assert account.count("in-flight") == 0


@pytest.mark.parametrize(
    ("method", "operation", "code"),
    [
        ("crash", "TerminateInstances", "UnauthorizedOperation"),
        ("drain", "TerminateInstanceInAutoScalingGroup", "AccessDenied"),
    ],
)
def test_what_iam_forbids_is_given_up_at_once_and_fails_the_step(
    account: Account, monkeypatch: pytest.MonkeyPatch, method: str, operation: str, code: str
) -> None:
    account.group("web", tags={"troop:method": method})
    with calls(monkeypatch, refusing(operation, code)), pytest.raises(TerminationForbiddenError, match=code):
        account.terminate(account.item("web"))
    assert account.event(WEB).status is Status.ABANDONED
    assert code in account.event(WEB).detail
    assert account.count("in-flight") == 0


@pytest.mark.parametrize("asked_before", ["by a try", "by botocore"])
def test_a_refusal_after_a_lost_answer_is_left_to_the_sweep(
    account: Account, monkeypatch: pytest.MonkeyPatch, asked_before: str
) -> None:
    """The lost one may have terminated it."""
    account.group("web")
    item = account.item("web")
    if asked_before == "by a try":
        with calls(monkeypatch, refusing("TerminateInstances", "InternalError")), pytest.raises(ClientError):
            account.terminate(item)
    retries = int(asked_before == "by botocore")
    with calls(monkeypatch, refusing("TerminateInstances", "OperationNotPermitted", retries)):
        assert account.terminate(item)["status"] == "CLAIMED"
    account.clock.forward(minutes=12)
    account.sweep()
    event = account.event(WEB)
    assert event.status is Status.ABANDONED
    assert "the instance lives" in event.detail
    assert "; AWS refused: " in event.detail


def test_a_group_that_is_busy_is_tried_again_and_then_let_be(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web", tags={"troop:method": "drain"})
    item = account.item("web")
    with calls(monkeypatch, refusing("TerminateInstanceInAutoScalingGroup", "ScalingActivityInProgress")):
        for _ in range(TRIES - 1):
            with pytest.raises(ClientError):
                account.terminate(item)
        assert account.terminate(item)["status"] == "CLAIMED"
    account.clock.forward(minutes=12)
    account.sweep()
    assert account.event(WEB).status is Status.ABANDONED
    assert "ScalingActivityInProgress" in account.event(WEB).detail


def test_what_aws_cannot_do_now_is_kept_with_the_claim(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    item = account.item("web")
    with calls(monkeypatch, refusing("TerminateInstances", "Unavailable")), pytest.raises(ClientError):
        account.terminate(item)
    event = account.event(WEB)
    assert event.status is Status.CLAIMED
    assert event.detail.startswith("AWS said: ")


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
