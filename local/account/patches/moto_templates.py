"""A launch template that is not there is told apart by how it was named; moto mixes the errors up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.ec2.exceptions import InvalidLaunchTemplateIdNotFound, InvalidLaunchTemplateNameNotFoundWithNameError
from moto.ec2.models.launch_templates import LaunchTemplateBackend

from ._wrap import wrap


def apply() -> None:
    @wrap(LaunchTemplateBackend, "delete_launch_template")
    def delete(original: Callable[..., Any], self: Any, name: str | None, tid: str | None) -> Any:
        if name and name not in self.launch_template_name_to_ids:
            raise InvalidLaunchTemplateNameNotFoundWithNameError(name)
        if tid and tid not in self.launch_templates:
            raise InvalidLaunchTemplateIdNotFound(tid)
        return original(self, name, tid)
