"""Describes how a run compares the candidate with its baseline, and what weakens the comparison. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from troop.bench.definition.plan import Plan, Variant
from troop.shared.formatting import counted


def design(plan: Plan) -> str:
    """Returns a sentence about the pairs of a run; "" without a baseline."""
    if not plan.baseline:
        return ""
    pairs = _pairs(plan)
    combinations = len(plan.cells) // pairs
    if plan.has_pairs:
        subject, settings, place, order = "cells", combinations // 2, "on different nodes", "in rounds"
    else:
        points = sum(len(phase.points) // 2 for phase in plan.cells[0].benchmark.phases if phase.paired)
        subject, settings, place, order = "points", combinations * points, "on the same nodes", "in balanced order"
    where = f"for each of {settings:,} settings, {place}" if settings > 1 else place
    ordered = f", {order}" if pairs > 1 else ""
    label = Variant(values=plan.baseline).label
    return f"{counted(pairs, 'pair')} of {subject} {where}{ordered}; compared with {label}"


def design_warnings(plan: Plan) -> Iterator[str]:
    """Yields sentences about what makes a comparison with the baseline weak."""
    if not plan.baseline:
        return
    if _pairs(plan) < 2:
        yield "a single pair has no interval, and says nothing about noise: set repetitions, to 6 if you can"
    phases = {phase.name: phase for one in plan.cells for phase in one.benchmark.phases if phase.paired}
    for phase in phases.values():
        if phase.between is None:
            yield f"nothing restores the state before each point of the phase {phase.name}: set its between"


def _pairs(plan: Plan) -> int:
    """Returns the number of pairs of each setting: the repeats of a point are on the same nodes, and count as one."""
    return max(one.variant.repetition for one in plan.cells)
