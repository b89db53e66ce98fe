"""Decides in which order a run starts its cells, and whether candidate or baseline begins. Pure: the run's id decides,
so anyone can repeat it.

Machines and clouds drift over hours. If all repetitions of a cell ran one after the other, the drift would look like a
difference between cells. So each repetition runs all combinations once, in an order of its own. Candidate and baseline
of a pair follow each other, and of each combination both begin equally often.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import replace

from troop.bench.definition.baseline import is_baseline, swapped, without_baseline
from troop.bench.definition.definition import plain_parameter
from troop.bench.definition.plan import Plan, PlannedCell


def in_start_order(plan: Plan, run: str) -> Plan:
    """Returns the plan with its cells in the order of their start: repetition by repetition, each in an order that the
    run's id decides. Without repetitions and baseline, the order of the file stays.
    """
    first_cells: dict[str, str] = {}
    for one in plan.cells:
        first_cells.setdefault(_combination(one), one.cell)
        first_cells.setdefault(_pair(one), one.cell)

    def key(text: str) -> bytes:
        return hmac.digest(run.encode(), text.encode(), "sha256")

    def is_reversed(one: PlannedCell) -> bool:
        first = key(f"{first_cells[_combination(one)]} begins")
        return bool((first[0] ^ one.variant.repetition) & 1)

    def place(one: PlannedCell) -> tuple[int, bytes, bool]:
        is_second = is_baseline(plan.baseline, one.variant.values) != is_reversed(one)
        return one.variant.repetition, key(first_cells[_pair(one)]), is_second

    cells = sorted(plan.cells, key=place) if plan.is_interleaved else plan.cells
    return replace(plan, cells=tuple(_reversed(one) if is_reversed(one) else one for one in cells))


def _combination(one: PlannedCell) -> str:
    """Returns what is the same for all repetitions of a pair."""
    values = without_baseline(one.benchmark.baseline, one.variant.values)
    return json.dumps([one.variant.scale, plain_parameter(values)], sort_keys=True)


def _pair(one: PlannedCell) -> str:
    return f"{_combination(one)} #{one.variant.repetition}"


def _reversed(one: PlannedCell) -> PlannedCell:
    """Returns the cell with the baseline first in its pairs of points, if it has any."""
    if not any(phase.paired for phase in one.benchmark.phases):
        return one
    return replace(one, benchmark=replace(one.benchmark, phases=tuple(map(swapped, one.benchmark.phases))))
