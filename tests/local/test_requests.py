"""What AWS refuses is refused here, and is no silent success. The SDK must not refuse it first."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from local.account.shapes import reserved_tags

from .helpers import Fleet, World, code, unique

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
RULE = {"Name": "x", "ScheduleExpression": "rate(1 hour)", "EventBusName": "none"}
BUS = "arn:aws:events:us-east-1:000000000000:event-bus/none"
MACHINE = "arn:aws:states:us-east-1:000000000000:stateMachine:none"
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
        ("events", "put_rule", RULE, "ResourceNotFoundException"),
        ("events", "put_rule", {**RULE, "EventBusName": BUS}, "ResourceNotFoundException"),
        ("stepfunctions", "list_executions", {"stateMachineArn": MACHINE}, "StateMachineDoesNotExist"),
        ("iam", "create_service_linked_role", {"AWSServiceName": "none.amazonaws.com"}, "InvalidInput"),
        ("resourcegroupstaggingapi", "get_resources", {"ResourceTypeFilters": ["none"]}, "InvalidParameterException"),
        (
            "resourcegroupstaggingapi",
            "get_resources",
            {"ResourceTypeFilters": ["ec2:none"]},
            "InvalidParameterException",
        ),
        ("resourcegroupstaggingapi", "tag_resources", {"ResourceARNList": ["x"], "Tags": {"aws:x": "y"}}, DEFAULT),
    ],
)
def test_a_value_that_aws_refuses(
    world: World, service: str, call: str, parameters: dict[str, Any], expected: str
) -> None:
    assert refused(world, service, call, parameters) == expected


def policy(**statement: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement] if statement else []})


ALLOWED: dict[str, Any] = {"Effect": "Allow", "Resource": "*"}
TRUST: dict[str, Any] = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}


@pytest.mark.parametrize(
    "action", ["DescribeInstances", "ec2:", ":DescribeInstances", "ec2:Describe:Instances", "ec2: *"]
)
def test_an_action_needs_the_prefix_of_a_service(world: World, action: str) -> None:
    document = policy(**ALLOWED, Action=["ec2:Describe*", action])
    name = world.role().rpartition("/")[2]
    for call, parameters in (
        ("create_policy", {"PolicyName": unique("policy")}),
        ("put_role_policy", {"RoleName": name, "PolicyName": "x"}),
    ):
        assert refused(world, "iam", call, {**parameters, "PolicyDocument": document}) == "MalformedPolicyDocument"


def test_an_action_that_there_is_not_is_no_error(world: World) -> None:
    document = policy(**ALLOWED, Action=["ec2:Lunch", "none:Lunch", "none:Early-Lunch", "*"])
    assert world.iam.create_policy(PolicyName=unique("policy"), PolicyDocument=document)


@pytest.mark.parametrize(
    "document",
    [
        "{}",
        policy(),
        policy(**TRUST | {"Principal": {}}),
        policy(**TRUST | {"Action": "ec2:RunInstances"}),
        policy(**TRUST, Resource="*"),
        policy(Principal=TRUST["Principal"], Action=TRUST["Action"]),
    ],
)
def test_a_role_trusts_somebody(world: World, document: str) -> None:
    name = world.role().rpartition("/")[2]
    create = {"RoleName": unique("role"), "AssumeRolePolicyDocument": document}
    assert refused(world, "iam", "create_role", create) == "MalformedPolicyDocument"
    update = {"RoleName": name, "PolicyDocument": document}
    assert refused(world, "iam", "update_assume_role_policy", update) == "MalformedPolicyDocument"


def test_objects_and_buckets_take_no_tags_of_aws(world: World) -> None:
    s3, name = world.account.client("s3"), unique("bucket")
    place = {"Bucket": name, "Key": "one"}
    s3.create_bucket(Bucket=name)
    s3.put_object(**place, Tagging="own=x")
    for call, parameters in (
        ("put_bucket_tagging", {"Bucket": name, "Tagging": {"TagSet": [TAG]}}),
        ("put_object_tagging", {**place, "Tagging": {"TagSet": [TAG]}}),
        ("put_object", {**place, "Tagging": "aws:x=y"}),
        ("copy_object", {**place, "CopySource": place, "Tagging": "aws:x=y", "TaggingDirective": "REPLACE"}),
        ("create_multipart_upload", {**place, "Tagging": "aws:x=y"}),
    ):
        assert refused(world, "s3", call, parameters) == "InvalidTag", call
    assert s3.get_object_tagging(**place)["TagSet"] == [{"Key": "own", "Value": "x"}]


def test_a_thousand_objects_are_deleted_at_a_time(world: World) -> None:
    s3, name = world.account.client("s3"), unique("bucket")
    s3.create_bucket(Bucket=name)
    keys = [{"Key": str(number)} for number in range(1001)]
    assert refused(world, "s3", "delete_objects", {"Bucket": name, "Delete": {"Objects": keys}}) == "MalformedXML"
    assert len(s3.delete_objects(Bucket=name, Delete={"Objects": keys[:1000]})["Deleted"]) == 1000


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
    parameters = {"AutoScalingGroupName": "nothing", "DesiredCapacity": 1}
    assert refused(world, "autoscaling", "set_desired_capacity", parameters) == "InternalFailure"


def test_reserved_tags_are_detected_anywhere_in_a_request() -> None:
    specification = {"TagSpecifications": [{"ResourceType": "instance", "Tags": [TAG, {"Key": "own", "Value": "x"}]}]}
    assert list(reserved_tags({"LaunchTemplateData": specification})) == [TAG["Key"]]
    assert list(reserved_tags({"Tags": {"AWS:x": "y", "own": "z"}})) == ["AWS:x"]
    assert list(reserved_tags({"Filters": [TAG], "Key": {"aws:x": "y"}})) == []
