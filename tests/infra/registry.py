"""Reads CloudFormation's registry schemas, which AWS publishes and cfn-lint contains."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

REGION = "us-east-1"


@cache
def schema(kind: str) -> Mapping[str, Any]:
    """The schema of a resource type, such as ``AWS::SNS::Topic``."""
    document: Mapping[str, Any] = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, kind).schema
    return document


def permissions(kind: str) -> set[str]:
    """The actions that CloudFormation may need for any operation on a resource type."""
    handlers = schema(kind).get("handlers", {})
    return {action for handler in handlers.values() for action in handler.get("permissions", [])}
