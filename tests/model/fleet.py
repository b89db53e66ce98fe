"""EC2 and Auto Scaling in memory: groups that notice what is gone, and replace it in their own time, also when nobody
looks. What they do has activities with a start and an end, and events.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tests.model.dynamo import refusal
from troop.shared.tags import INSIDE_TAG, PROTECTED_TAG

NOTICED = 4.0
"""Seconds until a group notices that an instance is gone."""

SEEN = 3.0
"""Seconds for which EC2 may still show the state before the last."""

FORGOTTEN = 3600.0
"""Seconds for which EC2 remembers a terminated instance."""

TRIED_AGAIN = 20.0
"""Seconds after which a group repeats a launch that failed; each time twice as many."""

LAUNCHED, NOT_LAUNCHED = "EC2 Instance Launch Successful", "EC2 Instance Launch Unsuccessful"
TERMINATED, CHANGED = "EC2 Instance Terminate Successful", "EC2 Instance State-change Notification"

Emit = Callable[[str, str, dict[str, Any]], None]


@dataclass
class Instance:
    """``healthy``: in the group's target groups, each of which checks for itself; ``consent``: of its owner."""

    instance_id: str
    group: str
    state: str = "running"
    before: str = "running"
    changed: float = 0.0
    lifecycle: str = "InService"
    weight: int = 1
    scale_in_protected: bool = False
    tagged_protected: bool = False
    termination_protected: bool = False
    launched: float = 0.0
    healthy: set[str] = field(default_factory=set)
    consent: str = ""

    @property
    def leaving(self) -> bool:
        return self.lifecycle.startswith("Terminat")


@dataclass
class Group:
    """``boots``: whether replacements ever come into service; ``failing``: how many launches fail before one works;
    ``hook``: seconds for which a drained instance waits.
    """

    name: str
    desired: int
    tags: dict[str, str] = field(default_factory=dict)
    suspended: set[str] = field(default_factory=set)
    target_groups: list[str] = field(default_factory=list)
    refresh: str = ""
    boots: bool = True
    failing: int = 0
    failed: int = 0
    hook: float = 0.0
    weight: int = 1
    members: list[Instance] = field(default_factory=list)
    activities: list[dict[str, Any]] = field(default_factory=list)

    @property
    def serving(self) -> list[Instance]:
        """Those that serve as far as AWS knows: in service, and healthy in all target groups."""
        return [i for i in self.members if i.lifecycle == "InService" and i.healthy.issuperset(self.target_groups)]


