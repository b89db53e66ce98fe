"""The calls behind a fallback: keeping a spot group at what it has, and looking at it meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ACTIVITIES = 100
"""Of a page, as many as there can be."""

HEALTHY = "Healthy"

OVER = frozenset({"Successful", "Failed", "Cancelled"})


@dataclass(frozen=True)
class GroupNow:
    """An Auto Scaling group.

    Attributes:
        members: ids of its instances, but for those that it is letting go or that are dead.
        desired: how many it is to have.
        template: id of its launch template.
        subnets: ids.
    """

    members: frozenset[str]
    desired: int
    template: str
    subnets: tuple[str, ...]


@dataclass(frozen=True)
class BackupGroups:
    """Of Auto Scaling."""

    autoscaling: Any

    def describe(self, name: str) -> GroupNow | None:
        """A group; None when there is none, or it is being deleted."""
        answer = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        living = next((group for group in answer["AutoScalingGroups"] if not group.get("Status")), None)
        if living is None:
            return None
        policy = living.get("MixedInstancesPolicy") or {}
        template = living.get("LaunchTemplate") or policy["LaunchTemplate"]["LaunchTemplateSpecification"]
        return GroupNow(
            frozenset(i["InstanceId"] for i in living["Instances"] if stays(i)),
            int(living["DesiredCapacity"]),
            str(template["LaunchTemplateId"]),
            tuple(living["VPCZoneIdentifier"].split(",")),
        )

    def stop_launching(self, name: str) -> None:
        """From now on it begins no launch."""
        self.autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=["Launch"])

    def is_launching(self, name: str, members: frozenset[str]) -> bool:
        """Whether a launch that was begun before may still bring an instance that is none of the members."""
        pages = self.autoscaling.get_paginator("describe_scaling_activities").paginate(
            AutoScalingGroupName=name, PaginationConfig={"PageSize": ACTIVITIES}
        )
        every = (activity for page in pages for activity in page["Activities"])
        launches = (a["Description"] for a in every if a["StatusCode"] not in OVER)
        return any(
            description.startswith("Launching") and not members & set(description.split()) for description in launches
        )

    def resize(self, name: str, size: int) -> None:
        """It is to have so many instances, and never more."""
        self.autoscaling.update_auto_scaling_group(
            AutoScalingGroupName=name, MinSize=0, MaxSize=size, DesiredCapacity=size
        )


def stays(instance: dict[str, Any]) -> bool:
    """Whether an instance is one to count on: not on its way out, nor dead, which the group has yet to see to."""
    return instance["HealthStatus"] == HEALTHY and not instance["LifecycleState"].startswith("Terminat")
