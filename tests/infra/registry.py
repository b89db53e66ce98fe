"""Reads CloudFormation's registry schemas, which AWS publishes and cfn-lint contains."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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


def key_properties(kind: str) -> set[str]:
    """The properties of a resource type that name a KMS key, at any depth, as ``Outer.Inner``."""
    document = schema(kind)

    def below(part: Any, path: tuple[str, ...], seen: frozenset[str]) -> Iterator[str]:
        if not isinstance(part, Mapping):
            return
        reference = str(part.get("$ref", ""))
        if reference and reference not in seen:
            target = document["definitions"].get(reference.rpartition("/")[2], {})
            yield from below(target, path, seen | {reference})
        for name, inner in part.get("properties", {}).items():
            if re.search(r"(?i)kms.*key", name) and "string" in str(inner.get("type", "string")):
                yield ".".join((*path, name))
            yield from below(inner, (*path, name), seen)
        yield from below(part.get("items"), path, seen)
        for choice in (*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())):
            yield from below(choice, path, seen)

    return set(below(document, (), frozenset()))
