"""Implements `python -m lifecycle.destroy`: lists what stays, asks for the name, and deletes the stack, or also
what stays.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import boto3

from cli.client.deployment import check_name, find_stack
from cli.shared import aws
from cli.shared.errors import CliError, Exit
from infra.settings_record import Record, record_in
from lifecycle import retained
from lifecycle.changes import command_for
from lifecycle.console import answer, run, say
from lifecycle.leftovers import KINDS, Leftover, buckets_to_empty, leftovers
from lifecycle.open_runs import refuse_while_open
from lifecycle.origin import proven
from lifecycle.project import chosen, settings_with
from lifecycle.purge import empty_bucket, purge
from lifecycle.resources import Resource, resources_of, template_of
from lifecycle.rules import Rule, remove, rules_on

_POLL_SECONDS = 2.0
_ATTEMPTS = 2
_SHOWN = 8
"""Names of a kind that the question shows."""
_NEVER_CAME_UP = ("CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED")


def destroy(args: argparse.Namespace) -> None:
    """Removes a deployment; changes nothing before the name is confirmed."""
    name = args.deployment or settings_with(chosen(args.stage, None)).chaos.deployment
    check_name(name)
    session = aws.make_session(None, None)
    account = aws.account_of(session)
    stack = find_stack(session, name)
    if stack is None:
        raise CliError(Exit.NO_DEPLOYMENT, f"account {account}, region {session.region_name} has no deployment {name}")
    refuse_while_open(session, stack)
    template = template_of(session, name)
    resources = resources_of(session, name)
    physical_ids = {logical_id: resource.physical_id for logical_id, resource in resources.items()}
    rules, rolled_back = _rules(session, resources), _rolled_back(session, name, stack)
    empty = [table for table in rolled_back if table.empty]
    used = {key: table.name for table in rolled_back if not table.empty for key in _ids_of(template, table)}
    left = leftovers(template, physical_ids | used, session.region_name or "")
    say(f"This removes the deployment {name} from account {account}, region {session.region_name}.")
    _say_rules(rules)
    _say_empty(empty)
    _say_leftovers(left, args.purge)
    _confirm(name, args.confirm)
    for rule in rules:
        remove(session, rule)
    _delete(session, name, stack["StackId"], buckets_to_empty(template, physical_ids))
    for table in empty:
        retained.delete_empty(session, table)
    say(f"{name} is removed.")
    remaining = _purged(session, left) if args.purge else left
    _say_commands(name, remaining, record_in(template))
    if args.purge and remaining:
        raise CliError(Exit.FAILED, f"{len(remaining)} of what it left remain: see above")


def _rules(session: boto3.Session, resources: Mapping[str, Resource]) -> list[Rule]:
    """Lists the rules on the stack's bus that the stack did not create."""
    buses = [resource.physical_id for resource in resources.values() if resource.kind == "AWS::Events::EventBus"]
    # CloudFormation's id of such a rule is the bus and the rule's name.
    own = {r.physical_id.rpartition("|")[2] for r in resources.values() if r.kind == "AWS::Events::Rule"}
    return [rule for bus in buses for rule in rules_on(session, bus, own)]


def _say_rules(rules: list[Rule]) -> None:
    if not rules:
        return
    say("These rules on its bus are not Troop's. They are deleted with the bus; their targets stay:\n")
    for rule in rules:
        say(f"  {rule.name} -> {', '.join(rule.targets.values()) or 'nothing'}")
    say()


def _rolled_back(session: boto3.Session, name: str, stack: Mapping[str, Any]) -> list[retained.RetainedTable]:
    """Lists the tables of a stack whose first deployment failed, which its rollback could not delete; none of other
    stacks.
    """
    if stack["StackStatus"] not in _NEVER_CAME_UP:
        return []
    tables = proven(session, name, retained.find_retained(session, name))
    return [table for table in tables if table.stacks[-1:] == (stack["StackId"],)]


def _ids_of(template: Mapping[str, Any], table: retained.RetainedTable) -> list[str]:
    return [key for key, part in retained.parts(template).items() if part == table.part]


def _say_empty(empty: Sequence[retained.RetainedTable]) -> None:
    if empty:
        say("Its first deployment failed. Its empty tables are deleted too:\n")
        say("".join(f"  {table.name}\n" for table in empty))


