"""GET /health: what it reads of an account, and what it answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ReadTimeoutError
from moto.core import DEFAULT_ACCOUNT_ID
from moto.scheduler import scheduler_backends
from moto.stepfunctions import stepfunctions_backends

from tests.unit.account.account import FRIDAY, OVERDUE, calls, raising, refusing
from tests.unit.account.asking import get
from tests.unit.account.deployed import REGION, RELEASE, TABLES, Deployed, decline, leave
from troop.chaos.events import Status
from troop.chaos.tick_times import AROUND
from troop.chaos.wiring import health
from troop.shared import zones
from troop.shared.aws.clients import client
from troop.shared.aws.dynamo import typed

FRIDAY_MORNING = datetime(2026, 11, 20, 18, tzinfo=UTC)


def get_health(again: bool = False) -> dict[str, Any]:
    """The answer of a process that has not answered before, or of the same one again."""
    if not again:
        health.health_and_alarms.cache_clear()
    body: dict[str, Any] = get("/health")
    return body


def failing(body: dict[str, Any]) -> dict[str, str]:
    """Detail of the checks that are not well, by name."""
    return {c["name"]: c["detail"] for c in body["checks"] if c["status"] != "ok"}


def test_all_is_well(deployed: Deployed) -> None:
    body = get_health()
    assert body["status"] == "ok", failing(body)
    assert body["checks"][0] == {
        "name": "schedules",
        "status": "ok",
        "value": 6,
        "threshold": 6,
        "detail": "6 of 6 schedules are enabled",
        "todo": "",
        "commands": [],
        "runbook": "",
    }
    checks = {c["name"]: (c["value"], c["threshold"]) for c in body["checks"]}
    assert checks["tables"] == (6, 6)
    assert checks["calendars"] == (2, 2)


def test_health_names_stage_and_release(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    body = get_health()
    assert (body["stage"], body["release"]) == (None, None)
    monkeypatch.setenv("TROOP_STAGE", "prod")
    health.releases().note(RELEASE, FRIDAY_MORNING)
    body = get_health()
    assert body["stage"] == "prod"
    assert body["release"] == {**RELEASE.document(), "since": "2026-11-20T18:00:00.000Z"}


def test_callers_who_ask_often_get_the_answer_of_the_last_seconds(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = get_health()
    deployed.account.clock.forward(seconds=4)
    with calls(monkeypatch) as operations:
        assert get_health(again=True) == before
    assert operations == []
    deployed.account.clock.forward(seconds=1)
    with calls(monkeypatch) as operations:
        get_health(again=True)
    assert "ListExecutions" in operations


def test_a_disabled_schedule(deployed: Deployed) -> None:
    scheduler = client("scheduler")
    schedule = scheduler.get_schedule(Name="night", GroupName="Schedules")
    fields = ("Name", "GroupName", "ScheduleExpression", "FlexibleTimeWindow", "Target")
    scheduler.update_schedule(**{key: schedule[key] for key in fields}, State="DISABLED")
    body = get_health()
    assert body["status"] == "fail"
    assert failing(body) == {"schedules": "5 of 6 schedules are enabled; disabled: night"}


def test_only_schedules_that_start_the_workflow_say_since_when_ticks_are_due(deployed: Deployed) -> None:
    backend = scheduler_backends[DEFAULT_ACCOUNT_ID][REGION]
    executions = stepfunctions_backends[DEFAULT_ACCOUNT_ID][REGION].describe_state_machine(deployed.machine).executions
    executions.clear()
    backend.get_schedule("Schedules", "watchdog").last_modified_date = OVERDUE.timestamp()
    assert "ticks-missing" in failing(get_health())
    backend.get_schedule("Schedules", "default").last_modified_date = OVERDUE.timestamp()
    assert failing(get_health()) == {}


def test_ticks_that_do_not_come_are_counted(deployed: Deployed) -> None:
    deployed.account.clock.moment = OVERDUE + timedelta(days=3, hours=-4)  # 10:46 on Monday
    (detail,) = failing(get_health()).values()
    assert "have been due since" in detail


def test_a_tick_that_ends_late_hides_no_later_tick(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step Functions lists executions that have ended by their ends; moto lists all by their starts."""

    def by_end(executions: list[Any], key: object, reverse: bool) -> list[Any]:
        return sorted(executions, key=lambda one: one.stop_date or one.start_date, reverse=reverse)

    monkeypatch.setattr("moto.stepfunctions.models.sorted", by_end, raising=False)
    deployed.run(OVERDUE - timedelta(hours=3), ended=OVERDUE)
    assert failing(get_health()) == {}
    deployed.run(OVERDUE - timedelta(minutes=45), "FAILED")
    deployed.run(OVERDUE - timedelta(minutes=30), ended=OVERDUE - timedelta(minutes=29))
    assert "later ones succeeded" in failing(get_health())["ticks-failed"]


