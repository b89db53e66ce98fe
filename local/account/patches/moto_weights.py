"""Shows the weights of instances in groups with weighted overrides.

moto computes with the weight of the first override but never shows it, so the capacity in the group's units is unknown.
"""

from __future__ import annotations

from typing import Any

from moto.autoscaling.models import InstanceState

from .moto_placement import overrides_of


def apply() -> None:
    InstanceState.weighted_capacity = property(_weight)


def _weight(self: Any) -> str | None:
    overrides = overrides_of(self.auto_scaling_group)
    return overrides[0].get("WeightedCapacity") if overrides else None
