"""A crash is a crash: no shutdown of the operating system, except where EC2 rejects that, and then it is on record."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError

from tests.unit.account.account import WEB, Account, Cut, calls, refusing
from troop.chaos.api.event_models import EventOut
from troop.chaos.events import Status


class Ec2:
    """Answers ``TerminateInstances`` as EC2 does in a region that rejects ``SkipOsShutdown``; keeps the requests."""

    def __init__(self, rejection: Exception | None = None, lost: bool = False) -> None:
        self.rejection, self.lost, self.requests = rejection, lost, list[dict[str, Any]]()

    def __call__(self, number: int, operation: str, call: partial[Any]) -> Any:
        if operation != "TerminateInstances":
            return call()
        *_, request = call.args
        self.requests.append(request)
        if self.rejection and request.get("SkipOsShutdown"):
            raise self.rejection
        answer = call()
        if self.lost:
            raise Cut
        return answer


def error(code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "TerminateInstances")


NAMED = "The parameter SkipOsShutdown is not supported in this Region"
REJECTIONS = [
    ParamValidationError(report='Unknown parameter in input: "SkipOsShutdown", must be one of: InstanceIds, DryRun'),
    error("UnknownParameter", "The parameter SkipOsShutdown is not recognized"),
    *[error(c, NAMED) for c in ("InvalidParameterValue", "InvalidParameterCombination", "UnsupportedOperation")],
    error("UnsupportedOperation", "You can't skip OS shutdown for this instance type"),
]


def test_a_crash_skips_the_shutdown(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    ec2 = Ec2()
    with calls(monkeypatch, ec2):
        account.terminate(account.item("web"))
    event = account.event(WEB)
    assert ec2.requests == [{"InstanceIds": [event.instance_id], "SkipOsShutdown": True}]
    assert event.os_shutdown is False
    assert EventOut.from_event(event).os_shutdown is False


def test_a_shutdown_is_a_crash_that_does_not_skip_it(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web", tags={"troop:method": "shutdown"})
    ec2 = Ec2()
    with calls(monkeypatch, ec2):
        assert account.terminate(account.item("web"))["status"] == "TERMINATED"
    event = account.event(WEB)
    assert ec2.requests == [{"InstanceIds": [event.instance_id]}]
    assert account.gone() == [event.instance_id]
    assert (event.method, event.os_shutdown) == ("shutdown", True)


def test_a_shutdown_has_nothing_to_fall_back_to(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web", tags={"troop:method": "shutdown"})
    with (
        calls(monkeypatch, refusing("TerminateInstances", "UnknownParameter")) as operations,
        pytest.raises(ClientError),
    ):
        account.terminate(account.item("web"))
    assert operations.count("TerminateInstances") == 1


def test_a_drain_shuts_down(account: Account) -> None:
    account.group("web", tags={"troop:method": "drain"})
    account.terminate(account.item("web"))
    assert account.event(WEB).os_shutdown is True


@pytest.mark.parametrize("rejection", REJECTIONS, ids=str)
def test_rejected_parameter_is_left_out_and_recorded(
    account: Account, monkeypatch: pytest.MonkeyPatch, rejection: Exception
) -> None:
    account.group("web")
    ec2 = Ec2(rejection)
    with calls(monkeypatch, ec2):
        assert account.terminate(account.item("web"))["status"] == "TERMINATED"
    event = account.event(WEB)
    assert ec2.requests[1:] == [{"InstanceIds": [event.instance_id]}]
    assert account.gone() == [event.instance_id]
    assert (event.os_shutdown, event.attempts) == (True, 1)
    assert EventOut.from_event(event).os_shutdown is True


def test_the_record_outlives_a_lost_answer(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    item = account.item("web")
    with calls(monkeypatch, Ec2(REJECTIONS[1], lost=True)), pytest.raises(Cut):
        account.terminate(item)
    assert account.event(WEB).os_shutdown is True
    account.clock.forward(minutes=12)
    account.sweep()
    event = account.event(WEB)
    assert event.status in (Status.TERMINATED, Status.RECOVERED)  # a sweep looks at once
    assert event.os_shutdown is True


@pytest.mark.parametrize(
    "refusal",
    [
        error("UnsupportedOperation", "The instance is managed by another service"),
        error("OperationNotPermitted", "The instance may not be terminated; modify its disableApiTermination"),
    ],
    ids=str,
)
def test_protection_error_is_not_retried_without_the_parameter(
    account: Account, monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    account.group("web")
    ec2 = Ec2(refusal)
    with calls(monkeypatch, ec2):
        assert account.terminate(account.item("web"))["status"] == "ABANDONED"
    assert len(ec2.requests) == 1
    assert account.gone() == []


def test_another_invalid_parameter_is_no_rejection_of_this_one(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")
    ec2 = Ec2(error("InvalidParameterValue", "The value for InstanceIds is invalid"))
    with calls(monkeypatch, ec2), pytest.raises(ClientError, match="InstanceIds"):
        account.terminate(account.item("web"))
    assert len(ec2.requests) == 1


def test_a_rejection_that_took_too_long_ends_the_try(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    ec2 = Ec2(REJECTIONS[1])

    def slow(number: int, operation: str, call: partial[Any]) -> Any:
        if operation == "TerminateInstances":
            account.clock.forward(minutes=10)
        return ec2(number, operation, call)

    with calls(monkeypatch, slow):
        assert account.terminate(account.item("web"))["status"] == "CLAIMED"
    assert account.gone() == []
