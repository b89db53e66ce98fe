"""What a role may do, in few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.infra.cfn import text

Template = Mapping[str, Any]

ACCOUNT = "<AWS::Region>:<AWS::AccountId>"
READS = {
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeInstanceRefreshes",
    "cloudwatch:DescribeAlarms",
    "ec2:DescribeInstances",
    "elasticloadbalancing:DescribeInstanceHealth",
    "elasticloadbalancing:DescribeTargetHealth",
}
TRACE = {"xray:PutTelemetryRecords", "xray:PutTraceSegments"}
TABLES = ("GroupTags", "Events", "State", "Decisions", "Changes", "Runs")


def allow(resource: str, *actions: str) -> set[tuple[str, ...]]:
    return {("Allow", action, resource) for action in actions}


def function_grants(name: str) -> set[tuple[str, ...]]:
    return allow(f"<{name}Logs.Arn>", "logs:CreateLogStream", "logs:PutLogEvents") | allow("*", *TRACE)


MACHINE_GRANTS = allow("*", *TRACE, "xray:GetSamplingRules", "xray:GetSamplingTargets") | allow(
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

CREATED = {"StringEquals": {"aws:RequestTag/troop:deployment": {"Ref": "AWS::StackName"}}}
OURS = {
    "StringEquals": {"aws:ResourceTag/troop:deployment": {"Ref": "AWS::StackName"}},
    "Null": {"aws:ResourceTag/troop:run": "false"},
}
RUN_NAMES = "troop-????????-??????-????????-c*"
GROUPS = f"arn:<AWS::Partition>:autoscaling:{ACCOUNT}:autoScalingGroup:*:autoScalingGroupName/{RUN_NAMES}"
RUNS = "<Results.Arn>/runs/*"
ARTIFACTS = "<Results.Arn>/artifacts/*"


def only(condition: Mapping[str, Any], resource: str, *actions: str) -> set[tuple[str, ...]]:
    return {("Allow", action, resource, repr(text(condition))) for action in actions}


def record(*actions: str) -> set[tuple[str, ...]]:
    return allow("<Runs.Arn>", *(f"dynamodb:{action}" for action in actions))


ONE_RUN = "<Results.Arn>/runs/????????-??????-????????"
CELLS = (f"{ONE_RUN}/c???", f"{ONE_RUN}/c???-?")
WRITES_ITEMS = {
    *(f"dynamodb:{action}" for action in ("BatchWriteItem", "DeleteItem", "PutItem", "UpdateItem")),
    *(f"dynamodb:PartiQL{action}" for action in ("Delete", "Insert", "Update")),
}


def state(*keys: str) -> set[tuple[str, ...]]:
    """Updates items of ``State`` with these keys; all but the API are denied the switch."""
    switch = repr({"ForAnyValue:StringEquals": {"dynamodb:LeadingKeys": ["switch"]}})
    denied = set() if "switch" in keys else {("Deny", action, "<State.Arn>", switch) for action in WRITES_ITEMS}
    return only(items(*keys), "<State.Arn>", "dynamodb:UpdateItem") | denied


def stream(table: str) -> set[tuple[str, ...]]:
    """Lambda reads a table's changes."""
    return allow(f"<{table}.StreamArn>", "dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")


def items(*keys: str) -> dict[str, dict[str, Any]]:
    """The condition for calls that name no items with other keys."""
    return {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [*keys]}, "Null": {"dynamodb:LeadingKeys": "false"}}


def protects(*actions: str) -> set[tuple[str, ...]]:
    return {("Deny", action, "*", repr({"Null": {"aws:ResourceTag/troop:protected": "false"}})) for action in actions}


LISTS = only({"StringLike": {"s3:prefix": ["runs/*"]}}, "<Results.Arn>", "s3:ListBucket")
OBJECTS = allow(RUNS, "s3:GetObject", "s3:PutObject") | LISTS


def ec2(kind: str, name: str = "*") -> str:
    return f"arn:<AWS::Partition>:ec2:{ACCOUNT}:{kind}/{name}"


def executions(machine: str, children: str = ":*") -> str:
    return f"arn:<AWS::Partition>:states:{ACCOUNT}:execution:<Benchmarks{machine}Machine.Name>{children}"
