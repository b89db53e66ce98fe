"""How a stack takes over tables that an earlier one, or itself, has left: CloudFormation imports them.

A change set of type IMPORT may hold nothing else. Afterwards the stack manages the tables as if it had made them: the
deployment that follows needs no setting that names them, and neither does any later one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import WaiterError

from cli import aws
from cli.errors import CliError, Exit
from lifecycle.project import cdk
from lifecycle.resources import resources_of
from lifecycle.retained import TABLE, WAIT, RetainedTable

_CHANGE_SET = "adopt-retained-tables"
_POLL_SECONDS = 2.0


def adopt(
    session: boto3.Session, deployment: str, template: Mapping[str, Any], tables: Mapping[str, RetainedTable]
) -> None:
    """Makes the stack, which must not be there, with these tables (by logical id) and nothing else in it.

    Their streams end: those that the deployment makes anew begin with nothing in them. What the last deployment has
    told others of within a day would otherwise be told again.

    Raises:
        CliError: FAILED, with CloudFormation's reason; nothing is left of the stack then, unless something is in it.
    """
    end_streams(session, tables)
    cloudformation = aws.client(session, "cloudformation")
    with aws.translated_errors():
        stack_id = cloudformation.create_change_set(
            StackName=deployment,
            ChangeSetName=_CHANGE_SET,
            ChangeSetType="IMPORT",
            TemplateBody=json.dumps({"Resources": {key: as_it_is(template["Resources"][key]) for key in tables}}),
            ResourcesToImport=[
                {"ResourceType": TABLE, "LogicalResourceId": key, "ResourceIdentifier": {"TableName": table.name}}
                for key, table in tables.items()
            ],  # and no tags, which an import must not add: the deployment that follows does
        )["StackId"]
        named = {"StackName": deployment, "ChangeSetName": _CHANGE_SET}
        try:
            cloudformation.get_waiter("change_set_create_complete").wait(**named, WaiterConfig=WAIT)
        except WaiterError:
            reason = cloudformation.describe_change_set(**named).get("StatusReason", "no reason is given")
            clear_away(session, stack_id)
            raise CliError(Exit.FAILED, f"CloudFormation cannot take the tables over: {reason}") from None
        cloudformation.execute_change_set(**named)
        status = _settled(cloudformation, stack_id)
        if status != "IMPORT_COMPLETE":
            reasons = _reasons(cloudformation, stack_id)  # before the stack goes
            clear_away(session, stack_id)
            raise CliError(
                Exit.FAILED,
                f"taking the tables over failed ({status}), and nothing was deployed: {reasons}. Nothing is "
                "lost: try again, or start with empty tables with ADOPT=none",
            )


def adopt_into(
    session: boto3.Session,
    deployment: str,
    assembly: Path,
    template: Mapping[str, Any],
    tables: Mapping[str, RetainedTable],
) -> None:
    """Adds these tables (by logical id) to a stack that is there, and changes nothing else in it.

    By `cdk import`: such a change set has to hold the whole stack as it is, which is too large for a request.

    Args:
        assembly: what was synthesised, with the template.

    Raises:
        CliError: FAILED, when a table is not in the stack afterwards; the deployment would make an empty one.
    """
    end_streams(session, tables)
    file = assembly / f"{deployment}.template.json"
    synthesised = file.read_text(encoding="utf-8")
    taken = {key: as_it_is(template["Resources"][key]) for key in tables}
    file.write_text(json.dumps({**template, "Resources": {**template["Resources"], **taken}}), encoding="utf-8")
    mapping = json.dumps({key: {"TableName": table.name} for key, table in tables.items()})
    options = ("--app", str(assembly), "--force", "--resource-mapping-inline", mapping)  # more changes than the tables
    try:
        cdk(session, "import", deployment, *options, quiet=True)  # it names all that it leaves to the deployment
    except CliError as error:
        raise CliError(
            Exit.FAILED,
            f"{error}: the tables could not be taken over, and nothing else was deployed. Nothing is lost: try again, "
            "or start with empty tables with ADOPT=none",
        ) from None
    finally:
        file.write_text(synthesised, encoding="utf-8")
    there = resources_of(session, deployment)
    if missing := [table.name for key, table in tables.items() if key not in there]:
        raise CliError(
            Exit.FAILED,
            f"{', '.join(missing)} could not be taken over, and nothing else was deployed: try again, or start with "
            "empty tables with ADOPT=none",
        )


def clear_away(session: boto3.Session, stack_id: str) -> None:
    """Deletes a stack in which nothing is: a take-over that was broken off leaves it, with its change set, and one that
    was undone may, too. A stack with a resource is let be.
    """
    if resources_of(session, stack_id):
        return
    cloudformation = aws.client(session, "cloudformation")
    with aws.translated_errors():
        cloudformation.delete_stack(StackName=stack_id)
        try:
            cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack_id, WaiterConfig=WAIT)
        except WaiterError as error:
            raise CliError(Exit.FAILED, f"the empty stack {stack_id} cannot be deleted: {error}") from None


def end_streams(session: boto3.Session, tables: Mapping[str, RetainedTable]) -> None:
    """Those of the tables that have one; waits until they are gone."""
    dynamodb = aws.client(session, "dynamodb")
    names = [table.name for table in tables.values() if table.streamed]
    with aws.translated_errors():
        for name in names:
            dynamodb.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})
        for name in names:
            dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig=WAIT)  # active again, that is


def as_it_is(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    """The resource as the table is, without a stream: CloudFormation believes what it imports, and a stream that it
    believes to be there would not be made by the deployment that follows.
    """
    properties = {key: value for key, value in resource["Properties"].items() if key != "StreamSpecification"}
    return {**resource, "Properties": properties}


def _settled(cloudformation: Any, stack_id: str) -> str:
    """The stack's status, once nothing goes on in it: what fails is undone first."""
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
    return "; ".join(reason.rstrip(".") for reason in failed) or "no reason is given"
