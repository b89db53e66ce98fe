"""Describes the children and the parents of an alarm; MiniStack ignores these parameters, and describes all alarms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services import cloudwatch

from ._wrap import wrap

_FIELDS = {
    "ChildrenOfAlarmName": ("AlarmName", "AlarmArn", "StateValue", "StateUpdatedTimestamp"),
    "ParentsOfAlarmName": ("AlarmName", "AlarmArn"),
}
"""What CloudWatch says of the alarms, by parameter."""
_PAGING = {"MaxRecords", "NextToken"}


def apply() -> None:
    @wrap(cloudwatch, "_describe_alarms")
    def describe(
        original: Callable[..., Any], params: Any, data: dict[str, Any], is_cbor: bool, is_json: bool = False
    ) -> Any:
        parameters = [key for key in _FIELDS if data.get(key)]
        if not parameters or not is_json:
            return original(params, data, is_cbor, is_json)
        if data.keys() - _PAGING != {parameters[0]}:
            message = f"{parameters[0]} can be used only with MaxRecords and NextToken"
            return cloudwatch._error("ValidationError", message, 400, use_json=True)
        start, most = int(data.get("NextToken") or 0), int(data.get("MaxRecords") or 50)
        related = sorted(_related(parameters[0], data[parameters[0]]), key=lambda alarm: str(alarm["AlarmName"]))
        page = related[start : start + most]
        shown = [({key: alarm[key] for key in _FIELDS[parameters[0]]}, "AlarmRule" in alarm) for alarm in page]
        answer: dict[str, Any] = {
            "MetricAlarms": [alarm for alarm, is_composite in shown if not is_composite],
            "CompositeAlarms": [alarm for alarm, is_composite in shown if is_composite],
        }
        if start + most < len(related):
            answer["NextToken"] = str(start + most)
        return cloudwatch._json_ok(answer)


def _related(parameter: str, name: str) -> list[dict[str, Any]]:
    if parameter == "ParentsOfAlarmName":
        composites = dict(cloudwatch._composite_alarms.items()).values()
        return [one for one in composites if name in cloudwatch._composite_children(one)]
    children = cloudwatch._composite_children(cloudwatch._composite_alarms.get(name) or {})
    alarms = (cloudwatch._alarms.get(child) or cloudwatch._composite_alarms.get(child) for child in children)
    return [alarm for alarm in alarms if alarm]
