"""What every role may do, word for word: one action more or less fails here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.infra.cfn import of_type, permissions, text

Template = Mapping[str, Any]

ACCOUNT = "<AWS::Region>:<AWS::AccountId>"
LOOK = {
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeInstanceRefreshes",
    "cloudwatch:DescribeAlarms",
    "ec2:DescribeInstances",
}
TRACE = {"xray:PutTelemetryRecords", "xray:PutTraceSegments"}
TABLES = ("GroupTags", "Events", "State", "Decisions", "Changes")
TERMINATE = ("autoscaling:TerminateInstanceInAutoScalingGroup", "ec2:TerminateInstances")


def allow(resource: str, *actions: str) -> set[tuple[str, ...]]:
    return {("Allow", action, resource) for action in actions}


def of_function(name: str) -> set[tuple[str, ...]]:
    return allow(f"<{name}Logs.Arn>", "logs:CreateLogStream", "logs:PutLogEvents") | allow("*", *TRACE)


WATCH = (
    allow("*", "autoscaling:DescribeAutoScalingGroups", "elasticloadbalancing:DescribeTargetHealth")
    | allow("<Events.Arn>", "dynamodb:GetItem", "dynamodb:UpdateItem")
    | allow("<State.Arn>", "dynamodb:UpdateItem")
)

HEALTH = (
    allow("*", "scheduler:ListSchedules", "cloudwatch:GetMetricStatistics")
    | allow("<ChaosMachine>", "states:ListExecutions")
    | allow("<SchedulesUndelivered.Arn>", "sqs:GetQueueAttributes")
    | {grant for name in TABLES for grant in allow(f"<{name}.Arn>", "dynamodb:DescribeTable")}
    | allow("<State.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem")
)

OF_MACHINES = allow("*", *TRACE, "xray:GetSamplingRules", "xray:GetSamplingTargets") | allow(
    "*",
    "logs:CreateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:DescribeLogGroups",
    "logs:DescribeResourcePolicies",
    "logs:GetLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:UpdateLogDelivery",
)

ROLES: dict[str, set[tuple[str, ...]]] = {
    "DecideRole": of_function("Decide")
    | allow("*", *LOOK)
    | allow("<GroupTags.Arn>", "dynamodb:Scan")
    | allow("<State.Arn>", "dynamodb:Scan", "dynamodb:UpdateItem")
    | allow("<Decisions.Arn>", "dynamodb:BatchWriteItem")
    | allow("<Events.Arn>", "dynamodb:PutItem")
    | allow("<WorkBucket.Arn>/ticks/*", "s3:PutObject")
    | allow("<Salt>", "secretsmanager:GetSecretValue"),
    "TerminateRole": of_function("Terminate")
    | allow("*", *LOOK, "autoscaling:DescribeAutoScalingInstances")
    | allow("<Salt>", "secretsmanager:GetSecretValue")
    | allow("<GroupTags.Arn>", "dynamodb:GetItem", "dynamodb:ConditionCheckItem")
    | allow("<State.Arn>", "dynamodb:GetItem", "dynamodb:ConditionCheckItem", "dynamodb:UpdateItem")
    | allow("<Events.Arn>", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
    | {
        (
            "Allow",
            "ec2:TerminateInstances",
            f"arn:<AWS::Partition>:ec2:{ACCOUNT}:instance/*",
            "{'Null': {'aws:ResourceTag/aws:autoscaling:groupName': 'false'}}",
        ),
        (
            "Allow",
            "autoscaling:TerminateInstanceInAutoScalingGroup",
            f"arn:<AWS::Partition>:autoscaling:{ACCOUNT}:autoScalingGroup:*:autoScalingGroupName/*",
        ),
    }
    | {
        ("Deny", action, "*", f"{{'Null': {{'aws:ResourceTag/{tag}': 'false'}}}}")
        for action in TERMINATE
        for tag in ("troop:protected", "troop:fleet")
    },
    "RecoveryRole": of_function("Recovery") | WATCH,
    "SweepRole": of_function("Sweep")
    | WATCH
    | allow("*", "autoscaling:DescribeAutoScalingInstances", "ec2:DescribeInstances")
    | allow("<Events.Arn>/index/by-open", "dynamodb:Query"),
    "NotifyRole": of_function("Notify")
    | {
        grant
        for name in ("Events", "Changes", "GroupTags", "State")
        for grant in allow(
            f"<{name}.StreamArn>", "dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"
        )
    }
    | allow("*", "dynamodb:ListStreams")
    | allow("<Events.Arn>/index/by-unit", "dynamodb:Query")
    | allow("<Bus.Arn>", "events:PutEvents")
    | allow("<NotificationsNews>", "sns:Publish")
    | allow("<NotificationsUndelivered.Arn>", "sqs:SendMessage"),
    "ApiRole": of_function("Api")
    | allow("<Events.Arn>", "dynamodb:GetItem", "dynamodb:PutItem")
    | allow("<Events.Arn>/index/by-time", "dynamodb:Query")
    | allow("<Events.Arn>/index/by-unit", "dynamodb:Query")
    | allow("*", *LOOK)
    | allow("<GroupTags.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Scan", "dynamodb:UpdateItem")
    | allow("<State.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:UpdateItem")
    | {grant for name in ("GroupTags", "State") for grant in allow(f"<{name}.Arn>", "dynamodb:ConditionCheckItem")}
    | allow("<OnDemandMachine>", "states:StartExecution")
    | allow("<Decisions.Arn>", "dynamodb:Query")
    | allow("<Decisions.Arn>/index/by-day", "dynamodb:Query")
    | allow("<Changes.Arn>", "dynamodb:Query", "dynamodb:PutItem")
    | HEALTH,
    "WatchdogRole": of_function("Watchdog") | HEALTH,
    "ChaosRole": allow("<Decide.Arn>", "lambda:InvokeFunction")
    | allow("<Terminate.Arn>", "lambda:InvokeFunction")
    | allow("<Recovery.Arn>", "lambda:InvokeFunction")
    | allow("<Sweep.Arn>", "lambda:InvokeFunction")
    | allow("<WorkBucket.Arn>/ticks/*", "s3:GetObject")
    | allow("<ChaosMachine>", "states:StartExecution")
    | allow(
        f"arn:<AWS::Partition>:states:{ACCOUNT}:execution:<ChaosMachine.Name>:*",
        "states:DescribeExecution",
        "states:StopExecution",
    )
    | allow(
        f"arn:<AWS::Partition>:states:{ACCOUNT}:execution:<ChaosMachine.Name>/*",
        "states:DescribeExecution",
        "states:StopExecution",
    )
    | OF_MACHINES,
    "OnDemandRole": allow("<Terminate.Arn>", "lambda:InvokeFunction")
    | allow("<Recovery.Arn>", "lambda:InvokeFunction")
    | OF_MACHINES,
    "SchedulesRole": allow("<ChaosMachine>", "states:StartExecution")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "WatchdogScheduleRole": allow("<Watchdog.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "SweepScheduleRole": allow("<Sweep.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
}


def test_there_are_no_other_roles(template: Template) -> None:
    assert set(of_type(template, "AWS::IAM::Role")) == set(ROLES)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_exactly_this(template: Template, role: str) -> None:
    assert permissions(template, role) == ROLES[role]


def test_no_action_is_a_pattern(template: Template) -> None:
    for role in of_type(template, "AWS::IAM::Role"):
        assert not [grant for grant in permissions(template, role) if "*" in grant[1]], role


def test_only_api_gateways_own_policy_is_a_managed_one(template: Template, blue: Template) -> None:
    policy = "arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs"
    assert _managed(template) == {}
    assert _managed(blue) == {"ApiRestCloudWatchRole": [policy]}


def _managed(template: Template) -> dict[str, object]:
    return {
        name: text(role["Properties"]["ManagedPolicyArns"])
        for name, role in of_type(template, "AWS::IAM::Role").items()
        if "ManagedPolicyArns" in role["Properties"]
    }


def test_each_role_trusts_its_own_service_only(template: Template) -> None:
    trusted = {}
    for name, role in of_type(template, "AWS::IAM::Role").items():
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Action"] == "sts:AssumeRole"
        trusted[name] = statement["Principal"]["Service"]
    of_others = {
        "ChaosRole": "states.amazonaws.com",
        "OnDemandRole": "states.amazonaws.com",
        "SchedulesRole": "scheduler.amazonaws.com",
        "WatchdogScheduleRole": "scheduler.amazonaws.com",
        "SweepScheduleRole": "scheduler.amazonaws.com",
    }
    assert trusted == {name: of_others.get(name, "lambda.amazonaws.com") for name in trusted}


@pytest.mark.parametrize("name", ["SchedulesRole", "WatchdogScheduleRole", "SweepScheduleRole"])
def test_only_schedules_of_this_deployment_can_use_the_schedulers_role(template: Template, name: str) -> None:
    role = of_type(template, "AWS::IAM::Role")[name]["Properties"]
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert text(statement["Condition"]) == {
        "StringEquals": {"aws:SourceAccount": "<AWS::AccountId>", "aws:SourceArn": "<SchedulesGroup.Arn>"}
    }


def test_functions_are_called_by_the_api_alone(template: Template) -> None:
    invokers = of_type(template, "AWS::Lambda::Permission").values()
    assert {(p["Properties"]["Principal"], text(p["Properties"]["FunctionName"])) for p in invokers} == {
        ("apigateway.amazonaws.com", "<Api.Arn>")
    }
    assert {text(p["Properties"]["SourceArn"]).partition("/")[2] for p in invokers} == {
        "<ApiRestDeploymentStagev1>/GET/events",
        "<ApiRestDeploymentStagev1>/GET/events/*",
        "<ApiRestDeploymentStagev1>/GET/decisions",
        "<ApiRestDeploymentStagev1>/GET/groups",
        "<ApiRestDeploymentStagev1>/GET/groups/*",
        "<ApiRestDeploymentStagev1>/PATCH/groups/*",
        "<ApiRestDeploymentStagev1>/GET/policies",
        "<ApiRestDeploymentStagev1>/GET/switch",
        "<ApiRestDeploymentStagev1>/PATCH/switch",
        "<ApiRestDeploymentStagev1>/GET/health",
        "<ApiRestDeploymentStagev1>/POST/terminations",
        "<ApiRestDeploymentStagev1>/GET/simianarmy/api/v1/chaos",
        "<ApiRestDeploymentStagev1>/POST/simianarmy/api/v1/chaos",
    }
