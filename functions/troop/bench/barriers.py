"""Barriers: what the workflow writes and all nodes read before a phase.

Each exists from the start and says hold; its release is written once and never changed, for nodes may have seen it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from troop.bench.definition import Phase

FORMAT = "troop.barrier/1"

LEAST_MARGIN, MOST_MARGIN = 5.0, 60.0
"""Seconds from a release to the common start, at least and at most. In five, every node has looked a few times."""

UNCERTAINTIES = 4
"""A node's clock may be wrong by its uncertainty in each direction; the rest is for what its agent has yet to do."""

NODES_A_SECOND = 50
"""A second more for so many nodes, which all fetch roster and barrier at once."""


class BarrierState(StrEnum):
    """END: stop waiting, and do nothing more."""

    HOLD = "hold"
    RELEASE = "release"
    END = "end"


def barrier(phase: Phase, state: BarrierState) -> dict[str, Any]:
    """A barrier's document, as yet without a start."""
    return {
        "format": FORMAT,
        "phase": phase.name,
        "state": state.value,
        "script": phase.script,
        "timeout_seconds": phase.timeout,
        "warm_up_seconds": phase.warm_up,
        "measured_seconds": phase.measured,
        "start_at": None,
    }


def release(phase: Phase, now: datetime, nodes: int, clock_uncertainty: float) -> dict[str, Any]:
    """The document that lets ``nodes`` nodes go; ``released_at`` is for the workflow itself."""
    start_at = now.timestamp() + margin(nodes, clock_uncertainty) if phase.start_together else None
    document = barrier(phase, BarrierState.RELEASE)
    return document | {"start_at": start_at, "released_at": now.timestamp()}


def margin(nodes: int, clock_uncertainty: float) -> float:
    """Seconds from a release until its phase starts on all nodes."""
    seconds = LEAST_MARGIN + UNCERTAINTIES * clock_uncertainty + nodes / NODES_A_SECOND
    return max(LEAST_MARGIN, min(MOST_MARGIN, seconds))


def is_released(document: Mapping[str, Any]) -> bool:
    return bool(document["state"] == BarrierState.RELEASE)


def began(document: Mapping[str, Any]) -> datetime:
    """When a released phase begins: at its common start, or else when it was released."""
    start_at = document["start_at"]
    return datetime.fromtimestamp(document["released_at"] if start_at is None else start_at, UTC)
