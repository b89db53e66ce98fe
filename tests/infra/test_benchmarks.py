"""The workflows of benchmarks, and who looks after a run that did not end as it should."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.infra.cfn import resources_of, text

Template = Mapping[str, Any]


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


def test_whoever_runs_benchmarks_finds_them(template: Template) -> None:
    outputs = {name: text(output["Value"]) for name, output in template["Outputs"].items()}
    assert outputs["RunsTable"] == "<Runs>"
    assert outputs["ResultsBucket"] == "<Results>"
    assert outputs["BenchmarkStateMachineArn"] == "<BenchmarksBenchmarkMachine>"
    assert outputs["FleetStateMachineArn"] == "<BenchmarksFleetMachine>"
    assert outputs["TeardownStateMachineArn"] == "<BenchmarksTeardownMachine>"
