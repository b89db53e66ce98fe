"""Keeps all properties of schedules that CloudFormation creates.

MiniStack's CloudFormation drops the time zone, the start and end dates and ActionAfterCompletion. It ignores errors
such as a schedule group that does not exist.
"""

from __future__ import annotations

from typing import Any

from ministack.services import scheduler
from ministack.services.cloudformation import provisioners


def apply() -> None:
    handlers = provisioners._RESOURCE_HANDLERS["AWS::Scheduler::Schedule"]
    handlers["create"] = _create
    handlers["update"] = _update


def _create(logical_id: str, properties: dict[str, Any], stack: str) -> tuple[str, dict[str, str]]:
    name = properties.get("Name") or provisioners._physical_name(stack, logical_id, max_len=64)
    return _put(scheduler._create_schedule, name, properties)


def _update(physical_id: str, old: dict[str, Any], new: dict[str, Any], _stack: str) -> tuple[str, dict[str, str]]:
    name = new.get("Name") or physical_id
    if name != physical_id or old.get("GroupName") != new.get("GroupName"):
        provisioners._scheduler_schedule_delete(physical_id, old)
        return _put(scheduler._create_schedule, name, new)
    return _put(scheduler._update_schedule, physical_id, new)


def _put(call: Any, name: str, properties: dict[str, Any]) -> tuple[str, dict[str, str]]:
    status, _, body = call(name, {key: value for key, value in properties.items() if key != "Name"})
    if status >= 400:
        raise ValueError(f"schedule {name}: {body.decode()}")
    return name, {"Arn": scheduler._schedule_arn(properties.get("GroupName", "default"), name)}
