"""Calls AWS with few permissions, and returns what IAM answers as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any
from uuid import uuid4

import boto3
from botocore.exceptions import ClientError

from cli.prove.ledger import PREFIX, tags
from cli.prove.probe import Probe, error_code
from troop.shared.state_keys import SWITCH, UNIT

_MOST_INSTANCES = 5
"""Instances to ask about."""
_PROPAGATION_TRIES, _PROPAGATION_SECONDS, _POLICY_SECONDS = 12, 5.0, 15.0
GROUP_NAME_TAG = "aws:autoscaling:groupName"


class PermissionProbes(Probe):
    """Steps that try permissions with roles of their own."""

    def late_termination(self) -> list[dict[str, Any]]:
        victims = {event["instance_id"] for event in self.client.events({}, 100) if event.get("instance_id")}
        ended = [
            instance
            for instance in self._instances("terminated")
            if instance["InstanceId"] in victims or _has_group(instance)
        ][:_MOST_INSTANCES]
        if not ended:
            return []
        statement = {
            "Effect": "Allow",
            "Action": "ec2:TerminateInstances",
            "Resource": "*",
            "Condition": {"Null": {f"aws:ResourceTag/{GROUP_NAME_TAG}": "false"}},
        }
        with self._role("late-termination", statement) as session:
            ec2 = self._client("ec2", session)

            def code(instance: str) -> str:
                # A dry run, on an instance that has already ended.
                return error_code(lambda: ec2.terminate_instances(InstanceIds=[instance], DryRun=True))

            return [
                {
                    "has_tag": _has_group(instance),
                    "since": instance.get("StateTransitionReason", ""),
                    "code": code(instance["InstanceId"]),
                }
                for instance in ended
            ]

    def absent_role(self) -> str:
        resource = f"arn:{self._partition}:iam::{self.deployment.account}:role/aws-service-role/*"
        with self._role("absent-role", {"Effect": "Allow", "Action": "iam:GetRole", "Resource": resource}) as session:
            iam = self._client("iam", session)
            return error_code(lambda: iam.get_role(RoleName="AWSServiceRoleForNothingOfTroop"))

    def leading_keys(self) -> dict[str, str]:
        """Writes an item of a table and its switch, alone and in transactions that check the other one."""
        dynamodb, table = self._client("dynamodb"), f"{PREFIX}{uuid4().hex[:8]}"
        self.ledger.add("table", table)
        arn = dynamodb.create_table(
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            Tags=tags("leading-keys"),
        )["TableDescription"]["TableArn"]
        dynamodb.get_waiter("table_exists").wait(TableName=table)
        item, switch = ({"TableName": table, "Key": {"key": {"S": key}}} for key in (f"{UNIT}probe", SWITCH))
        change = {"UpdateExpression": "SET #on = :on", "ExpressionAttributeNames": {"#on": "on"}}
        change["ExpressionAttributeValues"] = {":on": {"BOOL": True}}
        check = {"ConditionExpression": "attribute_not_exists(halted)"}
        with self._role("leading-keys", *state_policy(arn)) as session:
            limited = self._client("dynamodb", session)

            def transact(written: Mapping[str, Any], checked: Mapping[str, Any]) -> str:
                parts = [{"ConditionCheck": {**checked, **check}}, {"Update": {**written, **change}}]
                return error_code(lambda: limited.transact_write_items(TransactItems=parts))

            return {
                "item": error_code(lambda: limited.update_item(**item, **change)),
                "switch": error_code(lambda: limited.update_item(**switch, **change)),
                "item_if_switch": transact(item, switch),
                "switch_if_item": transact(switch, item),
            }

    def attribute_condition(self) -> dict[str, str]:
        instances = [one["InstanceId"] for one in self._instances("running")][:1]
        if not instances:
            return {}
        statement = {
            "Effect": "Allow",
            "Action": "ec2:DescribeInstanceAttribute",
            "Resource": "*",
            "Condition": {"StringEqualsIgnoreCase": {"ec2:Attribute": "disableApiTermination"}},
        }
        with self._role("attribute-condition", statement) as session:
            ec2 = self._client("ec2", session)

            def read(attribute: str) -> str:
                request = {"InstanceId": instances[0], "Attribute": attribute, "DryRun": True}
                return error_code(lambda: ec2.describe_instance_attribute(**request))

            return {"allowed": read("disableApiTermination"), "other": read("userData")}

    def _instances(self, state: str) -> list[dict[str, Any]]:
        pages = self._client("ec2").get_paginator("describe_instances")
        filters = [{"Name": "instance-state-name", "Values": [state]}]
        return [
            instance
            for page in pages.paginate(Filters=filters)
            for reservation in page["Reservations"]
            for instance in reservation["Instances"]
        ]

    @contextmanager
    def _role(self, question: str, *statements: Mapping[str, Any]) -> Iterator[boto3.Session]:
        """Yields a session with only these permissions: that of a role which only this caller can assume."""
        caller = self._client("sts").get_caller_identity()
        trust = {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:{self._partition}:iam::{self.deployment.account}:root"},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"aws:userid": caller["UserId"]}},
        }
        iam, name = self._client("iam"), f"{PREFIX}{uuid4().hex[:8]}"
        self.ledger.add("role", name)
        role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust), Tags=tags(question))["Role"]
        iam.put_role_policy(RoleName=name, PolicyName="probe", PolicyDocument=policy(*statements))
        yield self._assumed(role["Arn"])

    def _assumed(self, arn: str) -> boto3.Session:
        sts = self._client("sts")
        for attempt in count(1):
            try:
                keys = sts.assume_role(RoleArn=arn, RoleSessionName="troop-prove", DurationSeconds=900)["Credentials"]
                break
            except ClientError as error:
                # A new role is not known everywhere at once.
                if attempt == _PROPAGATION_TRIES or error.response["Error"]["Code"] != "AccessDenied":
                    raise
                self.sleep(_PROPAGATION_SECONDS)
        self.sleep(_POLICY_SECONDS)  # nor is its policy
        return boto3.Session(
            keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], self.session.region_name
        )


def state_policy(table: str) -> list[dict[str, Any]]:
    """Returns statements like those of the functions that claim: they write units, and only check the switch.

    Args:
        table: the ARN of the table.
    """
    keys = "dynamodb:LeadingKeys"
    units = {"ForAllValues:StringLike": {keys: [f"{UNIT}*"]}, "Null": {keys: "false"}}
    switch = {"ForAnyValue:StringEquals": {keys: [SWITCH]}}
    return [
        {"Effect": "Allow", "Action": "dynamodb:UpdateItem", "Resource": table, "Condition": units},
        {"Effect": "Allow", "Action": "dynamodb:ConditionCheckItem", "Resource": table},
        {"Effect": "Deny", "Action": "dynamodb:UpdateItem", "Resource": table, "Condition": switch},
    ]


def _has_group(instance: Mapping[str, Any]) -> bool:
    return any(tag["Key"] == GROUP_NAME_TAG for tag in instance.get("Tags", []))


def policy(*statements: Mapping[str, Any]) -> str:
    """Returns the document of a policy."""
    return json.dumps({"Version": "2012-10-17", "Statement": statements})
