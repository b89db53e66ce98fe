"""Reads how long each stage of a recovery took, of an event as the API gives it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cli.chaos import course
from troop.chaos import stage_times
from troop.chaos.stages import HealthySince, Stages
from troop.shared import moments


def stage_seconds(event: Mapping[str, Any]) -> dict[str, float]:
    """Returns the seconds of each stage, see :func:`troop.chaos.stage_times.stage_seconds`. Deployments of earlier
    versions do not state them.
    """
    stages = event.get("stages")
    if not stages:
        return {}
    read = Stages(
        noticed=_moment(stages["noticed"]),
        launched=_moment(stages["launched"]),
        in_service=_moment(stages["in_service"]),
        healthy=tuple(HealthySince(one["source"], _moment(one["at"])) for one in stages["healthy"]),
    )
    began = None if course.victim_stays(event) else course.recovers_from(event)
    return stage_times.stage_seconds(_moment(began), read, _moment(event.get("recovered_at")))


def _moment(text: str | None) -> datetime | None:
    return moments.parse(text) if text else None
