"""Sends the events of instances that change their state; moto sends none. See moto_termination for their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.ec2.models.instances import Instance, InstanceBackend

from ..service_events import events
from ._wrap import wrap


def apply() -> None:
    @wrap(InstanceBackend, "run_instances")
    def run(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
        reservation = original(self, *args, **kwargs)
        for instance in reservation.instances:
            for state in ("pending", "running"):
                events.instance_changed(instance.id, state)
        return reservation

    for call, states in (("start", ("pending", "running")), ("stop", ("stopping", "stopped"))):

        @wrap(Instance, call)
        def change(
            original: Callable[..., Any], self: Any, *args: Any, states: tuple[str, ...] = states, **kwargs: Any
        ) -> Any:
            previous = original(self, *args, **kwargs)
            if previous.name != self._state.name:
                for state in states:
                    events.instance_changed(self.id, state)
            return previous
