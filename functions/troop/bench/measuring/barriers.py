"""Builds barriers: documents that the workflow writes and that all nodes read before a phase.

Each exists from the start in the state hold. Its release is written once and never changes, because nodes may have
read it. A point's parameters are in its release, not in the definition that nodes read before, so that nothing but the
workflow must know them before the point begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from troop.bench.definition.definition import Benchmark, Phase, Step
from troop.bench.definition.planned_fault import STEP_SECONDS
from troop.bench.definition.roster import Roster
from troop.bench.definition.victims import victims
from troop.shared import codec

FORMAT = "troop.barrier/1"

LEAST_MARGIN, MOST_MARGIN = 8.0, 60.0
"""Minimum and maximum seconds from a release to the common start. A node whose address is refused just then signs
another one in this time.
"""

UNCERTAINTIES = 4
"""Twice a clock's uncertainty in each direction; the other half gives the agent time for preparation."""

NODES_A_SECOND = 50
"""Number of nodes for which the margin grows by a second: all fetch roster and barrier at the same time."""


A_SKIPPED_STEP = 5.0
"""Seconds by which the margin grows for each step that a search has left out: nodes read the barrier of each of them,
one after another, before they read the next one."""


class BarrierState(StrEnum):
    """State of a barrier. END: nodes stop waiting and end."""

    HOLD = "hold"
    RELEASE = "release"
    END = "end"


def barrier(step: Step, state: BarrierState) -> dict[str, Any]:
    """Returns a barrier's document without a start."""
    phase = step.phase
    document = {
        "format": FORMAT,
        "phase": step.name,
        "state": state.value,
        "script": phase.script,
        "timeout_seconds": phase.timeout,
        "start_up_seconds": phase.start_up,
        "warm_up_seconds": phase.warm_up,
        "measured_seconds": phase.measured,
        "start_at": None,
    }
    return document | ({"point": step.point.number} if step.point else {})


def release(step: Step, now: datetime, roster: Roster, skipped: int = 0) -> dict[str, Any]:
    """Returns the document that releases all nodes; only the workflow reads ``released_at``, ``repeat`` and
    ``skipped``.

    The argument ``skipped`` is the number of steps before this one that were released at the same time without nodes.

    Nodes add ``parameters`` to those of the benchmark. ``nodes`` limits how many nodes of a role take part. ``faults``
    lists what the nodes themselves carry out, and ``step_seconds`` is the length of steps in which they store times.
    """
    start_at = None
    if step.phase.start_together:
        doubt = margin(len(roster.members), roster.clock_uncertainty, skipped)
        start_at = now.timestamp() + doubt + step.phase.start_up
    document = barrier(step, BarrierState.RELEASE)
    document |= {"parameters": codec.to_document(step.point)["parameters"]} if step.point else {}
    document |= {"nodes": dict(step.limits)} if step.limits else {}
    if step.search and step.point:
        document |= {"repeat": step.point.repeat, "skipped": step.is_skipped}
    if step.phase.faults and start_at is not None:
        document |= {"step_seconds": STEP_SECONDS, "faults": list(_faults(step.phase, roster, start_at))}
    return document | {"start_at": start_at, "released_at": now.timestamp()}


def _faults(phase: Phase, roster: Roster, start_at: float) -> Iterator[dict[str, Any]]:
    """Yields the faults on nodes, with moments of the common clock in seconds since 1970."""
    for number, fault in enumerate(phase.faults, 1):
        if fault.unit is None:
            begin_at = start_at + phase.warm_up + fault.at
            yield {
                "number": number,
                "method": fault.method,
                "script": fault.script,
                "delay_ms": fault.delay,
                "begin_at": begin_at,
                "end_at": None if fault.lasts is None else begin_at + fault.lasts,
                "nodes": [one.id for one in victims(fault, roster, phase)],
            }


def chosen(benchmark: Benchmark, step: Step, document: Mapping[str, Any]) -> Step:
    """Returns a step of a search as its released barrier has it; other steps unchanged."""
    if step.search is None:
        return step
    if document["skipped"]:
        return step.skipped()
    return benchmark.step_at(step, document["parameters"], document["repeat"])


def margin(nodes: int, clock_uncertainty: float, skipped: int = 0) -> float:
    """Computes the seconds from a release to the common start."""
    seconds = LEAST_MARGIN + UNCERTAINTIES * clock_uncertainty + nodes / NODES_A_SECOND + skipped * A_SKIPPED_STEP
    return max(LEAST_MARGIN, min(MOST_MARGIN, seconds))


def is_released(document: Mapping[str, Any]) -> bool:
    return bool(document["state"] == BarrierState.RELEASE)


def began(document: Mapping[str, Any]) -> datetime:
    """Returns when a released phase begins: at its common start if it has one, otherwise at its release."""
    start_at = document["start_at"]
    return datetime.fromtimestamp(document["released_at"] if start_at is None else start_at, UTC)
