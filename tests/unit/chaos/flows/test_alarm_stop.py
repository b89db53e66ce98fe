"""An alarm of the unit goes off: what was not carried out is abandoned, and nothing else begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from handlers import hear
from tests.unit.account.account import (
    FRIDAY,
    OVERDUE,
    WEB,
    Account,
    Cut,
    before,
    calls,
    raising,
    refusing,
)
from tests.unit.chaos.aws.recorded_alarms import RecordedAlarms, state_update
from troop.chaos.claim_rules import GRACE, abandon_reason
from troop.chaos.events import AbandonReason, Abort, Event, Status
from troop.chaos.hypothesis import Hypothesis
from troop.shared import moments
from troop.shared.aws.clients import client

ORDERS = Abort(OVERDUE, "orders")
GONE = ("TerminateInstances", "TerminateInstanceInAutoScalingGroup")
SENTENCE = "alarm orders went off at 2026-11-20T22:46:00Z: a termination cannot be undone, but further chaos is stopped"


def goes_off(account: Account, alarm: str = "orders", at: datetime | None = None) -> list[str]:
    at = at or account.clock()
    state = {"value": "ALARM", "reason": "", "timestamp": moments.iso(at).replace("Z", "+0000")}
    return account.hear("aws.cloudwatch", {"alarmName": alarm, "state": state}, at)


@pytest.fixture
def item(account: Account) -> dict[str, Any]:
    """The work for a unit whose alarms are OK."""
    account.group("web")
    for name in ("orders", "errors"):
        account.alarm(name, "OK")
    account.policy("web", success_alarms=["orders"], stop_alarms=["errors"])
    return account.item("web")


@pytest.fixture
def claimed(account: Account, item: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Event:
    """A claim whose workflow died before the first attempt."""
    with calls(monkeypatch, raising("UpdateItem", Cut())), pytest.raises(Cut):
        account.terminate(item)
    event = account.event(WEB)
    assert (event.status, event.attempts) == (Status.CLAIMED, 0)
    return event


def settling(account: Account, event: Event) -> Event:
    """The event, with a whole group, before its alarms had the time to go off."""
    at = account.clock()
    return account.events.close(
        event, Status.RECOVERED, "capacity 3 of 3 in service", at, settles_at=at + timedelta(minutes=2)
    )


# ------------------------------------------------------------------ just before the request


@pytest.mark.parametrize(("alarm", "kind"), [("orders", "success"), ("errors", "stop")])
@pytest.mark.parametrize("state", ["ALARM", "INSUFFICIENT_DATA"])
def test_an_alarm_since_the_claim_abandons_it(
    account: Account, item: dict[str, Any], monkeypatch: pytest.MonkeyPatch, alarm: str, kind: str, state: str
) -> None:
    with calls(monkeypatch, before("TransactWriteItems", lambda: account.alarm(alarm, state))):
        assert account.terminate(item)["status"] == "ABANDONED"
    event = account.event(WEB)
    assert (event.cause, event.detail) == (AbandonReason.ALARM, f"{kind} alarm {alarm} is {state}")
    assert (account.gone(), event.attempts, account.count("in-flight")) == ([], 0, 0)


def test_a_deleted_alarm_abandons_the_claim(
    account: Account, item: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = lambda: client("cloudwatch").delete_alarms(AlarmNames=["errors"])  # noqa: E731
    with calls(monkeypatch, before("TransactWriteItems", delete)):
        account.terminate(item)
    assert account.event(WEB).detail == "stop alarm errors is unknown: there is no such alarm"


def test_alarms_that_nobody_can_read_wait_for_a_retry(
    account: Account, claimed: Event, item: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, refusing("DescribeAlarms", "Throttling")) as operations, pytest.raises(ClientError):
        account.terminate(item)
    assert not set(GONE) & set(operations)
    assert account.event(WEB).status is Status.CLAIMED
    assert account.terminate(item)["status"] == "TERMINATED"


def test_without_alarms_nothing_is_read_again(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    with calls(monkeypatch) as operations:
        account.terminate(account.item("web"))
    assert "DescribeAlarms" not in operations


def test_an_alarm_after_an_attempt_may_be_of_the_termination_itself(
    account: Account, item: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, raising("TerminateInstances", Cut())), pytest.raises(Cut):
        account.terminate(item)
    account.alarm("orders", "ALARM")
    assert account.terminate(item)["status"] == "TERMINATED"


# ------------------------------------------------------------------ by an event


def test_an_alarm_abandons_a_claim_that_was_not_carried_out(
    account: Account, claimed: Event, item: dict[str, Any]
) -> None:
    account.clock.forward(seconds=20)
    assert goes_off(account) == [WEB]
    event = account.event(WEB)
    assert (event.status, event.cause) == (Status.ABANDONED, AbandonReason.ALARM)
    assert event.abort == Abort(account.clock(), "orders")
    assert event.detail == "alarm orders went off before anything was terminated"
    assert abandon_reason(event) is AbandonReason.ALARM
    assert (account.count("in-flight"), account.count(f"day#{FRIDAY}")) == (0, 0)
    assert account.terminate(item)["status"] == "ABANDONED"
    assert account.gone() == []


def test_alarm_after_the_second_reading_prevents_the_attempt(
    account: Account, claimed: Event, item: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, before("UpdateItem", lambda: _aborted(account, claimed))) as operations:
        account.terminate(item)
    assert not set(GONE) & set(operations)


def test_alarm_after_an_attempt_prevents_another(
    account: Account, item: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, raising("TerminateInstances", Cut())), pytest.raises(Cut):
        account.terminate(item)
    goes = lambda: account.events.record_abort(account.event(WEB), ORDERS, "")  # noqa: E731
    with calls(monkeypatch, before("UpdateItem", goes)) as operations:
        assert account.terminate(item)["status"] == "CLAIMED"
    assert not set(GONE) & set(operations)


def test_no_further_attempt_follows_an_alarm(
    account: Account, item: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, raising("TerminateInstances", Cut())), pytest.raises(Cut):
        account.terminate(item)
    assert goes_off(account) == [WEB]
    event = account.event(WEB)
    assert (event.status, event.abort, event.detail) == (Status.CLAIMED, ORDERS, SENTENCE)
    assert account.terminate(item)["status"] == "CLAIMED"
    assert account.gone() == []
    account.clock.forward(minutes=12)
    account.sweep()
    assert (account.event(WEB).status, account.event(WEB).cause) == (Status.ABANDONED, AbandonReason.ALARM)


def test_a_termination_cannot_be_undone_and_says_so(account: Account, item: dict[str, Any]) -> None:
    account.terminate(item)
    assert goes_off(account, "errors") == goes_off(account, "orders") == [WEB]
    event = account.event(WEB)
    assert (event.status, event.abort) == (Status.TERMINATED, Abort(OVERDUE, "errors")), "the first one stays"
    assert event.detail == SENTENCE.replace("orders", "errors")


@pytest.mark.parametrize(("alarm", "verdict"), [("orders", "BROKEN"), ("errors", None)])
def test_a_success_alarm_ends_the_wait_for_the_verdict(
    account: Account, item: dict[str, Any], monkeypatch: pytest.MonkeyPatch, alarm: str, verdict: str | None
) -> None:
    account.terminate(item)
    settling(account, account.event(WEB))
    world = RecordedAlarms()
    world.metric("orders")
    world.entries[alarm] = [state_update(OVERDUE, "OK", "ALARM")]
    with calls(monkeypatch, world.intercept):
        assert goes_off(account, alarm) == [WEB]
    event = account.event(WEB)
    assert (event.verdict and event.verdict.value.value) == verdict
    assert event.abort == Abort(OVERDUE, alarm)
    assert event.detail.startswith(f"capacity 3 of 3 in service; alarm {alarm} went off at ")
    assert account.state("unit#web").get("left_for") == ("broken" if verdict else None)


def test_a_shared_alarm_stops_all_of_its_units_and_no_other(
    account: Account, item: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    units = ("web", "api", "db")
    for unit in units[1:]:
        account.group(unit)
    account.policy("api", stop_alarms=["orders"])
    account.policy("db", stop_alarms=["errors"])
    for unit in units:
        account.terminate(account.item(unit))
    assert sorted(goes_off(account)) == [f"{FRIDAY}#api", WEB]
    assert account.event(f"{FRIDAY}#db").abort is None


def test_one_event_that_fails_keeps_no_other_from_its_stop(
    account: Account, item: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    account.terminate(item)
    account.group("api")
    account.policy("api", stop_alarms=["orders"])
    account.terminate(account.item("api"))
    failed: list[str] = []

    def once(number: int, operation: str, call: Callable[[], Any]) -> Any:
        if operation == "UpdateItem" and not failed:
            failed.append(operation)
            raise Cut
        return call()

    logged: list[str] = []
    monkeypatch.setattr(hear.logger, "info", lambda message, **fields: logged.append(fields["event_id"]))
    with calls(monkeypatch, once), pytest.raises(Cut):
        goes_off(account)
    assert len(logged) == 1, "the other one is on record"
    events = [account.event(f"{FRIDAY}#{unit}") for unit in ("web", "api")]
    assert sorted(event.abort is None for event in events) == [False, True]
    assert len(goes_off(account)) == 2, "the event of AWS is delivered again"
    assert all(account.event(event.event_id).abort for event in events)


@pytest.mark.parametrize(("early", "stops"), [(GRACE, True), (GRACE + timedelta(seconds=1), False)])
def test_an_event_from_before_the_claim_stops_nothing(
    account: Account, claimed: Event, early: timedelta, stops: bool
) -> None:
    """The claim examined the states of the alarms itself."""
    assert goes_off(account, at=OVERDUE - early) == ([WEB] if stops else [])


def test_events_of_earlier_versions_and_those_that_are_over_are_left_alone(
    account: Account, item: dict[str, Any]
) -> None:
    account.terminate(item)
    account.events.close(account.event(WEB), Status.RECOVERED, "", OVERDUE)
    assert goes_off(account) == []
    account.group("api")
    account.terminate(account.item("api"))
    account.change("Events", {"event_id": f"{FRIDAY}#api"}, hypothesis="")
    stored = account.dynamodb.get_item(TableName="Events", Key={"event_id": {"S": f"{FRIDAY}#api"}})["Item"]
    account.put("Events", {key: value for key, value in stored.items() if key != "hypothesis"})
    assert goes_off(account) == []


def test_without_an_open_event_two_queries_are_all(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    with calls(monkeypatch) as operations:
        assert goes_off(account) == []
    assert operations == ["Query", "Query"]


def test_the_first_objection_counts() -> None:
    hypothesis = Hypothesis(("a",), ("b", "a"))
    assert hypothesis.objection({"a": "OK", "b": "OK", "c": "ALARM"}) == ""
    assert hypothesis.objection({"a": "OK", "b": "ALARM"}) == "stop alarm b is ALARM"
    assert hypothesis.objection({"b": "ALARM"}) == "success alarm a is unknown: there is no such alarm"
    assert Hypothesis().objection({}) == ""


def _aborted(account: Account, event: Event) -> None:
    """As an alarm closes it."""
    account.events.close(replace(event, abort=ORDERS), Status.ABANDONED, "", cause=AbandonReason.ALARM)
