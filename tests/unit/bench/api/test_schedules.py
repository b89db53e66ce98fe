"""Scheduled runs: each start is admitted like a request, counts against the month's budget, and leaves its outcome."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from handlers import start
from tests.unit.account.account import CONTEXT
from tests.unit.account.asking import BERT, ask, get, patch
from tests.unit.account.bench import Half, changed, request
from troop.bench.wiring import services
from troop.shared import moments
from troop.shared.aws.clients import client
from troop.shared.wiring import environment

GROUP, ROLE = "runs", "arn:aws:iam::123456789012:role/start"
FUNCTION = "arn:aws:lambda:eu-central-1:123456789012:function:start"
QUEUE = "arn:aws:sqs:eu-central-1:123456789012:undelivered"
AT = "2026-11-20T22:46:00Z"


@pytest.fixture(autouse=True)
def group(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    client("scheduler").create_schedule_group(Name=GROUP)
    values = {"GROUP": GROUP, "ROLE": ROLE, "UNDELIVERED": QUEUE}
    for name, value in values.items():
        monkeypatch.setenv(f"TROOP_RUN_SCHEDULE_{name}", value)
    monkeypatch.setenv("TROOP_START_FUNCTION", FUNCTION)


def schedule(name: str = "nightly", expression: str = "rate(6 hours)", **more: Any) -> tuple[int, Any]:
    body = {key: value for key, value in request().items() if key != "key"}
    return ask("POST", "/benchmarks/schedules", {**body, "name": name, "expression": expression, **more}, BERT)


def payload(name: str = "nightly") -> dict[str, Any]:
    target = client("scheduler").get_schedule(Name=name, GroupName=GROUP)["Target"]
    assert (target["Arn"], target["RoleArn"], target["DeadLetterConfig"]) == (FUNCTION, ROLE, {"Arn": QUEUE})
    event: dict[str, Any] = json.loads(target["Input"])
    assert event["scheduled"] == "<aws.scheduler.scheduled-time>"
    return event


def fire(at: str = AT, event: dict[str, Any] | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = start.handler({**(event or payload()), "scheduled": at}, CONTEXT)
    return answer


def only() -> dict[str, Any]:
    (one,) = get("/benchmarks/schedules")["schedules"]
    return dict(one)


def test_a_start_delivered_twice_is_one_run(half: Half) -> None:
    status, created = schedule(size="smoke", set={"parameters.threads": 8})
    assert status == 201, created
    assert half.started() == {}
    first = fire()
    assert fire() == first
    assert list(half.started()) == [first["run"]]
    run = get(f"/benchmarks/{first['run']}")["run"]
    assert (run["name"], run["nodes"], run["requested_by"]) == ("reads", 1, f"{BERT} (schedule nightly)")
    listing = get("/benchmarks/schedules")
    assert listing["cost"] == pytest.approx(created["most"])
    assert (only()["last_run"], only()["last_refusal"], only()["last_at"]) == (first["run"], None, f"{AT[:-1]}.000Z")
    second = fire("2026-11-21T04:46:00Z")
    assert second["run"] != first["run"]
    assert get("/benchmarks/schedules")["cost"] == pytest.approx(2 * created["most"])


def test_the_months_budget_refuses_a_start_and_the_next_month_does_not(
    half: Half, settings: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    most = schedule()[1]["most"]
    half.account.change("State", {"key": "scheduled-cost#2026-11"}, amount=settings["max_scheduled_cost"] - most / 2)
    refused = fire()
    assert refused["run"] is None
    assert "troop:max_scheduled_cost" in refused["refusal"]
    assert (only()["last_refusal"], only()["last_run"]) == (refused["refusal"], None)
    assert half.started() == {}
    assert '"StartsRefused"' in capsys.readouterr().out
    half.account.clock.moment = datetime(2026, 12, 1, tzinfo=UTC)
    assert fire("2026-12-01T00:00:00Z")["run"]
    assert only()["last_refusal"] is None


@pytest.mark.parametrize("settings", [{"max_scheduled_cost": 1.0}], indirect=True)
def test_no_caller_chooses_the_month(half: Half) -> None:
    fits = int(1.0 / schedule()[1]["most"])
    outcomes = [fire(f"{year}-{month:02d}-01T00:00:00Z") for year in (2025, 2027) for month in range(1, 13)]
    assert {outcome["run"] for outcome in outcomes} == {None}
    assert "2027-01-01T00:00:00.000Z is more than a day away" in outcomes[12]["refusal"]
    assert only()["last_at"] is None, "a later start would not be recorded"
    half.account.clock.moment = datetime(2026, 11, 30, 23, 0, tzinfo=UTC)
    early = [fire(f"2026-12-01T{hour:02d}:00:00Z") for hour in range(2)]
    half.account.clock.moment = datetime(2026, 12, 1, 1, 0, tzinfo=UTC)
    late = [fire(f"2026-11-30T{hour:02d}:00:00Z") for hour in range(2, 4 + fits)]
    assert sum(outcome["run"] is not None for outcome in early + late) == fits, "all of them count for December"


@pytest.mark.parametrize("settings", [{"max_scheduled_cost": 0.01}], indirect=True)
def test_a_run_beyond_the_budget_gets_no_schedule(half: Half) -> None:
    status, answer = schedule()
    assert status == 400
    assert "troop:max_scheduled_cost" in answer["message"]
    assert get("/benchmarks/schedules")["schedules"] == []


def test_one_switch_stops_all(half: Half) -> None:
    schedule()
    patch("/switch", {"schedules_off": True})
    assert get("/benchmarks/schedules")["off"] is True
    assert "switched off" in fire()["refusal"]
    assert half.started() == {}
    patch("/switch", {"schedules_off": False})
    assert fire("2026-11-21T04:46:00Z")["run"]


def test_a_start_delivered_twice_keeps_its_run_when_schedules_are_switched_off_between(half: Half) -> None:
    schedule(size="smoke", set={"parameters.threads": 8})
    first = fire()
    patch("/switch", {"schedules_off": True})
    assert fire() == first
    assert only()["last_run"] == first["run"]


def test_a_deployment_that_takes_over_the_tables_has_no_schedules_of_the_earlier_one(
    half: Half, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule()
    earlier = payload()
    client("scheduler").create_schedule_group(Name="runs-2")
    monkeypatch.setenv("TROOP_RUN_SCHEDULE_GROUP", "runs-2")
    services.starts.cache_clear()
    services.schedules.cache_clear()
    assert get("/benchmarks/schedules")["schedules"] == []
    assert fire(event=earlier) == {"run": None, "refusal": None}
    assert schedule()[0] == 201
    assert half.started() == {}


def test_a_rate_starts_first_after_its_period_and_the_listing_agrees(half: Half) -> None:
    _, created = schedule(expression="rate(6 hours)")
    first = moments.parse(created["created_at"]) + timedelta(hours=6)
    stored = client("scheduler").get_schedule(Name="nightly", GroupName=GROUP)
    assert stored["StartDate"] == first.replace(microsecond=0)
    assert created["next_at"] == only()["next_at"] == moments.iso(first)
    patch("/switch", {"schedules_off": True})
    assert only()["next_at"] is None
    assert schedule(expression="rate(6 hours)")[1]["next_at"] is None
    patch("/switch", {"schedules_off": False})
    assert ask("DELETE", "/benchmarks/schedules/nightly")[1]["next_at"] is None


def test_the_creation_of_a_rate_can_be_completed_much_later(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule(expression="rate(1 minute)")
    client("scheduler").delete_schedule(Name="nightly", GroupName=GROUP)  # as if the creation had ended before
    monkeypatch.setattr(environment, "now", lambda: moments.parse("2026-11-21T12:00:30Z"))
    services.starts.cache_clear()
    services.schedules.cache_clear()
    assert schedule(expression="rate(1 minute)")[0] == 200
    start = client("scheduler").get_schedule(Name="nightly", GroupName=GROUP)["StartDate"]
    assert timedelta(0) < start - moments.parse("2026-11-21T12:00:30Z") <= timedelta(minutes=1)


def test_a_cron_expression_has_no_first_start_of_its_own(half: Half) -> None:
    _, created = schedule(expression="cron(0 3 * * ? *)", time_zone="Asia/Tokyo")
    assert "StartDate" not in client("scheduler").get_schedule(Name="nightly", GroupName=GROUP)
    assert created["next_at"].endswith("T18:00:00.000Z")


def test_scheduled_run_without_its_artifact_is_refused(half: Half) -> None:
    sha256 = half.stage(b"tool")
    artifact = {"name": "tool", "sha256": sha256, "source": "https://example.com/tool"}
    status, answer = schedule(definition=changed(artifacts=[artifact]))
    assert status == 201, answer
    half.s3.delete_object(Bucket="results-bucket", Key=f"artifacts/{sha256}")
    refused = fire()
    assert refused["run"] is None
    assert "artifact" in refused["refusal"]
    assert half.started() == {}


def test_a_removed_schedule_starts_nothing_and_its_name_is_free(half: Half) -> None:
    schedule()
    earlier = payload()
    assert ask("DELETE", "/benchmarks/schedules/nightly")[0] == 200
    assert get("/benchmarks/schedules")["schedules"] == []
    assert client("scheduler").list_schedules(GroupName=GROUP)["Schedules"] == []
    assert not [key for key in half.objects() if key.startswith("schedules/")]
    assert fire(event=earlier) == {"run": None, "refusal": None}
    assert ask("DELETE", "/benchmarks/schedules/nightly")[0] == 404
    assert schedule(expression="rate(1 day)")[0] == 201
    assert fire(event=earlier) == {"run": None, "refusal": None}
    assert half.started() == {}
    assert only()["last_at"] is None


def test_the_same_request_changes_nothing_and_another_is_refused(half: Half) -> None:
    _, first = schedule()
    assert schedule() == (200, first)
    status, answer = schedule(expression="rate(1 day)")
    assert status == 409
    assert "another schedule 'nightly'" in answer["message"]


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"expression": "rate(1 week)"}, "expression is 'rate(1 week)'"),
        ({"time_zone": "Mars/Base"}, "time_zone is 'Mars/Base'"),
        ({"name": "a b"}, "name is 'a b'"),
        ({"definition": changed(count=11)}, "11"),
    ],
)
def test_bad_requests_store_nothing(half: Half, wrong: dict[str, Any], where: str) -> None:
    status, answer = schedule(**wrong)
    assert status == 400
    assert where in answer["message"]
    assert not [key for key in half.objects() if key.startswith("schedules/")]
    assert client("scheduler").list_schedules(GroupName=GROUP)["Schedules"] == []
