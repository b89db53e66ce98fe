"""Events of AWS: each is a hint that starts a check."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.account.account import OVERDUE, WEB, Account, before, calls, changing, refusing
from tests.unit.chaos.flows.test_recovery_check import never_whole
from troop.chaos.aws.task_tokens import TaskTokens
from troop.chaos.events import Status
from troop.chaos.flows.hearing import MOST_RUNNING
from troop.chaos.wiring import recovery
from troop.shared import moments
from troop.shared.wiring import environment


@pytest.fixture
def victim(account: Account) -> str:
    account.group("web")
    account.terminate(account.item("web"))
    return account.event(WEB).instance_id


LAUNCHED, LEFT = "EC2 Instance Launch Successful", "EC2 Instance Terminate Successful"


def changed(account: Account, group: str = "web", at: Any = None, kind: str = LEFT) -> list[str]:
    return account.hear("aws.autoscaling", {"AutoScalingGroupName": group, "EC2InstanceId": "i-0123"}, at, kind)


def runs(account: Account, instance_id: str) -> list[str]:
    return account.hear("aws.ec2", {"instance-id": instance_id, "state": "running"})


def _behind(answer: Any) -> None:
    """The group has a target group."""
    answer["AutoScalingGroups"][0]["TargetGroupARNs"] = ["arn:tg"]


def _unhealthy(number: int, operation: str, call: Any) -> Any:
    return {"TargetHealthDescriptions": []} if operation == "DescribeTargetHealth" else call()


def test_a_launch_starts_a_check_that_wakes_the_workflow(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: list[str] = []
    monkeypatch.setattr(TaskTokens, "succeed", lambda self, token, output: answered.append(token))
    with calls(monkeypatch, never_whole):
        account.wait_for_recovery(WEB, token="t")
    account.clock.forward(seconds=40)
    assert changed(account) == [WEB]
    assert (account.event(WEB).status, account.event(WEB).recovery_seconds) == (Status.RECOVERED, 40)
    assert answered == ["t"]


def test_an_event_is_no_fact(account: Account, victim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stale one, or one of a warm pool: the group is still short."""
    with calls(monkeypatch, never_whole):
        assert changed(account) == [WEB]
    event = account.event(WEB)
    assert (event.status, event.watch.checks, event.watch.whole) == (Status.TERMINATED, 1, 0)


