"""Accepts saved queries of CloudWatch Logs Insights without effect, because MiniStack does not support them."""

from __future__ import annotations

from ministack.services.cloudformation import provisioners

_KIND = "AWS::Logs::QueryDefinition"


def apply() -> None:
    if _KIND in provisioners._RESOURCE_HANDLERS:
        raise RuntimeError(f"MiniStack now supports {_KIND}: remove this patch")
    provisioners._RESOURCE_HANDLERS[_KIND] = {
        "create": lambda logical_id, _properties, stack: (f"{stack}-{logical_id}", {}),
        "update": lambda physical_id, _old, _new, _stack: (physical_id, {}),
        "delete": lambda _physical_id, _properties: None,
    }
