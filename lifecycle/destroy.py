"""`python -m lifecycle.destroy`: says what stays and how to remove it, asks for the name, and deletes the stack."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import boto3

from cli import aws
from cli.context import interactive
from cli.deployment import find_stack
from cli.errors import CliError, Exit
from lifecycle.console import answer, run, say
from lifecycle.open_runs import refuse_while_open
from lifecycle.project import chosen, settings_with
from lifecycle.remains import buckets_to_empty, remains

_POLL_SECONDS = 2.0
_BATCH = 1000
"""Objects that S3 deletes at once."""


def destroy(given: argparse.Namespace) -> None:
    """All of it; nothing is touched before the name has been typed."""
    name = given.deployment or settings_with(chosen(given.stage, None)).chaos.deployment
    session = aws.make_session(None, None)
    account = aws.account_of(session)
    stack = find_stack(session, name)
    if stack is None:
        raise CliError(
            Exit.NO_DEPLOYMENT, f"there is no deployment {name} in account {account}, region {session.region_name}"
        )
    refuse_while_open(session, stack)
    cloudformation = aws.client(session, "cloudformation")
    with aws.told():
        body = cloudformation.get_template(StackName=name)["TemplateBody"]
        template: dict[str, Any] = json.loads(body) if isinstance(body, str) else body
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
        physical_ids = {
            r["LogicalResourceId"]: r["PhysicalResourceId"]
            for page in pages
            for r in page["StackResourceSummaries"]
            if r.get("PhysicalResourceId") and r["ResourceStatus"] != "DELETE_COMPLETE"
        }
    say(f"Removes the deployment {name} from account {account}, region {session.region_name}.")
    _say_remains(name, template, physical_ids, session.region_name)
    _confirm(name, given.confirm)
    for bucket in buckets_to_empty(template, physical_ids):
        _empty(session, bucket)
    with aws.told():
        cloudformation.delete_stack(StackName=name)
        _await_deleted(cloudformation, stack["StackId"])
    say(f"{name} is gone.")


def _say_remains(name: str, template: dict[str, Any], physical_ids: dict[str, str], region: str) -> None:
    left = remains(template, physical_ids, region)
    if not left:
        say("Nothing of it stays: its tables and what is in them go with it.")
        return
    say("What people and Troop have recorded stays, and costs what storage costs. To remove it, too, afterwards:\n")
    for remain in left:
        say(f"  # {remain.kind} {remain.physical_id}")
        for command in remain.commands:
            say(f"  {command}")
    say(f"\nOr deploy again, and the tables are taken over: make deploy DEPLOYMENT={name}\n")


def _confirm(name: str, given: str | None) -> None:
    if given is None:
        if not interactive():
            raise CliError(Exit.NOT_CONFIRMED, f"this asks before it acts, and this is no terminal: add CONFIRM={name}")
        given = answer("Type the deployment's name to remove it: ")
    if given != name:
        raise CliError(Exit.NOT_CONFIRMED, f"that is not {name}: nothing was removed")


def _empty(session: boto3.Session, bucket: str) -> None:
    """Deletes every object, and every version of it."""
    s3 = aws.client(session, "s3")
    with aws.told():
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, MaxKeys=_BATCH):
            objects = [
                {"Key": entry["Key"], "VersionId": entry["VersionId"]}
                for entry in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            ]
            if objects:
                failed = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True}).get("Errors", [])
                if failed:
                    message = f"{failed[0].get('Code')}: {failed[0].get('Message')}"
                    raise CliError(Exit.FAILED, f"the bucket {bucket} cannot be emptied: {message}")


def _await_deleted(cloudformation: Any, stack_id: str) -> None:
    say("CloudFormation is deleting it ...")
    while True:
        status = cloudformation.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"]
        if status == "DELETE_COMPLETE":
            return
        if status == "DELETE_FAILED":
            events = cloudformation.describe_stack_events(StackName=stack_id)["StackEvents"]
            reasons = [
                f"\n  {e['LogicalResourceId']}: {e.get('ResourceStatusReason', '')}"
                for e in events
                if e["ResourceStatus"] == "DELETE_FAILED" and e.get("PhysicalResourceId") != stack_id
            ]
            raise CliError(Exit.FAILED, "CloudFormation could not delete all of it:" + "".join(reasons))
        time.sleep(_POLL_SECONDS)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make destroy", description="Removes a deployment; data stays.")
    parser.add_argument("--deployment", help="the deployment's name; else what the settings say")
    parser.add_argument("--stage", help="the stage whose deployment it is, instead of its name")
    parser.add_argument("--confirm", metavar="NAME", help="the name once more, instead of typing it when asked")
    given = parser.parse_args()
    return run(lambda: destroy(given))


if __name__ == "__main__":
    sys.exit(main())
