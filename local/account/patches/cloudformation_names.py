"""Gives each stack names of its own, also after another stack of the same name, as AWS's random endings do.

MiniStack's names depend on the names of stack and resource alone. So a stack would overwrite the tables that an earlier
one of its name has retained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services import cloudformation
from ministack.services.cloudformation import provisioners

from ._wrap import wrap

_TABLE = "AWS::DynamoDB::Table"


def apply() -> None:
    @wrap(provisioners, "_physical_name")
    def name(original: Callable[..., str], stack: str, *arguments: Any, **options: Any) -> str:
        present = cloudformation._stacks.get(stack) or {}
        token = provisioners._NAME_SEED.set(provisioners._NAME_SEED.get() + present.get("StackId", ""))
        try:
            return original(stack, *arguments, **options)
        finally:
            provisioners._NAME_SEED.reset(token)

    handlers = provisioners._RESOURCE_HANDLERS[_TABLE]
    handlers["update"] = _keeping_name(handlers["update"])


def _keeping_name(update: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the update of a table, which MiniStack would replace if another stack had made it."""

    def updated(physical_id: str, old: dict[str, Any], new: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        return update(physical_id, old, {"TableName": physical_id} | new, *arguments, **options)

    return updated