@pytest.mark.parametrize(("kind", "recovers"), [(LAUNCHED, True), (LEFT, False)])
def test_a_launch_that_the_group_does_not_show_yet_is_looked_for_again(
    account: Account, victim: str, kind: str, recovers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def late(number: int, operation: str, call: Any) -> Any:
        if operation != "DescribeAutoScalingGroups":
            return call()
        looks.append(number)
        return never_whole(number, operation, call) if len(looks) <= 2 else call()

    with calls(monkeypatch, late):
        changed(account, kind=kind)
    assert (account.event(WEB).status is Status.RECOVERED) is recovers


def test_a_launch_of_a_group_that_stays_short_ends_its_looks(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, never_whole):
        assert changed(account, kind=LAUNCHED) == [WEB]
    assert account.event(WEB).watch.checks == 3


def test_without_a_termination_in_flight_one_query_is_all(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    with calls(monkeypatch) as operations:
        assert changed(account) == []
        assert runs(account, account.instances("web")[0]) == []
    assert operations.count("Query") == 2
    assert set(operations) == {"Query", "DescribeAutoScalingGroups"}, "the latter is the test's own"


def test_another_group_is_not_checked(account: Account, victim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("db")
    with calls(monkeypatch) as operations:
        assert changed(account, "db") == []
        assert changed(account, "no such group") == []
    assert operations == ["Query", "Query"]


def test_an_event_of_long_ago_starts_nothing(account: Account, victim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    account.clock.forward(minutes=20)
    with calls(monkeypatch) as operations:
        assert changed(account, at=OVERDUE) == []
    assert operations == []


def test_a_late_event_is_no_failure_while_targets_are_slow(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may become too old during the looks, and has started them."""
    monkeypatch.setattr(environment, "sleep", lambda seconds: account.clock.forward(seconds=seconds))
    recovery.recovery_check.cache_clear()
    recovery.hearing.cache_clear()
    account.clock.forward(minutes=14.5)
    with calls(monkeypatch, changing("DescribeAutoScalingGroups", _behind)), calls(monkeypatch, _unhealthy):
        assert changed(account, at=OVERDUE) == [WEB]
    assert account.event(WEB).watch.checks > 25


def test_an_event_twice_closes_once(account: Account, victim: str, capsys: pytest.CaptureFixture[str]) -> None:
    changed(account)
    capsys.readouterr()
    assert changed(account) == []
    assert "Recoveries" not in capsys.readouterr().out
    assert account.count("in-flight") == 0


def test_two_events_at_once_close_once(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with calls(monkeypatch, before("TransactWriteItems", lambda: changed(account))):
        assert changed(account) == [WEB]
    assert account.event(WEB).status is Status.RECOVERED
    assert account.count("in-flight") == 0
    assert capsys.readouterr().out.count('"Recoveries":') == 1, "counted by the call that has closed it"


def test_an_outcome_counts_although_the_workflow_cannot_be_answered(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No other call finds the event open, and counts it."""
    account.events.store_token(WEB, "t")
    with calls(monkeypatch, refusing("SendTaskSuccess", "ThrottlingException")):
        assert changed(account) == [WEB]
    assert account.event(WEB).status is Status.RECOVERED
    assert capsys.readouterr().out.count('"Recoveries":') == 1


def test_an_event_records_when_its_instances_ran(account: Account, victim: str) -> None:
    account.clock.forward(seconds=21)
    new = account.instances("web")[-1]
    assert runs(account, new) == [WEB]
    account.clock.forward(seconds=5)
    assert runs(account, new) == [], "the first counts"
    assert account.event(WEB).running == {new: OVERDUE + timedelta(seconds=21)}
    assert runs(account, "i-0fedcba9876543210") == [], "an instance of no group"


def test_an_event_keeps_the_first_instances_only(account: Account, victim: str) -> None:
    account.autoscaling.update_auto_scaling_group(AutoScalingGroupName="web", MaxSize=12, DesiredCapacity=9)
    started = account.instances("web")[:8]
    for one in started:
        account.clock.forward(seconds=1)
        runs(account, one)
    assert set(account.event(WEB).running) == set(started[:MOST_RUNNING])


def test_two_instances_that_run_at_once_are_both_recorded(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other, third = account.instances("web")
    with calls(monkeypatch, before("UpdateItem", lambda: runs(account, other))):
        assert runs(account, one) == [WEB]
    assert set(account.event(WEB).running) == {one, other}
    account.change("Events", {"event_id": WEB}, running={one: moments.iso(OVERDUE)})
    with calls(monkeypatch, before("UpdateItem", lambda: runs(account, other))):
        assert runs(account, third) == [WEB]
    assert set(account.event(WEB).running) == {one, other, third}


def test_many_launches_at_once_are_not_delayed_by_more_requests(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They throttle Auto Scaling. When each instance ran is only shown: no SDK and no Lambda asks again for long."""
    new = account.instances("web")[-1]
    with calls(monkeypatch, refusing("DescribeAutoScalingInstances", "Throttling")):
        assert runs(account, new) == []
    assert account.event(WEB).running == {}
    assert recovery.hearing().autoscaling.meta.config.retries["total_max_attempts"] <= 2


def test_an_instance_that_runs_after_the_end_is_not_recorded(account: Account, victim: str) -> None:
    changed(account)
    assert runs(account, account.instances("web")[0]) == []
    assert account.event(WEB).running == {}


def test_a_check_that_fails_is_tried_again_by_lambda(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        calls(monkeypatch, refusing("DescribeAutoScalingGroups", "Throttling")),
        pytest.raises(Exception, match="Throttling"),
    ):
        changed(account)
    assert account.event(WEB).status is Status.TERMINATED
    assert changed(account) == [WEB]
    assert account.event(WEB).status is Status.RECOVERED


def test_targets_are_looked_at_for_one_event_at_a_time(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several launches of a group at once: the last call looks on, the others end at their next look."""

    later = [4]

    def sleep(seconds: float) -> None:
        account.clock.forward(seconds=seconds)
        if later[0]:
            later[0] -= 1
            changed(account)

    monkeypatch.setattr(environment, "sleep", sleep)
    recovery.recovery_check.cache_clear()
    recovery.hearing.cache_clear()

    with calls(monkeypatch, changing("DescribeAutoScalingGroups", _behind)), calls(monkeypatch, _unhealthy):
        changed(account)
    assert later == [0]
    assert account.event(WEB).watch.checks <= 5 + 115 // 4
