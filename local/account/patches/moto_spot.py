"""Launches Spot instances if a group's mixed instances policy says so, and keeps the policy when the size changes.

moto launches all instances on demand, whatever the policy, and drops the policy when a group is updated.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from moto.autoscaling.models import FakeAutoScalingGroup
from moto.ec2.models.instances import Instance, StateReason

from .. import price_table
from ..price_and_quota_services import vcpus_of
from ._wrap import wrap

TAKEN_BACK = "Server.SpotInstanceTermination"
"""EC2's state reason of an interrupted Spot instance."""


def is_spot(group: Any) -> bool:
    """Returns whether a group launches Spot instances only; mixed shares are not emulated."""
    distribution = (group.mixed_instances_policy or {}).get("InstancesDistribution") or {}
    return (
        int(distribution.get("OnDemandBaseCapacity") or 0) == 0
        and str(distribution.get("OnDemandPercentageAboveBaseCapacity", "100")) == "0"
    )


def is_outbid(group: Any, instance_type: str, zone: str) -> bool:
    """Returns whether the group's maximum price is below the Spot price in a zone."""
    distribution = (group.mixed_instances_policy or {}).get("InstancesDistribution") or {}
    highest = distribution.get("SpotMaxPrice")
    if not highest:
        return False
    return Decimal(highest) < price_table.spot(instance_type, vcpus_of(instance_type), zone)


def apply(taken_back: set[str]) -> None:
    """Applies the patch. `taken_back`: ids of interrupted Spot instances."""

    @wrap(FakeAutoScalingGroup, "update")
    def update(original: Callable[..., None], self: Any, *args: Any, **kwargs: Any) -> None:
        policy = self.mixed_instances_policy
        if policy and not (kwargs.get("mixed_instances_policy") or kwargs.get("launch_template")):
            kwargs["mixed_instances_policy"] = _without_template_name(policy)
        original(self, *args, **kwargs)

    @wrap(Instance, "terminate")
    def terminate(original: Callable[..., Any], self: Any, *args: Any) -> Any:
        previous = original(self, *args)
        if self.id in taken_back:
            self.state_reason = StateReason(f"{TAKEN_BACK}: Spot instance termination", TAKEN_BACK)
        return previous


def _without_template_name(policy: dict[str, Any]) -> dict[str, Any]:
    """Removes the template's name, which moto adds to its id: moto rejects both together."""
    template = policy["LaunchTemplate"]
    named = {k: v for k, v in template["LaunchTemplateSpecification"].items() if k != "LaunchTemplateName"}
    return {**policy, "LaunchTemplate": {**template, "LaunchTemplateSpecification": named}}
