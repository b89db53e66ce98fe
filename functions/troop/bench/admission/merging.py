"""Limits what nodes store, so that a function merges all of it in half of its time.

It must never fail for lack of time: then nodes have been paid, and nothing is left of the cell.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from troop.bench.definition.definition import Benchmark, to_document
from troop.bench.definition.plan import Plan
from troop.bench.definition.problems import Problem
from troop.measure.summary_size import TARGET_BYTES

FUNCTION_SECONDS = 300
"""The time of a call of the function that merges."""
SECONDS_A_MIB = 0.1
"""Seconds to read and merge a MiB of summaries, with their packed counts (:func:`troop.measure.summary_size.weight`).
Measured: 0.05 to 0.09 s, from 1 to 256 operations of 10 minutes to 8 hours.
"""
MOST_SECONDS = FUNCTION_SECONDS // 2
MOST_MIB = MOST_SECONDS / SECONDS_A_MIB
LEAST_MIB = 0.85
"""Results in MiB that a node must be able to store: ten operations of 40 minutes, with their counts by second and times
over time.
"""
LEAST_MIB_WITH_FAULTS = 2.5
"""The same with ten operations of 25 minutes in steps of a second: a fault is judged by its seconds."""


def most_bytes(benchmark: Benchmark) -> int:
    """Returns the bytes of a node's summary above which the agent leaves data out."""
    return min(TARGET_BYTES, int(MOST_MIB / max(1, _summaries(benchmark)) * (1 << 20)))


def for_nodes(benchmark: Benchmark) -> dict[str, Any]:
    """Returns the document of a cell's benchmark, with the limit of a summary for its nodes."""
    return {**to_document(benchmark), "summary_bytes": most_bytes(benchmark)}


def budget(plan: Plan) -> dict[str, int]:
    """Returns the most seconds of processor time to merge the results of the largest cell, and how many are allowed."""
    each = (_summaries(cell.benchmark) * most_bytes(cell.benchmark) for cell in plan.cells)
    return {"seconds": ceil(max(each, default=0) / (1 << 20) * SECONDS_A_MIB), "most": MOST_SECONDS}


def unmergeable(benchmark: Benchmark) -> list[Problem]:
    """Lists the problem of a cell whose summaries are too many to be merged in time."""
    least = LEAST_MIB_WITH_FAULTS if any(phase.faults for phase in benchmark.phases) else LEAST_MIB
    number, most = _summaries(benchmark), int(MOST_MIB / least)
    if number <= most:
        return []
    message = f"with `measured` write {number} summaries that are merged together"
    allowed = f"at most {most}: use fewer nodes, fewer of these phases, or points, which are merged one by one"
    return [Problem(("phases",), message, allowed)]


def _summaries(benchmark: Benchmark) -> int:
    """Returns how many summaries one call merges: of all phases without points, and of the last point."""
    nodes = {fleet.role: fleet.count for fleet in benchmark.fleets}
    measured = [phase for phase in benchmark.phases if phase.is_measured]
    points = {step.phase_name for step in benchmark.steps if step.point is not None}
    several = {phase.name: sum(nodes.get(role, 0) for role in phase.roles) for phase in measured}
    whole = sum(count for name, count in several.items() if name not in points)
    return whole + max((count for name, count in several.items() if name in points), default=0)
