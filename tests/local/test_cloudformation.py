"""Stacks: properties that MiniStack drops take effect, and what fails, fails soon."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.account.schemas import unknown_names
from tests.patience import eventually

from .helpers import Fleet, World, code, unique


def deploy(world: World, resources: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(stack's name, its description once it is complete or has failed)."""
    name, stacks = unique("stack"), world.account.client("cloudformation")
    template = {"Resources": resources, "Outputs": {key: {"Value": {"Ref": key}} for key in resources}}
    body, may = json.dumps(template), ["CAPABILITY_IAM"]
    stacks.create_stack(StackName=name, TemplateBody=body, OnFailure="DO_NOTHING", Capabilities=may)
    return name, settled(world, name)


def settled(world: World, name: str) -> dict[str, Any]:
    stacks = world.account.client("cloudformation")

    def done() -> dict[str, Any] | None:
        stack: dict[str, Any] = stacks.describe_stacks(StackName=name)["Stacks"][0]
        return None if stack["StackStatus"].endswith("IN_PROGRESS") else stack

    return dict(eventually(done))


def reference(stack: dict[str, Any], key: str) -> str:
    return next(str(one["OutputValue"]) for one in stack["Outputs"] if one["OutputKey"] == key)


def test_time_to_live_is_enabled(world: World) -> None:
    table = {
        "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        "TimeToLiveSpecification": {"AttributeName": "expires_at", "Enabled": True},
    }
    resources = {
        "One": {"Type": "AWS::DynamoDB::Table", "Properties": table},
        "Global": {
            "Type": "AWS::DynamoDB::GlobalTable",
            "Properties": {**table, "Replicas": [{"Region": "us-east-1"}]},
        },
    }
    _, stack = deploy(world, resources)
    for key in resources:
        response = world.account.client("dynamodb").describe_time_to_live(TableName=reference(stack, key))
        assert response["TimeToLiveDescription"] == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}


def test_alarm_on_an_expression_is_created(world: World) -> None:
    one = {"Namespace": "AWS/DynamoDB", "MetricName": "WriteThrottleEvents"}
    metrics = [
        {"Id": "sum", "Expression": "SUM(FILL(METRICS(), 0))", "ReturnData": True},
        {"Id": "one", "MetricStat": {"Metric": one, "Period": 3600, "Stat": "Sum"}, "ReturnData": False},
    ]
    above = {"ComparisonOperator": "GreaterThanThreshold", "Threshold": 1, "EvaluationPeriods": 1}
    alarm = {"Type": "AWS::CloudWatch::Alarm", "Properties": {"Metrics": metrics, **above}}
    _, stack = deploy(world, {"Throttled": alarm})
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    described = world.account.client("cloudwatch").describe_alarms(AlarmNames=[reference(stack, "Throttled")])
    (description,) = described["MetricAlarms"]
    assert ("MetricName" in description, description["StateValue"]) == (False, "INSUFFICIENT_DATA")
    assert [m["Id"] for m in description["Metrics"]] == ["sum", "one"]


def schedule(world: World, **more: Any) -> dict[str, Any]:
    target = {"Arn": "arn:aws:sqs:us-east-1:000000000000:none", "RoleArn": world.role()}
    properties = {"ScheduleExpression": "cron(0 9 * * ? *)", "FlexibleTimeWindow": {"Mode": "OFF"}, "Target": target}
    return {"Type": "AWS::Scheduler::Schedule", "Properties": {**properties, **more}}


def test_a_schedule_keeps_its_properties(world: World) -> None:
    resources = {
        "Group": {"Type": "AWS::Scheduler::ScheduleGroup", "Properties": {}},
        "One": schedule(
            world,
            GroupName={"Ref": "Group"},
            ScheduleExpressionTimezone="Asia/Kathmandu",
            State="DISABLED",
            StartDate="2030-01-01T00:00:00Z",
        ),
    }
    name, stack = deploy(world, resources)
    client = world.account.client("scheduler")

    def current_schedule() -> dict[str, Any]:
        place = {"Name": reference(stack, "One"), "GroupName": reference(stack, "Group")}
        return dict(client.get_schedule(**place))

    assert current_schedule()["ScheduleExpressionTimezone"] == "Asia/Kathmandu"
    assert current_schedule()["State"] == "DISABLED"
    assert current_schedule()["StartDate"].year == 2030
    resources["One"]["Properties"]["ScheduleExpressionTimezone"] = "Europe/Vienna"
    body = json.dumps({"Resources": resources, "Outputs": {key: {"Value": {"Ref": key}} for key in resources}})
    world.account.client("cloudformation").update_stack(StackName=name, TemplateBody=body)
    eventually(lambda: current_schedule()["ScheduleExpressionTimezone"] == "Europe/Vienna")


