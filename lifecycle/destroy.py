"""`python -m lifecycle.destroy`: says what stays and how to remove it, asks for the name, and deletes the stack."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import boto3

from cli import aws
from cli.context import interactive
from cli.deployment import check_name, find_stack
from cli.errors import CliError, Exit
from lifecycle import retained
from lifecycle.console import answer, run, say
from lifecycle.leftovers import buckets_to_empty, remains
from lifecycle.open_runs import refuse_while_open
from lifecycle.project import chosen, settings_with
from lifecycle.resources import Resource, resources_of, template_of
from lifecycle.rules import Rule, remove, rules_on

_POLL_SECONDS = 2.0
_ATTEMPTS = 2
_NEVER_CAME_UP = ("CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED")
_BATCH = 1000
"""Objects that S3 deletes at once."""


def destroy(args: argparse.Namespace) -> None:
    """All of it; nothing is touched before the name has been typed."""
    name = args.deployment or settings_with(chosen(args.stage, None)).chaos.deployment
    check_name(name)
    session = aws.make_session(None, None)
    account = aws.account_of(session)
    stack = find_stack(session, name)
    if stack is None:
        raise CliError(
            Exit.NO_DEPLOYMENT, f"there is no deployment {name} in account {account}, region {session.region_name}"
        )
    refuse_while_open(session, stack)
    template = template_of(session, name)
    resources = resources_of(session, name)
    physical_ids = {logical_id: resource.physical_id for logical_id, resource in resources.items()}
    rules, empty = _rules(session, resources), _never_used(session, name, stack)
    say(f"Removes the deployment {name} from account {account}, region {session.region_name}.")
    _say_rules(rules)
    _say_remains(name, template, physical_ids, session.region_name, empty)
    _confirm(name, args.confirm)
    for rule in rules:
        remove(session, rule)
    _delete(session, name, stack["StackId"], buckets_to_empty(template, physical_ids))
    for table in empty:
        retained.delete_empty(session, table)
    say(f"{name} is gone.")


def _rules(session: boto3.Session, resources: Mapping[str, Resource]) -> list[Rule]:
    """The rules on the stack's bus that are not its own."""
    buses = [resource.physical_id for resource in resources.values() if resource.kind == "AWS::Events::EventBus"]
    # CloudFormation calls a rule of a bus by both names.
    own = {r.physical_id.rpartition("|")[2] for r in resources.values() if r.kind == "AWS::Events::Rule"}
    return [rule for bus in buses for rule in rules_on(session, bus, own)]


def _say_rules(rules: list[Rule]) -> None:
    if not rules:
        return
    say("These rules on its bus, which Troop has not made, go with the bus; what they call stays:\n")
    for rule in rules:
        say(f"  {rule.name} -> {', '.join(rule.targets.values()) or 'nothing'}")
    say()


def _never_used(session: boto3.Session, name: str, stack: Mapping[str, Any]) -> list[retained.RetainedTable]:
    """Empty tables of a stack that never came up; none of any other."""
    if stack["StackStatus"] not in _NEVER_CAME_UP:
        return []
    return [t for t in retained.find_retained(session, name) if t.empty and t.stack == stack["StackId"]]


def _say_remains(
    name: str,
    template: dict[str, Any],
    physical_ids: dict[str, str],
    region: str,
    empty: Sequence[retained.RetainedTable],
) -> None:
    if empty:
        say("It never came up. Its tables, in which nothing is, go with it:\n")
        say("".join(f"  {table.name}\n" for table in empty))
    going = {table.name for table in empty}
    left = [remain for remain in remains(template, physical_ids, region) if remain.physical_id not in going]
    if not left:
        say("Nothing of it stays: its tables and what is in them go with it.")
        return
    say("What people and Troop have recorded stays, and costs what storage costs. To remove it, too, afterwards:\n")
    for remain in left:
        say(f"  # {remain.kind} {remain.physical_id}")
        for command in remain.commands:
            say(f"  {command}")
    say(f"\nOr deploy again, and the tables are taken over: make deploy DEPLOYMENT={name}\n")