def _say_leftovers(left: Sequence[Leftover], purging: bool) -> None:
    """Prints before the question, in a few lines, what stays or is purged."""
    if not left:
        say("Nothing of it stays: its tables are deleted with their contents.")
        return
    if purging:
        say("PURGE: these resources are deleted too, with all records in them. Only the secret can be restored:\n")
    else:
        say("These resources with your records stay, at the cost of their storage (PURGE=1 deletes them too):\n")
    kinds = Counter(leftover.kind for leftover in left)
    for kind, count in kinds.items():
        names = [leftover.physical_id for leftover in left if leftover.kind == kind]
        listing = ", ".join(names[:_SHOWN]) + (", ..." if count > _SHOWN else "")
        say(f"  {count} {kind}{'' if count == 1 else 's'}: {listing}")
    say()


def _purged(session: boto3.Session, left: Sequence[Leftover]) -> list[Leftover]:
    """Deletes what a stack has left; returns what only people can delete. One failure does not stop the others."""
    remaining = []
    for leftover in left:
        try:
            done = purge(session, leftover)
        except CliError as error:
            say(f"  not deleted: {leftover.kind} {leftover.physical_id}: {error}")
            done = False
        if done:
            say(f"  deleted: {leftover.kind} {leftover.physical_id}")
        else:
            remaining.append(leftover)
    return remaining


def _say_commands(name: str, left: Sequence[Leftover], settings: Record | None) -> None:
    if not left:
        return
    say("\nTo remove what stays, run:\n")
    for leftover in left:
        say(f"  # {leftover.kind} {leftover.physical_id}")
        for command in leftover.commands:
            say(f"  {command}")
    if any(leftover.kind == KINDS["AWS::DynamoDB::Table"] for leftover in left):
        say(f"\nTo use the tables again, deploy again: {command_for(name, settings)}")
        say("The secret proves, beyond 90 days too, that they are this deployment's: keep it with them.\n")


def _confirm(name: str, typed_name: str | None) -> None:
    if typed_name is None:
        unattended = f"confirmation required: rerun with CONFIRM={name}"
        typed_name = answer("Type the deployment's name to remove it: ", unattended)
    if typed_name != name:
        raise CliError(Exit.NOT_CONFIRMED, f"the name is not {name}: nothing was removed")


def _delete(session: boto3.Session, name: str, stack_id: str, buckets: Sequence[str]) -> None:
    """Deletes the stack, in two attempts.

    The first can fail: until the schedules are gone, a workflow may write into an emptied bucket, and a bus still
    counts deleted rules for a moment.

    Args:
        buckets: the buckets that are deleted with it.
    """
    cloudformation = aws.client(session, "cloudformation")
    reasons: list[str] = []
    for attempt in range(_ATTEMPTS):
        for bucket in buckets:
            empty_bucket(session, bucket)
        say("CloudFormation deletes the stack ..." if not attempt else "Some resources remain: deleting again ...")
        with aws.translated_errors():
            cloudformation.delete_stack(StackName=name)
            reasons = _await_deleted(cloudformation, stack_id)
        if not reasons:
            return
    raise CliError(Exit.FAILED, "CloudFormation could not delete all resources:" + "".join(reasons))


def _await_deleted(cloudformation: Any, stack_id: str) -> list[str]:
    """Waits for the deletion; returns a line for each resource that failed."""
    while True:
        status = cloudformation.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"]
        if status == "DELETE_COMPLETE":
            return []
        if status == "DELETE_FAILED":
            pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack_id)
            return _reasons((event for page in pages for event in page["StackEvents"]), stack_id)
        time.sleep(_POLL_SECONDS)


def _reasons(events: Iterable[Mapping[str, Any]], stack_id: str) -> list[str]:
    """Returns the failures of the last deletion.

    Args:
        events: the stack's events, newest first.
    """
    reasons = []
    for event in events:
        is_stack = event.get("PhysicalResourceId") == stack_id
        if is_stack and event["ResourceStatus"] == "DELETE_IN_PROGRESS":
            break
        if not is_stack and event["ResourceStatus"] == "DELETE_FAILED":
            reasons.append(f"\n  {event['LogicalResourceId']}: {event.get('ResourceStatusReason', '')}")
    return reasons or ["\n  see the events of the stack"]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make destroy", description="Removes a deployment; data stays, unless it is purged."
    )
    parser.add_argument("--deployment", help="the deployment's name; by default that of the settings")
    parser.add_argument("--stage", help="the deployment's stage, instead of its name")
    parser.add_argument("--confirm", metavar="NAME", help="confirm the name in advance")
    parser.add_argument("--purge", action="store_true", help="also delete what stays, with all records")
    args = parser.parse_args()
    return run(lambda: destroy(args))


if __name__ == "__main__":
    sys.exit(main())
