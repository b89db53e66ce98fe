"""Adds placement groups, which moto does not have: creating, describing and deleting them, and launching into them.

Where instances are placed has no effect here. A group that a launch names must exist, and cannot be deleted while an
instance of it exists.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.models.instances import InstanceBackend
from moto.ec2.responses import EC2Response
from moto.ec2.utils import generic_filter, random_id

from ._wrap import wrap


class PlacementGroup(TaggedEC2Resource):  # type: ignore[misc]  # moto has no types
    """A placement group."""

    def __init__(self, backend: Any, name: str, strategy: str, partitions: int | None) -> None:
        self.ec2_backend = backend
        self.id = random_id(prefix="pg")
        self.name, self.strategy, self.partitions = name, strategy, partitions

    @property
    def group_name(self) -> str:
        """Returns the value of the filter ``group-name``."""
        return self.name

    def description(self) -> dict[str, Any]:
        tags = [{"Key": tag["key"], "Value": tag["value"]} for tag in self.get_tags()]
        described = {"GroupId": self.id, "GroupName": self.name, "State": "available", "Strategy": self.strategy}
        return described | {"PartitionCount": self.partitions, "Tags": tags}


def groups_of(backend: Any) -> dict[str, PlacementGroup]:
    """Returns the placement groups of an account and region by name. A reset of moto removes them."""
    groups: dict[str, PlacementGroup] = backend.__dict__.setdefault("placement_groups", {})
    return groups


@cache
def apply() -> None:
    EC2Response.create_placement_group = _create
    EC2Response.describe_placement_groups = _describe
    EC2Response.delete_placement_group = _delete

    @wrap(InstanceBackend, "run_instances")
    def run(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
        template = kwargs.get("launch_template")
        data = self._get_template_from_args(template).data if template else {}
        name = (data.get("Placement") or {}).get("GroupName", "")
        if name and name not in groups_of(self):
            raise _unknown(name)
        reservation = original(self, *args, **kwargs)
        for instance in reservation.instances:
            instance.placement.group_name = name
        return reservation


def _create(self: Any) -> ActionResult:
    name, groups = self._get_param("GroupName"), groups_of(self.ec2_backend)
    if name in groups:
        raise EC2ClientError("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
    partitions = self._get_param("PartitionCount")
    group = PlacementGroup(self.ec2_backend, name, self._get_param("Strategy"), partitions and int(partitions))
    group.add_tags(self._parse_tag_specification().get("placement-group", {}))
    groups[name] = group
    return ActionResult({"PlacementGroup": group.description()})


def _describe(self: Any) -> ActionResult:
    groups = groups_of(self.ec2_backend)
    named = self._get_param("GroupNames", []) or self._get_param("GroupName", [])
    for name in named:
        if name not in groups:
            raise _unknown(name)
    chosen = [groups[name] for name in named] if named else list(groups.values())
    matching = generic_filter(self._filters_from_querystring(), chosen)
    return ActionResult({"PlacementGroups": [group.description() for group in matching]})


def _delete(self: Any) -> ActionResult:
    name, groups = self._get_param("GroupName"), groups_of(self.ec2_backend)
    if name not in groups:
        raise _unknown(name)
    every = (instance for one in self.ec2_backend.reservations.values() for instance in one.instances)
    if any(one.placement.group_name == name and one.state != "terminated" for one in every):
        message = f"The placement group '{name}' is in use and may not be deleted."
        raise EC2ClientError("InvalidPlacementGroup.InUse", message)
    self.ec2_backend.delete_tags([groups.pop(name).id], {})
    return ActionResult({"Return": True})


def _unknown(name: str) -> EC2ClientError:
    return EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
