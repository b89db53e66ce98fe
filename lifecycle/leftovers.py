"""Lists what a deleted stack leaves behind, and the commands that remove it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_RETAINED = frozenset({"Retain", "RetainExceptOnCreate"})
KINDS = {
    "AWS::DynamoDB::Table": "table",
    "AWS::S3::Bucket": "bucket",
    "AWS::SecretsManager::Secret": "secret",
    "AWS::Logs::LogGroup": "log group",
}
"""Names of retained resources for people."""

_PART_OF_ANOTHER = "AWS::S3::BucketPolicy"
"""Deleted with its bucket."""


@dataclass(frozen=True)
class Leftover:
    """A resource that outlives its stack.

    Attributes:
        kind: its name for people.
        physical_id: its name, or ARN.
        commands: those that remove it, in order.
    """

    kind: str
    physical_id: str
    commands: tuple[str, ...]


def leftovers(template: Mapping[str, Any], physical_ids: Mapping[str, str], region: str) -> list[Leftover]:
    """Lists what stays when a stack is deleted: tables first, log groups last.

    Args:
        template: the deployed template; empty without one.
        physical_ids: by logical id, for resources that exist.
        region: for the commands.
    """
    order = list(KINDS)
    ranked_leftovers = []
    for logical_id, resource in template.get("Resources", {}).items():
        kind = resource["Type"]
        if resource.get("DeletionPolicy") in _RETAINED and logical_id in physical_ids and kind != _PART_OF_ANOTHER:
            commands = removed_by(kind, physical_ids[logical_id], resource.get("Properties", {}), region)
            rank = order.index(kind) if kind in order else len(order)
            ranked_leftovers.append((rank, Leftover(KINDS.get(kind, kind), physical_ids[logical_id], commands)))
    return [leftover for _, leftover in sorted(ranked_leftovers, key=lambda f: (f[0], f[1].physical_id))]


def buckets_to_empty(template: Mapping[str, Any], physical_ids: Mapping[str, str]) -> list[str]:
    """Lists the buckets that are deleted with their stack: CloudFormation deletes only empty ones."""
    return [
        physical_ids[logical_id]
        for logical_id, resource in template.get("Resources", {}).items()
        if resource["Type"] == "AWS::S3::Bucket"
        and resource.get("DeletionPolicy") not in _RETAINED
        and logical_id in physical_ids
    ]


def removed_by(kind: str, name: str, properties: Mapping[str, Any], region: str) -> tuple[str, ...]:
    """Returns the commands that remove a resource.

    Args:
        kind: its type.
        properties: its properties in a template.
    """
    return tuple(_commands(kind, name, properties, region))


def _commands(kind: str, name: str, properties: Mapping[str, Any], region: str) -> Iterator[str]:
    where = f"--region {region}"
    if kind == "AWS::DynamoDB::Table":
        if properties.get("DeletionProtectionEnabled"):
            yield f"aws dynamodb update-table {where} --table-name {name} --no-deletion-protection-enabled"
            yield f"aws dynamodb wait table-exists {where} --table-name {name}"
        yield f"aws dynamodb delete-table {where} --table-name {name}"
    elif kind == "AWS::S3::Bucket":
        yield f"aws s3 rb {where} --force s3://{name}"
    elif kind == "AWS::SecretsManager::Secret":
        yield f"aws secretsmanager delete-secret {where} --secret-id {name} --recovery-window-in-days 7"
    elif kind == "AWS::Logs::LogGroup":
        yield f"aws logs delete-log-group {where} --log-group-name {name}"
