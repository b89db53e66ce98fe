"""Terminate: looks again, claims, carries out; retried after any cut it carries on with the same instance."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import (
    FRIDAY,
    OVERDUE,
    WEB,
    Account,
    Cut,
    before,
    calls,
    changing,
    cut_at,
    losing,
    raising,
    refusing,
)
from troop.chaos.claim_rules import LAST_CALL
from troop.chaos.events import Status
from troop.chaos.hypothesis import Hypothesis
from troop.shared import moments
from troop.shared.aws.clients import termination_client

DAY = f"day#{FRIDAY}"


def test_from_the_decision_to_the_event(account: Account) -> None:
    account.group("web", size=4)
    (item,) = account.work(account.decide())
    answer = account.terminate(item)
    assert answer == {"event_id": WEB, "status": "TERMINATED", "reason": "", "next": "recovery", "wait_seconds": 60}
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


def test_the_event_has_the_hypothesis_of_the_policy_at_the_claim(account: Account) -> None:
    account.group("web", tags={"troop:stop_alarms": "errors", "troop:recovery_within": "300"})
    for name in ("errors", "orders"):
        account.alarm(name, "OK")
    account.policy("web", success_alarms=["orders"])
    account.terminate(account.item("web"))
    account.policy("web", recovery_within=1)
    assert account.event(WEB).hypothesis == Hypothesis(("orders",), ("errors",), 300)


def test_the_deadline_stays_inside_the_window(account: Account) -> None:
    account.group("web")
    account.clock.moment = datetime(2026, 11, 20, 22, 55, tzinfo=UTC)
    account.terminate(account.item("web"))
    assert account.event(WEB).deadline == datetime(2026, 11, 20, 23, 0, tzinfo=UTC)


def test_drain_goes_through_the_group(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web", tags={"troop:method": "drain"})
    with calls(monkeypatch) as operations:
        account.terminate(account.item("web"))
    assert "TerminateInstanceInAutoScalingGroup" in operations
    assert "TerminateInstances" not in operations
    assert account.gone() == [account.event(WEB).instance_id]


# Cuts, retries, lost answers


def test_cut_anywhere_a_retry_carries_on_with_the_same_instance(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads may be cut as well; the model test does so. Here it is what changes something."""
    account.group("whole")
    with calls(monkeypatch) as operations:
        account.terminate(account.item("whole"))
    assert operations.count("TransactWriteItems") == operations.count("TerminateInstances") == 1
    salt = operations.index("GetSecretValue")  # kept from the first time, and not asked for again
    changing = [(n - (n > salt), op) for n, op in enumerate(operations) if not op.startswith(("Get", "Describe"))]
    assert [op for _, op in changing] == ["TransactWriteItems", "UpdateItem", "TerminateInstances", "UpdateItem"]
    cases = [(n, acted, op) for n, op in changing for acted in (False, True)]
    for number, acted, operation in cases:
        unit = account.group(f"u{number}{'acted' if acted else 'not'}")
        members = set(account.instances(unit))
        item = account.item(unit)
        with calls(monkeypatch, cut_at(number, acted)), pytest.raises(Cut, match=operation):
            account.terminate(item)
        account.change("State", {"key": "in-flight"}, count=0)  # room for all these events, without ending any
        account.dynamodb.delete_item(TableName="State", Key={"key": {"S": DAY}})
        claimed = account.events.get(item["event_id"])
        answer = account.terminate(item)
        event = account.event(item["event_id"])
        assert (answer["status"], event.status) == ("TERMINATED", Status.TERMINATED), (operation, acted)
        assert members & set(account.gone()) == {event.instance_id}, (operation, acted)
        assert claimed is None or claimed.instance_id == event.instance_id


def test_answer_to_a_retry_of_botocore_is_still_our_termination(
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


def test_termination_is_measured_from_its_successful_attempt(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    item = account.item("web")
    with calls(monkeypatch, losing("TerminateInstances")), pytest.raises(Cut):
        account.terminate(item)
    account.clock.forward(seconds=20)
    assert account.terminate(item)["status"] == "TERMINATED"
    event = account.event(WEB)
    assert event.attempted_at == event.terminated_at == OVERDUE


@pytest.mark.parametrize("method", ["crash", "shutdown", "drain"])
def test_an_instance_that_somebody_else_terminated_is_not_ours(
    account: Account, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    account.group("web", tags={"troop:method": method})
    first = "DescribeAutoScalingInstances" if method == "drain" else "TerminateInstances"
    done: list[str] = []

    def faster() -> None:
        done.append(account.event(WEB).instance_id)
        account.ec2.terminate_instances(InstanceIds=done)

    with calls(monkeypatch, before(first, faster)):
        answer = account.terminate(account.item("web"))
    if method != "drain":
        assert answer["status"] == "GONE_ELSEWHERE"
        assert account.event(WEB).detail == "the instance was terminated by somebody else"
    else:
        assert answer["status"] in ("GONE_ELSEWHERE", "ABANDONED")
    assert account.gone() == done
    assert account.count("in-flight") == account.count(DAY) == 0
    assert account.events.open_ids() == []
    assert account.terminate(account.item("web"))["reason"] == "already-today"


def test_an_instance_in_standby_is_not_drained(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web", tags={"troop:method": "drain"})

    def stand_by(answer: Any) -> None:
        answer["AutoScalingInstances"][0]["LifecycleState"] = "Standby"

    with calls(monkeypatch, changing("DescribeAutoScalingInstances", stand_by)):
        assert account.terminate(account.item("web"))["status"] == "ABANDONED"
    assert "has left the service" in account.event(WEB).detail
    assert account.gone() == []
    assert account.count("in-flight") == 0


@pytest.mark.parametrize("later", [timedelta(minutes=9, seconds=31), timedelta(hours=1), timedelta(hours=-1)])
def test_a_claim_past_its_time_is_left_to_the_sweep(
    account: Account, monkeypatch: pytest.MonkeyPatch, later: timedelta
) -> None:
    account.group("web")
    item = account.item("web")

    with calls(monkeypatch, raising("UpdateItem", Cut())), pytest.raises(Cut):
        account.terminate(item)
    account.clock.moment += later
    assert account.terminate(item)["status"] == "CLAIMED"
    assert account.gone() == []


def test_time_that_passes_on_the_way_to_the_call_counts(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    with calls(monkeypatch, changing("UpdateItem", lambda _: account.clock.forward(minutes=10))):
        assert account.terminate(account.item("web"))["status"] == "CLAIMED"
    assert account.gone() == []


def test_a_halt_between_claim_and_call_is_heeded(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    halted = changing("TransactWriteItems", lambda _: account.switch(halted=True), times=1)
    with calls(monkeypatch, halted):
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

    refused = refusing("UpdateItem", "AccessDeniedException")
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

    def close(answer: Any) -> None:
        account.events.close(account.event(WEB), Status.ABANDONED, "by a sweep")

    with calls(monkeypatch, changing("TransactWriteItems", close, times=1)):
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


def test_a_name_that_cloudwatch_refuses_costs_its_own_unit_the_tick_alone(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("api", "web"):
        account.group(name)
    account.policy("api", stop_alarms=["odd"])

    with calls(monkeypatch, refusing("DescribeAlarms", "ValidationError")):
        (item,) = account.work(account.decide())
    assert item["unit"] == "web"
    assert account.decisions()["api"]["reason"] == "stop-alarm"
