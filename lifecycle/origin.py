"""Proves which stack a table belonged to. Tags on the table are no proof: whoever may make a table may set them, and
CloudFormation sets none of its own on DynamoDB's tables.

Two records name a stack's tables, and no permission for DynamoDB can change them:

- CloudFormation lists what each stack has retained, for 90 days after its deletion.
- The secret with the salt names the tables in its tags. CloudFormation writes these, and its own tag with the stack's
  id, which nobody else can set. The secret stays as long as nobody deletes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import boto3

from cli.shared import aws
from lifecycle.retained import TABLE, RetainedTable
from troop.shared.tags import DEPLOYMENT_TAG, STACK_TAG, TABLE_TAG

_RETAINED = "DELETE_SKIPPED"
_AFTER_TABLES = timedelta(days=1)
"""A stack makes its secret within this time after its tables, or before them."""


@dataclass(frozen=True)
class Origin:
    """A stack that had a table.

    Attributes:
        stack: its ARN.
        until: when the record was made. A younger table only has the same name.
    """

    stack: str
    until: datetime


def proven(session: boto3.Session, deployment: str, tables: Sequence[RetainedTable]) -> list[RetainedTable]:
    """Returns the tables, each with the stacks of the deployment that had it; without a proof there are none."""
    if not tables:
        return []
    with aws.translated_errors():
        records = [
            *_secret_origins(session, deployment),
            *_stack_origins(session, deployment, {t.name for t in tables}),
        ]
    records.sort(key=lambda record: record[1].until)
    return [replace(table, stacks=tuple(_stacks(table, records))) for table in tables]


def _stacks(table: RetainedTable, records: Iterable[tuple[str, Origin]]) -> Iterator[str]:
    return (origin.stack for name, origin in records if name == table.name and table.created <= origin.until)


def _secret_origins(session: boto3.Session, deployment: str) -> Iterator[tuple[str, Origin]]:
    secrets = aws.client(session, "secretsmanager")
    tagged = [{"Key": "tag-key", "Values": [DEPLOYMENT_TAG]}, {"Key": "tag-value", "Values": [deployment]}]
    for page in secrets.get_paginator("list_secrets").paginate(Filters=tagged):
        for listed in page["SecretList"]:
            secret = secrets.describe_secret(SecretId=listed["ARN"])
            tags = {tag["Key"]: tag["Value"] for tag in secret.get("Tags", [])}
            stack = tags.get(STACK_TAG, "")
            if _is_of(stack, deployment):
                changed = max(secret["CreatedDate"], secret.get("LastChangedDate") or secret["CreatedDate"])
                origin = Origin(stack, changed + _AFTER_TABLES)
                yield from ((name, origin) for key, name in tags.items() if key.startswith(TABLE_TAG))


def _is_of(stack: str, deployment: str) -> bool:
    return re.fullmatch(rf"arn:[^:]+:cloudformation:[^:]*:[^:]*:stack/{re.escape(deployment)}/[^/]+", stack) is not None


def _stack_origins(session: boto3.Session, deployment: str, names: Set[str]) -> Iterator[tuple[str, Origin]]:
    """Reads what stacks of this name have retained: deleted ones, and one that is there."""
    cloudformation = aws.client(session, "cloudformation")
    for page in cloudformation.get_paginator("list_stacks").paginate():
        for stack in page["StackSummaries"]:
            if stack["StackName"] != deployment:
                continue
            stack_id = stack["StackId"]
            listed = _listed(cloudformation, stack_id)
            origin_by_table = dict(_retained(listed, stack_id, "LastUpdatedTimestamp"))
            if stack["StackStatus"] != "DELETE_COMPLETE" and not names <= origin_by_table.keys():
                # AWS does not document how long an existing stack lists what it has given up; its events are complete.
                events = _events(cloudformation, stack_id)
                origin_by_table = dict(_retained(events, stack_id, "Timestamp")) | origin_by_table
            yield from origin_by_table.items()


def _listed(cloudformation: Any, stack_id: str) -> Iterator[Mapping[str, Any]]:
    for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack_id):
        yield from page["StackResourceSummaries"]


def _events(cloudformation: Any, stack_id: str) -> Iterator[Mapping[str, Any]]:
    for page in cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack_id):
        yield from page["StackEvents"]


def _retained(resources: Iterable[Mapping[str, Any]], stack_id: str, at: str) -> Iterator[tuple[str, Origin]]:
    for resource in resources:
        if resource["ResourceType"] == TABLE and resource["ResourceStatus"] == _RETAINED:
            yield resource["PhysicalResourceId"], Origin(stack_id, resource[at])
