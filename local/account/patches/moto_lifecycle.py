"""Shows a launched instance as Pending until its process serves, and as Terminating during its removal.

moto shows every instance as InService from the start, so a measured recovery would always be zero. The patch changes
only Describe calls: moto's own arithmetic counts InService instances, and would otherwise launch too many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup

from ._wrap import wrap


class Shown:
    """An instance of a group in responses of Describe calls; everything else is moto's."""

    def __init__(self, state: Any, lifecycle_state: str) -> None:
        self._state = state
        self.lifecycle_state = lifecycle_state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


def apply(is_ready: Callable[[str], bool], terminating: set[str]) -> None:
    def show(state: Any) -> Any:
        if state.instance.id in terminating:
            return Shown(state, "Terminating")
        if (
            state.lifecycle_state == "InService"
            and state.instance.state == "running"
            and not is_ready(state.instance.id)
        ):
            return Shown(state, "Pending")
        return state

    def instances(self: Any) -> list[Any]:
        return [show(state) for state in self.instance_states]

    FakeAutoScalingGroup.instances = property(instances)

    @wrap(AutoScalingBackend, "describe_auto_scaling_instances")
    def describe(original: Callable[..., list[Any]], self: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return [show(state) for state in original(self, *args, **kwargs)]
