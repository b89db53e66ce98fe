"""Verdicts in the steps that check recovery: at once or when the alarms have settled, and who gives them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import OVERDUE, WEB, Account, before, calls, losing
from tests.unit.chaos.aws.recorded_alarms import RecordedAlarms, state_update
from tests.unit.chaos.flows.test_recovery_check import answers, never_whole, slept
from tests.unit.shared.aws.test_metrics import values_of, written
from troop.chaos.events import Event, Status
from troop.chaos.verdict import VerdictValue
from troop.chaos.verdict_rules import repeated
from troop.chaos.wiring.recovery import recovery_check
from troop.shared import moments
from troop.shared.tables import EVENT_SETTLES

__all__ = ["answers", "slept"]

SETTLED = OVERDUE + timedelta(minutes=4)
"""The group is whole at once, and the alarm ``errors`` needs 3 minutes."""

HELD, BROKEN, UNKNOWN = VerdictValue.HELD, VerdictValue.BROKEN, VerdictValue.UNKNOWN


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordedAlarms]:
    """The alarms of the account."""
    world = RecordedAlarms()
    world.metric("errors")
    with calls(monkeypatch, world.intercept):
        yield world


@pytest.fixture
def victim(account: Account, world: RecordedAlarms) -> str:
    """A termination just made, of a unit with the success alarm ``errors``."""
    account.group("web")
    account.terminate(account.item("web"))
    expect(account, success_alarms=["errors"])
    return account.event(WEB).instance_id


def expect(account: Account, **hypothesis: Any) -> None:
    account.change("Events", {"event_id": WEB}, hypothesis=hypothesis)


def value(account: Account) -> VerdictValue | None:
    """The verdict's, which the stored event gives again."""
    event = account.event(WEB)
    assert repeated(event) == event.verdict
    return event.verdict.value if event.verdict else None


def settle(account: Account) -> None:
    account.clock.moment = SETTLED


def over(at: datetime | None = None) -> dict[str, Any]:
    """The answer to the workflow, which waits until ``at``."""
    return {"event_id": WEB, "status": "RECOVERED", "settles_at": moments.iso(at) if at else None}


def test_a_recovery_ends_the_flight_and_its_verdict_follows(account: Account, victim: str, answers: list[Any]) -> None:
    account.wait_for_recovery(WEB, token="t1")
    event = account.event(WEB)
    assert (event.status, event.settles_at, event.awaits_verdict) == (Status.RECOVERED, SETTLED, True)
    assert account.count("in-flight") == 0
    assert account.events.open_ids(EVENT_SETTLES) == [WEB]
    settle(account)
    account.wait_for_recovery(WEB, token="t2")
    assert value(account) is HELD
    assert account.events.open_ids(EVENT_SETTLES) == []
    assert answers == [("t1", over(SETTLED)), ("t2", over())]


def test_a_workflow_that_wakes_early_waits_on(account: Account, victim: str, answers: list[Any]) -> None:
    account.wait_for_recovery(WEB, token="t1")
    account.clock.moment = SETTLED - timedelta(minutes=2)
    account.wait_for_recovery(WEB, token="t2")
    assert value(account) is None
    assert answers[-1] == ("t2", over(SETTLED))


def test_a_workflow_whose_clock_is_ahead_is_not_sent_back(
    account: Account, victim: str, answers: list[Any], slept: list[float]
) -> None:
    """By its clock the moment is past: it would come back at once, again and again."""
    account.wait_for_recovery(WEB, token="t1")
    account.clock.moment = SETTLED - timedelta(seconds=1.5)
    slept.clear()
    account.wait_for_recovery(WEB, token="t2")
    assert slept == [2]
    assert value(account) is HELD
    assert answers[-1] == ("t2", over())


def test_a_unit_without_alarms_has_its_verdict_with_its_recovery(
    account: Account, victim: str, answers: list[Any]
) -> None:
    expect(account)
    account.wait_for_recovery(WEB, token="t1")
    assert value(account) is HELD
    assert answers == [("t1", over())]


def test_an_event_of_an_earlier_version_has_the_verdict_of_its_recovery(account: Account, world: Any) -> None:
    account.group("web")
    account.terminate(account.item("web"))
    account.dynamodb.update_item(TableName="Events", Key={"event_id": {"S": WEB}}, UpdateExpression="REMOVE hypothesis")
    account.check_recovery(WEB)
    event = account.event(WEB)
    assert event.verdict
    assert (event.verdict.value, event.verdict.alarms) == (HELD, ())
    assert event.verdict.why.endswith("an earlier version claimed it, without a hypothesis")


def test_an_alarm_during_the_recovery_breaks_the_unit_at_once(
    account: Account, victim: str, world: RecordedAlarms, answers: list[Any]
) -> None:
    account.clock.forward(seconds=90)
    world.entries["errors"] = [state_update(OVERDUE + timedelta(seconds=60), "OK", "ALARM")]
    account.wait_for_recovery(WEB, token="t1")
    assert value(account) is BROKEN
    assert answers == [("t1", over())]
    assert account.state("unit#web")["left_for"] == "broken"
    assert account.count("in-flight") == 0


def test_an_alarm_after_the_recovery_breaks_the_unit(account: Account, victim: str, world: RecordedAlarms) -> None:
    account.wait_for_recovery(WEB)
    world.entries["errors"] = [
        state_update(OVERDUE + timedelta(minutes=2), "OK", "ALARM"),
        state_update(OVERDUE + timedelta(minutes=3), "ALARM", "OK"),
    ]
    settle(account)
    account.wait_for_recovery(WEB)
    assert value(account) is BROKEN
    assert account.state("unit#web")["left_for"] == "broken"


