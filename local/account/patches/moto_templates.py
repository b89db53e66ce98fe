"""Returns the correct errors for missing launch templates, and lists templates with their current tags.

The error depends on whether a template was named by id or by name. moto confuses these errors, shows the original tags
of a template, and lists at most 15 templates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.ec2.exceptions import InvalidLaunchTemplateIdNotFound, InvalidLaunchTemplateNameNotFoundWithNameError
from moto.ec2.models.launch_templates import LaunchTemplateBackend
from moto.ec2.responses.launch_templates import LaunchTemplates

from ._wrap import wrap

MOST = 200
"""The maximum on a page of EC2."""


def apply() -> None:
    @wrap(LaunchTemplates, "describe_launch_templates")
    def listed(original: Callable[..., Any], self: Any) -> Any:
        self.params = {"MaxResults": MOST, **self.params}
        return original(self)

    @wrap(LaunchTemplateBackend, "describe_launch_templates")
    def described(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
        templates = original(self, *args, **kwargs)
        for template in templates:
            template.tags = template.get_tags()
        return templates

    @wrap(LaunchTemplateBackend, "delete_launch_template")
    def delete(original: Callable[..., Any], self: Any, name: str | None, tid: str | None) -> Any:
        if name and name not in self.launch_template_name_to_ids:
            raise InvalidLaunchTemplateNameNotFoundWithNameError(name)
        if tid and tid not in self.launch_templates:
            raise InvalidLaunchTemplateIdNotFound(tid)
        return original(self, name, tid)
