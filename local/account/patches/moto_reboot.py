"""Reboots the process of an instance; moto only changes the instance's state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.ec2.models.instances import InstanceBackend

from ._wrap import wrap


def apply(reboot: Callable[[str], None]) -> None:
    @wrap(InstanceBackend, "reboot_instances")
    def rebooted(original: Callable[..., Any], self: Any, instance_ids: list[str]) -> Any:
        instances = original(self, instance_ids)
        for instance in instances:
            reboot(instance.id)
        return instances
