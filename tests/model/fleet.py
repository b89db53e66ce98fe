"""EC2 and Auto Scaling in memory: groups that notice what is gone, and replace it in their own time."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.model.dynamo import refusal
from troop.shared.tags import PROTECTED_TAG

NOTICED = 4.0
"""Seconds until a group notices that an instance is gone."""

SEEN = 3.0
"""Seconds for which EC2 may still show the state before the last."""

FORGOTTEN = 3600.0
"""Seconds for which EC2 remembers a terminated instance."""


@dataclass
class Instance:
    instance_id: str
    group: str
    state: str = "running"
    before: str = "running"
    changed: float = 0.0
    lifecycle: str = "InService"
    ready: float = 0.0
    weight: int = 1
    scale_in_protected: bool = False
    tagged_protected: bool = False
    termination_protected: bool = False
    launched: float = 0.0


@dataclass
class Group:
    """``boots``: whether replacements ever come into service. ``hook``: seconds for which a drained instance waits."""

    name: str
    desired: int
    tags: dict[str, str] = field(default_factory=dict)
    suspended: set[str] = field(default_factory=set)
    target_groups: list[str] = field(default_factory=list)
    refresh: str = ""
    boots: bool = True
    hook: float = 0.0
    weight: int = 1
    held: dict[str, float] = field(default_factory=dict)


class Fleet:
    """All groups and instances.

    Args:
        now: seconds, the true time.
        terminated: receives every instance that a call terminates, and how.

    Attributes:
        skips: whether this region's EC2 terminates without a shutdown of the operating system.
    """

    def __init__(
        self, now: Callable[[], float], dice: random.Random, terminated: Callable[[Instance, str], None]
    ) -> None:
        self._now, self._dice, self._terminated = now, dice, terminated
        self.groups: dict[str, Group] = {}
        self.instances: dict[str, Instance] = {}
        self._number = 0
        self.skips = True

    def add(self, group: Group) -> None:
        self.groups[group.name] = group
        for _ in range(group.desired // group.weight):
            self._launch(group, ready=self._now())

    def members(self, group: str) -> list[Instance]:
        return [i for i in self.instances.values() if i.group == group]

    def delete(self, name: str) -> None:
        """Deletes a group with its instances, as its owner does."""
        for instance in self.members(name):
            self._end(instance)
        del self.groups[name]

    def settle(self) -> None:
        """Lets groups do what has become due."""
        now = self._now()
        for instance in list(self.instances.values()):
            # One that a lifecycle hook holds stays with its group until the hook ends, even when it is stopped.
            held = instance.state == "stopped" and instance.lifecycle.startswith("Terminat")
            gone = instance.state != "running" and not held
            if gone and instance.group and now - instance.changed >= NOTICED:
                instance.group = ""
            if instance.lifecycle == "Pending" and now >= instance.ready:
                instance.lifecycle = "InService"
            if instance.state == "terminated" and now - instance.changed > FORGOTTEN:
                del self.instances[instance.instance_id]
        for group in self.groups.values():
            for instance_id, until in list(group.held.items()):
                if now >= until:
                    del group.held[instance_id]
                    waiting = self.instances.get(instance_id)
                    if waiting and waiting.state != "terminated":
                        self._end(waiting)
            have = sum(i.weight for i in self.members(group.name) if not i.lifecycle.startswith("Terminat"))
            while have < group.desired and "Launch" not in group.suspended:
                boot = self._dice.uniform(5, 200) if group.boots else 1e9
                have += self._launch(group, ready=now + boot).weight

    def _launch(self, group: Group, ready: float) -> Instance:
        self._number += 1
        instance = Instance(
            f"i-{self._number:04d}", group.name, ready=ready, changed=self._now() - 60, weight=group.weight
        )
        instance.launched = self._now()
        instance.lifecycle = "InService" if ready <= self._now() else "Pending"
        self.instances[instance.instance_id] = instance
        return instance

    def _end(self, instance: Instance, state: str = "terminated") -> None:
        instance.before, instance.state, instance.changed = instance.state, state, self._now()

    def end(self, instance: Instance, state: str = "terminated") -> None:
        """Somebody else terminates or stops an instance."""
        self._end(instance, state)

    # Auto Scaling's client

    def describe_auto_scaling_groups(
        self, AutoScalingGroupNames: list[str] | None = None, Filters: Sequence[Mapping[str, Any]] = (), **paging: Any
    ) -> Any:
        self.settle()
        names = self.groups if AutoScalingGroupNames is None else AutoScalingGroupNames
        groups = [self.groups[name] for name in names if name in self.groups]
        for one in Filters:
            groups = [group for group in groups if group.tags.get(one["Name"].removeprefix("tag:")) in one["Values"]]
        return {"AutoScalingGroups": [self._described(group) for group in groups]}

    def _described(self, group: Group) -> dict[str, Any]:
        return {
            "AutoScalingGroupName": group.name,
            "DesiredCapacity": group.desired,
            "Instances": [
                {
                    "InstanceId": i.instance_id,
                    "LifecycleState": i.lifecycle,
                    "HealthStatus": "Healthy",
                    "AvailabilityZone": "a",
                    "ProtectedFromScaleIn": i.scale_in_protected,
                    **({"WeightedCapacity": str(i.weight)} if i.weight > 1 else {}),
                }
                for i in self.members(group.name)
            ],
            "Tags": [{"Key": k, "Value": v} for k, v in group.tags.items()],
            "SuspendedProcesses": [{"ProcessName": p} for p in group.suspended],
            "TargetGroupARNs": list(group.target_groups),
        }

    def describe_auto_scaling_instances(self, InstanceIds: list[str]) -> Any:
        self.settle()
        known = [self.instances[i] for i in InstanceIds if i in self.instances and self.instances[i].group]
        return {"AutoScalingInstances": [{"InstanceId": i.instance_id, "LifecycleState": i.lifecycle} for i in known]}

    def describe_instance_refreshes(self, AutoScalingGroupName: str, MaxRecords: int) -> Any:
        if AutoScalingGroupName not in self.groups:
            raise refusal("ValidationError", "DescribeInstanceRefreshes", "AutoScalingGroup name not found")
        status = self.groups[AutoScalingGroupName].refresh
        return {"InstanceRefreshes": [{"Status": status}] if status else []}

    def describe_scaling_activities(self, AutoScalingGroupName: str, MaxRecords: int) -> Any:
        if AutoScalingGroupName not in self.groups:
            raise refusal("ValidationError", "DescribeScalingActivities", "AutoScalingGroup name not found")
        failed = {
            "StatusCode": "Failed",
            "StartTime": datetime.fromtimestamp(self._now() - 60, UTC),
            "StatusMessage": "its instances never become ready",
        }
        return {"Activities": [] if self.groups[AutoScalingGroupName].boots else [failed]}

    def terminate_instance_in_auto_scaling_group(self, InstanceId: str, ShouldDecrementDesiredCapacity: bool) -> Any:
        self.settle()
        instance = self.instances.get(InstanceId)
        if instance is None or not instance.group:
            raise refusal("ValidationError", "TerminateInstanceInAutoScalingGroup", "Instance Id not found")
        if instance.state == "running" and not instance.lifecycle.startswith("Terminat"):
            self._terminated(instance, "drain")
            instance.lifecycle = "Terminating:Wait"
            group = self.groups[instance.group]
            group.held[InstanceId] = self._now() + group.hook
        return {}

    # EC2's client

    def describe_instances(
        self, InstanceIds: list[str] | None = None, Filters: Sequence[Mapping[str, Any]] = (), **paging: Any
    ) -> Any:
        self.settle()
        groups = [name for one in Filters if one["Name"] == "tag:aws:autoscaling:groupName" for name in one["Values"]]
        if groups:
            instances = [i for i in self.instances.values() if i.group in groups and i.state == "running"]
        elif InstanceIds is None:
            instances = [i for i in self.instances.values() if i.tagged_protected and i.state != "terminated"]
        else:
            if any(i not in self.instances for i in InstanceIds):
                raise refusal("InvalidInstanceID.NotFound", "DescribeInstances")
            instances = [self.instances[i] for i in InstanceIds]
        return {"Reservations": [{"Instances": [self._shown(i)]} for i in instances]}

    def _shown(self, instance: Instance) -> dict[str, Any]:
        fresh = self._now() - instance.changed < SEEN and self._dice.random() < 0.5
        return {
            "InstanceId": instance.instance_id,
            "State": {"Name": instance.before if fresh else instance.state},
            "ImageId": "ami-1",
            "LaunchTime": datetime.fromtimestamp(instance.launched, UTC),
            "Tags": [{"Key": PROTECTED_TAG, "Value": ""}] if instance.tagged_protected else [],
        }

    def describe_instance_attribute(self, InstanceId: str, Attribute: str) -> Any:
        self.settle()
        if InstanceId not in self.instances:
            raise refusal("InvalidInstanceID.NotFound", "DescribeInstanceAttribute")
        key = Attribute[0].upper() + Attribute[1:]
        on = Attribute == "disableApiTermination" and self.instances[InstanceId].termination_protected
        return {"InstanceId": InstanceId, key: {"Value": on}}

    def terminate_instances(self, InstanceIds: list[str], SkipOsShutdown: bool = False) -> Any:
        if SkipOsShutdown and not self.skips:
            raise refusal("UnknownParameter", "TerminateInstances", "The parameter SkipOsShutdown is not recognized")
        (instance_id,) = InstanceIds
        if instance_id not in self.instances:
            raise refusal("InvalidInstanceID.NotFound", "TerminateInstances")
        instance = self.instances[instance_id]
        before = instance.state
        if instance.termination_protected and before != "terminated":
            raise refusal("OperationNotPermitted", "TerminateInstances")
        if before != "terminated":
            self._terminated(instance, "crash" if SkipOsShutdown else "shutdown")
            self._end(instance)
        return {
            "TerminatingInstances": [{"InstanceId": instance_id, "PreviousState": {"Name": before}}],
            "ResponseMetadata": {"RetryAttempts": 0},
        }

    # Elastic Load Balancing's client

    def describe_target_health(self, TargetGroupArn: str) -> Any:
        self.settle()
        members = [i for g in self.groups.values() if TargetGroupArn in g.target_groups for i in self.members(g.name)]
        state = {True: "healthy", False: "initial"}
        return {
            "TargetHealthDescriptions": [
                {"Target": {"Id": i.instance_id}, "TargetHealth": {"State": state[i.lifecycle == "InService"]}}
                for i in members
            ]
        }
