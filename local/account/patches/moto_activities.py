"""A group's scaling activities say what it launched and why it could not; and a type of instance can be made scarce.

moto has no activities, and always launches. A group whose launch fails has too few instances and says so nowhere else.
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass
from typing import Any

from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult
from moto.core.utils import utcnow

_REASONS = {
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


@dataclass
class Activity:
    """Attributes as Auto Scaling's model names them, in snake case: moto makes the answer of them."""

    activity_id: str
    auto_scaling_group_name: str
    auto_scaling_group_arn: str
    description: str
    cause: str
    status_code: str
    status_message: str | None = None
    progress: int = 100
    details: str = "{}"

    def __post_init__(self) -> None:
        self.start_time = self.end_time = utcnow()


class Scarcity:
    """Which instance types are scarce, how many of them can still be launched, and what AWS says then."""

    def __init__(self) -> None:
        self._left: dict[str, int] = {}
        self._reason: dict[str, str] = {}

    def order(self, instance_type: str, left: int, reason: str) -> None:
        """From now on only `left` more of the type; `reason`: InsufficientInstanceCapacity or VcpuLimitExceeded.
        KeyError for another reason."""
        self._reason[instance_type] = _REASONS[reason]
        self._left[instance_type] = left

    def grant(self, instance_type: str, wanted: int) -> int:
        """How many of the wanted can be launched; they are taken."""
        granted = min(wanted, self._left.get(instance_type, wanted))
        if instance_type in self._left:
            self._left[instance_type] -= granted
        return granted

    def message(self, instance_type: str, zone: str) -> str:
        said = self._reason[instance_type].format(type=instance_type, zone=zone, limit=self._left[instance_type])
        return f"{said} Launching EC2 instance failed."


scarcity = Scarcity()


def apply() -> None:
    AutoScalingResponse.describe_scaling_activities = _describe


def granted(group: Any, instance_type: str, places: Counter[tuple[str, str | None]]) -> Counter[tuple[str, str | None]]:
    """What of a launch there is capacity for; the rest becomes failed activities of the group."""
    found: Counter[tuple[str, str | None]] = Counter()
    for (zone, subnet), count in places.items():
        found[zone, subnet] = scarcity.grant(instance_type, count)
        if found[zone, subnet] < count:
            message = scarcity.message(instance_type, zone)
            record(group, f"Launching a new EC2 instance.  Status Reason: {message}", "Failed", message)
    return +found


def record(group: Any, description: str, status: str = "Successful", message: str | None = None) -> None:
    now = utcnow().strftime("%Y-%m-%dT%H:%M:%SZ")
    cause = f"At {now} the group wanted {group.desired_capacity} instances."
    activity = Activity(str(uuid.uuid4()), group.name, group.arn, description, cause, status, message)
    _of(group).insert(0, activity)


def _of(group: Any) -> list[Activity]:
    found: list[Activity] = vars(group).setdefault("activities", [])
    return found


def _describe(self: Any) -> ActionResult:
    """Newest first, in pages, as on AWS."""
    groups = self.autoscaling_backend.autoscaling_groups
    name = self._get_param("AutoScalingGroupName")
    if name and name not in groups:
        raise ValidationError(f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found")
    found = [activity for group in ([groups[name]] if name else groups.values()) for activity in _of(group)]
    start = int(self._get_param("NextToken") or 0)
    end = start + (self._get_int_param("MaxRecords") or 100)
    return ActionResult({"Activities": found[start:end], "NextToken": str(end) if end < len(found) else None})
