"""Applies a table's TimeToLiveSpecification; MiniStack's CloudFormation drops it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services import dynamodb
from ministack.services.cloudformation import provisioners

_TYPES = ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable")


def apply() -> None:
    for kind in _TYPES:
        handlers = provisioners._RESOURCE_HANDLERS[kind]
        handlers["create"] = _then_ttl(handlers["create"], position=1)
        handlers["update"] = _then_ttl(handlers["update"], position=2)


def _then_ttl(provision: Callable[..., Any], position: int) -> Callable[..., Any]:
    """Wraps a handler. `position`: index of the new properties in its arguments."""

    def provisioned(*args: Any, **kwargs: Any) -> Any:
        result = provision(*args, **kwargs)
        specification = args[position].get("TimeToLiveSpecification")
        if specification and specification.get("AttributeName"):
            enabled = str(specification.get("Enabled", True)).lower() == "true"
            status, _, body = dynamodb._update_ttl(
                {"TableName": result[0], "TimeToLiveSpecification": {**specification, "Enabled": enabled}}
            )
            if status >= 400:
                raise ValueError(f"time to live of {result[0]}: {body!r}")
        return result

    return provisioned
