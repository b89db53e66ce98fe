"""Protects instances of a group from its scale-in as AWS does, and lets a group's grace period hold back bad health.

moto ignores unknown instances and any number of them, protects an instance before it is in service, and does not shrink
a group that waited for an instance's protection to end. It never respects the grace period of health checks, which it
takes for five minutes where AWS's is none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import EmptyResult
from moto.core.utils import utcnow

from ..delays import Delays
from ._wrap import wrap

_MOST = 50
"""The most instances of one request."""
_HEALTH = ("Healthy", "Unhealthy")


def apply(delays: Delays, is_ready: Callable[[str], bool], terminating: set[str]) -> None:
    """Applies the patch.

    Args:
        delays: until a group shrinks after a protection has ended.
        is_ready: whether an instance serves, and is in service.
        terminating: ids of instances in the state Terminating.
    """

    def protect(self: Any, group_name: str, instance_ids: list[str], protected_from_scale_in: bool) -> None:
        if group_name not in self.autoscaling_groups:
            raise ValidationError(f"AutoScalingGroup name not found - AutoScalingGroup '{group_name}' not found")
        if len(instance_ids) > _MOST:
            raise AutoscalingClientError("LimitExceededFault", f"There are more than {_MOST} instance ids.")
        group = self.autoscaling_groups[group_name]
        members = {state.instance.id: state for state in group.instance_states}
        for instance_id in instance_ids:
            if instance_id not in members:
                raise ValidationError(f"The instance {instance_id} is not part of Auto Scaling group {group_name}.")
            if instance_id in terminating or not is_ready(instance_id):
                message = f"The instance {instance_id} is not in InService or EnteringStandby or Standby."
                raise ValidationError(message)
        for instance_id in instance_ids:
            members[instance_id].protected_from_scale_in = protected_from_scale_in
        if not protected_from_scale_in:
            delays.later(lambda: _shrink(self, group))

    AutoScalingBackend.set_instance_protection = protect

    @wrap(FakeAutoScalingGroup, "set_desired_capacity")
    def resize(original: Callable[..., None], self: Any, *args: Any) -> None:
        """Lifts the protection of instances that are not in service yet, while the group shrinks."""
        early = [one for one in self.instance_states if one.protected_from_scale_in and not is_ready(one.instance.id)]
        for one in early:
            one.protected_from_scale_in = False
        try:
            original(self, *args)
        finally:
            for one in early:
                one.protected_from_scale_in = True

    @wrap(AutoScalingResponse, "create_auto_scaling_group")
    def create(original: Callable[..., Any], self: Any) -> Any:
        answer = original(self)
        group = self.autoscaling_backend.autoscaling_groups[self._get_param("AutoScalingGroupName")]
        group.health_check_grace_period = self._get_int_param("HealthCheckGracePeriod") or 0
        return answer

    def set_health(self: Any) -> EmptyResult:
        instance_id, health = self._get_param("InstanceId"), self._get_param("HealthStatus")
        if health not in _HEALTH:
            raise ValidationError(f"Valid instance health states are: [{', '.join(_HEALTH)}]")
        backend = self.autoscaling_backend
        if self._get_bool_param("ShouldRespectGracePeriod", True) and _is_new(backend, instance_id):
            return EmptyResult()
        backend.set_instance_health(instance_id, health)
        return EmptyResult()

    AutoScalingResponse.set_instance_health = set_health


def _shrink(backend: Any, group: Any) -> None:
    """Lets a group shrink that is larger than it should be, unless it is gone."""
    if backend.autoscaling_groups.get(group.name) is group and len(group.instance_states) > group.desired_capacity:
        group.set_desired_capacity(group.desired_capacity)


def _is_new(backend: Any, instance_id: str) -> bool:
    """Checks whether an instance is in the grace period of its group."""
    for group in backend.autoscaling_groups.values():
        for state in group.instance_states:
            if state.instance.id == instance_id:
                age = (utcnow() - state.instance.launch_time).total_seconds()
                return bool(age < group.health_check_grace_period)
    return False
