"""Describes, starts and cancels instance refreshes.

moto does not support them. A started refresh replaces nothing: it stays InProgress until it is cancelled, which is
enough for a guard against groups under refresh.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult

_UNDER_WAY = ("Pending", "InProgress", "Cancelling")


def apply() -> None:
    AutoScalingResponse.describe_instance_refreshes = _describe
    AutoScalingResponse.start_instance_refresh = _start
    AutoScalingResponse.cancel_instance_refresh = _cancel


def _refreshes(self: Any) -> list[dict[str, Any]]:
    name = self._get_param("AutoScalingGroupName")
    group = self.autoscaling_backend.autoscaling_groups.get(name)
    if group is None:
        raise ValidationError(f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found")
    if not hasattr(group, "instance_refreshes"):
        group.instance_refreshes = []
    refreshes: list[dict[str, Any]] = group.instance_refreshes
    return refreshes


def _describe(self: Any) -> ActionResult:
    ids = self._get_param("InstanceRefreshIds", [])
    refreshes = [one for one in _refreshes(self) if not ids or one["InstanceRefreshId"] in ids]
    return ActionResult({"InstanceRefreshes": refreshes})


def _start(self: Any) -> ActionResult:
    refreshes = _refreshes(self)
    if any(one["Status"] in _UNDER_WAY for one in refreshes):
        raise AutoscalingClientError(
            "InstanceRefreshInProgress", "An Instance Refresh is already in progress and blocks the execution."
        )
    refresh = {
        "InstanceRefreshId": str(uuid.uuid4()),
        "AutoScalingGroupName": self._get_param("AutoScalingGroupName"),
        "Status": "InProgress",
        "StartTime": dt.datetime.now(dt.UTC),
        "PercentageComplete": 0,
    }
    refreshes.insert(0, refresh)
    return ActionResult({"InstanceRefreshId": refresh["InstanceRefreshId"]})


def _cancel(self: Any) -> ActionResult:
    for refresh in _refreshes(self):
        if refresh["Status"] in _UNDER_WAY:
            refresh.update(Status="Cancelled", EndTime=dt.datetime.now(dt.UTC))
            return ActionResult({"InstanceRefreshId": refresh["InstanceRefreshId"]})
    raise AutoscalingClientError(
        "ActiveInstanceRefreshNotFound", "No in progress or pending Instance Refresh found for Auto Scaling group."
    )
