"""Accepts alarms on an expression over several metrics, without evaluating them.

MiniStack's CloudFormation rejects these alarms, and cannot evaluate expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services.cloudformation import provisioners

from ._wrap import wrap

_SINGLE_METRIC_FIELDS = ("Namespace", "MetricName", "Dimensions", "Statistic", "ExtendedStatistic", "Period", "Unit")


def apply() -> None:
    @wrap(provisioners, "_cw_metric_alarm_record")
    def record(original: Callable[..., dict[str, Any]], name: str, props: dict[str, Any]) -> dict[str, Any]:
        metrics = props.get("Metrics")
        if not metrics:
            return original(name, props)
        rest = {key: value for key, value in props.items() if key != "Metrics"}
        alarm = original(name, {**rest, "Namespace": "-", "MetricName": "-"})
        return {key: value for key, value in alarm.items() if key not in _SINGLE_METRIC_FIELDS} | {"Metrics": metrics}
