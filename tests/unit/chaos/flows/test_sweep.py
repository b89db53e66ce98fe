"""Sweep: ends what was left behind, and never terminates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from handlers import sweep
from handlers.sweep import SweepIncompleteError
from tests.unit.account.account import CONTEXT, FRIDAY, WEB, Account, Cut, before, calls, changing, raising
from troop.chaos.events import Status
from troop.chaos.wiring import recovery


def _left_behind(account: Account, monkeypatch: pytest.MonkeyPatch, lost: str, unit: str = "web", **tags: str) -> str:
    """A claim whose owner died before a call; the instance it names."""
    account.group(unit, tags={f"troop:{k}": v for k, v in tags.items()})
    with calls(monkeypatch, raising(lost, Cut())), pytest.raises(Cut):
        account.terminate(account.item(unit))
    return account.event(f"{FRIDAY}#{unit}").instance_id


def test_a_claim_within_its_time_is_left_alone(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    _left_behind(account, monkeypatch, "UpdateItem")
    before = account.event(WEB)
    account.clock.forward(minutes=10, seconds=59)
    assert account.sweep() == {"swept": 0}
    assert account.event(WEB) == before


def test_a_claim_nobody_carried_out_is_abandoned(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    _left_behind(account, monkeypatch, "UpdateItem")
    account.clock.forward(minutes=12)
    assert account.sweep() == {"swept": 1}
    assert account.event(WEB).status is Status.ABANDONED
    assert account.gone() == []
    assert account.count("in-flight") == 0
    assert account.count(f"day#{FRIDAY}") == 0
    assert account.sweep() == {"swept": 0}
    assert account.count("in-flight") == account.count(f"day#{FRIDAY}") == 0


def test_a_claim_whose_instance_died_untouched_was_somebody_elses(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = _left_behind(account, monkeypatch, "UpdateItem")
    account.ec2.terminate_instances(InstanceIds=[instance])
    account.clock.forward(minutes=12)
    account.sweep()
    assert account.event(WEB).status is Status.GONE_ELSEWHERE
    assert account.count("in-flight") == 0


def test_sweep_finds_a_termination_without_its_mark_and_watches_it(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")
    updates: list[int] = []

    def cut_at_the_mark(number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation == "UpdateItem":
            updates.append(number)
            if len(updates) == 2:
                raise Cut
        return call()

    with calls(monkeypatch, cut_at_the_mark), pytest.raises(Cut):
        account.terminate(account.item("web"))
    event = account.event(WEB)
    assert account.gone() == [event.instance_id]
    account.clock.forward(minutes=12)
    assert account.sweep() == {"swept": 1}
    swept = account.event(WEB)
    assert swept.status is Status.RECOVERED, "whole at both of the sweep's looks"
    assert swept.terminated_at == event.attempted_at
    assert account.count("in-flight") == 0


def test_an_instance_held_by_a_lifecycle_hook_is_terminated(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    _left_behind(account, monkeypatch, "TerminateInstanceInAutoScalingGroup", method="drain")

    def hold(answer: Any) -> None:
        answer["AutoScalingInstances"][0]["LifecycleState"] = "Terminating:Wait"

    account.clock.forward(minutes=12)
    with calls(monkeypatch, changing("DescribeAutoScalingInstances", hold)):
        account.sweep()
    event = account.event(WEB)
    assert event.status in (Status.TERMINATED, Status.RECOVERED)
    assert event.terminated_at is not None


def test_a_stopped_instance_lives(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = _left_behind(account, monkeypatch, "UpdateItem")
    account.ec2.stop_instances(InstanceIds=[instance])
    account.clock.forward(minutes=12)
    account.sweep()
    assert account.event(WEB).status is Status.ABANDONED


def test_an_instance_that_ec2_has_forgotten_is_gone(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = _left_behind(account, monkeypatch, "UpdateItem")
    account.change("Events", {"event_id": WEB}, instance_id="i-0123456789abcdef0")
    assert instance
    account.clock.forward(minutes=12)
    account.sweep()
    assert account.event(WEB).status is Status.GONE_ELSEWHERE


def test_a_lost_watch_is_taken_over_and_finished_in_one_sweep(account: Account) -> None:
    account.group("web")
    account.terminate(account.item("web"))
    account.clock.forward(minutes=5)
    assert account.sweep() == {"swept": 0}
    account.clock.forward(seconds=1)
    assert account.sweep() == {"swept": 1}
    assert account.event(WEB).status is Status.RECOVERED


@pytest.mark.parametrize("cut_before", ["UpdateItem", "TerminateInstances"])
def test_an_attempt_between_read_and_write_keeps_the_claim(
    account: Account, monkeypatch: pytest.MonkeyPatch, cut_before: str
) -> None:
    """Should an owner's clock be behind, its first or next attempt must not be closed as if it had never been."""
    _left_behind(account, monkeypatch, cut_before)
    claimed = account.event(WEB)
    account.clock.forward(minutes=12)
    owner = before("TransactWriteItems", lambda: account.events.attempt(claimed, account.clock()))
    with calls(monkeypatch, owner):
        assert account.sweep() == {"swept": 0}
    assert account.event(WEB).status is Status.CLAIMED
    assert account.count("in-flight") == 1
    account.sweep()
    assert account.event(WEB).status is Status.ABANDONED
    assert account.count("in-flight") == 0


