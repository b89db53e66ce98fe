"""Keeps a terminated instance in shutting-down for a while, with its volumes, interfaces and security groups.

moto terminates it within the call, and deletes a security group that is in use.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.models.instances import Instance, InstanceState, StateReason
from moto.ec2.models.security_groups import SecurityGroupBackend

from ..delays import Delays
from ..service_events import events
from ..subjects import backend
from ._wrap import wrap

USER_SHUTDOWN = "Client.UserInitiatedShutdown"
"""EC2's state reason of an instance that a caller has terminated."""


OWN_SHUTDOWN = "Client.InstanceInitiatedShutdown"
"""EC2's state reason of an instance that has turned itself off."""


def apply(delays: Delays) -> None:
    """Applies the patch. `delays`: for the shutdown of instances."""

    @wrap(Instance, "terminate")
    def terminate(original: Callable[..., Any], self: Any) -> Any:
        previous = copy.copy(self._state)
        if previous.name not in ("shutting-down", "terminated"):
            self._state = InstanceState("shutting-down", 32)
            events.instance_changed(self.id, "shutting-down")
            # Set at once, as in EC2; callers can replace it afterwards.
            self.state_reason = StateReason(f"{USER_SHUTDOWN}: User initiated shutdown", USER_SHUTDOWN)

            def finish() -> None:
                reason = self.state_reason
                original(self)
                self.state_reason = reason
                events.instance_changed(self.id, "terminated")

            delays.later(finish)
        return previous

    @wrap(SecurityGroupBackend, "delete_security_group")
    def delete(original: Callable[..., Any], self: Any, name: str | None = None, group_id: str | None = None) -> Any:
        group = self.get_security_group_by_name_or_id(group_id or name)
        if group is not None and (_in_use(self, group) or _referenced(self, group)):
            raise DependencyViolationError(f"resource {group.id} has a dependent object")
        return original(self, name, group_id)


def turn_off(instance_id: str, lock: threading.RLock) -> None:
    """Stops or terminates an instance that has turned itself off, as its shutdown behaviour says."""
    with lock:
        instance: Any = backend("ec2").get_instance_by_id(instance_id)
        if instance is None or instance.state != "running":
            return
        ec2, behaviour = backend("ec2"), instance.instance_initiated_shutdown_behavior
        end = ec2.terminate_instances if behaviour == "terminate" else ec2.stop_instances
        end([instance_id])
        instance.state_reason = StateReason(f"{OWN_SHUTDOWN}: Instance initiated shutdown", OWN_SHUTDOWN)
        backend("autoscaling").notify_terminate_instances([instance_id])


def _in_use(backend: Any, group: Any) -> bool:
    return any(group.id == one.id for interface in backend.enis.values() for one in interface.group_set)


def _referenced(backend: Any, group: Any) -> bool:
    others = [one for vpc_groups in backend.groups.values() for one in vpc_groups.values() if one.id != group.id]
    return any(
        rule.source_group.get("GroupId") == group.id
        for other in others
        for rule in (*other.ingress_rules, *other.egress_rules)
    )
