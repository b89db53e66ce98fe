"""Reads a cell's fleets: nodes in service, running instances, reasons of failed launches, and consoles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.aws.backup_groups import HEALTHY, stays
from troop.bench.definition import names
from troop.bench.fleets.booting import FleetStatus
from troop.bench.fleets.refusals import SPREAD, launch_refusals
from troop.shared.tags import CELL_TAG, RUN_TAG

FROZEN = ("Launch", "HealthCheck", "ReplaceUnhealthy", "AZRebalance")
"""Once all nodes are on the roster, none is added, replaced or moved. None is marked unhealthy either: the mark of a
status check that fails once would never go away. EC2's states show which nodes are lost.
"""

ACTIVITIES = 50
"""The newest activities that are searched for failed launches."""

AT_ONCE = 100

TAKEN_BACK = ("Server.SpotInstanceTermination", "Server.SpotInstanceShutdown")
"""EC2's reasons for the end of an instance that spot took back."""

SERVING = "InService"

BUSY = frozenset({"ScalingActivityInProgress", "ResourceContention"})
"""Auto Scaling's codes during another change of the group."""


@dataclass(frozen=True)
class Ended:
    """Ids of instances that have ended, or are about to.

    Attributes:
        taken: instances that spot took back.
        gone: all of them.
        unexplained: instances that shut down for a reason that EC2 does not state (yet).
    """

    taken: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    unexplained: frozenset[str] = frozenset()


@dataclass(frozen=True)
class FleetReader:
    """Reads a cell's fleets, and freezes them."""

    ec2: Any
    autoscaling: Any

    def fleets(self, run: str, cell: str, counts: Mapping[str, int]) -> list[FleetStatus]:
        """Reads the groups, and why launches failed where nodes are missing.

        Args:
            counts: the number of nodes that each role should have.

        Returns:
            One fleet for each role, in the order of the names; also for a role without a group.
        """
        own = {names.fleet_name(run, cell, role): role for role in counts}
        backups = {names.backup_name(run, cell, role): role for role in counts}
        groups = self._groups(sorted(own | backups))
        return [
            self._status(role, counts[role], groups.get(name), groups.get(names.backup_name(run, cell, role)))
            for name, role in sorted(own.items())
        ]

    def _groups(self, ordered: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Returns the groups that exist, by name, except those that are being deleted."""
        groups = {}
        for i in range(0, len(ordered), AT_ONCE):
            pages = self.autoscaling.get_paginator("describe_auto_scaling_groups").paginate(
                AutoScalingGroupNames=ordered[i : i + AT_ONCE], PaginationConfig={"PageSize": AT_ONCE}
            )
            for page in pages:
                for group in page["AutoScalingGroups"]:
                    if not group.get("Status"):
                        groups[group["AutoScalingGroupName"]] = group
        return groups

    def _status(self, role: str, count: int, own: dict[str, Any] | None, backup: dict[str, Any] | None) -> FleetStatus:
        groups = [group for group in (own, backup) if group]
        instances = [instance for group in groups for instance in group["Instances"]]
        serving = frozenset(i["InstanceId"] for i in instances if _serves(i))
        is_short = len(serving) < count
        return FleetStatus(
            role,
            serving,
            frozenset(i["InstanceId"] for i in instances) - serving,
            frozenset(i["InstanceId"] for i in instances if i["LifecycleState"].startswith("Terminating")),
            self._refusals(own) if own and is_short else (),
            exists=own is not None,
            groups=tuple(group["AutoScalingGroupName"] for group in groups),
            granted=sum(map(stays, own["Instances"] if own else ())) + (backup["DesiredCapacity"] if backup else 0),
            backup_refusals=(self._refusals(backup) if is_short else ()) if backup else None,
        )

    def _refusals(self, group: dict[str, Any]) -> tuple[str, ...]:
        answer = self.autoscaling.describe_scaling_activities(
            AutoScalingGroupName=group["AutoScalingGroupName"], MaxRecords=ACTIVITIES
        )
        return tuple(
            launch_refusals(answer["Activities"], settled_since=group["CreatedTime"] + timedelta(seconds=SPREAD))
        )

    def freeze(self, groups: Iterable[str]) -> None:
        """Stops these groups from launching, replacing and moving instances."""
        for name in groups:
            self.autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=list(FROZEN))

    def replace(self, instance_id: str) -> bool:
        """Requests the termination of an instance; its group launches another one.

        Returns:
            False if the group no longer has the instance, or is busy with another change: then try again later.
        """
        try:
            self.autoscaling.terminate_instance_in_auto_scaling_group(
                InstanceId=instance_id, ShouldDecrementDesiredCapacity=False
            )
        except ClientError as error:
            code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
            if code not in BUSY and not (code == "ValidationError" and "not found" in message.lower()):
                raise
            return False
        return True

    def running(self, run: str, cell: str) -> dict[str, frozenset[str]]:
        """Returns the ids of the cell's running instances, each with the ids of its volumes.

        Filters by tag, because EC2 refuses a call with an id that it no longer knows.
        """
        return {
            i["InstanceId"]: frozenset(d["Ebs"]["VolumeId"] for d in i.get("BlockDeviceMappings", []) if "Ebs" in d)
            for i in self._instances(run, cell, ["running"])
        }

    def ended(self, run: str, cell: str) -> Ended:
        """Returns the cell's instances that have ended, or are about to."""
        instances = list(self._instances(run, cell, ["shutting-down", "terminated", "stopping", "stopped"]))
        why = {i["InstanceId"]: (i.get("StateReason") or {}).get("Code") for i in instances}
        going = {i["InstanceId"] for i in instances if i["State"]["Name"] == "shutting-down"}
        return Ended(
            frozenset(i for i, code in why.items() if code in TAKEN_BACK),
            frozenset(why),
            frozenset(i for i in going if not why[i]),
        )

    def described(self, run: str, cell: str) -> dict[str, dict[str, Any]]:
        """Returns EC2's descriptions of the cell's running instances, by id."""
        return {i["InstanceId"]: i for i in self._instances(run, cell, ["running"])}

    def existing(self, run: str, cell: str) -> frozenset[str]:
        """Returns the ids of the cell's instances that EC2 still knows, including ended ones."""
        states = ["pending", "running", "shutting-down", "terminated", "stopping", "stopped"]
        return frozenset(i["InstanceId"] for i in self._instances(run, cell, states))

    def _instances(self, run: str, cell: str, states: list[str]) -> Iterable[dict[str, Any]]:
        filters = [
            {"Name": f"tag:{RUN_TAG}", "Values": [run]},
            {"Name": f"tag:{CELL_TAG}", "Values": [cell]},
            {"Name": "instance-state-name", "Values": states},
        ]
        pages = self.ec2.get_paginator("describe_instances").paginate(
            Filters=filters, PaginationConfig={"PageSize": 1000}
        )
        return (i for page in pages for reservation in page["Reservations"] for i in reservation["Instances"])

    def console(self, instance_id: str) -> str:
        """Returns an instance's console output; "" if EC2 has none (any more)."""
        try:
            answer = self.ec2.get_console_output(InstanceId=instance_id, Latest=True)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "UnsupportedOperation":  # not a Nitro instance: EC2 still has its output from boot
                answer = self.ec2.get_console_output(InstanceId=instance_id)
            elif code == "InvalidInstanceID.NotFound":
                return ""
            else:
                raise
        return str(answer.get("Output") or "")


def _serves(instance: dict[str, Any]) -> bool:
    return bool(instance["LifecycleState"] == SERVING and instance["HealthStatus"] == HEALTHY)
