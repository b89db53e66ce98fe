"""Recovery: looks until the group is whole again, or its time is up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
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
from troop.chaos.aws.task_tokens import TaskTokens
from troop.chaos.events import Event, Status
from troop.chaos.flows.clock_check import ClockError
from troop.chaos.replacements import differences
from troop.chaos.stages import HealthySince, Stages
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


def test_a_group_that_stays_short_is_unrecovered_when_its_time_is_up(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workflow calls every two minutes, if nothing else happens."""
    with calls(monkeypatch, never_whole) as operations:
        answer: dict[str, Any] = {"status": "TERMINATED"}
        while answer["status"] == "TERMINATED":
            account.clock.forward(minutes=2)
            answer = account.check_recovery(WEB)
    assert answer["status"] == "UNRECOVERED"
    assert account.clock() - OVERDUE == timedelta(minutes=32)
    assert "PutEvents" not in operations, "others are told from the record, not by the watch"
    assert account.state("unit#web")["unrecovered"] == WEB
    assert account.count("in-flight") == 0
    assert account.events.open_ids() == []
    account.group("other")
    account.clock.moment = OVERDUE + timedelta(days=3)
    account.decide()
    assert account.decisions()["web"]["reason"] == "unrecovered"


# ------------------------------------------------------------------ looks within one call


