"""Constants of the code that must not exceed a limit of AWS."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest

from tests.aws_facts.sources import model, text_of


@pytest.mark.parametrize(
    ("constant", "shape"),
    [
        ("troop.bench.aws.run_rows.MOST_PARTS", "dynamodb TransactWriteItemList"),
        ("troop.chaos.aws.health_reads.UNITS_READ", "dynamodb KeyList"),
        ("troop.shared.aws.dynamo.BATCH", "dynamodb WriteRequests"),
        ("troop.bench.aws.fleets.AT_ONCE", "ec2 RequestInstanceTypeList"),
        ("troop.bench.aws.admission_reads.AT_ONCE", "ec2 RequestInstanceTypeList"),
        ("troop.chaos.aws.health_reads.RUNS_READ", "stepfunctions PageSize"),
        ("troop.bench.aws.stored_schedules._SECONDS", "scheduler MaximumEventAgeInSeconds"),
        ("troop.bench.aws.stored_schedules._ATTEMPTS", "scheduler MaximumRetryAttempts"),
        ("troop.chaos.units.LONGEST_GROUP_NAME", "autoscaling XmlStringMaxLen255"),
        ("troop.chaos.policy.LONGEST_ALARM", "cloudwatch AlarmName"),
        ("lifecycle.rules._BATCH", "events TargetIdList"),
    ],
)
def test_a_constant_is_within_the_limit_of_a_shape(constant: str, shape: str) -> None:
    service, _, name = shape.partition(" ")
    limits: Any = model(service).shape_for(name).metadata
    assert limits.get("min", 0) <= _value(constant) <= limits["max"]


TAGGED, READER = "troop.bench.aws.tagged_resources", "troop.bench.aws.fleet_reader"


@pytest.mark.parametrize(
    ("constant", "place", "limit"),
    [
        (f"{TAGGED}.TERMINATED_AT_ONCE", "ec2 TerminateInstancesRequest.InstanceIds", r"Up to (\d+)"),
        ("lifecycle.purge._BATCH", "s3 DeleteObjects", r"up to ([\d,]+) keys"),
        ("troop.chaos.aws.queue._AT_A_TIME", "sqs ReceiveMessage", r"\(up to (\d+)\)"),
        ("troop.bench.aws.work_queues.LISTED", "sqs ListQueuesRequest.MaxResults", r"1 to (\d+)"),
        ("troop.bench.fleets.queue_requests.AT_ONCE", "sqs SendMessageBatch", r"up to (\d+) messages"),
        ("troop.bench.fleets.queue_requests.MOST_BYTES", "sqs SendMessageBatch", r"1 MiB ([\d,]+) bytes"),
        ("troop.bench.aws.standing_groups.AT_ONCE", "autoscaling SetInstanceProtection", r"which is (\d+) per"),
        (f"{READER}.AT_ONCE", "autoscaling AutoScalingGroupNamesType.MaxRecords", r"maximum value is (\d+)"),
        (
            "troop.bench.aws.backup_groups.ACTIVITIES",
            "autoscaling DescribeScalingActivitiesType.MaxRecords",
            r"value is (\d+)\.",
        ),
    ],
)
def test_a_constant_is_within_a_documented_limit(constant: str, place: str, limit: str) -> None:
    (number,) = re.findall(limit, text_of(place))
    assert _value(constant) <= int(number.replace(",", ""))


def test_a_subject_is_shorter_than_sns_says() -> None:
    (number,) = re.findall(r"less than (\d+) characters", text_of("sns PublishInput.Subject"))
    assert _value("troop.shared.aws.alarm_topics._LONGEST_SUBJECT") < int(number)


@pytest.mark.parametrize(
    ("constant", "most"),
    [
        ("troop.chaos.aws.state_table.LONGEST_KEY", 2048),
        ("troop.chaos.aws.change_table._LONGEST_SORT_KEY", 1024),
        ("troop.chaos.aws.decision_queries._LONGEST_KEY", 1024),
    ],
)
def test_a_key_is_not_too_long(constant: str, most: int) -> None:
    """Constraints in Amazon DynamoDB - Amazon DynamoDB: 2,048 bytes of a partition key, 1,024 of a sort key."""
    assert _value(constant) == most


def _value(constant: str) -> int:
    module, _, name = constant.rpartition(".")
    return int(getattr(import_module(module), name))
