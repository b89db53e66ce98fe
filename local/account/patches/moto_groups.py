"""Rejects a second group with the same name, and deletes groups in the background and with instances only by force.

moto replaces the first group by the second, ignores ForceDelete, and removes the group within the call. It fails with
500 when it must suspend processes of a group that does not exist, and for a token that it did not give. It accepts
processes that do not exist, and more names in a request than AWS does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import EmptyResult

from ..delays import Delays
from ._wrap import wrap
from .moto_activities import begin_termination, end

_DELETING = "Delete in progress"
_PROCESSES = frozenset(
    {
        *("Launch", "Terminate", "AddToLoadBalancer", "AlarmNotification", "AZRebalance"),
        *("HealthCheck", "InstanceRefresh", "ReplaceUnhealthy", "ScheduledActions"),
    }
)
_NAMES = 50
"""The most names in a request without MaxRecords."""


def apply(delays: Delays, terminating: set[str]) -> None:
    """Applies the patch.

    Args:
        delays: for deletions of groups with instances.
        terminating: ids of instances in the state Terminating.
    """
    FakeAutoScalingGroup.status = None

    @wrap(AutoScalingBackend, "create_auto_scaling_group")
    def create(original: Callable[..., Any], self: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if name in self.autoscaling_groups:
            deleted = " and is pending delete" if self.autoscaling_groups[name].status == _DELETING else ""
            raise AutoscalingClientError(
                "AlreadyExistsFault",
                f"AutoScalingGroup by this name already exists - A group with the name {name} already exists{deleted}",
            )
        return original(self, name, *args, **kwargs)

    for call in ("suspend_processes", "resume_processes"):

        @wrap(AutoScalingBackend, call)
        def change(original: Callable[..., Any], self: Any, group_name: str, processes: list[str]) -> Any:
            _existing(self, group_name)
            if unknown := set(processes or ()) - _PROCESSES:
                raise ValidationError(f"there are no processes {sorted(unknown)}")
            return original(self, group_name, processes)

    @wrap(AutoScalingResponse, "describe_auto_scaling_groups")
    def describe(original: Callable[..., Any], self: Any) -> Any:
        names, token = self._get_param("AutoScalingGroupNames", []), self._get_param("NextToken")
        if len(names) > self._get_int_param("MaxRecords", _NAMES):
            raise ValidationError("there are more names than MaxRecords")
        if token and token not in self.autoscaling_backend.autoscaling_groups:
            raise AutoscalingClientError("InvalidNextToken", "The NextToken value is not valid.")
        return original(self)

    def delete(self: Any) -> EmptyResult:
        backend = self.autoscaling_backend
        group = _existing(backend, self._get_param("AutoScalingGroupName"))
        members = [state.instance.id for state in group.instance_states]
        if members and not self._get_bool_param("ForceDelete", False):
            raise AutoscalingClientError(
                "ResourceInUseFault",
                "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) "
                "still in the group.",
            )
        if not members:
            backend.delete_auto_scaling_group(group.name)
        elif group.status != _DELETING:
            group.status = _DELETING
            group.min_size = group.desired_capacity = 0
            terminating.update(members)
            for state in group.instance_states:
                begin_termination(group, state.instance, "the deletion of its group")
            backend.ec2_backend.terminate_instances(members)
            backend.elbv2_backend.notify_terminate_instances(members)
            delays.later(lambda: _finish(backend, group.name, members, terminating))
        return EmptyResult()

    AutoScalingResponse.delete_auto_scaling_group = delete


def _existing(backend: Any, name: str) -> Any:
    if name not in backend.autoscaling_groups:
        raise ValidationError(f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found")
    return backend.autoscaling_groups[name]


def _finish(backend: Any, name: str, members: list[str], terminating: set[str]) -> None:
    terminating.difference_update(members)
    for instance_id in members:
        end("Terminate", instance_id)
    group = backend.autoscaling_groups.get(name)
    if group is not None:
        group.instance_states = []
        backend.delete_auto_scaling_group(name)