def test_a_schedule_in_an_unknown_zone_fails_the_stack(world: World) -> None:
    _, stack = deploy(world, {"One": schedule(world, ScheduleExpressionTimezone="Mars/Olympus")})
    assert stack["StackStatus"] == "CREATE_FAILED"
    assert "Mars/Olympus" in json.dumps(events(world, stack["StackName"]), default=str)


def events(world: World, name: str) -> Any:
    return world.account.client("cloudformation").describe_stack_events(StackName=name)["StackEvents"]


def test_saved_query_is_created(world: World) -> None:
    query = {"Name": "Troop/Errors", "QueryString": "fields @message", "LogGroupNames": []}
    _, stack = deploy(world, {"One": {"Type": "AWS::Logs::QueryDefinition", "Properties": query}})
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    assert reference(stack, "One")


QUEUE = {"Type": "AWS::SQS::Queue"}


@pytest.mark.parametrize(
    "template",
    [
        {"Resources": {"One": {"Type": "AWS::SQS::Queues"}}},
        {"Resources": {"One": {"Properties": {}}}},
        {"Resources": {"One": {**QUEUE, "Property": {}}}},
        {"Resources": {"One": {**QUEUE, "DependsOn": "Two"}}},
        {"Resources": {}},
        {"Resources": {"One": QUEUE}, "Output": {}},
    ],
)
def test_a_template_with_what_aws_does_not_know_is_refused(world: World, template: dict[str, Any]) -> None:
    stacks = world.account.client("cloudformation")
    for call in (stacks.validate_template, partial(stacks.create_stack, StackName=unique("stack"))):
        with pytest.raises(ClientError, match="Template format error") as error:
            call(TemplateBody=json.dumps(template))
        assert code(error) == "ValidationError"


@pytest.mark.parametrize(
    "template",
    [
        {
            "Transform": "AWS::LanguageExtensions",
            "Resources": {"Fn::ForEach::Each": ["Name", ["One", "Two"], {"${Name}": QUEUE}]},
        },
        {"Transform": "Own", "Resources": {"One": {**QUEUE, "Count": 2}}},
        {"Resources": {"One": {"Fn::Transform": {"Name": "AWS::Include", "Parameters": {"Location": "s3://x/y"}}}}},
    ],
)
def test_macros_may_use_names_that_only_they_know(world: World, template: dict[str, Any]) -> None:
    assert world.account.client("cloudformation").validate_template(TemplateBody=json.dumps(template))


@pytest.mark.parametrize(
    ("kind", "properties", "problem"),
    [
        ("AWS::SQS::Queue", {"Name": "x"}, "extraneous key [Name]"),
        (
            "AWS::SNS::Topic",
            {"Subscription": [{"Protocol": "sqs", "Target": "x"}]},
            "#/Subscription/0: extraneous key [Target]",
        ),
        (
            "AWS::S3::Bucket",
            {"LifecycleConfiguration": {"Rule": []}},
            "#/LifecycleConfiguration: extraneous key [Rule]",
        ),
        ("AWS::SQS::Queue", {"Tags": [{"Key": "aws:x", "Value": "y"}]}, "the tag aws:x is reserved for AWS"),
    ],
)
def test_a_property_that_the_type_does_not_have_fails_the_stack(
    world: World, kind: str, properties: dict[str, Any], problem: str
) -> None:
    name, stack = deploy(world, {"One": {"Type": kind, "Properties": properties}})
    assert stack["StackStatus"] == "CREATE_FAILED"
    stacks = world.account.client("cloudformation")
    reasons = [
        one.get("ValidationStatusReason", "") for one in stacks.describe_events(StackName=name)["OperationEvents"]
    ]
    assert any(problem in reason for reason in reasons)
    assert not stacks.describe_stack_resources(StackName=name)["StackResources"]


