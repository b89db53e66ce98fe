"""Recovery: looks until the group is whole again, or its time is up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
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
    refusing,
)
from tests.unit.chaos.flows.test_termination_balanced import behind_a_target_group
from troop.chaos.events import Event, Status
from troop.chaos.flows.clock_check import ClockError
from troop.chaos.replacements import differences
from troop.chaos.wiring.recovery import recovery_check
from troop.shared.errors import MissingEventError
from troop.shared.wiring import environment


@pytest.fixture
def victim(account: Account) -> str:
    """A termination just made; moto replaces the instance at once."""
    account.group("web")
    account.terminate(account.item("web"))
    return account.event(WEB).instance_id


def _wait_for_one(answer: Any) -> None:
    for group in answer["AutoScalingGroups"]:
        group["Instances"][-1]["LifecycleState"] = "Pending"


never_whole = changing("DescribeAutoScalingGroups", _wait_for_one)
"""Every group still waits for one instance."""


def test_recovered_after_two_good_looks_and_measured_to_the_first(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        assert account.event(WEB).watch.whole == 1, "what the first look has shown is kept, should there be no second"
        account.clock.forward(seconds=seconds)

    monkeypatch.setattr(environment, "sleep", sleep)
    recovery_check.cache_clear()
    account.clock.forward(seconds=7)
    assert account.check_recovery(WEB) == {"event_id": WEB, "status": "RECOVERED", "wait_seconds": 0}
    assert slept == [3]
    event = account.event(WEB)
    assert (event.status, event.recovery_seconds) == (Status.RECOVERED, 7.0)
    assert event.recovered_at == OVERDUE + timedelta(seconds=7)
    stored = account.dynamodb.get_item(TableName="Events", Key={"event_id": {"S": WEB}})["Item"]
    assert stored["recovery_seconds"] == {"N": "7.0"}
    assert account.count("in-flight") == 0
    assert account.count(f"day#{FRIDAY}") == 1
    assert account.events.open_ids() == []


def recovered(account: Account) -> Event:
    account.check_recovery(WEB)
    event = account.event(WEB)
    assert event.status is Status.RECOVERED
    return event


def test_an_event_states_whether_the_replacement_is_like_the_victim(account: Account, victim: str) -> None:
    event = recovered(account)
    assert event.build
    assert event.replacement
    assert event.build.image.startswith("ami-")
    assert event.replacement.instance_id in set(account.instances("web")) - {victim}
    assert event.replacement.build == event.build, "moto's replacement is of the same template"


def test_an_event_names_the_differences_of_another_image_and_template_version(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another(number: int, operation: str, call: Callable[[], Any]) -> Any:
        answer = call()
        if operation == "DescribeInstances":
            for one in (i for r in answer["Reservations"] for i in r["Instances"] if i["InstanceId"] != victim):
                one["ImageId"] = "ami-another"
        if operation == "DescribeAutoScalingGroups":
            for one in answer["AutoScalingGroups"][0]["Instances"]:
                one["LaunchTemplate"]["Version"] = "7"
        return answer

    with calls(monkeypatch, another):
        event = recovered(account)
    assert event.build
    assert event.replacement
    assert differences(event.build, event.replacement.build) == ("template", "image")


@pytest.mark.parametrize("code", ["UnauthorizedOperation", "RequestLimitExceeded"])
def test_a_group_recovers_although_its_replacement_cannot_be_read(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    with calls(monkeypatch, refusing("DescribeInstances", code)):
        event = recovered(account)
    assert event.replacement is None
    assert event.build
    assert event.build.template


def test_a_group_that_launches_nothing_has_no_replacement(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def age(answer: Any) -> None:
        for one in (i for r in answer["Reservations"] for i in r["Instances"]):
            one["LaunchTime"] = OVERDUE - timedelta(days=1)

    with calls(monkeypatch, changing("DescribeInstances", age)):
        event = recovered(account)
    assert event.replacement is None


def test_check_of_a_closed_event_changes_nothing(account: Account, victim: str) -> None:
    account.check_recovery(WEB)
    account.check_recovery(WEB)
    before = account.event(WEB)
    assert account.check_recovery(WEB)["status"] == "RECOVERED"
    assert account.event(WEB) == before
    assert account.count("in-flight") == 0


def test_waits_grow_and_end_with_the_timeout(account: Account, victim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []
    with calls(monkeypatch, never_whole) as operations:
        answer: dict[str, Any] = {"status": "TERMINATED", "wait_seconds": 45}
        while answer["status"] == "TERMINATED":
            waits.append(answer["wait_seconds"])
            account.clock.forward(seconds=float(answer["wait_seconds"]))
            answer = account.check_recovery(WEB)
    assert answer["status"] == "UNRECOVERED"
    assert waits[1:] == sorted(waits[1:])
    assert waits[-1] == 120
    assert 30 * 60 < sum(waits) <= 32 * 60
    assert "PutEvents" not in operations, "others are told from the record, not by the watch"
    assert account.state("unit#web")["unrecovered"] == WEB
    assert account.count("in-flight") == 0
    assert account.events.open_ids() == []
    account.group("other")
    account.clock.moment = OVERDUE + timedelta(days=3)
    account.decide()
    assert account.decisions()["web"]["reason"] == "unrecovered"


def _activity(status: str, minutes: int, message: str) -> dict[str, Any]:
    return {"StatusCode": status, "StatusMessage": message, "StartTime": OVERDUE + timedelta(minutes=minutes)}


REFUSED = "You have requested more vCPU capacity than your current vCPU limit of 32 allows."
ACTIVITIES = [
    _activity("InProgress", 31, "Launching a new EC2 instance"),
    _activity("Failed", 12, REFUSED),
    _activity("Failed", 2, "The image id '[ami-1]' does not exist"),
    _activity("Failed", -60, "Your quota is too low"),
]


@pytest.mark.parametrize(("activities", "failure"), [(ACTIVITIES, REFUSED), (ACTIVITIES[3:], ""), (None, "")])
def test_unrecovered_event_states_why_the_last_launch_since_failed(
    account: Account,
    victim: str,
    monkeypatch: pytest.MonkeyPatch,
    activities: list[dict[str, Any]] | None,
    failure: str,
) -> None:
    def answered(_number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation != "DescribeScalingActivities":
            return call()
        if activities is None:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, operation)
        return {"Activities": activities}

    account.clock.forward(minutes=32)
    with calls(monkeypatch, answered), calls(monkeypatch, never_whole):
        assert account.check_recovery(WEB)["status"] == "UNRECOVERED"
    assert account.event(WEB).launch_failure == failure
    assert account.event(WEB).detail.startswith("capacity 2 of 3 in service after 30 minutes")


def test_a_group_deleted_meanwhile_ends_the_watch(account: Account, victim: str) -> None:
    account.drop_group("web")
    assert account.check_recovery(WEB)["status"] == "GROUP_DELETED"
    assert account.count("in-flight") == 0


def test_a_balancer_that_may_not_be_read_holds_no_place_for_ever(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, behind_a_target_group({}, refused="AccessDenied")):
        with pytest.raises(ClientError, match="not you"):
            account.check_recovery(WEB)
        account.clock.forward(hours=2)
        assert account.check_recovery(WEB)["status"] == "UNRECOVERED"
    assert "could not be read: " in account.event(WEB).detail
    assert "not you" in account.event(WEB).detail
    assert account.count("in-flight") == 0


def test_healthy_only_when_the_target_group_says_so(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = {"State": "unused", "Reason": "Target.InvalidState"}

    def behind_a_balancer(number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation == "DescribeTargetHealth":
            return {
                "TargetHealthDescriptions": [
                    {"Target": {"Id": i}, "TargetHealth": dict(health)} for i in account.instances("web")
                ]
            }
        answer = call()
        if operation == "DescribeAutoScalingGroups":
            answer["AutoScalingGroups"][0]["TargetGroupARNs"] = ["arn:tg"]
        return answer

    with calls(monkeypatch, behind_a_balancer):
        account.check_recovery(WEB)
        assert account.event(WEB).watch.whole == 0
        monkeypatch.setattr(environment, "sleep", lambda _: health.update(State="initial"))
        recovery_check.cache_clear()
        health.update(State="healthy")
        assert account.check_recovery(WEB)["status"] == "TERMINATED"
        assert account.event(WEB).watch.whole == 0, "healthy once, and not at the second look"
        monkeypatch.setattr(environment, "sleep", lambda _: health.update(State="unused", Reason="Target.NotInUse"))
        recovery_check.cache_clear()
        health.update(State="healthy")
        assert account.check_recovery(WEB)["status"] == "RECOVERED"


def test_cut_anywhere_a_retry_comes_to_the_same_end(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        for acted in (False, True):
            with calls(monkeypatch, cut_at(number, acted)), pytest.raises(Cut):
                account.check_recovery(WEB)
    while account.check_recovery(WEB)["status"] == "TERMINATED":
        pass
    assert account.event(WEB).status is Status.RECOVERED
    assert account.count("in-flight") == 0


def test_closing_with_its_answer_lost_gives_back_once(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, losing("TransactWriteItems")), pytest.raises(Cut):
        account.check_recovery(WEB)
    assert account.check_recovery(WEB)["status"] == "RECOVERED"
    assert account.count("in-flight") == 0


@pytest.mark.parametrize("hours", [1, -1])
def test_a_wrong_clock_judges_nothing(account: Account, victim: str, hours: int) -> None:
    entered = account.clock()
    account.clock.forward(hours=hours)
    before = account.event(WEB)
    with pytest.raises(ClockError, match=r"the workflow's clock shows 2026-11-20T22:46:00\.000Z"):
        recovery_check().check(WEB, entered)
    assert account.event(WEB) == before


def test_an_event_that_is_not_there_is_an_error(account: Account) -> None:
    with pytest.raises(MissingEventError, match="there is no event 'x'"):
        account.check_recovery("x")


def test_closed_by_another_between_read_and_write(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def close() -> None:
        account.events.close(account.event(WEB), Status.RECOVERED, "by another", account.clock())

    with calls(monkeypatch, before("UpdateItem", close)):
        assert account.check_recovery(WEB)["status"] == "RECOVERED"
    assert account.event(WEB).detail == "by another"
    assert account.count("in-flight") == 0