def test_the_schedules_call_sweeps_as_a_ticks_does(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives the moment that it was due, as EventBridge Scheduler writes it."""
    _left_behind(account, monkeypatch, "UpdateItem")
    account.clock.forward(minutes=12)
    due = f"{account.clock():%Y-%m-%dT%H:%M:%SZ}"
    assert sweep.handler({"execution": "5b9c", "started": due}, CONTEXT) == {"swept": 1}
    assert account.event(WEB).status is Status.ABANDONED


def test_a_sweep_of_nothing_is_two_queries(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """For terminations in flight, and for those that await their verdict."""
    with calls(monkeypatch) as operations:
        assert account.sweep() == {"swept": 0}
    assert operations == ["Query", "Query"]


@pytest.mark.parametrize("hours", [1, -1])
def test_a_wrong_clock_sweeps_nothing(account: Account, monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    _left_behind(account, monkeypatch, "UpdateItem")
    started = account.clock()
    account.clock.forward(hours=hours)
    assert recovery.sweep().run(started) == []
    assert account.event(WEB).status is Status.CLAIMED


def test_one_that_fails_does_not_stop_the_rest(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    _left_behind(account, monkeypatch, "UpdateItem", "aaa")
    _left_behind(account, monkeypatch, "UpdateItem", "zzz")
    broken = f"{FRIDAY}#aaa"
    account.change("Events", {"event_id": broken}, status="BROKEN BY HAND")
    account.clock.forward(minutes=12)
    with pytest.raises(SweepIncompleteError, match=f"{broken}: MalformedItemError"):
        account.sweep()
    assert account.event(f"{FRIDAY}#zzz").status is Status.ABANDONED


def test_one_without_a_group_does_not_stop_the_rest(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index returns it without the attribute that lists of events in flight are read for."""
    _left_behind(account, monkeypatch, "UpdateItem", "zzz")
    event_id = f"{FRIDAY}#aaa"
    damaged = {"event_id": {"S": event_id}, "open": {"S": "open"}, "at": {"S": f"2026-11-20T17:00:00.000Z#{event_id}"}}
    account.dynamodb.put_item(TableName="Events", Item=damaged)
    account.clock.forward(minutes=12)
    with pytest.raises(SweepIncompleteError, match=f"{event_id}: MalformedItemError"):
        account.sweep()
    assert account.event(f"{FRIDAY}#zzz").status is Status.ABANDONED


def test_many_open_events_are_read_page_by_page(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    _left_behind(account, monkeypatch, "UpdateItem")
    item = account.dynamodb.get_item(TableName="Events", Key={"event_id": {"S": WEB}})["Item"]
    for number in range(30):
        event_id = f"{FRIDAY}#u{number:02d}"
        at = item["at"]["S"].partition("#")[0]
        more = {"event_id": {"S": event_id}, "at": {"S": f"{at}#{event_id}"}, "detail": {"S": "x" * 100_000}}
        account.dynamodb.put_item(TableName="Events", Item=item | more)
    with calls(monkeypatch) as operations:
        assert len(account.events.open_ids()) == 31
    assert operations.count("Query") > 1
