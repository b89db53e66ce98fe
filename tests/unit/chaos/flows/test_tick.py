"""Decide: everything on record, work handed on only when there is some."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.account.account import FRIDAY, OVERDUE, Account, Cut, before, calls, cut_at, cuts, refusing
from tests.unit.account.asking import get
from tests.unit.account.fixtures import Log
from troop.chaos.events import Status
from troop.chaos.flows.on_demand import RefusedError
from troop.chaos.flows.tick import UnknownCalendarError
from troop.chaos.wiring import services
from troop.shared import moments
from troop.shared.aws.clients import client
from troop.shared.aws.dynamo import typed
from troop.shared.aws.throttling import WRITES, ThrottledError

LEASHED = pytest.mark.parametrize("settings", [{"leashed": True}], indirect=True)


def _objects() -> list[str]:
    return [o["Key"] for o in client("s3").list_objects_v2(Bucket="work-bucket").get("Contents", [])]


def test_every_unit_has_its_decision_and_what_is_due_its_work_item(account: Account) -> None:
    account.group("web-v041")
    account.group("small", size=1)
    account.group("out", tags={"troop:opt_out": "true"})
    decided = account.decide()
    decisions = account.decisions()
    assert {unit: d["reason"] for unit, d in decisions.items()} == {
        "web": "terminate",
        "small": "too-small",
        "out": "opted-out",
    }
    assert (decided["count"], decided["max_in_flight"]) == (1, 5)
    assert decided["reasons"] == {"terminate": 1, "too-small": 1, "opted-out": 1}
    (item,) = account.work(decided)
    assert item["event_id"] == f"{FRIDAY}#web"
    assert item["groups"] == ["web-v041"]
    assert moments.parse(item["tick"]) == OVERDUE
    web = decisions["web"]
    assert web["instance_id"] in account.instances("web-v041")
    assert web["policy"]["probability"] == {"value": 1, "source": "settings"}
    assert decisions["out"]["policy"]["takes_part"] == {"value": False, "source": "tag of out"}
    expected = OVERDUE.timestamp() + 90 * 24 * 3600
    assert web["expires_at"] == expected
    assert account.all_events() == []
    assert account.gone() == []


def test_troops_own_fleets_are_not_decided_about(account: Account, capsys: pytest.CaptureFixture[str]) -> None:
    """They are there for minutes, would take part in nothing, and would be counted as units that do."""
    account.group("web")
    account.group("troop-run-c001-servers", tags={"troop:run": "run", "troop:fleet": "servers"})
    assert account.decide()["reasons"] == {"terminate": 1}
    assert set(account.decisions()) == {"web"}
    counted = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "UnitsTakingPart" in line]
    assert [(line["UnitsTakingPart"], line["UnitsOptedOut"]) for line in counted] == [([1.0], [0.0])]


def test_a_tick_that_finds_nothing_due_writes_no_list(account: Account) -> None:
    account.group("small", size=1)
    decided = account.decide()
    assert decided["count"] == 0
    assert _objects() == []
    assert account.decisions()["small"]["reason"] == "too-small"


def test_an_account_without_groups_is_no_error(account: Account) -> None:
    assert account.decide()["count"] == 0


@LEASHED
def test_a_leashed_deployment_records_once_and_kills_nothing(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    assert account.decide()["count"] == 0
    first = account.event(f"{FRIDAY}#web")
    assert first.status is Status.LEASHED
    assert first.instance_id in account.instances("web")
    assert account.state("unit#web")["leashed_day"] == str(FRIDAY)
    account.clock.forward(minutes=5)
    with calls(monkeypatch, lambda _number, _operation, call: call()) as operations:
        account.decide()
    assert "TransactWriteItems" not in operations  # a day of ticks does not try again, unit by unit
    assert account.event(f"{FRIDAY}#web") == first
    assert account.count("in-flight") == 0
    assert account.events.open_ids() == []
    assert account.gone() == []


@LEASHED
def test_unleashing_later_that_day_turns_the_record_into_a_termination(account: Account) -> None:
    account.group("web")
    account.decide()
    account.switch(leashed=False)
    account.clock.forward(minutes=2)
    (item,) = account.work(account.decide())
    assert account.terminate(item)["status"] == "TERMINATED"
    event = account.event(f"{FRIDAY}#web")
    assert event.status is Status.TERMINATED
    assert account.gone() == [event.instance_id]


@pytest.mark.parametrize("minutes", [16, 60, -2, -60])
def test_a_late_tick_and_a_wrong_clock_do_nothing(account: Account, minutes: int) -> None:
    account.group("web")
    execution = account.execution()
    account.clock.forward(minutes=minutes)
    assert account.decide(**execution)["count"] == 0
    assert account.decisions() == {}


def test_a_unit_is_decided_by_its_own_calendar_only(account: Account) -> None:
    account.group("web")
    account.group("night", tags={"troop:calendar": "night"})
    account.group("lost", tags={"troop:calendar": "nigth"})
    assert set(account.decide("default")["reasons"]) == {"terminate", "malformed"}
    assert set(account.decisions()) == {"web", "lost"}
    assert "must be one of" in account.decisions()["lost"]["detail"]
    account.decide("night")
    assert account.decisions()["night"]["reason"] == "weekend"


def test_an_unknown_calendar_fails_with_what_there_is(account: Account) -> None:
    with pytest.raises(UnknownCalendarError, match=r"there is no calendar 'x': must be one of default, night"):
        account.decide("x")


def test_a_stop_alarm_that_rings_or_does_not_exist_stops(account: Account) -> None:
    account.group("web", tags={"troop:stop_alarms": "errors"})
    account.decide()
    assert account.decisions()["web"]["detail"] == "stop alarm errors is unknown: there is no such alarm"
    for state, reason in [("ALARM", "stop-alarm"), ("INSUFFICIENT_DATA", "stop-alarm"), ("OK", "terminate")]:
        account.alarm("errors", state)
        account.clock.forward(seconds=1)
        account.decide()
        assert account.decisions()["web"]["reason"] == reason


@pytest.mark.parametrize(
    "key",
    [
        "troop:protected",
        " troop:protected",
        "Troop:Protected",
        "TROOP_PROTECTED",
        "TROOP:protected",
        "Troop:PROTECTED",
        "troop/protected",
    ],
)
def test_a_tag_that_protects_an_instance_or_nearly_does_so_protects_it(account: Account, key: str) -> None:
    account.group("web")
    account.ec2.create_tags(Resources=account.instances("web"), Tags=[{"Key": key, "Value": "true"}])
    account.decide()
    assert account.decisions()["web"]["reason"] == "protected-instances"


def test_a_stray_item_is_recorded_and_counts_outside_ticks_too(account: Account, log: Log) -> None:
    account.group("web")
    account.group("db")
    account.policy("Web", opt_out=True, owner="team")
    account.policy("db", owner="team")
    account.policy("old", opt_out=True)
    assert account.decide()["reasons"] == {"malformed": 1, "terminate": 1}
    (line,) = [line for line in log() if line["message"] == "stray items"]
    assert (line["count"], line["named"]) == (2, ["'Web' (nearest unit: 'web')", "'old' (no unit is near)"])
    problem = "the key of an item is 'Web': must be exactly the unit's name, or the item must be deleted"
    assert get("/groups/web")["problems"] == [problem]
    assert {row["unit"]: row["problems"] for row in get("/groups")["groups"]} == {"web": [problem], "db": []}
    with pytest.raises(RefusedError, match="malformed: the key of an item"):
        services.on_demand().request("web", "k", account.clock())
    version = account.state("stray-items")["version"]
    account.clock.forward(minutes=1)
    account.decide()
    assert account.state("stray-items")["version"] == version  # nothing has changed
    account.dynamodb.delete_item(TableName="GroupTags", Key={"unit": {"S": "Web"}})
    account.clock.forward(minutes=1)
    account.decide()
    assert get("/groups/web")["problems"] == []
    assert account.state("stray-items")["count"] == 1


@pytest.mark.parametrize("damage", [{"version": 3}, {"version": "x", "near": 1}, {"named": [1]}])
def test_a_damaged_record_of_stray_items_stops_nothing(account: Account, damage: dict[str, Any]) -> None:
    account.group("web")
    account.put("State", typed({"key": "stray-items"} | damage))
    assert account.decide()["reasons"] == {"terminate": 1}
    assert get("/groups/web")["problems"] == []
    account.policy("Web", opt_out=True)
    account.clock.forward(minutes=1)
    account.decide()
    assert account.state("stray-items")["count"] == 1, "it was replaced"


def test_a_tick_does_not_fail_because_stray_items_cannot_be_recorded(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")
    account.policy("old", opt_out=True)

    with calls(monkeypatch, refusing("UpdateItem", "AccessDeniedException")):
        assert account.decide()["count"] == 1


def test_one_of_two_concurrent_ticks_records_a_stray_item(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.policy("old", opt_out=True)
    with calls(monkeypatch, before("UpdateItem", account.decide)):
        account.decide()
    assert account.state("stray-items")["version"] == 1


def test_unprocessed_decisions_are_sent_again(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        account.group(f"g{number}", size=1)
    sent: list[int] = []
    real = account.dynamodb.batch_write_item

    def one_at_a_time(RequestItems: dict[str, Any]) -> dict[str, Any]:
        requests = RequestItems["Decisions"]
        sent.append(len(requests))
        real(RequestItems={"Decisions": requests[:1]})
        return {"UnprocessedItems": {"Decisions": requests[1:]} if requests[1:] else {}}

    monkeypatch.setattr(account.dynamodb, "batch_write_item", one_at_a_time)
    account.decide()
    assert sent == [3, 2, 1]
    assert set(account.decisions()) == {"g0", "g1", "g2"}


def test_decisions_that_cannot_be_written_are_a_logged_and_counted_failure(
    account: Account, log: Log, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TROOP_DEPLOYMENT", "Blue")
    account.group("web")
    sent: list[int] = []

    def nothing(RequestItems: dict[str, Any]) -> dict[str, Any]:
        sent.append(len(RequestItems["Decisions"]))
        return {"UnprocessedItems": RequestItems}

    monkeypatch.setattr(account.dynamodb, "batch_write_item", nothing)
    with pytest.raises(ThrottledError, match="BatchWriteItem of 1 items of Decisions failed 8 times"):
        account.decide()
    assert sent == [1] * WRITES.tries
    assert _objects() == []
    (line,) = [line for line in log() if line["message"] == "the step failed"]
    assert line["exception_name"] == "ThrottledError"
    assert '"StepsFailed":[1' in capsys.readouterr().out.replace(" ", "")


def test_retry_completes_a_tick_that_was_cut_at_any_call(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    with calls(monkeypatch) as operations:
        account.decide()
    assert {"Scan", "BatchWriteItem", "PutObject", "DescribeAutoScalingGroups"} <= set(operations)
    salt = operations.index("GetSecretValue")  # kept from the first time
    for number, acted in cuts(n for n in range(len(operations)) if n != salt):
        account.clock.forward(seconds=1)
        execution = account.execution()
        at = number - (number > salt)
        with calls(monkeypatch, cut_at(at, acted)), pytest.raises(Cut, match=operations[number]):
            account.decide(**execution)
        decided = account.decide(**execution)
        assert [i["unit"] for i in account.work(decided)] == ["web"]
        assert account.decisions()["web"]["tick"] == execution["started"]


def test_one_unit_of_a_name_too_long_for_the_tables_stops_no_other(account: Account) -> None:
    account.group("web", tags={"troop:unit": "\U0001f600" * 256})
    account.group("db")
    account.decide()
    reasons = {unit: decision["reason"] for unit, decision in account.decisions().items()}
    assert len(reasons) == 2
    assert reasons["db"] == "terminate"
    assert "malformed" in reasons.values()