@pytest.mark.parametrize(
    ("kind", "properties", "problem"),
    [
        ("AWS::StepFunctions::StateMachine", {"DefinitionString": "{}"}, "Invalid State Machine Definition"),
        ("AWS::IAM::Role", {"AssumeRolePolicyDocument": {"Statement": []}}, "MalformedPolicyDocument"),
        (
            "AWS::IAM::ManagedPolicy",
            {"PolicyDocument": {"Statement": {"Effect": "Allow", "Action": "PutItem", "Resource": "*"}}},
            "must be",
        ),
    ],
)
def test_documents_in_templates_are_refused_as_elsewhere(
    world: World, kind: str, properties: dict[str, Any], problem: str
) -> None:
    name, stack = deploy(world, {"One": {"Type": kind, "Properties": properties}})
    assert stack["StackStatus"] == "CREATE_FAILED"
    assert problem in json.dumps(events(world, name), default=str)


def test_a_change_that_adds_an_unknown_property_is_rolled_back(world: World) -> None:
    name, _ = deploy(world, {"One": QUEUE})
    template = {"Resources": {"One": {**QUEUE, "Properties": {"Name": "x"}}}}
    world.account.client("cloudformation").update_stack(StackName=name, TemplateBody=json.dumps(template))
    assert settled(world, name)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"


def test_names_are_unknown_only_where_the_schema_closes_them() -> None:
    schema = {
        "definitions": {"Open": {"type": "object"}, "Closed": {"properties": {"A": {}}, "additionalProperties": False}},
        "properties": {
            "Open": {"$ref": "#/definitions/Open"},
            "Many": {"items": {"$ref": "#/definitions/Closed"}},
            "Either": {
                "oneOf": [{"$ref": "#/definitions/Closed"}, {"properties": {"B": {}}, "additionalProperties": False}]
            },
        },
        "patternProperties": {"^x": {"$ref": "#/definitions/Closed"}},
        "additionalProperties": False,
    }
    chosen = {"Fn::If": ["Condition", {"A": 1, "C": 1}, {"Ref": "AWS::NoValue"}]}
    value = {
        "Open": {"C": 1},
        "Many": [{"A": 1}, {"C": 1}, chosen],
        "Either": {"B": 1},
        "xy": {"C": 1},
        "y": {"Ref": "Z"},
    }
    assert list(unknown_names(schema, value)) == [("#/Many/1", "C"), ("#/Many/2", "C"), ("#/xy", "C"), ("#", "y")]


def test_a_failing_custom_resource_fails_the_stack_at_once(world: World) -> None:
    function = world.function("def handler(event, context):\n    raise RuntimeError('broken')\n")
    _, stack = deploy(world, {"One": {"Type": "Custom::Thing", "Properties": {"ServiceToken": function}}})
    assert stack["StackStatus"] == "CREATE_FAILED"
    assert "broken" in json.dumps(events(world, stack["StackName"]), default=str)


def test_buckets_are_emptied_before_they_are_deleted(world: World) -> None:
    resources = {
        "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {}},
        "Empty": {
            "Type": "Custom::S3AutoDeleteObjects",
            "Properties": {
                "ServiceToken": "arn:aws:lambda:us-east-1:000000000000:function:none",
                "BucketName": {"Ref": "Bucket"},
            },
        },
    }
    name, stack = deploy(world, resources)
    bucket = reference(stack, "Bucket")
    s3, stacks = world.account.client("s3"), world.account.client("cloudformation")
    s3.put_object(Bucket=bucket, Key="ticks/one.json", Body=b"[]")
    stacks.delete_stack(StackName=name)
    eventually(lambda: bucket not in [one["Name"] for one in s3.list_buckets()["Buckets"]])