class Fleet:
    """All groups and instances.

    Args:
        now: seconds, the true time.
        at: does something later.
        terminated: receives every instance that a call terminates, and how.
        changed: told of every group whose capacity may have changed.
        emit: receives source, kind and detail of every event.

    Attributes:
        skips: whether this region's EC2 terminates without a shutdown of the operating system.
    """

    def __init__(
        self,
        now: Callable[[], float],
        at: Callable[[float, Callable[[], object]], None],
        dice: random.Random,
        terminated: Callable[[Instance, str], None],
        changed: Callable[[str], None],
        emit: Emit,
    ) -> None:
        self._now, self._at, self._dice, self._emit = now, at, dice, emit
        self._terminated, self._changed = terminated, changed
        self.groups: dict[str, Group] = {}
        self.instances: dict[str, Instance] = {}
        self._number = 0
        self.skips = True

    def add(self, group: Group) -> None:
        self.groups[group.name] = group
        for _ in range(group.desired // group.weight):
            instance = self._new(group)
            instance.healthy.update(group.target_groups)
        self._changed(group.name)

    def delete(self, name: str) -> None:
        """Deletes a group with its instances, as its owner does."""
        group = self.groups.pop(name)
        for instance in list(group.members):
            self._end(instance)
        self._changed(name)

    def end(self, instance: Instance, state: str = "terminated") -> None:
        """Somebody else terminates or stops an instance."""
        self._end(instance, state)

    def standby(self, instance: Instance) -> None:
        instance.lifecycle = "Standby"
        self._changed(instance.group)

    def scale(self, group: Group, desired: int) -> None:
        group.desired = desired
        self._changed(group.name)
        self._later(1.0, self._fill, group)

    # What groups do in their own time

    def _later(self, seconds: float, act: Callable[..., object], *args: Any) -> None:
        self._at(self._now() + seconds, partial(act, *args))

    def _moment(self) -> datetime:
        return datetime.fromtimestamp(self._now(), UTC)

    def _new(self, group: Group) -> Instance:
        self._number += 1
        now = self._now()
        instance = Instance(f"i-{self._number:04d}", group.name, changed=now - 60, weight=group.weight, launched=now)
        instance.consent = group.tags.get(INSIDE_TAG, "")
        self.instances[instance.instance_id] = instance
        group.members.append(instance)
        return instance

    def _end(self, instance: Instance, state: str = "terminated") -> None:
        instance.before, instance.state, instance.changed = instance.state, state, self._now()
        self._changed(instance.group)
        self._later(NOTICED, self._notice, instance)
        if state == "terminated":
            self._later(FORGOTTEN, self.instances.pop, instance.instance_id, None)

    def _notice(self, instance: Instance) -> None:
        """The group finds that an instance is gone. One that a lifecycle hook holds stays with it until the hook ends,
        even when it is stopped.
        """
        group = self.groups.get(instance.group)
        if group is None or instance not in group.members:
            instance.group = ""
            return
        if instance.state == "stopped" and instance.leaving:
            return
        group.members.remove(instance)
        instance.group = ""
        self._changed(group.name)
        if not instance.leaving:
            self._activity(group, "Terminating EC2 instance", instance)
        self._later(self._dice.uniform(0, 10), self._gone, group, instance)
        self._fill(group)

    def _gone(self, group: Group, instance: Instance) -> None:
        self._over(group, "Terminating EC2 instance", instance.instance_id, TERMINATED)

    def _fill(self, group: Group) -> None:
        """Launches what is missing."""
        if self.groups.get(group.name) is not group or "Launch" in group.suspended:
            return
        have = sum(i.weight for i in group.members if not i.leaving)
        while have < group.desired:
            if group.failing > 0 or (not group.boots and self._dice.random() < 0.5):
                group.failing -= 1
                self._activity(group, "Launching a new EC2 instance", None)
                self._later(self._dice.uniform(1, 10), self._fail, group)
                return
            have += self._launch(group).weight

    def _fail(self, group: Group) -> None:
        self._over(group, "Launching a new EC2 instance", "", NOT_LAUNCHED)
        group.failed += 1
        self._later(min(900.0, TRIED_AGAIN * 2**group.failed), self._fill, group)

    def _launch(self, group: Group) -> Instance:
        instance = self._new(group)
        instance.lifecycle = "Pending"
        self._activity(group, "Launching a new EC2 instance", instance)
        boot = self._dice.uniform(5, 200)
        self._later(boot * self._dice.uniform(0.1, 0.9), self._runs, instance)
        if group.boots:
            self._later(boot, self._ready, group, instance)
        return instance

    def _runs(self, instance: Instance) -> None:
        if instance.state == "running":
            self._emit("aws.ec2", CHANGED, {"instance-id": instance.instance_id, "state": "running"})

    def _ready(self, group: Group, instance: Instance) -> None:
        if instance.lifecycle != "Pending" or instance.state != "running":
            return
        instance.lifecycle = "InService"
        self._over(group, "Launching a new EC2 instance", instance.instance_id, LAUNCHED)
        for target_group in group.target_groups:
            wait = self._dice.uniform(0, 60)
            self._later(wait, self._health, group, instance, target_group, True)
            if self._dice.random() < 0.2:  # it flaps
                self._later(wait + self._dice.uniform(0, 10), self._health, group, instance, target_group, False)
                self._later(wait + self._dice.uniform(10, 40), self._health, group, instance, target_group, True)
        self._changed(group.name)

    def _health(self, group: Group, instance: Instance, target_group: str, healthy: bool) -> None:
        (instance.healthy.add if healthy else instance.healthy.discard)(target_group)
        self._changed(group.name)

    # Activities

    def _activity(self, group: Group, words: str, instance: Instance | None) -> None:
        group.activities.append(
            {
                "ActivityId": f"a-{group.name}-{len(group.activities)}",
                "AutoScalingGroupName": group.name,
                "Description": f"{words}: {instance.instance_id}" if instance else words,
                "Cause": "",
                "StartTime": self._moment(),
                "StatusCode": "InProgress",
                "Progress": 50,
            }
        )

    def _over(self, group: Group, words: str, instance_id: str, kind: str) -> None:
        """Ends an activity, and says so."""
        words = f"{words}: {instance_id}" if instance_id else words
        for activity in reversed(group.activities):
            if activity["Description"] == words and "EndTime" not in activity:
                break
        else:
            return
        failed = kind == NOT_LAUNCHED
        activity |= {"EndTime": self._moment(), "StatusCode": "Failed" if failed else "Successful", "Progress": 100}
        if failed:
            activity["StatusMessage"] = "We currently do not have sufficient capacity. Launching EC2 instance failed."
        if self.groups.get(group.name) is group:
            detail = {
                "AutoScalingGroupName": group.name,
                "EC2InstanceId": instance_id,
                "ActivityId": activity["ActivityId"],
                "Description": words,
                "StatusCode": activity["StatusCode"] if failed else "InProgress",
                "StatusMessage": activity.get("StatusMessage", ""),
                "StartTime": activity["StartTime"].isoformat(),
                "EndTime": activity["EndTime"].isoformat(),
                "Origin": "AutoScalingGroup" if kind == TERMINATED else "EC2",
                "Destination": "EC2" if kind == TERMINATED else "AutoScalingGroup",
            }
            self._emit("aws.autoscaling", kind, detail)

    # Auto Scaling's client

    def describe_auto_scaling_groups(
        self, AutoScalingGroupNames: list[str] | None = None, Filters: Sequence[Mapping[str, Any]] = (), **paging: Any
    ) -> Any:
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
                for i in group.members
            ],
            "Tags": [{"Key": k, "Value": v, "PropagateAtLaunch": k == INSIDE_TAG} for k, v in group.tags.items()],
            "SuspendedProcesses": [{"ProcessName": p} for p in group.suspended],
            "TargetGroupARNs": list(group.target_groups),
        }

    def describe_auto_scaling_instances(self, InstanceIds: list[str]) -> Any:
        known = [self.instances[i] for i in InstanceIds if i in self.instances and self.instances[i].group]
        return {
            "AutoScalingInstances": [
                {"InstanceId": i.instance_id, "LifecycleState": i.lifecycle, "AutoScalingGroupName": i.group}
                for i in known
            ]
        }

    def describe_instance_refreshes(self, AutoScalingGroupName: str, MaxRecords: int) -> Any:
        if AutoScalingGroupName not in self.groups:
            raise refusal("ValidationError", "DescribeInstanceRefreshes", "AutoScalingGroup name not found")
        status = self.groups[AutoScalingGroupName].refresh
        return {"InstanceRefreshes": [{"Status": status}] if status else []}

    def describe_scaling_activities(self, AutoScalingGroupName: str, **paging: Any) -> Any:
        if AutoScalingGroupName not in self.groups:
            raise refusal("ValidationError", "DescribeScalingActivities", "AutoScalingGroup name not found")
        newest = reversed(self.groups[AutoScalingGroupName].activities[-100:])
        return {"Activities": [dict(activity) for activity in newest]}

    def terminate_instance_in_auto_scaling_group(self, InstanceId: str, ShouldDecrementDesiredCapacity: bool) -> Any:
        instance = self.instances.get(InstanceId)
        if instance is None or not instance.group:
            raise refusal("ValidationError", "TerminateInstanceInAutoScalingGroup", "Instance Id not found")
        if instance.state == "running" and not instance.leaving:
            self._terminated(instance, "drain")
            self.drain(instance)
        return {}

    def drain(self, instance: Instance) -> None:
        """A group takes an instance out of service; a hook may hold it for a while."""
        group = self.groups[instance.group]
        instance.lifecycle = "Terminating:Wait"
        self._activity(group, "Terminating EC2 instance", instance)
        self._changed(group.name)
        self._later(group.hook, self._let_go, instance)
        self._fill(group)

    def _let_go(self, instance: Instance) -> None:
        if instance.state != "terminated":
            self._end(instance)

    # EC2's client

    def describe_instances(
        self, InstanceIds: list[str] | None = None, Filters: Sequence[Mapping[str, Any]] = (), **paging: Any
    ) -> Any:
        filters = {one["Name"]: one["Values"] for one in Filters}
        if groups := filters.get("tag:aws:autoscaling:groupName"):
            instances = [i for i in self.instances.values() if i.group in groups and i.state == "running"]
            if consents := filters.get(f"tag:{INSIDE_TAG}"):
                instances = [i for i in instances if i.consent in consents]
        elif consents := filters.get(f"tag:{INSIDE_TAG}"):
            instances = [i for i in self.instances.values() if i.consent in consents and i.state == "running"]
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
            "Tags": [
                *([{"Key": PROTECTED_TAG, "Value": ""}] if instance.tagged_protected else []),
                *([{"Key": INSIDE_TAG, "Value": instance.consent}] if instance.consent else []),
            ],
        }

    def describe_instance_attribute(self, InstanceId: str, Attribute: str) -> Any:
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
        members = [i for g in self.groups.values() if TargetGroupArn in g.target_groups for i in g.members]
        return {
            "TargetHealthDescriptions": [
                {
                    "Target": {"Id": i.instance_id},
                    "TargetHealth": {"State": "healthy" if TargetGroupArn in i.healthy else "initial"},
                }
                for i in members
            ]
        }
