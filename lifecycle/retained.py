"""Finds the tables that an earlier deployment left, and those that a stack may take over."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import boto3
from botocore.exceptions import ClientError

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from troop.shared.tags import DATA_TAG, DECLINED_TAG, DEPLOYMENT_TAG

TABLE = "AWS::DynamoDB::Table"
WAIT = {"Delay": 2, "MaxAttempts": 150}
"""The time that an operation of CloudFormation or DynamoDB may take: five minutes."""


@dataclass(frozen=True)
class RetainedTable:
    """A table that outlived its stack.

    Attributes:
        part: what it holds, such as ``Events`` (its tag ``troop:data``).
        schema: its key and those of its indices, by name; "" is the table itself.
        items: DynamoDB's count of its items, which is hours old.
        streamed: whether it has a stream.
        empty: whether it has no items now.
        protected: whether it is protected from deletion.
        stacks: the ARNs of the stacks that had it, the last one at the end, by :mod:`lifecycle.origin`.
        declined: whether somebody decided not to use it any more.
        arn: the table's ARN.
    """

    name: str
    part: str
    created: datetime
    items: int
    schema: Mapping[str, tuple[tuple[str, str], ...]]
    streamed: bool = True
    empty: bool = False
    protected: bool = True
    stacks: tuple[str, ...] = ()
    declined: bool = False
    arn: str = ""

    def __str__(self) -> str:
        return f"{self.part}: {self.name}, created {self.created:%Y-%m-%d %H:%M}"


def find_retained(session: boto3.Session, deployment: str) -> list[RetainedTable]:
    """Lists the deployment's tables in this account and region, newest first, including those of its stack."""
    dynamodb = aws.client(session, "dynamodb")
    tables: list[RetainedTable] = []
    with aws.translated_errors():
        for page in dynamodb.get_paginator("list_tables").paginate():
            for name in page["TableNames"]:
                if name.startswith(f"{deployment}-"):  # CloudFormation's names begin with that of the stack
                    tables += _retained(dynamodb, name, deployment)
    return sorted(tables, key=lambda table: (table.created, table.name), reverse=True)


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
            declined=DECLINED_TAG in by_key,
            arn=table["TableArn"],
        )


def is_empty(dynamodb: Any, name: str) -> bool:
    """Checks whether a table has no items, with a scan: DescribeTable's count is hours old.

    A table that cannot be scanned, such as one whose key is disabled, counts as one with items.
    """
    try:
        page = dynamodb.scan(TableName=name, Select="COUNT", Limit=1, ConsistentRead=True)
    except dynamodb.exceptions.ResourceNotFoundException:
        raise
    except ClientError:
        return False
    return int(page["Count"]) == 0 and "LastEvaluatedKey" not in page  # an empty page may have a next one


def delete_empty(session: boto3.Session, table: RetainedTable) -> None:
    """Deletes a table, unless it has items now."""
    dynamodb = aws.client(session, "dynamodb")
    with aws.translated_errors():
        if not is_empty(dynamodb, table.name):
            return
        delete_table(session, table.name)


def delete_table(session: boto3.Session, name: str) -> None:
    """Deletes a table with its items, also one that is protected from deletion; does nothing if it does not exist."""
    dynamodb = aws.client(session, "dynamodb")
    try:
        if dynamodb.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"):
            dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)
            dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig=WAIT)
        dynamodb.delete_table(TableName=name)
    except dynamodb.exceptions.ResourceNotFoundException:
        return


def decline(session: boto3.Session, tables: Iterable[RetainedTable]) -> None:
    """Records on the tables that no deployment uses them any more."""
    dynamodb = aws.client(session, "dynamodb")
    with aws.translated_errors():
        for table in tables:
            dynamodb.tag_resource(ResourceArn=table.arn, Tags=[{"Key": DECLINED_TAG, "Value": "yes"}])


def accept(session: boto3.Session, tables: Iterable[RetainedTable]) -> None:
    """Removes that record from tables that are taken over."""
    dynamodb = aws.client(session, "dynamodb")
    with aws.translated_errors():
        for table in tables:
            if table.declined:
                dynamodb.untag_resource(ResourceArn=table.arn, TagKeys=[DECLINED_TAG])


def used(tables: Sequence[RetainedTable]) -> list[RetainedTable]:
    """Returns the tables of stacks that wrote into at least one of theirs; tables of unknown origin never count.

    The others belong to first deployments that failed: their rollback could not delete the tables, which are protected.
    """
    written = {stack for table in tables if not table.empty for stack in table.stacks}
    return [table for table in tables if written.intersection(table.stacks)]


