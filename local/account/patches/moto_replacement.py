"""Makes groups notice a terminated instance after a delay, replace it, and register the replacement as a target.

moto replaces an instance within the call that terminates it, and never adds the replacement to the group's target
groups. It ignores suspended processes, and answers 500 if no group has the instance. On AWS, the group lists the
instance until a health check removes it (EC2's TerminateInstances), or until its termination ends
(TerminateInstanceInAutoScalingGroup, shown as Terminating). While ReplaceUnhealthy is suspended, it stays listed as
InService and Unhealthy. No check ever removes that mark, only SetInstanceHealth.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.models import AutoScalingBackend

from ..delays import Delays
from ._wrap import wrap
from .moto_activities import Activity, begin_termination, end, lose

_UNHEALTHY = "Unhealthy"


class Replacements:
    """Delayed reactions of groups to lost instances."""

    def __init__(self, delays: Delays, lock: threading.RLock) -> None:
        self.terminating: set[str] = set()
        self._delays = delays
        self._lock = lock

    def notice_later(self, backend: Any, instance_id: str) -> None:
        self._delays.later(lambda: self.notice(backend, instance_id))

    def notice(self, backend: Any, instance_id: str) -> None:
        with self._lock:
            group = _group_of(backend, instance_id)
            if group is None:
                return
            is_terminating = instance_id in self.terminating
            if not is_terminating and "HealthCheck" in group._suspended_processes:
                return
            if not is_terminating and "ReplaceUnhealthy" in group._suspended_processes:
                _state_in(group, instance_id).health_status = _UNHEALTHY
                return
            instance = _state_in(group, instance_id).instance
            group.instance_states = [state for state in group.instance_states if state.instance.id != instance_id]
            self.terminating.discard(instance_id)
            lose(instance, str(instance.state_reason.message))
            begin_termination(group, instance, "an EC2 health check indicating it has been terminated or stopped")
            end("Terminate", instance_id)
            refill(group)

    def fail_status_check(self, backend: Any, instance_id: str) -> None:
        """Lets EC2's status check of an instance fail once; a group without the process HealthCheck takes no notice."""
        group = _group_of(backend, instance_id)
        if group is not None and "HealthCheck" not in group._suspended_processes:
            self.mark(backend, instance_id, _UNHEALTHY)

    def mark(self, backend: Any, instance_id: str, health: str) -> None:
        """Sets an instance's health; its group replaces an unhealthy one."""
        _state_in(_owner(backend, instance_id), instance_id).health_status = health
        self._delays.later(lambda: self.replace_unhealthy(backend, instance_id))

    def replace_unhealthy(self, backend: Any, instance_id: str) -> None:
        """Terminates an instance that is still unhealthy, if its group replaces such instances."""
        group = _group_of(backend, instance_id)
        if group is None or "ReplaceUnhealthy" in group._suspended_processes or instance_id in self.terminating:
            return
        if _state_in(group, instance_id).health_status == _UNHEALTHY:
            self.terminate(backend, instance_id, False, "a health check that found it unhealthy")

    def terminate(
        self, backend: Any, instance_id: str, should_decrement: bool, response_to: str = "a user request"
    ) -> Activity:
        group = _owner(backend, instance_id)
        instance = _state_in(group, instance_id).instance
        capacity = group.desired_capacity
        if should_decrement:
            if capacity - 1 < group.min_size:
                raise ValidationError(
                    "Currently, desiredSize equals minSize. Terminating instance without replacement will violate "
                    "group's min size constraint."
                )
            group.desired_capacity = capacity - 1
        activity = begin_termination(group, instance, response_to)
        self.terminating.add(instance_id)
        backend.ec2_backend.terminate_instances([instance_id])
        backend.elbv2_backend.notify_terminate_instances([instance_id])
        self.notice_later(backend, instance_id)
        return activity


def refill(group: Any) -> None:
    """Launches missing instances of a group, unless its Launch process is suspended."""
    if "Launch" not in group._suspended_processes:
        group.set_desired_capacity(group.desired_capacity)


def _group_of(backend: Any, instance_id: str) -> Any:
    for group in backend.autoscaling_groups.values():
        if any(state.instance.id == instance_id for state in group.instance_states):
            return group
    return None


def _owner(backend: Any, instance_id: str) -> Any:
    group = _group_of(backend, instance_id)
    if group is None:
        raise ValidationError(f"Instance Id not found - No managed instance found for instance ID: {instance_id}")
    return group


def _state_in(group: Any, instance_id: str) -> Any:
    return next(state for state in group.instance_states if state.instance.id == instance_id)


def apply(replacements: Replacements) -> None:
    def notify(self: Any, instance_ids: list[str]) -> None:
        for instance_id in instance_ids:
            if _group_of(self, instance_id) is not None:
                replacements.notice_later(self, instance_id)

    def terminate(self: Any, instance_id: str, should_decrement: bool) -> Activity:
        return replacements.terminate(self, instance_id, should_decrement)

    def set_health(self: Any, instance_id: str, health: str) -> None:
        replacements.mark(self, instance_id, health)

    AutoScalingBackend.notify_terminate_instances = notify
    AutoScalingBackend.terminate_instance = terminate
    AutoScalingBackend.set_instance_health = set_health

    @wrap(AutoScalingBackend, "resume_processes")
    def resume(original: Callable[..., None], self: Any, group_name: str, processes: list[str]) -> None:
        original(self, group_name, processes)
        group = self.autoscaling_groups[group_name]
        for state in list(group.instance_states):
            if state.instance.state in ("shutting-down", "terminated"):
                replacements.notice(self, state.instance.id)
            else:
                replacements.replace_unhealthy(self, state.instance.id)
        refill(group)
