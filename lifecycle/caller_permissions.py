"""Lists what `make deploy`, `make promote` and `make destroy` request from AWS with the caller's credentials, and why.

The CDK's roles, which `cdk bootstrap` creates, do all else. docs/guides/organization.md has this as a policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from botocore.exceptions import ClientError

from cli.shared.errors import CliError, Exit


@dataclass(frozen=True)
class Right:
    """The permissions of an operation.

    Attributes:
        why: its purpose, to follow "it is needed".
        actions: as IAM spells them.
    """

    why: str
    actions: tuple[str, ...]


def _right(why: str, *actions: str) -> Right:
    return Right(why, actions)


_RETAINED = "to find the tables of an earlier deployment"
_ORIGIN = "to prove which tables of an earlier deployment are this deployment's own"
_DECIDED = "to record which tables of an earlier deployment are declined (only with ADOPT)"
_TAKE_OVER = "to take over the tables of an earlier deployment (not with ADOPT=none)"
_ZONES = "to choose the zones of the network for benchmarks (not with troop:benchmarks=false)"
_QUOTA = "to check the quota of VPCs before one more is created"
_REMOVED = "to check whether executions still call functions that an update removes"
_RELEASE = "to check which code a deployment runs (only with `make promote`)"
_ALARMS = "to check which act-now alarms were on (only with `make promote FROM=...`)"
_RULES = "to remove rules of other people on the deployment's bus, which cannot be deleted before them"
_EMPTY = "to empty the buckets of a deployment that retains nothing, and all with PURGE=1"
_PURGE = "to remove what stays (only with PURGE=1)"

RIGHTS: Mapping[str, Right] = {
    "DescribeStacks": _right("to check whether the deployment exists", "cloudformation:DescribeStacks"),
    "ListStackResources": _right("to list the resources of the deployment", "cloudformation:ListStackResources"),
    "ListStacks": _right(_ORIGIN, "cloudformation:ListStacks"),
    "ListSecrets": _right(_ORIGIN, "secretsmanager:ListSecrets"),
    "DescribeSecret": _right(_ORIGIN, "secretsmanager:DescribeSecret"),
    "GetTemplate": _right(
        "to compare the settings, and to determine what remains of the deployment", "cloudformation:GetTemplate"
    ),
    "GetParameter": _right("to check whether the CDK is bootstrapped here", "ssm:GetParameter"),
    "DescribeAvailabilityZones": _right(_ZONES, "ec2:DescribeAvailabilityZones"),
    "DescribeSubnets": _right(_ZONES, "ec2:DescribeSubnets"),
    "DescribeVpcs": _right(_QUOTA, "ec2:DescribeVpcs"),
    "GetServiceQuota": _right(_QUOTA, "servicequotas:GetServiceQuota"),
    "GetAWSDefaultServiceQuota": _right(_QUOTA, "servicequotas:GetAWSDefaultServiceQuota"),
    "GetAccountSettings": _right(
        "to check whether Lambda runs enough functions at a time here", "lambda:GetAccountSettings"
    ),
    "GetAccountPlanState": _right(
        "to check whether this account is on AWS's free plan", "freetier:GetAccountPlanState"
    ),
    "GetProducts": _right("to check whether Lambda has arm64 here", "pricing:GetProducts"),
    "GetRole": _right("to check whether AWS's service-linked roles exist", "iam:GetRole"),
    "DescribeKey": _right("to check the key in troop:key, and those of retained tables", "kms:DescribeKey"),
    "DescribeStateMachine": _right(_REMOVED, "states:DescribeStateMachine"),
    "ListExecutions": _right(_REMOVED, "states:ListExecutions"),
    "ListTables": _right(_RETAINED, "dynamodb:ListTables"),
    "DescribeTable": _right(_RETAINED, "dynamodb:DescribeTable"),
    "ListTagsOfResource": _right(_RETAINED, "dynamodb:ListTagsOfResource"),
    "TagResource": _right(_DECIDED, "dynamodb:TagResource"),
    "UntagResource": _right(_DECIDED, "dynamodb:UntagResource"),
    "Scan": _right("to check whether a retained table has items", "dynamodb:Scan"),
    "GetResourcePolicy": _right("to check retained tables for resource policies", "dynamodb:GetResourcePolicy"),
    "GetItem": _right("to check whether the deployment starts leashed", "dynamodb:GetItem"),
    "UpdateTable": _right(
        "to end the streams of tables that are taken over, and to unprotect empty tables of a failed deployment",
        "dynamodb:UpdateTable",
    ),
    "DeleteTable": _right(
        "to remove the empty tables of a failed deployment, and all with PURGE=1", "dynamodb:DeleteTable"
    ),
    "Query": _right("to check whether a benchmark or a standing fleet is open", "dynamodb:Query"),
    "CreateChangeSet": _right(_TAKE_OVER, "cloudformation:CreateChangeSet"),
    "DescribeChangeSet": _right(_TAKE_OVER, "cloudformation:DescribeChangeSet"),
    "ExecuteChangeSet": _right(_TAKE_OVER, "cloudformation:ExecuteChangeSet"),
    "DescribeStackEvents": _right("to print why it failed", "cloudformation:DescribeStackEvents"),
    "DeleteStack": _right("to remove the stack", "cloudformation:DeleteStack"),
    "GetFunctionConfiguration": _right(_RELEASE, "lambda:GetFunctionConfiguration"),
    "GetLayerVersionByArn": _right(_RELEASE, "lambda:GetLayerVersion"),
    "DescribeAlarms": _right(_ALARMS, "cloudwatch:DescribeAlarms"),
    "DescribeAlarmHistory": _right(_ALARMS, "cloudwatch:DescribeAlarmHistory"),
    "ListRules": _right(_RULES, "events:ListRules"),
    "ListTargetsByRule": _right(_RULES, "events:ListTargetsByRule"),
    "RemoveTargets": _right(_RULES, "events:RemoveTargets"),
    "DeleteRule": _right(_RULES, "events:DeleteRule"),
    "ListObjectVersions": _right(_EMPTY, "s3:ListBucketVersions"),
    "DeleteObjects": _right(_EMPTY, "s3:DeleteObject", "s3:DeleteObjectVersion"),
    "DeleteBucket": _right(_PURGE, "s3:DeleteBucket"),
    "DeleteSecret": _right(_PURGE, "secretsmanager:DeleteSecret"),
    "DeleteLogGroup": _right(_PURGE, "logs:DeleteLogGroup"),
}
"""Rights by operation."""

ON_BEHALF: Mapping[str, Right] = {
    "the CDK": _right("to assume the roles of the CDK", "sts:AssumeRole"),
    "CloudFormation": _right(
        "to take over tables, which CloudFormation does with the caller's permissions",
        "dynamodb:DescribeContinuousBackups",
        "dynamodb:DescribeContributorInsights",
        "dynamodb:DescribeKinesisStreamingDestination",
        "dynamodb:DescribeTimeToLive",
        "dynamodb:TagResource",
        "dynamodb:UntagResource",
    ),
}
"""Rights by the tool or service that needs them on behalf of the caller."""


def explained(error: CliError) -> str:
    """Returns the message of an error; for a missing permission, also its purpose."""
    cause = error.__cause__
    right = RIGHTS.get(cause.operation_name) if isinstance(cause, ClientError) else None
    if error.code != Exit.FORBIDDEN or right is None:
        return str(error)
    return f"{error}. It is needed {right.why}. docs/guides/organization.md has a policy with all permissions"