@pytest.fixture
def slept(account: Account, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of functions, which take their time."""
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        account.clock.forward(seconds=seconds)

    monkeypatch.setattr(environment, "sleep", sleep)
    recovery_check.cache_clear()
    return pauses


def changing_answer(operation: str, answer: dict[str, Any]) -> Callable[[int, str, Callable[[], Any]], Any]:
    """Answers an operation so, which moto does not have."""
    return lambda number, name, call: answer if name == operation else call()


def _behind(account: Account, healthy_after: float) -> Callable[[int, str, Callable[[], Any]], Any]:
    """The group has a target group, whose targets are healthy so many seconds after the termination."""

    def answered(number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation == "DescribeTargetHealth":
            state = "healthy" if account.clock() >= OVERDUE + timedelta(seconds=healthy_after) else "initial"
            targets = [{"Target": {"Id": i}, "TargetHealth": {"State": state}} for i in account.instances("web")]
            return {"TargetHealthDescriptions": targets}
        if operation == "DescribeScalingActivities":
            return {"Activities": []}
        answer = call()
        if operation == "DescribeAutoScalingGroups":
            answer["AutoScalingGroups"][0]["TargetGroupARNs"] = ["arn:tg"]
        return answer

    return answered


def test_targets_are_looked_at_until_they_are_healthy(
    account: Account, victim: str, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, _behind(account, 41)) as operations:
        assert account.wait_for_recovery(WEB)["status"] == "RECOVERED"
    assert slept == [4] * 11 + [3]
    event = account.event(WEB)
    assert event.recovery_seconds == 44, "the first look that found it"
    assert event.watch.short_at == OVERDUE + timedelta(seconds=40), "so it recovered between the two"
    assert operations.count("DescribeScalingActivities") <= 2, "looks do not read them again"


def test_looks_end_before_the_workflow_calls_again(
    account: Account, victim: str, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, _behind(account, 1000)):
        assert account.wait_for_recovery(WEB)["status"] == "TERMINATED"
    assert 110 < sum(slept) <= 115


def test_an_execution_of_the_previous_version_is_answered_in_time(
    account: Account, victim: str, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits by itself, and has no token: its state's time is 75 seconds."""
    with calls(monkeypatch, _behind(account, 1000)):
        assert account.check_recovery(WEB) == {"event_id": WEB, "status": "TERMINATED", "wait_seconds": 60}
    assert sum(slept) <= 30


def test_an_execution_of_the_previous_version_confirms_a_recovery_at_once(
    account: Account, victim: str, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(number: int, operation: str, call: Any) -> Any:
        account.clock.forward(seconds=0.5)
        return call()

    with calls(monkeypatch, slow):
        assert account.check_recovery(WEB)["status"] == "RECOVERED"


def test_looks_end_when_another_call_looks(
    account: Account, victim: str, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def another(seconds: float) -> None:
        slept.append(seconds)
        account.clock.forward(seconds=seconds)
        if len(slept) == 2:
            recovery_check().check(WEB, account.clock())

    monkeypatch.setattr(environment, "sleep", another)
    recovery_check.cache_clear()
    with calls(monkeypatch, _behind(account, 1000)):
        assert account.wait_for_recovery(WEB)["status"] == "TERMINATED"
    assert slept == [4, 4]
    assert account.event(WEB).watch.checks == 3


def test_a_check_after_a_concurrent_one_changes_nothing(
    account: Account, victim: str, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would undo that the group was short again in between."""

    def short() -> None:
        with calls(monkeypatch, never_whole):
            recovery_check().check(WEB, account.clock())

    with calls(monkeypatch, before("UpdateItem", short)):
        recovery_check().watch(WEB, account.clock())
    event = account.event(WEB)
    assert (event.status, event.watch.checks, event.watch.whole) == (Status.TERMINATED, 1, 0)
    with calls(monkeypatch, before("TransactWriteItems", short)):
        recovery_check().watch(WEB, account.clock())
    assert account.event(WEB).status is Status.TERMINATED, "the second look was not consecutive to the first"


def test_a_result_whose_answer_is_lost_is_no_other_check(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK then writes it again, on its own."""

    def twice(number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation == "UpdateItem":
            call()
        return call()

    with calls(monkeypatch, never_whole), calls(monkeypatch, twice):
        recovery_check().check(WEB, account.clock())
    assert account.event(WEB).watch.checks == 1


# ------------------------------------------------------------------ the workflow waits by a token


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What the waiting workflow was told, by token."""
    sent: list[tuple[str, dict[str, Any]]] = []

    def succeed(self: TaskTokens, token: str, output: dict[str, Any]) -> bool:
        sent.append((token, dict(output)))
        return True

    monkeypatch.setattr(TaskTokens, "succeed", succeed)
    return sent


OVER = {"event_id": WEB, "status": "RECOVERED", "settles_at": None}


def test_recovery_answers_the_workflow(account: Account, victim: str, answers: list[Any]) -> None:
    account.wait_for_recovery(WEB, token="t1")
    assert answers == [("t1", OVER)]


def test_a_check_that_continues_does_not_answer_the_workflow(
    account: Account, victim: str, answers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, never_whole):
        account.wait_for_recovery(WEB, token="t1")
    assert answers == []
    assert account.event(WEB).token == "t1"


def test_whatever_closes_the_event_answers_the_newest_token(
    account: Account, victim: str, answers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, never_whole):
        account.wait_for_recovery(WEB, token="t1")
        account.wait_for_recovery(WEB, token="t2")
    account.clock.forward(minutes=6)
    account.sweep()
    assert answers == [("t2", OVER)]


def test_a_token_that_comes_when_the_event_is_closed_is_answered_at_once(
    account: Account, victim: str, answers: list[Any]
) -> None:
    recovery_check().watch(WEB, account.clock())
    assert answers == []
    account.wait_for_recovery(WEB, token="late")
    assert answers == [("late", OVER)]


def test_a_token_that_comes_while_the_event_is_closed_is_answered(
    account: Account, victim: str, answers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, before("TransactWriteItems", lambda: account.events.store_token(WEB, "meanwhile"))):
        recovery_check().watch(WEB, account.clock())
    assert answers == [("meanwhile", OVER)]


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
def test_a_workflow_that_waits_no_more_is_no_error(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    with calls(monkeypatch, refusing("SendTaskSuccess", code)):
        assert account.wait_for_recovery(WEB)["status"] == "RECOVERED"
    with calls(monkeypatch, refusing("SendTaskSuccess", "AccessDeniedException")), pytest.raises(ClientError):
        account.wait_for_recovery(WEB)


# ------------------------------------------------------------------ stages


LAUNCHED, ENDED = "Launching a new EC2 instance: ", "Terminating EC2 instance: "


def _described(description: str, start: float, end: float | None, status: str = "Successful") -> dict[str, Any]:
    activity = {"Description": description, "StatusCode": status, "StartTime": OVERDUE + timedelta(seconds=start)}
    return activity | ({"EndTime": OVERDUE + timedelta(seconds=end)} if end is not None else {})


def test_an_event_keeps_the_stages_of_its_recovery(
    account: Account, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")
    old = set(account.instances("web"))
    account.terminate(account.item("web"))
    (new,), victim = set(account.instances("web")) - old, account.event(WEB).instance_id
    behind, activities = _behind(account, 41), [_described(ENDED + victim, 2, None, "InProgress")]

    def answered(number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation == "DescribeScalingActivities":
            return {"Activities": activities}
        return behind(number, operation, call)

    account.clock.forward(seconds=5)
    with calls(monkeypatch, never_whole), calls(monkeypatch, answered):
        account.wait_for_recovery(WEB)
    assert account.event(WEB).stages == Stages(noticed=_after(2), healthy=(HealthySince("arn:tg"),)), "so far"
    account.clock.forward(seconds=15)
    account.hear("aws.ec2", {"instance-id": new})
    account.clock.forward(seconds=16)
    activities.insert(0, _described(LAUNCHED + new, 9, 35))
    with calls(monkeypatch, answered):
        account.hear("aws.autoscaling", {"AutoScalingGroupName": "web"})
    assert account.event(WEB).stages == Stages(
        noticed=_after(2),
        launched=_after(9),
        running=_after(20),
        in_service=_after(35),
        healthy=(HealthySince("arn:tg", _after(44)),),
    )
    assert account.event(WEB).status is Status.RECOVERED


def _after(seconds: float) -> datetime:
    return OVERDUE + timedelta(seconds=seconds)


def test_a_group_that_recovers_states_the_launch_that_failed_before(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = _activity("Failed", 1, REFUSED)
    with calls(monkeypatch, changing_answer("DescribeScalingActivities", {"Activities": [failed]})):
        assert account.check_recovery(WEB)["status"] == "RECOVERED"
    assert account.event(WEB).launch_failure == REFUSED


@pytest.mark.parametrize("more", [0, 1])
def test_the_last_launch_bounds_the_recovery_unless_the_group_has_grown(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    """A group that has grown can be whole without the instance that it launched last."""
    launched = OVERDUE + timedelta(seconds=3)
    account.clock.forward(seconds=7)
    launch = _activity("Successful", -1, "") | {"Description": "Launching a new EC2 instance: i-1", "EndTime": launched}

    def grown(number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation == "DescribeScalingActivities":
            return {"Activities": [launch]}
        answer = call()
        if operation == "DescribeAutoScalingGroups":
            answer["AutoScalingGroups"][0]["DesiredCapacity"] += more
        return answer

    with calls(monkeypatch, grown):
        event = recovered(account)
    assert event.watch.short_at == (None if more else launched)


def test_stages_are_not_known_where_activities_cannot_be_read(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, refusing("DescribeScalingActivities", "AccessDenied")):
        assert account.check_recovery(WEB)["status"] == "RECOVERED"
    assert account.event(WEB).stages == Stages()


def test_an_event_of_a_version_without_stages_ends_well(account: Account, victim: str) -> None:
    stored = account.dynamodb.get_item(TableName="Events", Key={"event_id": {"S": WEB}})["Item"]
    for later in ("hypothesis", "stages", "running", "token", "settles_at", "verdict", "abort"):
        stored.pop(later, None)
    stored["watch"]["M"].pop("short_at", None)
    account.put("Events", stored)
    assert account.check_recovery(WEB) == {"event_id": WEB, "status": "RECOVERED", "wait_seconds": 0}
    assert account.event(WEB).stages is not None


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