def test_a_recovery_that_took_too_long_breaks_the_unit(
    account: Account, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect(account, recovery_within=60)
    with calls(monkeypatch, never_whole):
        account.clock.forward(seconds=70)
        account.check_recovery(WEB)
    account.clock.forward(seconds=20)
    account.check_recovery(WEB)
    event = account.event(WEB)
    assert value(account) is BROKEN
    assert event.verdict
    assert event.verdict.why.endswith("s; recovery_within is 60 s")


def test_an_unrecovered_unit_is_broken_whatever_its_alarms_did(
    account: Account, victim: str, world: RecordedAlarms, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.refusals = {}
    account.clock.forward(minutes=31)
    with calls(monkeypatch, never_whole):
        account.check_recovery(WEB)
    assert account.event(WEB).status is Status.UNRECOVERED
    assert value(account) is BROKEN
    assert account.state("unit#web")["left_for"] == "unrecovered"


def test_a_deleted_group_leaves_it_open(account: Account, victim: str) -> None:
    account.drop_group("web")
    account.check_recovery(WEB)
    assert account.event(WEB).status is Status.GROUP_DELETED
    assert value(account) is UNKNOWN


@pytest.mark.parametrize("sweeps", [False, True])
def test_a_verdict_after_the_recovery_counts_once(
    account: Account, victim: str, capsys: pytest.CaptureFixture[str], sweeps: bool
) -> None:
    account.wait_for_recovery(WEB)
    assert values_of(capsys, "Verdicts") == []
    account.clock.moment = SETTLED + timedelta(minutes=6)
    for _ in range(2):
        if sweeps:
            account.sweep()
        else:
            account.wait_for_recovery(WEB)
    lines = [line for line in written(capsys) if "Repairs" not in line[1]]
    assert lines == [({"deployment": "Troop", "verdict": "HELD"}, {"Verdicts": [1]})]


# ------------------------------------------------------------------ without a workflow


def test_a_sweep_gives_an_overdue_verdict(
    account: Account, victim: str, answers: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    account.wait_for_recovery(WEB, token="t1")
    account.clock.moment = SETTLED + timedelta(minutes=4)
    assert account.sweep() == {"swept": 0}, "the workflow does it"
    assert value(account) is None
    account.clock.moment = SETTLED + timedelta(minutes=6)
    capsys.readouterr()
    assert account.sweep() == {"swept": 1}
    assert "Recoveries" not in capsys.readouterr().out, "it recovered before"
    assert value(account) is HELD
    assert answers[-1] == ("t1", over()), "a workflow that waits is told"
    assert account.sweep() == {"swept": 0}


def test_a_verdict_that_fails_does_not_stop_the_sweep(account: Account, victim: str, world: RecordedAlarms) -> None:
    account.wait_for_recovery(WEB)
    account.clock.moment = SETTLED + timedelta(minutes=6)
    world.refusals["DescribeAlarmHistory"] = ("Throttling", 400)
    (swept,) = _swept(account)
    assert "Throttling" in swept.error
    account.clock.moment = SETTLED + timedelta(minutes=11)
    (swept,) = _swept(account)
    assert swept.error == ""
    assert value(account) is UNKNOWN


def _swept(account: Account) -> list[Any]:
    from troop.chaos.wiring.recovery import sweep

    return sweep().run(account.clock())


# ------------------------------------------------------------------ failures and concurrency


def test_alarms_that_cannot_be_read_keep_no_place_in_flight(
    account: Account, victim: str, world: RecordedAlarms
) -> None:
    world.refusals["DescribeAlarms"] = ("Throttling", 400)
    account.check_recovery(WEB)
    event = account.event(WEB)
    assert (event.status, event.settles_at) == (Status.RECOVERED, OVERDUE + timedelta(minutes=61))
    assert account.count("in-flight") == 0
    account.clock.moment = OVERDUE + timedelta(minutes=61)
    with pytest.raises(ClientError, match="Throttling"):
        account.check_recovery(WEB)
    world.refusals.clear()
    account.check_recovery(WEB)
    assert value(account) is HELD


def test_an_alarm_of_a_new_kind_keeps_no_place_in_flight(
    account: Account, victim: str, world: RecordedAlarms, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.metric("errors", EvaluationPeriods=None)
    account.wait_for_recovery(WEB)
    assert (account.event(WEB).status, account.count("in-flight")) == (Status.RECOVERED, 0)
    account.clock.forward(hours=1, minutes=2)
    account.wait_for_recovery(WEB)
    event = account.event(WEB)
    assert event.verdict is not None
    assert event.verdict.value is UNKNOWN
    assert "this version does not know its kind, which has no 'EvaluationPeriods'" in event.verdict.why


def test_two_verdicts_at_once_are_one(
    account: Account, victim: str, answers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    account.wait_for_recovery(WEB, token="t1")
    settle(account)

    def another() -> Event:
        return recovery_check().check(WEB, account.clock()).event

    with calls(monkeypatch, before("TransactWriteItems", another)):
        account.wait_for_recovery(WEB, token="t2")
    assert value(account) is HELD
    assert answers[-1] == ("t2", over())


def test_a_verdict_with_its_answer_lost_is_not_repeated(
    account: Account, victim: str, world: RecordedAlarms, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.wait_for_recovery(WEB)
    settle(account)
    world.entries["errors"] = [state_update(OVERDUE + timedelta(minutes=2), "OK", "ALARM")]
    with calls(monkeypatch, losing("TransactWriteItems")), pytest.raises(Exception, match="TransactWriteItems"):
        account.wait_for_recovery(WEB)
    account.wait_for_recovery(WEB)
    assert value(account) is BROKEN
    assert len(account.state("broken")["events"]) == 1
