"""Lists and removes the rules of people on a deployment's bus, which cannot be deleted before them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import ClientError

from cli.shared import aws
from cli.shared.errors import CliError, Exit

_BATCH = 100
"""Targets that EventBridge removes in one request."""


@dataclass(frozen=True)
class Rule:
    """A rule on a bus.

    Attributes:
        bus: the bus's name.
        targets: ARNs of its targets, by their id in the rule.
        managed_by: the AWS service that created it for itself; "" for a rule of people.
    """

    name: str
    bus: str
    targets: dict[str, str]
    managed_by: str


def rules_on(session: boto3.Session, bus: str, own: Collection[str]) -> list[Rule]:
    """Lists the rules on a bus; none if the bus does not exist.

    Args:
        own: names of the stack's rules, which CloudFormation removes.

    Raises:
        CliError: FAILED, if a service created one: only the resource that it serves can be removed.
    """
    events = aws.client(session, "events")
    with aws.translated_errors():
        try:
            pages = list(events.get_paginator("list_rules").paginate(EventBusName=bus))
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return []
            raise
        descriptions = [rule for page in pages for rule in page["Rules"] if rule["Name"] not in own]
        rules = [
            Rule(rule["Name"], bus, _targets(events, rule["Name"], bus), rule.get("ManagedBy", ""))
            for rule in descriptions
        ]
    if managed := [f"{rule.name} (of {rule.managed_by})" for rule in rules if rule.managed_by]:
        raise CliError(
            Exit.FAILED,
            f"the bus {bus} has rules of AWS services: {', '.join(managed)}. Remove the resources that they serve, "
            "such as an archive or schema discovery, and try again",
        )
    return rules


def _targets(events: Any, rule: str, bus: str) -> dict[str, str]:
    pages = events.get_paginator("list_targets_by_rule").paginate(Rule=rule, EventBusName=bus)
    return {target["Id"]: target["Arn"] for page in pages for target in page["Targets"]}


def remove(session: boto3.Session, rule: Rule) -> None:
    """Removes a rule; its targets stay."""
    events = aws.client(session, "events")
    ids = list(rule.targets)
    with aws.translated_errors():
        for start in range(0, len(ids), _BATCH):
            answer = events.remove_targets(Rule=rule.name, EventBusName=rule.bus, Ids=ids[start : start + _BATCH])
            if failed := answer.get("FailedEntries"):
                raise CliError(
                    Exit.FAILED,
                    f"cannot remove the rule {rule.name}: {failed[0].get('ErrorCode')}: "
                    f"{failed[0].get('ErrorMessage')}",
                )
        events.delete_rule(Name=rule.name, EventBusName=rule.bus)