def named(tables: Sequence[RetainedTable], names: Collection[str]) -> list[RetainedTable]:
    """Picks tables by their names, one for each part.

    Raises:
        CliError: USAGE, for an unknown name, and for two tables of one part.
    """
    matches = [table for table in tables if table.name in names]
    if unknown := sorted(set(names) - {table.name for table in matches}):
        there = ", ".join(table.name for table in tables) or "none"
        raise CliError(
            Exit.USAGE,
            f"ADOPT is {', '.join(unknown)}: must be newest, none, or names of retained tables, separated by commas. "
            f"Retained tables: {there}",
        )
    parts_of = [table.part for table in matches]
    if twice := sorted({part for part in parts_of if parts_of.count(part) > 1}):
        raise CliError(Exit.USAGE, f"ADOPT names several tables of {', '.join(twice)}: name one for each")
    return matches


def refuse_shared(session: boto3.Session, tables: Iterable[RetainedTable]) -> None:
    """Refuses tables with a resource policy, which lets others read or write them.

    Raises:
        CliError: FAILED, with the commands that remove the policies.
    """
    dynamodb = aws.client(session, "dynamodb")
    with aws.translated_errors():
        shared = [table for table in tables if _has_policy(dynamodb, table.arn)]
    if shared:
        removed = "\n".join(
            f"  aws dynamodb delete-resource-policy --region {session.region_name} --resource-arn {table.arn}"
            for table in shared
        )
        raise CliError(
            Exit.FAILED,
            "these retained tables have resource policies, which may let others read or change Troop's data: "
            f"{', '.join(table.name for table in shared)}. Check the policies and remove them:\n{removed}\n"
            "or start with empty tables with ADOPT=none",
        )


def _has_policy(dynamodb: Any, arn: str) -> bool:
    try:
        dynamodb.get_resource_policy(ResourceArn=arn)
    except ClientError as error:
        if error.response["Error"]["Code"] == "PolicyNotFoundException":
            return False
        raise
    return True


def choose(tables: Sequence[RetainedTable], newest: bool) -> dict[str, RetainedTable]:
    """Chooses one table for each part.

    Raises:
        CliError: USAGE, if a part has several tables, without ``newest``.
    """
    chosen: dict[str, RetainedTable] = {}
    for table in tables:
        chosen.setdefault(table.part, table)
    if len(chosen) < len(tables) and not newest:
        several = "\n".join(f"  {table}, {table.items} items" for table in tables)
        raise CliError(
            Exit.USAGE,
            f"several deployments of this name left tables:\n{several}\n"
            "Take over the newest of each part with ADOPT=newest, the ones that you name with ADOPT=TABLE,TABLE,..., "
            "or none with ADOPT=none. Or remove those that you do not need",
        )
    return chosen


def parts(template: Mapping[str, Any]) -> dict[str, str]:
    """Returns the parts of the template's tables, by logical id."""
    return {
        logical_id: tag["Value"]
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == TABLE
        for tag in resource["Properties"].get("Tags", [])
        if tag["Key"] == DATA_TAG
    }


def imports(template: Mapping[str, Any], chosen: Mapping[str, RetainedTable]) -> dict[str, RetainedTable]:
    """Returns the chosen tables by their logical id in the template.

    Raises:
        CliError: FAILED, for a table whose keys or indices differ from the template's: CloudFormation would import it
            without noticing. The deployment creates one index that a table lacks; an update can create no more.
    """
    tables_by_id = {}
    for logical_id, part in parts(template).items():
        table = chosen.get(part)
        if table is None:
            continue
        expected = _schema(template["Resources"][logical_id]["Properties"])
        lacking = [index for index in expected if index not in table.schema]
        differing = [index for index in expected if index in table.schema and table.schema[index] != expected[index]]
        if wrong := sorted(index or "its key" for index in [*differing, *lacking[1:]]):
            raise CliError(
                Exit.FAILED,
                f"the retained table {table.name} does not fit this version ({', '.join(wrong)}): create the index as "
                f"in functions/troop/shared/tables.py, or start with an empty table with ADOPT=none",
            )
        tables_by_id[logical_id] = table
    return tables_by_id


def _schema(table: Mapping[str, Any]) -> dict[str, tuple[tuple[str, str], ...]]:
    """Returns the keys by index; DescribeTable and templates have the same form."""

    def keys(schema: Iterable[Mapping[str, str]]) -> tuple[tuple[str, str], ...]:
        return tuple(sorted((key["KeyType"], key["AttributeName"]) for key in schema))

    indices = {index["IndexName"]: keys(index["KeySchema"]) for index in table.get("GlobalSecondaryIndexes") or []}
    return {"": keys(table["KeySchema"]), **indices}
