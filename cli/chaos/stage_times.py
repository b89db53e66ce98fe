"""Computes how long each stage of a recovery took, of an event as the API gives it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troop.shared import moments

STAGES = ("noticed", "launched", "in_service", "healthy", "recovered")
"""The stages in their order, each by the moment that ends it."""


def stage_seconds(event: Mapping[str, Any]) -> dict[str, float]:
    """Returns the seconds of each stage, in the order of :data:`STAGES`; together they are the recovery's.

    A stage whose end is not known belongs to the next one. Clocks differ: a stage that ended before the one before it
    took 0 s. ``healthy`` ends when the replacement is healthy in every traffic source. Empty for an event that has not
    recovered, or whose stages were not recorded.
    """
    began, whole, stages = event.get("terminated_at"), event.get("recovered_at"), event.get("stages")
    if not (began and whole and stages):
        return {}
    healthy = [one["at"] for one in stages["healthy"]]
    ends = {name: stages[name] for name in ("noticed", "launched", "in_service")}
    ends |= {"healthy": max(healthy) if healthy and all(healthy) else None, "recovered": whole}
    before, last = moments.parse(began), moments.parse(whole)
    seconds = {}
    for name in STAGES:
        if ends[name]:
            end = max(before, min(moments.parse(ends[name]), last))
            seconds[name] = (end - before).total_seconds()
            before = end
    return seconds
