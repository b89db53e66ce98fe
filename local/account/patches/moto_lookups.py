"""Finds resources by their id, so that accounts with tens of thousands of instances can be emulated.

It also computes names once: those that a field of a response can have, and those of the functions of a class.

moto searches all instances and copies their reservations for each volume that it attaches. It searches all volumes for
each launched instance, and the tags of all resources for each instance that a tag filter concerns. The responses here
are the same, but their cost no longer grows with the square of the account.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import moto.core.responses
from moto.core.serialize import AttributePickerContext, XFormedAttributePicker
from moto.ec2.exceptions import InvalidInstanceIdError
from moto.ec2.models.elastic_block_store import EBSBackend
from moto.ec2.models.instances import InstanceBackend
from moto.ec2.models.tags import TagBackend
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix

from ._wrap import wrap

_WILDCARDS = frozenset("*?\\[")


@cache
def apply() -> None:
    InstanceBackend.get_instance = _instance
    moto.core.responses.method_names_from_class = cache(moto.core.responses.method_names_from_class)
    _names_of_a_field()

    @wrap(EBSBackend, "describe_volumes")
    def volumes(
        original: Callable[..., list[Any]], self: Any, volume_ids: Any = None, filters: Any = None
    ) -> list[Any]:
        if filters or not volume_ids or any(one not in self.volumes for one in volume_ids):
            return original(self, volume_ids, filters)
        return [self.volumes[one] for one in dict.fromkeys(volume_ids)]

    @wrap(TagBackend, "describe_tags")
    def tags(original: Callable[..., list[Any]], self: Any, filters: Any = None) -> list[Any]:
        ids = (filters or {}).get("resource-id", ())
        if not ids or any(_WILDCARDS & set(one) for one in ids):
            return original(self, filters)
        if filters.keys() == {"resource-id"}:  # of each instance that a tag filter concerns
            return [
                {"resource_id": one, "key": key, "value": value, "resource_type": _type_of(one)}
                for one in dict.fromkeys(ids)
                for key, value in list(self.tags.get(one, {}).items())
            ]
        named = TagBackend()
        named.tags.update({one: self.tags[one] for one in ids if one in self.tags})
        return original(named, filters)


def _names_of_a_field() -> None:
    """Caches names, which depend only on the shape of the field and on the class of the object."""
    known: dict[Any, tuple[str, ...]] = {}

    @wrap(XFormedAttributePicker, "get_possible_keys")
    def names(original: Callable[..., Any], self: Any, context: AttributePickerContext) -> tuple[str, ...]:
        which = context.obj.__class__, context.key, context.shape, getattr(context.shape, "parent", None)
        if which not in known:
            known[which] = tuple(dict.fromkeys(original(self, context)))
        return known[which]


@lru_cache(maxsize=65536)
def _type_of(resource_id: str) -> str:
    return str(EC2_PREFIX_TO_RESOURCE.get(get_prefix(resource_id), ""))


def _instance(self: Any, instance_id: str) -> Any:
    for reservation in reversed(self.reservations.values()):  # newest first, as moto mostly searches those
        for instance in reservation.instances:
            if instance.id == instance_id:
                return instance
    raise InvalidInstanceIdError(instance_id)
