"""Instances of a group with weighted overrides say what they weigh.

moto computes with the first override's weight but never shows it, so capacity in the group's own units cannot be told.
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
