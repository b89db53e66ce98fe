"""What AWS refuses is refused here, and is no silent success. The SDK must not refuse it first."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from local.account.shapes import reserved_tags

from .helpers import Fleet, World, code

TAG = {"Key": "aws:cloudformation:stack-id", "Value": "it is a stranger's"}
TABLE = {
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
}
SCHEDULE = {
    "ScheduleExpression": "rate(1 hour)",
    "FlexibleTimeWindow": {"Mode": "OFF"},
    "Target": {"Arn": "arn:aws:sqs:us-east-1:000000000000:none", "RoleArn": "arn:aws:iam::000000000000:role/none"},
}


def refused(world: World, service: str, call: str, parameters: dict[str, Any]) -> str:
    """The code with which a call of root is refused."""
    account = world.account
    client: Any = account.session().client(
        service,  # type: ignore[call-overload]
        endpoint_url=account.endpoint(service),
        verify=account.exports["AWS_CA_BUNDLE"],
        config=Config(parameter_validation=False, retries={"total_max_attempts": 1}),
    )
    with pytest.raises(ClientError) as error:
        getattr(client, call)(**parameters)
    return code(error)


MAYBE = {"stateMachineArn": "x", "statusFilter": "MAYBE"}
ENTRY = {"Source": "x", "DetailType": "y", "Detail": "{}"}
DEFAULT = "ValidationException"
ALARM = {
    "AlarmName": "x",
    "Namespace": "x",
    "MetricName": "x",
    "Statistic": "Sum",
    "EvaluationPeriods": 1,
    "Threshold": 1,
    "ComparisonOperator": "GreaterThanThreshold",
}
STATISTIC = {"Metric": {"Namespace": "x", "MetricName": "x"}, "Stat": "Sum"}


@pytest.mark.parametrize(
    ("service", "call", "parameters", "expected"),
    [
        ("ec2", "create_volume", {"AvailabilityZone": "us-east-1a", "VolumeType": "gp9"}, "InvalidParameterValue"),
        ("ec2", "create_tags", {"Resources": ["i-0123456789abcdef0"], "Tags": [TAG]}, "InvalidParameterValue"),
        ("ec2", "delete_tags", {"Resources": ["i-0123456789abcdef0"], "Tags": [TAG]}, "InvalidParameterValue"),
        ("ec2", "describe_instances", {"MaxResults": 4}, "InvalidParameterValue"),
        ("ec2", "describe_instances", {"MaxResults": 1001}, "InvalidParameterValue"),
        ("ec2", "describe_launch_template_versions", {"MaxResults": 0}, "InvalidParameterValue"),
        ("autoscaling", "describe_auto_scaling_groups", {"MaxRecords": 101}, "ValidationError"),
        ("cloudwatch", "put_metric_alarm", {**ALARM, "Period": 5}, DEFAULT),
        (
            "cloudwatch",
            "put_metric_alarm",
            {**ALARM, "Metrics": [{"Id": "x", "MetricStat": {**STATISTIC, "Period": 7}}]},
            DEFAULT,
        ),
        ("autoscaling", "describe_auto_scaling_groups", {"AutoScalingGroupNames": ["x"] * 51}, "ValidationError"),
        ("autoscaling", "describe_auto_scaling_groups", {"NextToken": "none"}, "InvalidNextToken"),
        ("autoscaling", "describe_scaling_activities", {"NextToken": "none"}, "InvalidNextToken"),
        ("dynamodb", "create_table", {**TABLE, "TableName": "tagged", "Tags": [TAG]}, DEFAULT),
        ("dynamodb", "scan", {"TableName": "none", "Select": "SOME"}, DEFAULT),
        ("lambda", "invoke", {"FunctionName": "none", "InvocationType": "Later"}, DEFAULT),
        ("scheduler", "create_schedule", {**SCHEDULE, "Name": "state", "State": "MAYBE"}, DEFAULT),
        ("scheduler", "create_schedule", {**SCHEDULE, "Name": "r", "ScheduleExpression": "rate(1 week)"}, DEFAULT),
        (
            "scheduler",
            "create_schedule",
            {**SCHEDULE, "Name": "c", "ScheduleExpression": "cron(99 9 * * ? *)"},
            DEFAULT,
        ),
        ("stepfunctions", "list_executions", MAYBE, DEFAULT),
        ("events", "put_events", {"Entries": [ENTRY] * 11}, DEFAULT),
        ("resourcegroupstaggingapi", "tag_resources", {"ResourceARNList": ["x"], "Tags": {"aws:x": "y"}}, DEFAULT),
    ],
)
def test_a_value_that_aws_refuses(
    world: World, service: str, call: str, parameters: dict[str, Any], expected: str
) -> None:
    assert refused(world, service, call, parameters) == expected


def test_a_process_that_there_is_not(world: World, fleet: Fleet) -> None:
    parameters = {"AutoScalingGroupName": fleet.group(0), "ScalingProcesses": ["Lunch"]}
    assert refused(world, "autoscaling", "suspend_processes", parameters) == "ValidationError"


def test_a_request_without_a_known_action_is_roots_alone(world: World) -> None:
    contacts = world.account.client("account")
    assert contacts.get_contact_information()
    with pytest.raises(ClientError) as error:
        world.account.client("account", world.as_role(world.role())).get_contact_information()
    assert code(error) == "AccessDeniedException"


def test_where_moto_fails_the_sdk_reads_an_error(world: World) -> None:
    parameters = {"InstanceId": "i-0123456789abcdef0", "HealthStatus": "Sick"}
    assert refused(world, "autoscaling", "set_instance_health", parameters) == "InternalFailure"


def test_tags_are_found_wherever_a_request_has_them() -> None:
    specification = {"TagSpecifications": [{"ResourceType": "instance", "Tags": [TAG, {"Key": "own", "Value": "x"}]}]}
    assert list(reserved_tags({"LaunchTemplateData": specification})) == [TAG["Key"]]
    assert list(reserved_tags({"Tags": {"AWS:x": "y", "own": "z"}})) == ["AWS:x"]
    assert list(reserved_tags({"Filters": [TAG], "Key": {"aws:x": "y"}})) == []
