"""Puts the tags ``aws:cloudformation:*`` only on resources whose service has such tags, as on AWS.

MiniStack puts them on every type with tags. AWS publishes in each type's schema whether CloudFormation may
(``tagging.cloudFormationSystemTags``); cfn-lint contains these schemas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services.cloudformation import provisioners, stacks

from ..schemas import Schemas
from ._wrap import wrap

_PREFIX = "aws:cloudformation:"


def apply(schemas: Schemas) -> None:
    def has_system_tags(kind: str) -> bool:
        """Checks a type; one that AWS does not have in this region counts as one with these tags."""
        schema = schemas.for_type(kind) or {}
        return bool(schema.get("tagging", {}).get("cloudFormationSystemTags", True))

    @wrap(provisioners, "_with_stack_tags")
    def tagged(original: Callable[..., dict[str, Any]], kind: str, *arguments: Any) -> dict[str, Any]:
        properties = original(kind, *arguments)
        if kind not in provisioners._STACK_TAG_PROPERTY or has_system_tags(kind):
            return properties
        name, _ = provisioners._STACK_TAG_PROPERTY[kind]
        tags = properties[name]
        if isinstance(tags, dict):
            own: Any = {key: value for key, value in tags.items() if not key.startswith(_PREFIX)}
        else:
            own = [tag for tag in tags if not tag["Key"].startswith(_PREFIX)]
        return {**properties, name: own}

    stacks._with_stack_tags = tagged  # it imported the function by name
