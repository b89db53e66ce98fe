"""Takes tables that an earlier stack, or the same one, left over into a stack: CloudFormation imports them.

A change set of type IMPORT may contain nothing else. Afterwards the stack manages the tables as if it had created them:
no later deployment needs a setting that names them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import WaiterError

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from lifecycle.project import cdk
from lifecycle.resources import resources_of
from lifecycle.retained import TABLE, WAIT, RetainedTable

_CHANGE_SET = "adopt-retained-tables"
_POLL_SECONDS = 2.0


def adopt(
    session: boto3.Session, deployment: str, template: Mapping[str, Any], tables: Mapping[str, RetainedTable]
) -> None:
    """Creates the stack, which must not exist, with these tables (by logical id) and nothing else.

    Ends their streams; the deployment creates new, empty ones. Otherwise it would repeat the notifications of the last
    day.

    Raises:
        CliError: FAILED, with CloudFormation's reason; the stack is then deleted, unless it has resources.
    """
    end_streams(session, tables)
    cloudformation = aws.client(session, "cloudformation")
    with aws.translated_errors():
        stack_id = cloudformation.create_change_set(
            StackName=deployment,
            ChangeSetName=_CHANGE_SET,
            ChangeSetType="IMPORT",
            TemplateBody=json.dumps(
                {"Resources": {key: resource_of(table, template["Resources"][key]) for key, table in tables.items()}}
            ),
            ResourcesToImport=[
                {"ResourceType": TABLE, "LogicalResourceId": key, "ResourceIdentifier": {"TableName": table.name}}
                for key, table in tables.items()
            ],  # without tags, which an import must not add: the next deployment does
        )["StackId"]
        named = {"StackName": deployment, "ChangeSetName": _CHANGE_SET}
        try:
            cloudformation.get_waiter("change_set_create_complete").wait(**named, WaiterConfig=WAIT)
        except WaiterError:
            reason = cloudformation.describe_change_set(**named).get("StatusReason", "no reason")
            clear_away(session, stack_id)
            raise CliError(Exit.FAILED, f"CloudFormation cannot take over the tables: {reason}") from None
        cloudformation.execute_change_set(**named)
        status = _settled(cloudformation, stack_id)
        if status != "IMPORT_COMPLETE":
            reasons = _reasons(cloudformation, stack_id)  # before the stack is deleted
            clear_away(session, stack_id)
            raise CliError(
                Exit.FAILED,
                f"the take-over of the tables failed ({status}), and nothing was deployed: {reasons}. No data is "
                "lost: try again, or start with empty tables with ADOPT=none",
            )


def adopt_into(
    session: boto3.Session,
    deployment: str,
    assembly: Path,
    template: Mapping[str, Any],
    tables: Mapping[str, RetainedTable],
) -> None:
    """Adds these tables (by logical id) to an existing stack, and changes nothing else in it.

    Uses `cdk import`: the change set must contain the whole stack as it is, which is too large for a request.

    Args:
        assembly: the synthesised folder, with the template.

    Raises:
        CliError: FAILED, if a table is not in the stack afterwards; the deployment would create an empty one.
    """
    end_streams(session, tables)
    file = assembly / f"{deployment}.template.json"
    synthesised = file.read_text(encoding="utf-8")
    taken = {key: resource_of(table, template["Resources"][key]) for key, table in tables.items()}
    file.write_text(json.dumps({**template, "Resources": {**template["Resources"], **taken}}), encoding="utf-8")
    mapping = json.dumps({key: {"TableName": table.name} for key, table in tables.items()})
    options = ("--app", str(assembly), "--force", "--resource-mapping-inline", mapping)  # more changes than the tables
    try:
        cdk(session, "import", deployment, *options, quiet=True)  # its output names all that it does not import
    except CliError as error:
        raise CliError(
            Exit.FAILED,
            f"{error}: the tables were not taken over, and nothing was deployed. No data is lost: try again, "
            "or start with empty tables with ADOPT=none",
        ) from None
    finally:
        file.write_text(synthesised, encoding="utf-8")
    there = resources_of(session, deployment)
    if missing := [table.name for key, table in tables.items() if key not in there]:
        raise CliError(
            Exit.FAILED,
            f"{', '.join(missing)} could not be taken over, and nothing was deployed: try again, or start with "
            "empty tables with ADOPT=none",
        )


def clear_away(session: boto3.Session, stack_id: str) -> None:
    """Deletes a stack without resources, as an interrupted take-over, or one that was rolled back, leaves it."""
    if resources_of(session, stack_id):
        return
    cloudformation = aws.client(session, "cloudformation")
    with aws.translated_errors():
        cloudformation.delete_stack(StackName=stack_id)
        try:
            cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack_id, WaiterConfig=WAIT)
        except WaiterError as error:
            raise CliError(Exit.FAILED, f"cannot delete the empty stack {stack_id}: {error}") from None


def end_streams(session: boto3.Session, tables: Mapping[str, RetainedTable]) -> None:
    """Ends the streams of the tables, and waits until they are gone."""
    dynamodb = aws.client(session, "dynamodb")
    names = [table.name for table in tables.values() if table.streamed]
    with aws.translated_errors():
        for name in names:
            dynamodb.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})
        for name in names:
            dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig=WAIT)  # until it is active


def resource_of(table: RetainedTable, resource: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the resource as the table is: without a stream, and without an index that only later versions have.

    CloudFormation does not check what it imports: the next deployment would not create what the template already has.
    """
    properties = {key: value for key, value in resource["Properties"].items() if key != "StreamSpecification"}
    if "GlobalSecondaryIndexes" in properties:
        has = [index for index in properties["GlobalSecondaryIndexes"] if index["IndexName"] in table.schema]
        schemas = [properties["KeySchema"], *(index["KeySchema"] for index in has)]
        keys = {key["AttributeName"] for schema in schemas for key in schema}
        properties |= {
            "GlobalSecondaryIndexes": has,
            "AttributeDefinitions": [one for one in properties["AttributeDefinitions"] if one["AttributeName"] in keys],
        }
        if not has:
            del properties["GlobalSecondaryIndexes"]
    return {**resource, "Properties": properties}


def _settled(cloudformation: Any, stack_id: str) -> str:
    """Waits until the stack's operation, or its rollback, has ended; returns the status."""
    while True:
        status: str = cloudformation.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"]
        if not status.endswith("_IN_PROGRESS"):
            return status
        time.sleep(_POLL_SECONDS)


def _reasons(cloudformation: Any, stack_id: str) -> str:
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack_id)
    failed: Sequence[str] = [
        f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', '')}"
        for page in pages
        for event in page["StackEvents"]
        if event["ResourceStatus"] == "IMPORT_FAILED"
    ]
    return "; ".join(reason.rstrip(".") for reason in failed) or "no reason"
