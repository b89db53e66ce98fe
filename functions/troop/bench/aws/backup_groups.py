"""Makes the calls for backup groups: limits a spot group to the nodes it has, and reads its state."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

ACTIVITIES = 100
"""The most activities on one page of Auto Scaling's answer."""

HEALTHY = "Healthy"

OVER = frozenset({"Successful", "Failed", "Cancelled"})


@dataclass(frozen=True)
class GroupNow:
    """An Auto Scaling group.

    Attributes:
        members: zones of its instances by id, except those that are terminating or unhealthy.
        desired: its desired capacity.
        template: id of its launch template.
        subnets: their ids.
    """

    members: Mapping[str, str]
    desired: int
    template: str
    subnets: tuple[str, ...]


@dataclass(frozen=True)
class BackupGroups:
    """Auto Scaling groups of spot fleets and their backups."""

    autoscaling: Any

    def describe(self, name: str) -> GroupNow | None:
        """Returns a group; None if there is none, or it is being deleted."""
        answer = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        living = next((group for group in answer["AutoScalingGroups"] if not group.get("Status")), None)
        if living is None:
            return None
        policy = living.get("MixedInstancesPolicy") or {}
        template = living.get("LaunchTemplate") or policy["LaunchTemplate"]["LaunchTemplateSpecification"]
        return GroupNow(
            {i["InstanceId"]: i["AvailabilityZone"] for i in living["Instances"] if stays(i)},
            int(living["DesiredCapacity"]),
            str(template["LaunchTemplateId"]),
            tuple(living["VPCZoneIdentifier"].split(",")),
        )

    def stop_launching(self, name: str) -> None:
        """Stops a group from starting further launches."""
        self.autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=["Launch"])

    def is_launching(self, name: str, members: Collection[str]) -> bool:
        """Checks whether an earlier launch may still add an instance that is not among the members."""
        pages = self.autoscaling.get_paginator("describe_scaling_activities").paginate(
            AutoScalingGroupName=name, PaginationConfig={"PageSize": ACTIVITIES}
        )
        every = (activity for page in pages for activity in page["Activities"])
        launches = (a["Description"] for a in every if a["StatusCode"] not in OVER)
        return any(
            description.startswith("Launching") and not set(members) & set(description.split())
            for description in launches
        )

    def resize(self, name: str, size: int) -> None:
        """Sets the group's desired and largest size."""
        self.autoscaling.update_auto_scaling_group(
            AutoScalingGroupName=name, MinSize=0, MaxSize=size, DesiredCapacity=size
        )


def stays(instance: dict[str, Any]) -> bool:
    """Checks whether an instance can be counted on: it is healthy and not terminating."""
    return instance["HealthStatus"] == HEALTHY and not instance["LifecycleState"].startswith("Terminat")
