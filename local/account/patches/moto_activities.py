"""Adds scaling activities to groups, and emulates scarce instance types and instances that die while pending.

moto has no activities, and always launches. Activities are the only place where a group reports a failed launch. Each
ends with its event, as on AWS: a launch when its instance is in service, a termination when EC2 has ended the instance.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.models import FakeAutoScalingGroup
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult
from moto.core.utils import utcnow

from ..config import instance_arn
from ..delays import Delays
from ..service_events import events
from ._wrap import wrap

_REASONS = {
    "MaxSpotInstanceCountExceeded": "Could not launch Spot Instances. MaxSpotInstanceCountExceeded - Max spot instance "
    "count exceeded.",
    "SpotMaxPriceTooLow": "Could not launch Spot Instances. SpotMaxPriceTooLow - Your Spot request price is lower than "
    "the minimum required Spot request fulfillment price.",
    "UnfulfillableCapacity": "Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due "
    "to your request configuration. Please adjust your request and try again.",
    "InsufficientInstanceCapacity": (
        "We currently do not have sufficient {type} capacity in the Availability Zone you requested ({zone}). "
        "Our system will be working on provisioning additional capacity."
    ),
    "VcpuLimitExceeded": (
        "You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance bucket "
        "that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to "
        "request an adjustment to this limit."
    ),
}
_DEATHS = {
    "Client.InvalidKMSKey.InvalidState": "The KMS key provided is in an incorrect state",
    "Client.InternalError": "Client error on launch",
    "Client.VolumeLimitExceeded": "Volume limit exceeded",
    "Server.InternalError": "Internal error on launch",
}
"""Reasons for which EC2 accepts a launch and the instance dies before it runs, by the code of EC2."""


_DIRECTIONS = {"Launch": ("EC2", "AutoScalingGroup"), "Terminate": ("AutoScalingGroup", "EC2")}
"""From where and to where an activity moves an instance, by the word of its events."""


@dataclass
class Activity:
    """An activity. moto creates the response from its attributes, named as in Auto Scaling's model in snake case.

    Attributes:
        kind: a key of _DIRECTIONS.
        instance_id: "" for a launch that EC2 has refused.
    """

    kind: str
    instance_id: str
    auto_scaling_group_name: str
    auto_scaling_group_arn: str
    description: str
    cause: str
    details: str
    status_code: str = "InProgress"
    status_message: str | None = None
    progress: int = 50
    end_time: datetime | None = None

    def __post_init__(self) -> None:
        self.activity_id = str(uuid.uuid4())
        self.start_time = utcnow()

    def end(self, status: str, message: str = "") -> None:
        """Ends the activity, and sends its event. Its last moment has whole seconds, as in AWS's examples."""
        self.status_code, self.status_message, self.progress = status, message or None, 100
        self.end_time = max(self.start_time, utcnow().replace(microsecond=0))
        outcome = "Successful" if status == "Successful" else "Unsuccessful"
        resources = [self.auto_scaling_group_arn, *([instance_arn(self.instance_id)] if self.instance_id else [])]
        events.send("aws.autoscaling", f"EC2 Instance {self.kind} {outcome}", self._detail(), resources)

    def _detail(self) -> dict[str, Any]:
        assert self.end_time is not None
        origin, destination = _DIRECTIONS[self.kind]
        return {
            # As in AWS's examples: of an activity that succeeds, the event still says InProgress.
            "StatusCode": "InProgress" if self.status_code == "Successful" else "Failed",
            "Description": self.description,
            "AutoScalingGroupName": self.auto_scaling_group_name,
            "ActivityId": self.activity_id,
            "Details": json.loads(self.details),
            "RequestId": self.activity_id,
            "StatusMessage": self.status_message or "",
            "EndTime": _iso(self.end_time),
            "EC2InstanceId": self.instance_id,
            "StartTime": _iso(self.start_time),
            "Cause": self.cause,
            "Origin": origin,
            "Destination": destination,
        }


class Scarcity:
    """Scarce instance types: how many can still be launched, and the error of AWS.

    By type, market ("spot", or "" for both together) and zone ("" for all together).
    """

    def __init__(self) -> None:
        self._left: dict[tuple[str, str, str], int] = {}
        self._reason: dict[tuple[str, str, str], str] = {}
        self._survivors: dict[tuple[str, str], int] = {}
        self._death: dict[tuple[str, str], str] = {}

    def order(self, instance_type: str, left: int, reason: str, market: str = "", zone: str = "") -> bool:
        """Allows only `left` more instances of a type. Raises KeyError if the reason is not in _REASONS or _DEATHS.

        Returns:
            Whether more instances can be launched than before.
        """
        if reason in _DEATHS:
            self._survivors[instance_type, market], self._death[instance_type, market] = left, reason
            return False
        before = self._left.get((instance_type, market, zone))
        self._reason[instance_type, market, zone] = _REASONS[reason]
        self._left[instance_type, market, zone] = left
        return before is not None and left > before

    def grant(self, instance_type: str, count: int, market: str, zone: str) -> int:
        """Reserves capacity; returns how many of the requested instances can be launched."""
        limits = self._limits(instance_type, market, zone)
        granted = min([count, *(self._left[limit] for limit in limits)])
        for limit in limits:
            self._left[limit] -= granted
        return granted

    def reason(self, instance_type: str, zone: str, market: str) -> str:
        """Returns the sentence with which AWS refuses the next launch."""
        least = min(self._limits(instance_type, market, zone), key=lambda limit: self._left[limit])
        return self._reason[least].format(type=instance_type, zone=zone, limit=self._left[least])

    def death(self, instance_type: str, market: str) -> tuple[str, str] | None:
        """Returns code and message of the reason for which the next instance dies while pending; None if it lives."""
        for key in {(instance_type, ""), (instance_type, market)} & self._death.keys():
            if not self._survivors[key]:
                return self._death[key], _DEATHS[self._death[key]]
            self._survivors[key] -= 1
        return None

    def is_short(self, instance_type: str, market: str, zone: str) -> bool:
        """Checks whether a zone is full while others may have capacity."""
        return any(self._left[limit] == 0 for limit in self._limits(instance_type, market, zone) if limit[2])

    def _limits(self, instance_type: str, market: str, zone: str) -> list[tuple[str, str, str]]:
        limits = ((instance_type, one, where) for one in {"", market} for where in {"", zone})
        return [limit for limit in limits if limit in self._left]