def test_failed_creation_removes_all_resources_without_a_retain_policy(world: World) -> None:
    table = {
        "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        "DeletionProtectionEnabled": True,
    }
    policies = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}
    resources = {
        "Bucket": {"Type": "AWS::S3::Bucket", **policies},
        "Table": {"Type": "AWS::DynamoDB::Table", "Properties": table, "DeletionPolicy": "Retain"},
        "Fails": schedule(world, ScheduleExpressionTimezone="Mars/Olympus") | {"DependsOn": ["Bucket", "Table"]},
    }
    name, stacks = unique("stack"), world.account.client("cloudformation")
    stacks.create_stack(StackName=name, TemplateBody=json.dumps({"Resources": resources}))
    stack = settled(world, name)
    assert stack["StackStatus"] == "ROLLBACK_COMPLETE"
    dynamodb, s3 = world.account.client("dynamodb"), world.account.client("s3")
    assert not [one for one in s3.list_buckets()["Buckets"] if one["Name"].startswith(name)]
    (left,) = [one for one in dynamodb.list_tables()["TableNames"] if one.startswith(name)]
    listed = stacks.list_stack_resources(StackName=stack["StackId"])["StackResourceSummaries"]
    statuses = {one["PhysicalResourceId"]: one["ResourceStatus"] for one in listed if one["PhysicalResourceId"]}
    assert statuses.pop(left) == "DELETE_SKIPPED"
    assert set(statuses.values()) == {"DELETE_COMPLETE"}


def test_only_types_that_have_them_on_aws_get_the_tags_of_cloudformation(world: World) -> None:
    resources = {
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"Tags": [{"Key": "team", "Value": "web"}]}},
        "Topic": {"Type": "AWS::SNS::Topic"},
    }
    _, stack = deploy(world, resources)
    url = reference(stack, "Queue")
    assert world.account.client("sqs").list_queue_tags(QueueUrl=url)["Tags"] == {"team": "web"}
    topic = world.account.client("sns").list_tags_for_resource(ResourceArn=reference(stack, "Topic"))
    assert {"Key": "aws:cloudformation:stack-id", "Value": stack["StackId"]} in topic["Tags"]


def test_retained_resource_of_a_deleted_stack_stays_on_record(world: World) -> None:
    """Also when another stack has its name, and in a stack that gave a resource up."""
    stacks, waiter = world.account.client("cloudformation"), {"Delay": 1}
    queue, topic = {"Type": "AWS::SQS::Queue", "DeletionPolicy": "Retain"}, {"Type": "AWS::SNS::Topic"}
    name, first = deploy(world, {"Queue": queue, "Topic": topic})
    url = reference(first, "Queue")
    stacks.update_stack(StackName=name, TemplateBody=json.dumps({"Resources": {"Topic": topic}}))
    stacks.get_waiter("stack_update_complete").wait(StackName=name, WaiterConfig=waiter)

    def states(stack_id: str) -> dict[str, str]:
        listed = stacks.list_stack_resources(StackName=stack_id)["StackResourceSummaries"]
        return {one["LogicalResourceId"]: one["ResourceStatus"] for one in listed}

    assert states(first["StackId"]) == {"Queue": "DELETE_SKIPPED", "Topic": "UPDATE_COMPLETE"} or states(
        first["StackId"]
    ) == {"Queue": "DELETE_SKIPPED", "Topic": "CREATE_COMPLETE"}
    stacks.delete_stack(StackName=name)
    stacks.get_waiter("stack_delete_complete").wait(StackName=first["StackId"], WaiterConfig=waiter)
    stacks.create_stack(StackName=name, TemplateBody=json.dumps({"Resources": {"Topic": topic}}))
    second = settled(world, name)
    pages = stacks.get_paginator("list_stacks").paginate(StackStatusFilter=["CREATE_COMPLETE", "DELETE_COMPLETE"])
    by_id = {one["StackId"]: one for page in pages for one in page["StackSummaries"] if one["StackName"] == name}
    assert by_id.keys() == {first["StackId"], second["StackId"]}
    assert "DeletionTime" in by_id[first["StackId"]]
    assert states(first["StackId"]) == {"Queue": "DELETE_SKIPPED", "Topic": "DELETE_COMPLETE"}
    (skipped,) = [
        one
        for one in stacks.list_stack_resources(StackName=first["StackId"])["StackResourceSummaries"]
        if one["ResourceStatus"] == "DELETE_SKIPPED"
    ]
    assert skipped["PhysicalResourceId"] == url


