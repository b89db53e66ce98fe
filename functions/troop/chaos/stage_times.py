"""Computes how long each stage of a recovery took. Pure."""

from __future__ import annotations

from datetime import datetime

from troop.chaos.stages import Stages

STAGES = ("noticed", "launched", "in_service", "healthy", "recovered")
"""The stages in their order, each by the moment that ends it."""


def stage_seconds(began: datetime | None, stages: Stages | None, recovered: datetime | None) -> dict[str, float]:
    """Returns the seconds of each stage, in the order of :data:`STAGES`; together they are the recovery's.

    A stage whose end is not known belongs to the next one. Clocks differ: a stage that ended before the one before it
    took 0 s. ``healthy`` ends when the replacement is healthy in every traffic source. Empty for an event that has not
    recovered, or whose stages were not recorded.

    Args:
        began: the moment from which the recovery counts; None for an instance that stays, which nothing replaces.
    """
    if not (began and stages and recovered):
        return {}
    healthy = [one.at for one in stages.healthy]
    known = [at for at in healthy if at]
    ends = (
        stages.noticed,
        stages.launched,
        stages.in_service,
        max(known) if known and len(known) == len(healthy) else None,
        recovered,
    )
    seconds: dict[str, float] = {}
    before = began
    for name, end in zip(STAGES, ends, strict=True):
        if end:
            end = max(before, min(end, recovered))
            seconds[name] = (end - before).total_seconds()
            before = end
    return seconds
