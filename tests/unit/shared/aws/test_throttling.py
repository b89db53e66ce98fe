"""What counts as throttled, and what each user of the loop does when AWS throttles all the time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.retries.standard import ThrottledRetryableChecker

from tests.unit.account.account import OVERDUE, Account, calls, refusing
from troop.chaos.aws.balancers import Balancers, BalancersOfATick
from troop.chaos.aws.decision_table import DecisionTable
from troop.chaos.aws.termination_protection import LimitedEc2
from troop.chaos.groups import Group
from troop.shared.aws.dynamo import batch_get
from troop.shared.aws.throttling import CODES, READS, WRITES, ThrottledError, is_throttled
from troop.shared.aws.transact import ConditionFailed, transact, write
from troop.shared.errors import TroopError


def test_the_codes_are_those_that_botocore_repeats() -> None:
    assert set(vars(ThrottledRetryableChecker)["_THROTTLED_ERROR_CODES"]) == CODES


@pytest.mark.parametrize(
    ("code", "throttled"),
    [
        ("RequestLimitExceeded", True),  # EC2
        ("Throttling", True),  # Auto Scaling, CloudFormation, Classic Load Balancers
        ("ThrottlingException", True),  # most services with JSON, VPC Lattice too
        ("ProvisionedThroughputExceededException", True),  # DynamoDB
        ("TooManyRequestsException", True),  # Lambda
        ("SlowDown", True),  # S3
        ("EC2ThrottledException", True),  # Lambda for EC2
        ("TransactionCanceledException", False),
        ("AccessDenied", False),
        ("ServiceUnavailable", False),
    ],
)
def test_codes_that_mean_throttled(code: str, throttled: bool) -> None:
    assert is_throttled(ClientError({"Error": {"Code": code}}, "DescribeInstances")) is throttled


class _Refusing:
    """A client that refuses some times, then takes it."""

    def __init__(self, code: str, times: int, reasons: list[str] | None = None) -> None:
        self.code, self.left, self.calls = code, times, 0
        self.reasons = [{"Code": reason} for reason in reasons or []]

    def transact_write_items(self, **request: Any) -> str:
        self.calls += 1
        if self.left:
            self.left -= 1
            response: Any = {"Error": {"Code": self.code, "Message": ""}, "CancellationReasons": self.reasons}
            raise ClientError(response, "TransactWriteItems")
        return "done"

    put_item = describe_instance_attribute = describe_target_health = transact_write_items


def _wait_not(seconds: float) -> None:
    """Waits no time."""


def test_transactions_that_meet_are_tried_again_a_bounded_number_of_times() -> None:
    pauses: list[float] = []
    busy = _Refusing("TransactionCanceledException", 3, ["None", "TransactionConflict"])
    transact(busy, [], pauses.append)
    assert (busy.calls, len(pauses)) == (4, 3)
    assert all(pause <= 0.05 * 2**n for n, pause in enumerate(pauses, 1))
    pauses.clear()
    for_ever = _Refusing("TransactionCanceledException", 99, ["TransactionConflict", "None"])
    parts = [{"Put": {"TableName": "Events"}}, {"Update": {"TableName": "State"}}]
    with pytest.raises(ThrottledError, match="TransactWriteItems of Events, State failed 8 times") as raised:
        transact(for_ever, parts, pauses.append)
    error = raised.value
    assert (for_ever.calls, error.tries, error.waited) == (WRITES.tries, WRITES.tries, sum(pauses))
    assert (error.conflicts, isinstance(error, TroopError)) == (True, True)
    assert f"{sum(pauses):.1f} seconds of waits, because other transactions write the same items" in str(error)


@pytest.mark.parametrize("reason", ["ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_transaction_that_dynamodb_throttles_says_so(reason: str) -> None:
    busy = _Refusing("TransactionCanceledException", 99, ["None", reason])
    with pytest.raises(ThrottledError, match="because DynamoDB throttles it: try again later") as raised:
        transact(busy, [], _wait_not)
    assert (raised.value.conflicts, busy.calls) == (False, WRITES.tries)


def test_first_failed_condition_is_named_even_among_conflicts() -> None:
    refusing = _Refusing("TransactionCanceledException", 99, ["None", "TransactionConflict", "ConditionalCheckFailed"])
    with pytest.raises(ConditionFailed) as failed:
        transact(refusing, [], _wait_not)
    assert failed.value.part == 2
    assert refusing.calls == 1


def test_other_refusals_are_not_tried_again() -> None:
    for code, reasons in [("AccessDeniedException", []), ("TransactionCanceledException", ["ValidationError"])]:
        refusing = _Refusing(code, 99, reasons)
        with pytest.raises(ClientError) as raised:
            transact(refusing, [], _wait_not)
        assert (refusing.calls, isinstance(raised.value, ThrottledError)) == (1, False)


def test_a_plain_write_that_meets_a_transaction_is_tried_again() -> None:
    busy = _Refusing("TransactionConflictException", 2)
    assert write(busy.put_item, _wait_not, Item={}) == "done"
    with pytest.raises(ConditionFailed):
        write(_Refusing("ConditionalCheckFailedException", 1).put_item, _wait_not)
    with pytest.raises(ThrottledError, match="of State failed 8 times") as raised:
        write(_Refusing("TransactionConflictException", 99).put_item, _wait_not, TableName="State")
    assert raised.value.conflicts


def test_a_request_that_botocore_has_repeated_is_not_repeated() -> None:
    throttled = _Refusing("ThrottlingException", 1)
    with pytest.raises(ClientError):
        write(throttled.put_item, _wait_not)
    assert throttled.calls == 1


def test_keys_that_stay_unprocessed_are_an_error() -> None:
    class Throttling:
        calls = 0

        def batch_get_item(self, RequestItems: dict[str, Any]) -> dict[str, Any]:
            self.calls += 1
            return {"Responses": {}, "UnprocessedKeys": RequestItems}

    client, pauses = Throttling(), list[float]()
    with pytest.raises(ThrottledError, match="BatchGetItem of 2 items of State failed 5 times") as raised:
        batch_get(client, {"State": [{"key": {"S": "a"}}, {"key": {"S": "b"}}], "Runs": []}, pauses.append)
    assert (client.calls, len(pauses)) == (READS.tries, READS.tries - 1)
    assert all(pause <= 0.1 * 2**n for n, pause in enumerate(pauses, 1))
    assert raised.value.waited == sum(pauses)


def test_a_refusal_that_cannot_be_recorded_does_not_fail_the_step(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retry could pass all guards."""
    account.group("web")
    (item,) = account.work(account.decide())
    account.switch(halted=True)
    with calls(monkeypatch, refusing("UpdateItem", "TransactionConflictException")) as operations:
        assert account.terminate(item)["reason"] == "halted"
    assert operations.count("UpdateItem") == WRITES.tries
    table = DecisionTable(account.dynamodb, "Decisions", timedelta(days=1), _wait_not)
    with (
        calls(monkeypatch, refusing("UpdateItem", "TransactionConflictException")),
        pytest.raises(ThrottledError, match="UpdateItem of Decisions"),
    ):
        table.overrule("web", OVERDUE, "halted", "")


