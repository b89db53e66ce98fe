"""Tables that an earlier deployment has left, and how a new stack takes them over.

CloudFormation can import resources that exist into a stack it makes for that purpose (a change set of type IMPORT,
which may hold nothing else). Afterwards the stack manages the tables as if it had made them: the deployment that
follows needs no setting that names them, and neither does any later one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import boto3
from botocore.exceptions import WaiterError

from cli import aws
from cli.errors import CliError, Exit
from infra.data import DATA_TAG
from infra.stack import DEPLOYMENT_TAG

TABLE = "AWS::DynamoDB::Table"
_STACK_TAG = "aws:cloudformation:stack-id"
_CHANGE_SET = "adopt-retained-tables"
_WAIT = {"Delay": 2, "MaxAttempts": 150}


@dataclass(frozen=True)
class RetainedTable:
    """A table that outlived its stack.

    Attributes:
        part: what it holds, such as ``Events`` (its tag ``troop:data``).
        schema: its key and those of its indices, by name; "" stands for the table's own.
        items: how many DynamoDB knows of, which lags behind for hours.
        streamed: whether it has a stream.
        empty: whether nothing is in it, at this moment.
        protected: from deletion.
        stack: the ARN of the stack that has made it, or taken it over last; "" where nothing says so.
    """

    name: str
    part: str
    created: datetime
    items: int
    schema: Mapping[str, tuple[tuple[str, str], ...]]
    streamed: bool = True
    empty: bool = False
    protected: bool = True
    stack: str = ""


def find_retained(session: boto3.Session, deployment: str) -> list[RetainedTable]:
    """The deployment's tables in this account and region, newest first, also those of its stack if that is there."""
    dynamodb = aws.client(session, "dynamodb")
    found: list[RetainedTable] = []
    with aws.told():
        for page in dynamodb.get_paginator("list_tables").paginate():
            for name in page["TableNames"]:
                if name.startswith(f"{deployment}-"):  # CloudFormation begins names with the stack's
                    found += _retained(dynamodb, name, deployment)
    return sorted(found, key=lambda table: (table.created, table.name), reverse=True)


def _retained(dynamodb: Any, name: str, deployment: str) -> Iterable[RetainedTable]:
    table = dynamodb.describe_table(TableName=name)["Table"]
    if table["TableStatus"] in ("CREATING", "DELETING"):
        return
    tags = dynamodb.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"]
    by_key = {tag["Key"]: tag["Value"] for tag in tags}
    if by_key.get(DEPLOYMENT_TAG) == deployment and DATA_TAG in by_key:
        yield RetainedTable(
            name=name,
            part=by_key[DATA_TAG],
            created=table["CreationDateTime"],
            items=int(table.get("ItemCount", 0)),
            schema=_schema(table),
            streamed=bool(table.get("StreamSpecification", {}).get("StreamEnabled")),
            empty=is_empty(dynamodb, name),
            protected=bool(table.get("DeletionProtectionEnabled")),
            stack=by_key.get(_STACK_TAG, ""),
        )


def is_empty(dynamodb: Any, name: str) -> bool:
    """Whether a table holds nothing. DescribeTable's count of items says so hours later."""
    page = dynamodb.scan(TableName=name, Select="COUNT", Limit=1, ConsistentRead=True)
    return int(page["Count"]) == 0 and "LastEvaluatedKey" not in page  # a page may be empty, and others follow


def delete_empty(session: boto3.Session, table: RetainedTable) -> None:
    """Deletes a table, unless something has been written into it by now."""
    dynamodb = aws.client(session, "dynamodb")
    with aws.told():
        if not is_empty(dynamodb, table.name):
            return
        if table.protected:
            dynamodb.update_table(TableName=table.name, DeletionProtectionEnabled=False)
            dynamodb.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig=_WAIT)
        dynamodb.delete_table(TableName=table.name)


def used(tables: Sequence[RetainedTable]) -> list[RetainedTable]:
    """Those worth taking over. Left out are the tables of a stack that has written nothing into any of them: of one
    that failed when it was made, and whose tables, being protected, its rollback could not delete.
    """
    written = {table.stack for table in tables if not table.empty}
    return [table for table in tables if table.stack in written]


