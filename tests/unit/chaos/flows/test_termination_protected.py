"""What EC2 protects is not chosen, and lives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import WEB, Account, before, calls, refusing
from troop.chaos.aws.termination_protection import MOST_TRIES, LimitedEc2, is_protected
from troop.faults import FAULTS

ATTRIBUTES = {"termination": "DisableApiTermination", "stop": "DisableApiStop"}


def protect(account: Account, *instances: str, kind: str = "termination") -> None:
    for instance in instances:
        account.ec2.modify_instance_attribute(InstanceId=instance, **{ATTRIBUTES[kind]: {"Value": True}})


@pytest.mark.parametrize("method", [fault.name for fault in FAULTS])
@pytest.mark.parametrize("kind", ATTRIBUTES)
def test_instance_that_ec2_protects_is_not_chosen(account: Account, method: str, kind: str) -> None:
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
    with calls(monkeypatch) as operations:
        assert account.decide()["count"] == 0
        answer = account.terminate(item)
    assert account.decisions()["web"]["reason"] == answer["reason"] == "protected-instances"
    assert operations.count("DescribeInstanceAttribute") == 2 * MOST_TRIES, "by either, however large the group is"
    assert account.all_events() == []
    assert account.gone() == []


def test_a_tick_does_not_ask_for_ever_what_ec2_protects(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("api", "web"):
        protect(account, *account.instances(account.group(name, size=2)))
    monkeypatch.setattr(LimitedEc2.__init__, "__defaults__", (1,))
    with calls(monkeypatch) as operations:
        items = account.work(account.decide())
    assert operations.count("DescribeInstanceAttribute") == 1
    assert {item["unit"] for item in items} == {"api", "web"}
    assert {account.terminate(item)["reason"] for item in items} == {"protected-instances"}


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "UnauthorizedOperation"])
def test_tick_stops_reading_protection_after_a_throttled_call(
    account: Account, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """Each further call would take its retries' time, of which Decide has five minutes for all."""
    for name in ("api", "web"):
        account.group(name)
    with calls(monkeypatch, refusing("DescribeInstanceAttribute", code)) as operations:
        assert account.decide()["count"] == 2
    assert operations.count("DescribeInstanceAttribute") == (1 if code == "RequestLimitExceeded" else 2)


def test_instance_protected_between_two_attempts_survives(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web", tags={"troop:method": "drain"})
    item = account.item("web")
    busy = refusing("TerminateInstanceInAutoScalingGroup", "ScalingActivityInProgress")
    with calls(monkeypatch, busy), pytest.raises(ClientError):
        account.terminate(item)
    protect(account, account.event(WEB).instance_id)
    assert account.terminate(item)["status"] == "CLAIMED"
    assert account.gone() == []
    assert "is protected by EC2 now" in account.event(WEB).detail


def test_unreadable_protection_prevents_terminations(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    with calls(monkeypatch, refusing("DescribeInstanceAttribute", "UnauthorizedOperation")):
        (item,) = account.work(account.decide())  # others must not go without their tick
        with pytest.raises(ClientError, match="UnauthorizedOperation"):
            account.terminate(item)
    assert account.all_events() == []
    assert account.gone() == []


def test_claim_of_an_instance_protected_meanwhile_is_abandoned_at_once(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")
    protecting = before("TerminateInstances", lambda: protect(account, account.event(WEB).instance_id))
    with calls(monkeypatch, protecting):
        assert account.terminate(account.item("web"))["status"] == "ABANDONED"
    assert account.event(WEB).detail.startswith("AWS refused: ")
    assert "disableApiTermination" in account.event(WEB).detail
    assert account.gone() == account.events.open_ids() == []
    assert account.count("in-flight") == 0


def test_where_stop_protection_is_not_known_no_instance_has_it(account: Account) -> None:
    """A partition can lag behind: what EC2 does not know there must not end chaos."""

    account.group("web")
    describe = account.ec2.describe_instance_attribute

    def unknown(**request: Any) -> Any:
        if request["Attribute"] == "disableApiStop":
            error = {"Error": {"Code": "InvalidParameterValue", "Message": "disableApiStop is unknown"}}
            raise ClientError(error, "DescribeInstanceAttribute")  # type: ignore[arg-type]
        return describe(**request)

    for seen in account.instances("web"):
        assert not is_protected(SimpleNamespace(describe_instance_attribute=unknown), seen)
    protect(account, *account.instances("web"))
    for seen in account.instances("web"):
        assert is_protected(SimpleNamespace(describe_instance_attribute=unknown), seen)
