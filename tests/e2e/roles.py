"""The roles of a deployment: what they are allowed, and what they do."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.conftest import Deployment

UNOBSERVED = {
    # Local AWS keeps no traces, and writes what functions log by itself.
    "xray:PutTraceSegments",
    "xray:PutTelemetryRecords",
    "xray:GetSamplingRules",
    "xray:GetSamplingTargets",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    # The delivery of a state machine's own log is set up by Step Functions, on AWS alone.
    "logs:CreateLogDelivery",
    "logs:GetLogDelivery",
    "logs:UpdateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:DescribeResourcePolicies",
    "logs:DescribeLogGroups",
    # Step Functions asks for these when it starts, watches and stops the children of a Distributed Map.
    "states:StartExecution",
    "states:DescribeExecution",
    "states:StopExecution",
    # Step Functions hears by a rule of its own that an execution which another one waits for is over.
    "events:DescribeRule",
    "events:PutRule",
    "events:PutTargets",
    # The first Auto Scaling group of an account brings Auto Scaling's own role about.
    "iam:CreateServiceLinkedRole",
    # No group here gets its traffic from either; the tests of recovery ask both.
    "elasticloadbalancing:DescribeInstanceHealth",
    "vpc-lattice:ListTargets",
    # Dead letters, of schedules and of streams; the watchdog removes them half an hour later.
    "sqs:SendMessage",
    "sqs:DeleteMessage",
    # Services use the deployment's key with the permissions of the role. Local AWS encrypts nothing.
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
    # Lambda reads a table's stream on behalf of the function.
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
}
"""Actions that are allowed and that only AWS itself makes use of: the reason stands beside each."""


def is_of_queues(action: str) -> bool:
    """Whether only fleets with a queue need an action. That they use it, test_fleet.py and test_workers.py check."""
    return action.startswith("sqs:") or "VpcEndpoint" in action


def role_name(deployment: Deployment, part: str) -> str:
    names = [
        role["RoleName"]
        for page in deployment.account.client("iam").get_paginator("list_roles").paginate()
        for role in page["Roles"]
        if role["RoleName"].startswith(deployment.name) and part in role["RoleName"]
    ]
    (name,) = names
    return str(name)


def as_role(deployment: Deployment, part: str) -> Any:
    """A session of the role that a function runs as, by the credentials local AWS would give it."""
    iam, sts = deployment.account.client("iam"), deployment.account.client("sts")
    role = iam.get_role(RoleName=role_name(deployment, part))["Role"]
    trust = role["AssumeRolePolicyDocument"]
    trust["Statement"].append(
        {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "arn:aws:iam::000000000000:root"}}
    )
    iam.update_assume_role_policy(RoleName=role["RoleName"], PolicyDocument=json.dumps(trust))
    issued = sts.assume_role(RoleArn=role["Arn"], RoleSessionName="test")["Credentials"]
    return deployment.account.session(
        aws_access_key_id=issued["AccessKeyId"],
        aws_secret_access_key=issued["SecretAccessKey"],
        aws_session_token=issued["SessionToken"],
    )


def role_of(caller: str) -> str:
    """The role's name in an ARN of a role or of a session of it."""
    parts = caller.rpartition(":")[2].split("/")
    return parts[1] if len(parts) > 1 else caller


def allowed(deployment: Deployment) -> dict[str, set[str]]:
    """The actions that each role of the deployment is allowed, by the role's name."""
    iam = deployment.account.client("iam")
    actions_by_role: dict[str, set[str]] = {}
    for page in iam.get_paginator("list_roles").paginate():
        for role in page["Roles"]:
            name = role["RoleName"]
            if not name.startswith(deployment.name):
                continue
            for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
                for statement in iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]["Statement"]:
                    if statement["Effect"] == "Allow":
                        actions = statement["Action"]
                        actions_by_role.setdefault(name, set()).update(
                            [actions] if isinstance(actions, str) else actions
                        )
    return actions_by_role
