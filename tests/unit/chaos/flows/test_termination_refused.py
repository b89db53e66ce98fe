"""Terminations that AWS refuses: for good, for now, or after a lost answer."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import WEB, Account, Call, calls, refusing
from troop.chaos.events import Status
from troop.chaos.flows.termination import BY_SOMEBODY_ELSE, TRIES, TerminationForbiddenError


@pytest.mark.parametrize(
    ("method", "operation", "code"),
    [
        ("crash", "TerminateInstances", "UnauthorizedOperation"),
        ("shutdown", "TerminateInstances", "UnauthorizedOperation"),
        ("drain", "TerminateInstanceInAutoScalingGroup", "AccessDenied"),
    ],
)
def test_forbidden_termination_is_abandoned_at_once_and_fails_the_step(
    account: Account, monkeypatch: pytest.MonkeyPatch, method: str, operation: str, code: str
) -> None:
    account.group("web", tags={"troop:method": method})
    with calls(monkeypatch, refusing(operation, code)), pytest.raises(TerminationForbiddenError, match=code):
        account.terminate(account.item("web"))
    assert account.event(WEB).status is Status.ABANDONED
    assert code in account.event(WEB).detail
    assert account.count("in-flight") == 0


@pytest.mark.parametrize("repeated", [False, True])
def test_an_instance_that_has_lost_its_tags_is_gone_and_not_forbidden(
    account: Account, monkeypatch: pytest.MonkeyPatch, repeated: bool
) -> None:
    """EC2 takes the tags from a terminated instance, and IAM then refuses what it allows for tagged ones only."""
    account.group("web")
    item = account.item("web")

    def intercept(number: int, operation: str, call: Call) -> Any:
        if operation != "TerminateInstances":
            return call()
        call()  # by somebody else or, if botocore has repeated the request, by the first one
        return refusing(operation, "UnauthorizedOperation", int(repeated))(number, operation, call)

    with calls(monkeypatch, intercept):
        status = account.terminate(item)["status"]
    assert status == ("TERMINATED" if repeated else "GONE_ELSEWHERE")
    assert account.event(WEB).status is Status(status)
    assert account.event(WEB).detail == ("" if repeated else BY_SOMEBODY_ELSE)


@pytest.mark.parametrize("earlier_attempt", ["by a try", "by botocore"])
def test_a_refusal_after_a_lost_answer_is_left_to_the_sweep(
    account: Account, monkeypatch: pytest.MonkeyPatch, earlier_attempt: str
) -> None:
    """The lost one may have terminated it."""
    account.group("web")
    item = account.item("web")
    if earlier_attempt == "by a try":
        with calls(monkeypatch, refusing("TerminateInstances", "InternalError")), pytest.raises(ClientError):
            account.terminate(item)
    retries = int(earlier_attempt == "by botocore")
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


def test_temporary_refusal_leaves_the_claim_with_its_message(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    item = account.item("web")
    with calls(monkeypatch, refusing("TerminateInstances", "Unavailable")), pytest.raises(ClientError):
        account.terminate(item)
    event = account.event(WEB)
    assert event.status is Status.CLAIMED
    assert event.detail.startswith("AWS said: ")
