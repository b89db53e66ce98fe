"""Reads and resizes the Auto Scaling groups of a standing fleet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from troop.aws.bench.backups import HEALTHY
from troop.aws.bench.fleet_reader import ACTIVITIES, SERVING
from troop.bench import names
from troop.bench.refusals import of_launches
from troop.bench.standing import GroupSeen, Member, Place


@dataclass(frozen=True)
class StandingGroups:
    """The groups of standing fleets.

    Attributes:
        autoscaling: a client.
    """

    autoscaling: Any

    def describe(self, run: str, cell: str, roles: Collection[str]) -> list[GroupSeen]:
        """Returns the group of each role, in the order of the roles; also for a role without a group."""
        by_name = {names.fleet_name(run, cell, role): role for role in roles}
        answer = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=list(by_name))
        groups = {}
        for group in answer["AutoScalingGroups"]:
            if not group.get("Status"):  # a group that is being deleted has one
                role = by_name[group["AutoScalingGroupName"]]
                groups[role] = _seen(group, role)
        return [groups.get(role) or GroupSeen(role, exists=False) for role in roles]

    def resize(self, run: str, cell: str, role: str, count: int) -> None:
        """Sets the size of a role's group; if it shrinks, Auto Scaling picks the instances to terminate, zone by zone.

        Raises:
            ClientError: Auto Scaling refused, as it does while the group is being deleted.
        """
        name = names.fleet_name(run, cell, role)
        self.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MaxSize=count, DesiredCapacity=count)

    def refusals(self, run: str, cell: str, role: str) -> tuple[str, ...]:
        """Returns why a role's latest launches failed, newest first, up to the latest success; earlier failures no
        longer matter.
        """
        name = names.fleet_name(run, cell, role)
        answer = self.autoscaling.describe_scaling_activities(AutoScalingGroupName=name, MaxRecords=ACTIVITIES)
        return tuple(of_launches(answer["Activities"], since_success=True))


def _seen(group: Mapping[str, Any], role: str) -> GroupSeen:
    members = tuple(
        Member(
            one["InstanceId"],
            one["AvailabilityZone"],
            one.get("InstanceType", ""),
            _place(one["LifecycleState"], one["HealthStatus"]),
        )
        for one in group["Instances"]
    )
    return GroupSeen(role, group["DesiredCapacity"], group["MaxSize"], members)


def _place(lifecycle: str, health: str) -> Place:
    if lifecycle.startswith("Pending"):
        return Place.STARTING
    return Place.SERVING if (lifecycle, health) == (SERVING, HEALTHY) else Place.LEAVING
