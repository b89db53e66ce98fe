"""Decides in which order a run starts its cells. Pure: the run's id decides, so anyone can repeat it.

Machines and clouds drift over hours. If all repetitions of a cell ran one after the other, the drift would look like a
difference between cells. So each repetition runs all combinations once, in an order of its own.
"""

from __future__ import annotations

import hmac
from dataclasses import replace

from troop.bench.definition.plan import Plan, PlannedCell


def in_start_order(plan: Plan, run: str) -> Plan:
    """Returns the plan with its cells in the order of their start: repetition by repetition, each in an order that the
    run's id decides. Without repetitions, the order of the file stays.
    """
    if not plan.is_interleaved:
        return plan

    def place(one: PlannedCell) -> tuple[int, bytes]:
        return one.variant.repetition, hmac.digest(run.encode(), one.cell.encode(), "sha256")

    return replace(plan, cells=tuple(sorted(plan.cells, key=place)))
