"""Events of AWS that rules wait for, and the fields that handlers read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.aws_facts.sources import model
from tests.infra.conftest import blue, two_stacks
from tests.machines import asl

__all__ = ["blue", "two_stacks"]

DETAIL = {
    *("executionArn", "stateMachineArn", "name", "status", "startDate", "stopDate"),
    *("input", "inputDetails", "output", "outputDetails"),
}
"""The fields in the page's examples; the others of its status change events are those of DescribeExecution."""
_ACTIVITY = {
    *("StatusCode", "Description", "AutoScalingGroupName", "ActivityId", "Details", "RequestId", "StatusMessage"),
    *("EndTime", "EC2InstanceId", "StartTime", "Cause", "Origin", "Destination"),
}
DOCUMENTED = {
    ("aws.states", "Step Functions Execution Status Change"): DETAIL,
    ("aws.autoscaling", "EC2 Instance Launch Successful"): _ACTIVITY,
    ("aws.autoscaling", "EC2 Instance Launch Unsuccessful"): _ACTIVITY,
    ("aws.autoscaling", "EC2 Instance Terminate Successful"): _ACTIVITY,
    ("aws.ec2", "EC2 Instance State-change Notification"): {"instance-id", "state"},
    ("aws.ssm", "EC2 Command Invocation Status-change Notification"): {
        *("command-id", "document-name", "instance-id", "requested-date-time", "status"),
    },
    ("aws.cloudwatch", "CloudWatch Alarm State Change"): {"alarmName", "configuration", "previousState", "state"},
}
"""The details of events by source and type: Automating Step Functions event delivery with EventBridge, Amazon EC2 Auto
Scaling event reference, State change events for Amazon EC2 instances, Amazon EventBridge event examples for Systems
Manager, Alarm events and EventBridge.
"""


def test_rules_wait_for_events_that_there_are(blue: dict[str, Any]) -> None:
    rules = [one["Properties"] for one in blue["Resources"].values() if one["Type"] == "AWS::Events::Rule"]
    patterns = [rule["EventPattern"] for rule in rules if "EventPattern" in rule]
    assert patterns
    for pattern in patterns:
        assert pattern.keys() - {"account", "region", "detail"} == {"source", "detail-type"}
        for source in pattern["source"]:
            for kind in pattern["detail-type"]:
                assert pattern.get("detail", {}).keys() <= DOCUMENTED[source, kind]


def test_a_rule_waits_for_every_end_but_success(blue: dict[str, Any]) -> None:
    statuses: Any = model("stepfunctions").shape_for("ExecutionStatus")
    rules = [one["Properties"] for one in blue["Resources"].values() if one["Type"] == "AWS::Events::Rule"]
    patterns = [rule["EventPattern"] for rule in rules]
    (waited_for,) = (one["detail"]["status"] for one in patterns if one["source"] == ["aws.states"])
    assert set(statuses.enum) - set(waited_for) == {"RUNNING", "SUCCEEDED", "PENDING_REDRIVE"}


def test_events_that_other_accounts_or_regions_send_to_the_default_bus_are_not_heard(blue: dict[str, Any]) -> None:
    """Sending and receiving events between AWS accounts and Regions in Amazon EventBridge."""
    rules = [one["Properties"] for one in blue["Resources"].values() if one["Type"] == "AWS::Events::Rule"]
    heard = [rule["EventPattern"] for rule in rules if rule["EventPattern"]["source"] != ["aws.states"]]
    assert len(heard) >= 2
    for pattern in heard:
        assert (pattern.get("account"), pattern.get("region")) == (
            [{"Ref": "AWS::AccountId"}],
            [{"Ref": "AWS::Region"}],
        )


def test_a_rule_matches_instances_that_run(blue: dict[str, Any]) -> None:
    states: Any = model("ec2").shape_for("InstanceStateName")
    rules = [one["Properties"] for one in blue["Resources"].values() if one["Type"] == "AWS::Events::Rule"]
    (matched,) = (rule["EventPattern"] for rule in rules if rule["EventPattern"]["source"] == ["aws.ec2"])
    assert matched["detail"] == {"state": ["running"]}
    assert "running" in states.enum


@pytest.mark.parametrize(
    ("source", "kind", "field"),
    [
        ("aws.autoscaling", "EC2 Instance Launch Successful", "AutoScalingGroupName"),
        ("aws.ec2", "EC2 Instance State-change Notification", "instance-id"),
    ],
)
def test_the_handler_reads_what_the_event_has(source: str, kind: str, field: str) -> None:
    assert field in asl.subscripts(asl.handler_tree("hear"), "detail") & DOCUMENTED[source, kind]


def test_the_details_are_those_of_an_execution() -> None:
    described: Any = model("stepfunctions").shape_for("DescribeExecutionOutput")
    assert described.members.keys() >= DETAIL
