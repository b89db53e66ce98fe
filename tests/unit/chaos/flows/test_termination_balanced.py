"""Who gets traffic: a group that its load balancers find ill is let be, before it is claimed and at every look."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import Account, Call, Intercept, calls


def behind_a_target_group(health: dict[str, str], refused: str = "", groups: set[str] | None = None) -> Intercept:
    """All groups, or ``groups``, are behind one target group, whose targets have the states of ``health``."""

    def intercept(number: int, operation: str, call: Call) -> Any:
        if operation == "DescribeTargetHealth":
            if refused:
                raise ClientError({"Error": {"Code": refused, "Message": "not you"}}, operation)
            descriptions = [{"Target": {"Id": i}, "TargetHealth": {"State": state}} for i, state in health.items()]
            return {"TargetHealthDescriptions": descriptions}
        answer = call()
        if operation == "DescribeAutoScalingGroups":
            for group in answer["AutoScalingGroups"]:
                if groups is None or group["AutoScalingGroupName"] in groups:
                    group["TargetGroupARNs"] = ["arn:tg"]
        return answer

    return intercept


def test_a_group_whose_load_balancer_finds_it_ill_is_let_be(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    health = dict.fromkeys(account.instances("web"), "healthy")
    some, *_ = health
    with calls(monkeypatch, behind_a_target_group(health)):
        (item,) = account.work(account.decide())
        health[some] = "unhealthy"  # since the decision
        answer = account.terminate(item)
        assert answer["reason"] == "unhealthy"
        assert account.decide()["count"] == 0
        assert account.decisions()["web"]["reason"] == "unhealthy"
        assert account.gone() == []
        health[some] = "healthy"
        assert account.terminate(item)["status"] == "TERMINATED"


@pytest.mark.parametrize(("code", "attempts"), [("AccessDenied", 1), ("HealthUnavailable", 2)])
def test_unknown_health_of_targets_prevents_terminations(
    account: Account, monkeypatch: pytest.MonkeyPatch, code: str, attempts: int
) -> None:
    for name in ("api", "web"):
        account.group(name)
    with calls(monkeypatch, behind_a_target_group({}, refused=code)) as operations:
        assert account.decide()["count"] == 0
        assert operations.count("DescribeTargetHealth") == attempts, "what fails for all is asked for once"
        decided = account.decisions()["web"]
        assert decided["reason"] == "unhealthy"
        assert code in decided["detail"]
        with pytest.raises(ClientError, match="not you"):
            account.terminate(account.item("web"))
    assert account.gone() == []


def test_unit_with_unreadable_health_takes_no_place_from_another(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever rolled lowest comes first, at every tick of the day."""
    names = [account.group(f"unit-{number}") for number in range(account.settings["max_in_flight"] + 1)]
    account.decide()
    (last,) = [name for name in names if account.decisions()[name]["reason"] == "in-flight"]
    unread = behind_a_target_group({}, refused="HealthUnavailable", groups={*names} - {last})
    with calls(monkeypatch, unread):
        (item,) = account.work(account.decide())
    assert item["unit"] == last
