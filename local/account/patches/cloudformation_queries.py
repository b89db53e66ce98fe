"""Saved queries of CloudWatch Logs Insights are made without effect; MiniStack knows neither them nor what they ask."""

from __future__ import annotations

from ministack.services.cloudformation import provisioners

_KIND = "AWS::Logs::QueryDefinition"


def apply() -> None:
    if _KIND in provisioners._RESOURCE_HANDLERS:
        raise RuntimeError(f"MiniStack knows {_KIND} now: remove this patch")
    provisioners._RESOURCE_HANDLERS[_KIND] = {
        "create": lambda logical_id, _properties, stack: (f"{stack}-{logical_id}", {}),
        "update": lambda physical_id, _old, _new, _stack: (physical_id, {}),
        "delete": lambda _physical_id, _properties: None,
    }