def test_a_claim_that_conflicts_all_the_time_fails_the_step(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    (item,) = account.work(account.decide())

    def conflict(number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation != "TransactWriteItems":
            return call()
        error: Any = {"Error": {"Code": "TransactionCanceledException", "Message": ""}}
        raise ClientError(error | {"CancellationReasons": [{"Code": "TransactionConflict"}]}, operation)

    with (
        calls(monkeypatch, conflict),
        pytest.raises(ThrottledError, match="TransactWriteItems of Events, GroupTags, State failed 8 times"),
    ):
        account.terminate(item)
    assert account.gone() == []


def test_a_tick_stops_its_calls_after_any_code_of_throttling() -> None:
    throttled = _Refusing("ThrottledException", 99)
    throttled.exceptions = type("Exceptions", (), {"TargetGroupNotFoundException": KeyError})  # type: ignore[attr-defined]
    sources = BalancersOfATick(Balancers(lambda service: throttled))
    for name in ("api", "web"):
        assert sources.healthy([Group(name, 1, target_groups=("arn",))])[0] == {}
    assert throttled.calls == 1
    asking = LimitedEc2(_Refusing("ThrottledException", 99))
    with pytest.raises(ClientError):
        asking.describe_instance_attribute(InstanceId="i-1")
    assert asking.left == 0
