"""Refuses filters by types of resources that AWS does not have, where MiniStack finds nothing.

AWS's answer is in issue 1843 of boto/botocore; the authorization reference has the types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services import tagging

from ..reference import Reference
from ._wrap import wrap


def apply(reference: Reference) -> None:
    @wrap(tagging, "_get_resources")
    def resources(original: Callable[..., Any], data: dict[str, Any]) -> Any:
        for name in data.get("ResourceTypeFilters", ()):
            service, _, kind = name.partition(":")
            types = reference.types(service)
            if not types or (kind and kind.lower() not in map(str.lower, types)):
                return tagging._invalid_parameter(f"Unsupported service={service} in ResourceTypeFilter - {name}")
        return original(data)

    tagging._HANDLERS["GetResources"] = resources
