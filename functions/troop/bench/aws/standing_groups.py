"""Reads, resizes and protects the Auto Scaling groups of a standing fleet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.aws.backup_groups import HEALTHY
from troop.bench.aws.fleet_reader import ACTIVITIES, SERVING
from troop.bench.definition import names
from troop.bench.definition.standing import GroupStatus, Member, Place, Resize
from troop.bench.fleets.fleet_requests import expiry_request
from troop.bench.fleets.refusals import launch_refusals
from troop.bench.living.draining import Change
from troop.shared import moments
from troop.shared.tags import EXPIRES_TAG

AT_ONCE = 50
"""The most instances whose protection one call changes."""


@dataclass(frozen=True)
class StandingGroups:
    """The groups of standing fleets.

    Attributes:
        autoscaling: a client.
    """

    autoscaling: Any

    def describe(self, run: str, cell: str, roles: Collection[str], backups: Collection[str] = ()) -> list[GroupStatus]:
        """Returns the groups of each role, in the order of the roles; also those that do not exist.

        Args:
            backups: the roles with a backup group, which follows the role's own.
        """
        every = [(role, is_backup) for role in roles for is_backup in (False, True) if role in backups or not is_backup]
        by_name = {group_name(run, cell, *one): one for one in every}
        answer = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=list(by_name))
        groups = {}
        for group in answer["AutoScalingGroups"]:
            if not group.get("Status"):  # a group that is being deleted has one
                one = by_name[group["AutoScalingGroupName"]]
                groups[one] = _status(group, *one)
        return [groups.get(one) or GroupStatus(one[0], exists=False, is_backup=one[1]) for one in every]

    def resize(self, run: str, cell: str, resize: Resize) -> None:
        """Sets the size of a group; if it shrinks, Auto Scaling picks the instances to terminate, zone by zone.

        Raises:
            ClientError: Auto Scaling refused, as it does while the group is being deleted.
        """
        name, size = group_name(run, cell, resize.role, resize.is_backup), resize.size
        self.autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MaxSize=size, DesiredCapacity=size)

    def mark_unhealthy(self, node: str) -> None:
        """Marks an instance as unhealthy, at once: Auto Scaling terminates it, and launches another one. Repeating it
        changes nothing.

        Raises:
            ClientError: Auto Scaling refused, as it does if the instance is in no group any more.
        """
        self.autoscaling.set_instance_health(InstanceId=node, HealthStatus="Unhealthy", ShouldRespectGracePeriod=False)

    def protect(self, run: str, cell: str, change: Change, instances: Sequence[str], *, protects: bool) -> None:
        """Protects instances of a group from scale-in, or takes the protection from them. Leaves out those that are not
        in service any more: AWS refuses a whole request for one of them.

        Raises:
            ClientError: Auto Scaling refused for another reason.
        """
        name = group_name(run, cell, change.role, change.is_backup)
        for i in range(0, len(instances), AT_ONCE):
            some = list(instances[i : i + AT_ONCE])
            if not self._protect(name, some, protects=protects):
                for one in some:
                    self._protect(name, [one], protects=protects)

    def _protect(self, name: str, instances: list[str], *, protects: bool) -> bool:
        try:
            self.autoscaling.set_instance_protection(
                AutoScalingGroupName=name, InstanceIds=instances, ProtectedFromScaleIn=protects
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationError":
                raise
            return False
        return True

    def expire(self, run: str, cell: str, group: GroupStatus, at: datetime) -> None:
        """Moves the moment at which a group goes to 0 without Troop, and the tag that says it. The tag comes last:
        until it is set, the next check repeats both.
        """
        name = group_name(run, cell, group.role, group.is_backup)
        self.autoscaling.put_scheduled_update_group_action(**expiry_request(name, at))
        tag = {"Key": EXPIRES_TAG, "Value": moments.iso(at), "PropagateAtLaunch": True}
        self.autoscaling.create_or_update_tags(Tags=[{**tag, "ResourceType": "auto-scaling-group", "ResourceId": name}])

    def refusals(self, run: str, cell: str, group: GroupStatus) -> tuple[str, ...]:
        """Returns why a group's latest launches failed, newest first, up to the latest success; earlier failures no
        longer matter.
        """
        name = group_name(run, cell, group.role, group.is_backup)
        answer = self.autoscaling.describe_scaling_activities(AutoScalingGroupName=name, MaxRecords=ACTIVITIES)
        return tuple(launch_refusals(answer["Activities"], since_success=True))


def group_name(run: str, cell: str, role: str, is_backup: bool) -> str:
    return (names.backup_name if is_backup else names.fleet_name)(run, cell, role)


def _status(group: Mapping[str, Any], role: str, is_backup: bool) -> GroupStatus:
    members = tuple(
        Member(
            one["InstanceId"],
            one["AvailabilityZone"],
            one.get("InstanceType", ""),
            _place(one["LifecycleState"], one["HealthStatus"]),
            one.get("ProtectedFromScaleIn", False),
        )
        for one in group["Instances"]
    )
    return GroupStatus(
        role,
        group["DesiredCapacity"],
        group["MaxSize"],
        members,
        is_backup=is_backup,
        is_spot=bool(group.get("MixedInstancesPolicy")),  # only groups on spot have a policy
        expires_at=_moment(next((tag["Value"] for tag in group["Tags"] if tag["Key"] == EXPIRES_TAG), "")),
    )


def _moment(text: str) -> datetime | None:
    """Parses the moment of a tag; None for text that is none, as anybody can change tags."""
    try:
        return moments.parse(text)
    except ValueError:
        return None


def _place(lifecycle: str, health: str) -> Place:
    if lifecycle.startswith("Pending"):
        return Place.STARTING
    return Place.SERVING if (lifecycle, health) == (SERVING, HEALTHY) else Place.LEAVING
