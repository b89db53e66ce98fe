"""The workflows of benchmarks, and who looks after a run that did not end as it should."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.infra.cfn import resources_of, text

Template = Mapping[str, Any]

MACHINES = ("BenchmarksBenchmark", "BenchmarksTeardown", "BenchmarksFleet")


@pytest.mark.parametrize("name", MACHINES)
def test_executions_are_durable_logged_and_traced(template: Template, name: str) -> None:
    machine = resources_of(template, "AWS::StepFunctions::StateMachine")[f"{name}Machine"]["Properties"]
    assert (machine["StateMachineType"], machine["TracingConfiguration"]) == ("STANDARD", {"Enabled": True})
    logging = text(machine["LoggingConfiguration"])
    assert (logging["Level"], logging["IncludeExecutionData"]) == ("ALL", False)
    assert logging["Destinations"] == [{"CloudWatchLogsLogGroup": {"LogGroupArn": f"<{name}Logs.Arn>"}}]
    assert text(machine["RoleArn"]) == f"<{name}Role.Arn>"


@pytest.mark.parametrize("name", MACHINES)
def test_a_definition_names_nothing_that_is_not_substituted(template: Template, name: str) -> None:
    machine = resources_of(template, "AWS::StepFunctions::StateMachine")[f"{name}Machine"]["Properties"]
    definition = machine["DefinitionString"]
    assert set(re.findall(r"\$\{(\w+)\}", definition)) == set(machine["DefinitionSubstitutions"])
    known = {
        "LaunchFunction": "<Launch.Arn>",
        "CellFunction": "<Cell.Arn>",
        "FleetFunction": "<Fleet.Arn>",
        "TeardownFunction": "<Teardown.Arn>",
        "ReportFunction": "<Report.Arn>",
        "TeardownMachine": "<BenchmarksTeardownMachine>",
        "LambdaInvoke": "arn:<AWS::Partition>:states:::lambda:invoke",
        "S3GetObject": "arn:<AWS::Partition>:states:::s3:getObject",
        "StartExecutionSync": "arn:<AWS::Partition>:states:::states:startExecution.sync:2",
    }
    substituted = text(machine["DefinitionSubstitutions"])
    assert substituted == {key: known[key] for key in substituted}


def rule(template: Template) -> dict[str, Any]:
    properties: dict[str, Any] = text(resources_of(template, "AWS::Events::Rule")["BenchmarksEnded"]["Properties"])
    return properties


def test_the_reaper_hears_of_runs_and_teardowns_that_did_not_succeed(template: Template) -> None:
    assert rule(template)["EventPattern"] == {
        "source": ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        "detail": {
            "status": ["FAILED", "TIMED_OUT", "ABORTED"],
            "stateMachineArn": [
                "<BenchmarksBenchmarkMachine>",
                "<BenchmarksTeardownMachine>",
                "<BenchmarksFleetMachine>",
            ],
        },
    }
    assert rule(template)["State"] == "ENABLED"
    assert "EventBusName" not in rule(template), "AWS puts these onto the account's own bus"


def test_event_that_the_reaper_missed_is_retried_and_then_queued(template: Template) -> None:
    (target,) = rule(template)["Targets"]
    assert target["Arn"] == "<Reaper.Arn>"
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 8}
    assert target["DeadLetterConfig"] == {"Arn": "<SchedulesUndelivered.Arn>"}
    policy = resources_of(template, "AWS::SQS::QueuePolicy")["SchedulesUndeliveredPolicy"]["Properties"]
    assert text(policy["Queues"]) == ["<SchedulesUndelivered>"]
    (allowed,) = [s for s in text(policy["PolicyDocument"]["Statement"]) if s["Effect"] == "Allow"]
    assert (allowed["Principal"], allowed["Action"]) == ({"Service": "events.amazonaws.com"}, "sqs:SendMessage")
    assert allowed["Condition"] == {"ArnEquals": {"aws:SourceArn": "<BenchmarksEnded.Arn>"}}


def test_the_reaper_is_called_every_quarter_of_an_hour(template: Template) -> None:
    schedule = resources_of(template, "AWS::Scheduler::Schedule")["ReaperSchedule"]["Properties"]
    assert schedule["ScheduleExpression"] == "cron(4/15 * * * ? *)"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert schedule.get("State", "ENABLED") == "ENABLED"
    assert text(schedule["GroupName"]) == "<SchedulesGroup>"
    target = text(schedule["Target"])
    assert (target["Arn"], target["RoleArn"]) == ("<Reaper.Arn>", "<ReaperScheduleRole.Arn>")
    assert target["DeadLetterConfig"] == {"Arn": "<SchedulesUndelivered.Arn>"}
    assert json.loads(target["Input"]) == {}


def test_whoever_runs_benchmarks_finds_them(template: Template) -> None:
    outputs = {name: text(output["Value"]) for name, output in template["Outputs"].items()}
    assert outputs["RunsTable"] == "<Runs>"
    assert outputs["ResultsBucket"] == "<Results>"
    assert outputs["BenchmarkStateMachineArn"] == "<BenchmarksBenchmarkMachine>"
    assert outputs["FleetStateMachineArn"] == "<BenchmarksFleetMachine>"
    assert outputs["TeardownStateMachineArn"] == "<BenchmarksTeardownMachine>"
