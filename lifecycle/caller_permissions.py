"""What `make deploy` and `make destroy` ask AWS with the caller's own credentials, and why.

All else is done by the CDK's roles, which `cdk bootstrap` has made. docs/deploying.md has this as a policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from botocore.exceptions import ClientError

from cli.errors import CliError, Exit


@dataclass(frozen=True)
class Right:
    """What an operation needs.

    Attributes:
        why: it is asked for, to follow "this is needed".
        actions: as IAM spells them.
    """

    why: str
    actions: tuple[str, ...]


def _right(why: str, *actions: str) -> Right:
    return Right(why, actions)


_RETAINED = "to find the tables that an earlier deployment has left"
_TAKE_OVER = "to take over the tables that an earlier deployment has left (not with ADOPT=none)"
_ZONES = "to choose the zones of the network for benchmarks (not with troop:benchmarks=false)"
_QUOTA = "to count the account's networks before one more is made"
_RULES = "to remove the rules that others have made on the deployment's bus, which cannot go before them"
_EMPTY = "to empty the buckets of a deployment that retains nothing"

RIGHTS: Mapping[str, Right] = {
    "DescribeStacks": _right("to see whether the deployment is there", "cloudformation:DescribeStacks"),
    "ListStackResources": _right("to see what the deployment has made", "cloudformation:ListStackResources"),
    "GetTemplate": _right("to see what of the deployment stays", "cloudformation:GetTemplate"),
    "GetParameter": _right("to see whether the CDK is bootstrapped here", "ssm:GetParameter"),
    "DescribeAvailabilityZones": _right(_ZONES, "ec2:DescribeAvailabilityZones"),
    "DescribeSubnets": _right(_ZONES, "ec2:DescribeSubnets"),
    "DescribeVpcs": _right(_QUOTA, "ec2:DescribeVpcs"),
    "GetServiceQuota": _right(_QUOTA, "servicequotas:GetServiceQuota"),
    "GetAWSDefaultServiceQuota": _right(_QUOTA, "servicequotas:GetAWSDefaultServiceQuota"),
    "GetAccountSettings": _right(
        "to see whether Lambda runs enough functions at a time here", "lambda:GetAccountSettings"
    ),
    "ListTables": _right(_RETAINED, "dynamodb:ListTables"),
    "DescribeTable": _right(_RETAINED, "dynamodb:DescribeTable"),
    "ListTagsOfResource": _right(_RETAINED, "dynamodb:ListTagsOfResource"),
    "Scan": _right("to see whether a table that was left has anything in it", "dynamodb:Scan"),
    "GetResourcePolicy": _right("to see whether a table that was left is open to others", "dynamodb:GetResourcePolicy"),
    "GetItem": _right("to see whether the deployment starts leashed", "dynamodb:GetItem"),
    "UpdateTable": _right(
        "to end the streams of tables that are taken over, and to unprotect empty ones of a deployment that failed",
        "dynamodb:UpdateTable",
    ),
    "DeleteTable": _right("to remove the empty tables of a deployment that failed", "dynamodb:DeleteTable"),
    "Query": _right("to see whether a benchmark or a standing fleet is under way", "dynamodb:Query"),
    "CreateChangeSet": _right(_TAKE_OVER, "cloudformation:CreateChangeSet"),
    "DescribeChangeSet": _right(_TAKE_OVER, "cloudformation:DescribeChangeSet"),
    "ExecuteChangeSet": _right(_TAKE_OVER, "cloudformation:ExecuteChangeSet"),
    "DescribeStackEvents": _right("to say why it failed", "cloudformation:DescribeStackEvents"),
    "DeleteStack": _right("to remove the stack", "cloudformation:DeleteStack"),
    "ListRules": _right(_RULES, "events:ListRules"),
    "ListTargetsByRule": _right(_RULES, "events:ListTargetsByRule"),
    "RemoveTargets": _right(_RULES, "events:RemoveTargets"),
    "DeleteRule": _right(_RULES, "events:DeleteRule"),
    "ListObjectVersions": _right(_EMPTY, "s3:ListBucketVersions"),
    "DeleteObjects": _right(_EMPTY, "s3:DeleteObject", "s3:DeleteObjectVersion"),
}
"""By operation."""

ON_BEHALF: Mapping[str, Right] = {
    "the CDK": _right("to act in the roles of the CDK", "sts:AssumeRole"),
    "CloudFormation": _right(
        "where tables are taken over, which CloudFormation does with the caller's rights",
        "dynamodb:DescribeContinuousBackups",
        "dynamodb:DescribeContributorInsights",
        "dynamodb:DescribeKinesisStreamingDestination",
        "dynamodb:DescribeTimeToLive",
        "dynamodb:TagResource",
        "dynamodb:UntagResource",
    ),
}
"""By who needs it beside these commands."""


def explained(error: CliError) -> str:
    """The error as it is told: of a right that is missing, what it is for, too."""
    cause = error.__cause__
    right = RIGHTS.get(cause.operation_name) if isinstance(cause, ClientError) else None
    if error.code != Exit.FORBIDDEN or right is None:
        return str(error)
    return f"{error}. It is needed {right.why}. docs/deploying.md has all that these commands need, as a policy"
