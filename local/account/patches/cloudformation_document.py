"""Creates documents of Systems Manager that run scripts from templates; MiniStack has no such type."""

from __future__ import annotations

import uuid
from typing import Any

from ministack.services.cloudformation import provisioners

from ..run_command import Refusal, RunCommand

_SUPPORTED = {"Content", "DocumentFormat", "DocumentType", "Name", "Tags", "TargetType", "UpdateMethod"}
_VALUES = {"DocumentFormat": "JSON", "DocumentType": "Command", "TargetType": "/AWS::EC2::Instance"}
"""The only value of a property that local AWS supports."""


def apply(commands: RunCommand) -> None:
    def create(logical_id: str, properties: dict[str, Any], stack: str) -> tuple[str, dict[str, str]]:
        _check(properties)
        name = properties.get("Name") or provisioners._physical_name(stack, logical_id, max_len=128)
        return _put(lambda: commands.create_document(name, properties["Content"]), name)

    def update(physical_id: str, old: dict[str, Any], new: dict[str, Any], _stack: str) -> tuple[str, dict[str, str]]:
        _check(new)
        if new["Content"] == old.get("Content"):
            return physical_id, {}
        if new.get("UpdateMethod", "Replace") == "NewVersion":
            return _put(lambda: commands.update_document(physical_id, new["Content"]), physical_id)
        if new.get("Name"):
            raise ValueError(
                "CloudFormation cannot update a stack when a custom-named resource requires replacing. "
                f"Rename {physical_id} and update the stack again."
            )
        # The stack deletes the document with the old id afterwards.
        name = f"{physical_id.rpartition('-')[0]}-{uuid.uuid4().hex[:12].upper()}"
        return _put(lambda: commands.create_document(name, new["Content"]), name)

    provisioners._RESOURCE_HANDLERS["AWS::SSM::Document"] = {
        "create": create,
        "update": update,
        "delete": lambda physical_id, _properties: commands.delete_document(physical_id),
    }


def _check(properties: dict[str, Any]) -> None:
    """Raises ValueError for a document that is no command, or has what local AWS lacks."""
    if unknown := properties.keys() - _SUPPORTED:
        raise ValueError(f"AWS::SSM::Document: local AWS has no {', '.join(sorted(unknown))}")
    if "Content" not in properties:
        raise ValueError("AWS::SSM::Document: required key [Content] not found")
    for name, value in _VALUES.items():
        if properties.get(name, value) != value:
            raise ValueError(f"AWS::SSM::Document: local AWS has no {name} {properties[name]}, only {value}")


def _put(call: Any, name: str) -> tuple[str, dict[str, str]]:
    try:
        call()
    except Refusal as error:
        raise ValueError(f"document {name}: {error.code}: {error}") from None
    return name, {}