def test_a_stack_does_not_touch_what_an_earlier_one_of_its_name_retained(world: World) -> None:
    table: dict[str, Any] = {
        "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    resources = {"Table": {"Type": "AWS::DynamoDB::Table", "Properties": table, "DeletionPolicy": "Retain"}}
    template = {"Resources": resources, "Outputs": {"Table": {"Value": {"Ref": "Table"}}}}
    stacks, dynamodb = world.account.client("cloudformation"), world.account.client("dynamodb")
    name, first = deploy(world, resources)
    earlier = reference(first, "Table")
    dynamodb.put_item(TableName=earlier, Item={"k": {"S": "1"}})
    stacks.delete_stack(StackName=name)
    stacks.get_waiter("stack_delete_complete").wait(StackName=first["StackId"], WaiterConfig={"Delay": 1})
    stacks.create_stack(StackName=name, TemplateBody=json.dumps(template))
    later = reference(settled(world, name), "Table")
    assert later != earlier
    assert dynamodb.scan(TableName=earlier)["Count"] == 1
    table["DeletionProtectionEnabled"] = True
    stacks.update_stack(StackName=name, TemplateBody=json.dumps(template))
    assert reference(settled(world, name), "Table") == later


def test_a_reference_to_a_secret_is_its_arn(world: World) -> None:
    resources = {"Salt": {"Type": "AWS::SecretsManager::Secret", "Properties": {"GenerateSecretString": {}}}}
    name, stack = deploy(world, resources)
    arn = reference(stack, "Salt")
    assert arn.startswith("arn:aws:secretsmanager:")
    secrets = world.account.client("secretsmanager")
    assert secrets.get_secret_value(SecretId=arn)["ARN"] == arn
    world.account.client("cloudformation").delete_stack(StackName=name)
    eventually(lambda: arn not in [one["ARN"] for one in secrets.list_secrets()["SecretList"]])


def test_a_network_of_its_own(world: World, fleet: Fleet) -> None:
    """A VPC without a way out but S3's gateway endpoint, a subnet in each of three zones; groups see it."""
    zones = {"Fn::GetAZs": ""}
    resources: dict[str, Any] = {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.44.0.0/16", "EnableDnsHostnames": True}},
        "Routes": {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": {"Ref": "Vpc"}}},
        "S3": {
            "Type": "AWS::EC2::VPCEndpoint",
            "Properties": {
                "VpcEndpointType": "Gateway",
                "ServiceName": {"Fn::Join": ["", ["com.amazonaws.", {"Ref": "AWS::Region"}, ".s3"]]},
                "VpcId": {"Ref": "Vpc"},
                "RouteTableIds": [{"Ref": "Routes"}],
            },
        },
    }
    for number in range(3):
        resources[f"Subnet{number}"] = {
            "Type": "AWS::EC2::Subnet",
            "Properties": {
                "VpcId": {"Ref": "Vpc"},
                "CidrBlock": {"Fn::Select": [number, {"Fn::Cidr": ["10.44.0.0/16", 3, "12"]}]},
                "AvailabilityZone": {"Fn::Select": [number, zones]},
                "MapPublicIpOnLaunch": False,
            },
        }
        resources[f"Association{number}"] = {
            "Type": "AWS::EC2::SubnetRouteTableAssociation",
            "Properties": {"RouteTableId": {"Ref": "Routes"}, "SubnetId": {"Ref": f"Subnet{number}"}},
        }
    _, stack = deploy(world, resources)
    assert stack["StackStatus"] == "CREATE_COMPLETE", stack.get("StackStatusReason")
    assert reference(stack, "S3").startswith("vpce-")
    ids = [reference(stack, f"Subnet{number}") for number in range(3)]
    subnets = fleet.ec2.describe_subnets(SubnetIds=ids)["Subnets"]
    assert sorted(one["AvailabilityZone"] for one in subnets) == ["us-east-1a", "us-east-1b", "us-east-1c"]
    assert {one["MapPublicIpOnLaunch"] for one in subnets} == {False}
    assert len({one["CidrBlock"] for one in subnets}) == 3
