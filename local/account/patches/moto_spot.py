"""A group whose mixed instances policy says so launches spot instances, and keeps that policy when its size is changed.

moto launches all instances on demand, whatever the policy says, and forgets the policy when a group is updated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.autoscaling.models import FakeAutoScalingGroup
from moto.ec2.models.instances import Instance, StateReason

from ._wrap import wrap

TAKEN_BACK = "Server.SpotInstanceTermination"
"""What EC2 gives as the reason of an instance that spot has interrupted."""


def is_spot(group: Any) -> bool:
    """Whether all that a group launches is spot; shares of both are not emulated."""
    distribution = (group.mixed_instances_policy or {}).get("InstancesDistribution") or {}
    return (
        int(distribution.get("OnDemandBaseCapacity") or 0) == 0
        and str(distribution.get("OnDemandPercentageAboveBaseCapacity", "100")) == "0"
    )


def apply(taken_back: set[str]) -> None:
    """`taken_back`: ids of the instances that spot has interrupted."""

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
    """moto adds the template's name to its id, and refuses both together."""
    template = policy["LaunchTemplate"]
    named = {k: v for k, v in template["LaunchTemplateSpecification"].items() if k != "LaunchTemplateName"}
    return {**policy, "LaunchTemplate": {**template, "LaunchTemplateSpecification": named}}