def choose(tables: Sequence[RetainedTable], newest: bool) -> dict[str, RetainedTable]:
    """One table for each part.

    Raises:
        CliError: USAGE, when a part has several, and the newest are not what was asked for.
    """
    chosen: dict[str, RetainedTable] = {}
    for table in tables:
        chosen.setdefault(table.part, table)
    if len(chosen) < len(tables) and not newest:
        several = "\n".join(f"  {t.part}: {t.name}, made {t.created:%Y-%m-%d %H:%M}, {t.items} items" for t in tables)
        raise CliError(
            Exit.USAGE,
            f"several deployments of this name have left tables:\n{several}\n"
            "Take over the newest of each with ADOPT=newest, start with empty ones with ADOPT=none, "
            "or remove those that nobody needs",
        )
    return chosen


def imports(template: Mapping[str, Any], chosen: Mapping[str, RetainedTable]) -> dict[str, RetainedTable]:
    """The chosen tables by their logical id in the template.

    Raises:
        CliError: FAILED, for a table with other keys than the template's, or without one of its indices: CloudFormation
            would import it and believe it complete.
    """
    found = {}
    for logical_id, resource in template["Resources"].items():
        if resource["Type"] != TABLE:
            continue
        tags = {tag["Key"]: tag["Value"] for tag in resource["Properties"].get("Tags", [])}
        table = chosen.get(tags.get(DATA_TAG, ""))
        if table is None:
            continue
        expected = _schema(resource["Properties"])
        if wrong := sorted(i or "its key" for i in expected if table.schema.get(i) != expected[i]):
            raise CliError(
                Exit.FAILED,
                f"the retained table {table.name} does not fit this version ({', '.join(wrong)}): make the index as "
                f"infra/data.py has it, or start with an empty table with ADOPT=none",
            )
        found[logical_id] = table
    return found


def adopt(
    session: boto3.Session, deployment: str, template: Mapping[str, Any], tables: Mapping[str, RetainedTable]
) -> None:
    """Makes the stack, with these tables (by logical id) and nothing else in it.

    Their streams end: those that the deployment makes anew begin with nothing in them. What the last deployment has
    told others of within a day would otherwise be told again.

    Raises:
        CliError: FAILED, with CloudFormation's reason; nothing is left of the stack then.
    """
    with aws.told():
        _end_streams(aws.client(session, "dynamodb"), [table.name for table in tables.values() if table.streamed])
    resources = {key: _as_it_is(template["Resources"][key]) for key in tables}
    cloudformation = aws.client(session, "cloudformation")
    with aws.told():
        cloudformation.create_change_set(
            StackName=deployment,
            ChangeSetName=_CHANGE_SET,
            ChangeSetType="IMPORT",
            TemplateBody=json.dumps({"Resources": resources}),
            ResourcesToImport=[
                {"ResourceType": TABLE, "LogicalResourceId": key, "ResourceIdentifier": {"TableName": table.name}}
                for key, table in tables.items()
            ],  # and no tags, which an import must not add: the deployment that follows does
        )
        named = {"StackName": deployment, "ChangeSetName": _CHANGE_SET}
        try:
            cloudformation.get_waiter("change_set_create_complete").wait(**named, WaiterConfig=_WAIT)
        except WaiterError:
            reason = cloudformation.describe_change_set(**named).get("StatusReason", "no reason is given")
            cloudformation.delete_stack(StackName=deployment)  # in review: there is nothing in it
            raise CliError(Exit.FAILED, f"CloudFormation cannot take the tables over: {reason}") from None
        cloudformation.execute_change_set(**named)
        try:
            cloudformation.get_waiter("stack_import_complete").wait(StackName=deployment, WaiterConfig=_WAIT)
        except WaiterError:
            raise CliError(
                Exit.FAILED, f"taking the tables over failed: see the events of the stack {deployment}"
            ) from None


def _end_streams(dynamodb: Any, names: Sequence[str]) -> None:
    for name in names:
        dynamodb.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})
    for name in names:
        dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig=_WAIT)  # active again, that is


def _as_it_is(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    """The resource as the table is, without a stream: CloudFormation believes what it imports, and a stream that it
    believes to be there would not be made by the deployment that follows.
    """
    kept = {key: value for key, value in resource["Properties"].items() if key != "StreamSpecification"}
    return {**resource, "Properties": kept}


def _schema(table: Mapping[str, Any]) -> dict[str, tuple[tuple[str, str], ...]]:
    """Keys by index; DescribeTable and templates spell them alike."""

    def keys(schema: Iterable[Mapping[str, str]]) -> tuple[tuple[str, str], ...]:
        return tuple(sorted((key["KeyType"], key["AttributeName"]) for key in schema))

    indices = {index["IndexName"]: keys(index["KeySchema"]) for index in table.get("GlobalSecondaryIndexes") or []}
    return {"": keys(table["KeySchema"]), **indices}