scarcity = Scarcity()


_under_way: dict[tuple[str, str], Activity] = {}
"""By kind and instance."""


def apply(delays: Delays) -> None:
    """Applies the patch. `delays`: for terminations of a group that shrinks."""
    AutoScalingResponse.describe_scaling_activities = _describe

    @wrap(FakeAutoScalingGroup, "set_desired_capacity")
    def resize(original: Callable[..., None], self: Any, *args: Any) -> None:
        before = self.instance_states
        original(self, *args)
        members = {state.instance.id for state in self.instance_states}
        for instance in [state.instance for state in before if state.instance.id not in members]:
            begin_termination(self, instance, "a difference between desired and actual capacity")
            delays.later(lambda ended=instance.id: end("Terminate", ended))  # type: ignore[misc]


def begin_launch(group: Any, instance: Any) -> None:
    """Adds the launch of an instance to a group's activities."""
    cause = "an instance was started in response to a difference between desired and actual capacity."
    _begin("Launch", group, instance, f"Launching a new EC2 instance: {instance.id}", cause)


def begin_termination(group: Any, instance: Any, response_to: str) -> Activity:
    """Adds the termination of an instance to a group's activities; returns the one that is already under way."""
    cause = f"an instance was taken out of service in response to {response_to}."
    return _begin("Terminate", group, instance, f"Terminating EC2 instance: {instance.id}", cause)


def _begin(kind: str, group: Any, instance: Any, description: str, cause: str) -> Activity:
    under_way = _under_way.get((kind, instance.id))
    if under_way is None:
        details = {"Subnet ID": instance.subnet_id, "Availability Zone": instance.placement.zone}
        under_way = _under_way[kind, instance.id] = _record(kind, group, description, cause, details, instance.id)
    return under_way


def end(kind: str, instance_id: str, status: str = "Successful", message: str = "") -> None:
    """Ends the activity of an instance, if one is under way. `kind`: "Launch" or "Terminate"."""
    if activity := _under_way.pop((kind, instance_id), None):
        if message:
            activity.description += f".  Status Reason: {message}"
        activity.end(status, message)


def lose(instance: Any, reason: str) -> None:
    """Cancels the launch of an instance that ended before it was in service. `reason`: EC2's."""
    words = "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: "
    end("Launch", instance.id, "Cancelled", words + reason)


def granted(
    group: Any, instance_type: str, places: Counter[tuple[str, str | None]], market: str
) -> Counter[tuple[str, str | None]]:
    """Returns the part of a launch that has capacity; the rest becomes failed activities of the group."""
    capacity: Counter[tuple[str, str | None]] = Counter()
    for (zone, subnet), count in places.items():
        capacity[zone, subnet] = scarcity.grant(instance_type, count, market, zone)
        if capacity[zone, subnet] < count:
            fail(group, scarcity.reason(instance_type, zone, market))
    return +capacity


def refuse(group: Any, reason: str) -> None:
    """Adds a failed launch to a group's activities, with one of the reasons of this module."""
    fail(group, _REASONS[reason])


def fail(group: Any, reason: str) -> None:
    """Adds a failed launch to a group's activities, with the reason as a sentence."""
    message = f"{reason} Launching EC2 instance failed."
    description = f"Launching a new EC2 instance.  Status Reason: {message}"
    cause = "an instance was started in response to a difference between desired and actual capacity."
    _record("Launch", group, description, cause, {}).end("Failed", message)


def _record(
    kind: str, group: Any, description: str, cause: str, details: dict[str, Any], instance_id: str = ""
) -> Activity:
    cause = f"At {_iso(utcnow())} {cause}"
    activity = Activity(kind, instance_id, group.name, group.arn, description, cause, json.dumps(details))
    _activities(group).insert(0, activity)
    return activity


def _iso(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _activities(group: Any) -> list[Activity]:
    activities: list[Activity] = vars(group).setdefault("activities", [])
    return activities


def _describe(self: Any) -> ActionResult:
    """Lists activities, newest first, in pages, as AWS does."""
    groups = self.autoscaling_backend.autoscaling_groups
    name = self._get_param("AutoScalingGroupName")
    if name and name not in groups:
        raise ValidationError(f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found")
    activities = [
        activity for group in ([groups[name]] if name else groups.values()) for activity in _activities(group)
    ]
    token = self._get_param("NextToken") or "0"
    if not token.isdecimal():
        raise AutoscalingClientError("InvalidNextToken", "The NextToken value is not valid.")
    start = int(token)
    end = start + (self._get_int_param("MaxRecords") or 100)
    return ActionResult({"Activities": activities[start:end], "NextToken": str(end) if end < len(activities) else None})