def test_failed_executions(deployed: Deployed) -> None:
    for minutes, status in ((30, "FAILED"), (45, "TIMED_OUT"), (60, "ABORTED"), (25 * 60, "FAILED")):
        deployed.run(OVERDUE - timedelta(minutes=minutes), status)
    body = get_health()
    assert body["status"] == "warn"
    assert failing(body)["ticks-failed"].startswith("3 failed in the last 24 hours")
    deployed.run(OVERDUE, "FAILED")
    assert get_health()["status"] == "fail"


def test_failed_children_of_ticks_that_went_well(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Step Functions counts them: under the label of the map that started them."""
    hour = OVERDUE.replace(minute=0)
    counted = {"ExecutionsFailed": {hour: 2.0, hour + timedelta(minutes=15): 1.0}, "ExecutionsSucceeded": {hour: 4.0}}
    dimensions = [{"Name": "StateMachineArn", "Value": f"{deployed.machine}/TerminateAll"}]
    real = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        if operation != "GetMetricStatistics" or parameters["Namespace"] != "AWS/States":
            return real(self, operation, parameters)
        assert parameters["Dimensions"] == dimensions
        assert parameters["StartTime"] == OVERDUE - timedelta(hours=24)
        counts = counted[parameters["MetricName"]]
        return {"Datapoints": [{"Timestamp": at, "Sum": count} for at, count in counts.items()]}

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    (check,) = [c for c in get_health()["checks"] if c["name"] == "terminations-failed"]
    assert (check["status"], check["value"], check["threshold"]) == ("fail", 3, 0)
    assert check["detail"].endswith("the last about 2026-11-20T22:15:00Z; none has succeeded since")
    counted["ExecutionsSucceeded"][hour + timedelta(minutes=20)] = 1.0
    assert get_health()["status"] == "warn"


def test_ticks_that_came_in_the_hours_of_another_time_zone(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the metric that each tick writes for its calendar, around the last business day that is over."""
    scheduler_backends[DEFAULT_ACCOUNT_ID][REGION].get_schedule("Schedules", "default").last_modified_date = (
        OVERDUE - timedelta(days=9)
    ).timestamp()
    scheduler_backends[DEFAULT_ACCOUNT_ID][REGION].get_schedule("Schedules", "night").last_modified_date = (
        OVERDUE - timedelta(days=9)
    ).timestamp()
    thursday = FRIDAY - timedelta(days=1)
    late = {"default": 60, "night": 0}
    real = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        if operation != "GetMetricStatistics" or parameters["Namespace"] == "AWS/States":
            return real(self, operation, parameters)
        dimensions = {d["Name"]: d["Value"] for d in parameters["Dimensions"]}
        assert set(dimensions) == {"deployment", "calendar"}
        assert (parameters["Namespace"], parameters["MetricName"]) == ("Troop", "UnitsTakingPart")
        assert parameters["EndTime"] - parameters["StartTime"] < timedelta(days=2)
        first, last = parameters["StartTime"] + AROUND, parameters["EndTime"] - AROUND
        shifted = timedelta(minutes=late[dimensions["calendar"]])
        return {"Datapoints": [{"Timestamp": at + shifted, "SampleCount": 1.0} for at in (last, first)]}

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    body = get_health()
    assert (body["status"], body["time_zones"]) == ("warn", zones.VERSION)
    assert set(failing(body)) == {"time-zones"}
    assert failing(body)["time-zones"].endswith(
        f"on {thursday}, ticks of calendar default came 60 minutes late, "
        "from 10:00 to 16:45 instead of from 09:00 to 15:45 America/Los_Angeles"
    )
    late["default"] = 0
    assert get_health()["status"] == "ok"


def test_dead_letters_are_counted_even_while_somebody_reads_them(deployed: Deployed) -> None:
    sqs = client("sqs")
    sqs.send_message(QueueUrl=deployed.queue, MessageBody="{}")
    assert failing(get_health()) == {"dead-letters": "1 could not be delivered"}
    sqs.receive_message(QueueUrl=deployed.queue, VisibilityTimeout=600)
    assert failing(get_health()) == {"dead-letters": "1 could not be delivered"}


def test_a_table_that_is_gone(deployed: Deployed) -> None:
    deployed.account.dynamodb.delete_table(TableName="Decisions")
    assert failing(get_health()) == {"tables": "Decisions is gone"}


def test_a_unit_that_was_put_back_by_hand_counts_no_more(deployed: Deployed) -> None:
    """The set of units is only where to look: the unit's own item is what its next claim goes by."""
    deployed.unrecovered("web", "db", "deleted")
    deployed.account.dynamodb.put_item(TableName="State", Item=typed({"key": "unit#db", "last_day": str(FRIDAY)}))
    assert failing(get_health()) == {"units-unrecovered": "out of chaos: deleted, web"}


def test_a_broken_unit_and_the_halt_that_followed_have_checks(deployed: Deployed) -> None:
    deployed.unrecovered("web", "db")
    left = {"key": "unit#web", "unrecovered": f"{FRIDAY}#web", "left_for": "broken"}
    halt = {"key": "self-halt", "at": "2026-11-20T22:00:00.000Z", "why": "3 causes", "events": [f"{FRIDAY}#web"]}
    for item in (left, halt):
        deployed.account.put("State", typed(item))
    assert failing(get_health()) == {
        "units-unrecovered": "out of chaos: db",
        "units-broken": "out of chaos: web",
        "halted-itself": "since 2026-11-20T22:00:00Z: 3 causes",
    }


def test_an_event_that_ends_unrecovered_puts_its_unit_on_the_list(deployed: Deployed) -> None:
    account = deployed.account
    for unit in ("web", "db"):
        account.group(unit)
        account.terminate(account.item(unit))
        account.events.close(account.event(f"{FRIDAY}#{unit}"), Status.UNRECOVERED, "for the test")
        assert unit in account.state("unrecovered")["units"]
    assert account.state("unrecovered")["units"] == {"web", "db"}
    assert account.state("unrecovered")["schema"] == 1
    assert failing(get_health()) == {"units-unrecovered": "out of chaos: db, web"}


def test_one_that_recovers_does_not(deployed: Deployed) -> None:
    account = deployed.account
    account.group("web")
    account.terminate(account.item("web"))
    account.events.close(account.event(f"{FRIDAY}#web"), Status.RECOVERED, "", account.clock())
    assert account.state("unrecovered") == {}


OPERATIONS = {
    "ListSchedules": {"schedules", "ticks-missing", "time-zones"},
    "ListExecutions": {"ticks-missing", "ticks-failed"},
    "GetMetricStatistics": {"terminations-failed", "time-zones"},
    "GetQueueAttributes": {"dead-letters"},
    "DescribeTable": {"tables"},
    "GetItem": {"units-unrecovered", "units-broken", "halted-itself", "stray-items"},
    "DescribeAlarms": {"alarms"},
    "GetTopicAttributes": {"subscribers"},
    "GetAccountSettings": {"lambda-concurrency"},
    "GetResources": {"earlier-tables"},
}


@pytest.mark.parametrize("refused", OPERATIONS)
def test_refusal_by_aws_fails_its_own_checks_and_no_others(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    with calls(monkeypatch, refusing(refused, "AccessDenied")):
        body = get_health()
    assert set(failing(body)) == OPERATIONS[refused]
    assert all("AccessDenied" in detail for detail in failing(body).values())


def test_timeout_of_aws_fails_its_check(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    with calls(monkeypatch, raising("GetQueueAttributes", ReadTimeoutError(endpoint_url="https://sqs"))):
        assert set(failing(get_health())) == {"dead-letters"}


def test_the_cost_is_bounded(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed.unrecovered(*(f"unit-{n}" for n in range(150)))
    for n in range(120):
        deployed.run(OVERDUE - timedelta(minutes=n), "FAILED")
    with calls(monkeypatch) as operations:
        checks = {c["name"]: c["value"] for c in get_health()["checks"]}
    assert checks["units-unrecovered"] == 150
    assert checks["ticks-failed"] == 100
    assert len(operations) <= 5 + 5 + len(TABLES) + 6 + 5 + 1 + 3 + 2 + 1
    assert sorted(operations) == sorted(
        [
            *["ListSchedules", "GetQueueAttributes", *["GetItem"] * 4, "BatchGetItem"],
            *["DescribeAlarms", "GetTopicAttributes", "GetAccountSettings", "GetResources"],
            *["ListExecutions"] * 5,
            *["GetMetricStatistics"] * (2 + 2),  # of children, and of each calendar
            *["DescribeTable"] * 6,
        ]
    )


@pytest.mark.parametrize("settings", [{"benchmarks": False}], indirect=True)
def test_a_deployment_without_benchmarks_has_no_reaper_and_no_runs(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    client("scheduler").delete_schedule(Name="reaper", GroupName="Schedules")
    monkeypatch.setenv("TROOP_OTHER_SCHEDULES", "3")
    monkeypatch.delenv("TROOP_RUNS_TABLE")
    body = get_health()
    assert body["status"] == "ok", failing(body)
    checks = {c["name"]: (c["value"], c["threshold"]) for c in body["checks"]}
    assert (checks["schedules"], checks["tables"]) == ((5, 5), (5, 5))


def test_active_alarms_are_listed_with_their_runbook_entries(deployed: Deployed) -> None:
    deployed.alarm("Troop-TicksFailed", deployed.topic)
    deployed.alarm("Troop-UnitUnrecovered", deployed.topic, state="OK")
    deployed.alarm("Troop-ReaperFound", "arn:aws:sns:eu-central-1:123456789012:warning")
    deployed.alarm("Troop-Staging-TicksMissing", deployed.topic)  # of the deployment Troop-Staging
    body = get_health()
    assert failing(body) == {"alarms": "act now: TicksFailed; warning: ReaperFound"}
    (check,) = [c for c in body["checks"] if c["name"] == "alarms"]
    assert (check["status"], check["value"]) == ("fail", 2)
    assert check["todo"] == "follow docs/guides/runbook.md#TicksFailed, docs/guides/runbook.md#ReaperFound"


def test_alarms_of_more_than_one_page(deployed: Deployed) -> None:
    for number in range(120):
        deployed.alarm(f"Troop-Alarm{number}", deployed.topic)
    (check,) = [c for c in get_health()["checks"] if c["name"] == "alarms"]
    assert check["value"] == 120
    assert check["detail"].endswith("and 110 more")


def test_topic_without_subscribers_is_a_warning(deployed: Deployed) -> None:
    deployed.subscribers(0)
    body = get_health()
    assert body["status"] == "warn"
    assert failing(body) == {"subscribers": "act-now alarms have no subscriber"}


def test_an_account_that_runs_few_functions_at_a_time(deployed: Deployed) -> None:
    deployed.concurrency = 10
    body = get_health()
    assert body["status"] == "warn"
    assert "at most 10 functions at a time here" in failing(body)["lambda-concurrency"]
    (check,) = [c for c in body["checks"] if c["name"] == "lambda-concurrency"]
    assert f"--region {REGION} --service-code lambda --quota-code L-B99A9384" in check["commands"][0]


def test_tables_that_an_earlier_deployment_has_left(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain `cdk deploy` makes empty ones beside them, and nobody would miss the opt-outs."""
    leave("Troop-DataEvents-OWN", "Events")
    monkeypatch.setenv("TROOP_EVENTS_TABLE", "Troop-DataEvents-OWN")
    leave("Troop-DataState-OLD", "State")
    leave("Troop-Staging-DataState-1", "State", "Troop-Staging")
    leave("Troop-Else-1", "Else")
    deployed.forgotten.append(f"arn:aws:dynamodb:{REGION}:123456789012:table/Troop-DataState-GONE")
    body = get_health()
    assert body["status"] == "warn"
    (detail,) = failing(body).values()
    assert "an earlier one of this name: Troop-DataState-OLD (State, made " in detail
    assert "Staging" not in detail
    assert "GONE" not in detail
    assert "OWN" not in detail


def test_table_of_an_earlier_deployment_is_empty_only_without_items(deployed: Deployed) -> None:
    """DynamoDB's own count is hours old."""
    leave("Troop-DataState-OLD", "State")
    (check,) = [c for c in get_health()["checks"] if c["name"] == "earlier-tables"]
    assert "(State, made " in check["detail"]
    assert "empty)" in check["detail"]
    assert "ADOPT" not in check["todo"]
    client("dynamodb").put_item(TableName="Troop-DataState-OLD", Item={"key": {"S": "switch"}})
    (check,) = [c for c in get_health()["checks"] if c["name"] == "earlier-tables"]
    assert "ADOPT=Troop-DataState-OLD." in check["todo"]


def test_a_table_that_was_declined_is_none_of_this_deployments(deployed: Deployed) -> None:
    decline(leave("Troop-DataState-OLD", "State", full=True))
    assert {c["name"]: c["status"] for c in get_health()["checks"]}["earlier-tables"] == "ok"


@pytest.mark.parametrize("settings", [{"benchmarks": False}], indirect=True)
def test_runs_that_were_left_on_purpose_are_no_rival(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TROOP_RUNS_TABLE")
    leave("Troop-Runs-1", "Runs")
    checks = {c["name"]: c["status"] for c in get_health()["checks"]}
    assert checks["earlier-tables"] == "ok"