def _confirm(name: str, typed_name: str | None) -> None:
    if typed_name is None:
        if not interactive():
            raise CliError(Exit.NOT_CONFIRMED, f"this asks before it acts, and this is no terminal: add CONFIRM={name}")
        typed_name = answer("Type the deployment's name to remove it: ")
    if typed_name != name:
        raise CliError(Exit.NOT_CONFIRMED, f"that is not {name}: nothing was removed")


def _empty(session: boto3.Session, bucket: str) -> None:
    """Deletes every object, and every version of it; of a bucket that is gone, nothing."""
    s3 = aws.client(session, "s3")
    with aws.translated_errors():
        try:
            for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, MaxKeys=_BATCH):
                _delete_objects(s3, bucket, [*page.get("Versions", []), *page.get("DeleteMarkers", [])])
        except s3.exceptions.NoSuchBucket:
            return


def _delete_objects(s3: Any, bucket: str, entries: Sequence[Mapping[str, Any]]) -> None:
    objects = [{"Key": entry["Key"], "VersionId": entry["VersionId"]} for entry in entries]
    if not objects:
        return
    failed = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True}).get("Errors", [])
    if failed:
        message = f"{failed[0].get('Code')}: {failed[0].get('Message')}"
        raise CliError(Exit.FAILED, f"the bucket {bucket} cannot be emptied: {message}")


def _delete(session: boto3.Session, name: str, stack_id: str, buckets: Sequence[str]) -> None:
    """Deletes the stack, and what fails a second time: until the schedules are gone, a workflow may write into a bucket
    that has been emptied, and a bus knows for a moment of rules that it no longer has.

    Args:
        buckets: that go with it.
    """
    cloudformation = aws.client(session, "cloudformation")
    reasons: list[str] = []
    for attempt in range(_ATTEMPTS):
        for bucket in buckets:
            _empty(session, bucket)
        say("CloudFormation is deleting it ..." if not attempt else "Not all of it went: once more ...")
        with aws.translated_errors():
            cloudformation.delete_stack(StackName=name)
            reasons = _await_deleted(cloudformation, stack_id)
        if not reasons:
            return
    raise CliError(Exit.FAILED, "CloudFormation could not delete all of it:" + "".join(reasons))


def _await_deleted(cloudformation: Any, stack_id: str) -> list[str]:
    """Why it could not be deleted, a line for each resource; nothing when it is gone."""
    while True:
        status = cloudformation.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"]
        if status == "DELETE_COMPLETE":
            return []
        if status == "DELETE_FAILED":
            pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack_id)
            return _reasons((event for page in pages for event in page["StackEvents"]), stack_id)
        time.sleep(_POLL_SECONDS)


def _reasons(events: Iterable[Mapping[str, Any]], stack_id: str) -> list[str]:
    """Of the last deletion only.

    Args:
        events: the newest first.
    """
    reasons = []
    for event in events:
        of_stack = event.get("PhysicalResourceId") == stack_id
        if of_stack and event["ResourceStatus"] == "DELETE_IN_PROGRESS":
            break
        if not of_stack and event["ResourceStatus"] == "DELETE_FAILED":
            reasons.append(f"\n  {event['LogicalResourceId']}: {event.get('ResourceStatusReason', '')}")
    return reasons or ["\n  see the events of the stack"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make destroy", description="Removes a deployment; data stays.")
    parser.add_argument("--deployment", help="the deployment's name; else what the settings say")
    parser.add_argument("--stage", help="the stage whose deployment it is, instead of its name")
    parser.add_argument("--confirm", metavar="NAME", help="the name once more, instead of typing it when asked")
    args = parser.parse_args()
    return run(lambda: destroy(args))


if __name__ == "__main__":
    sys.exit(main())
