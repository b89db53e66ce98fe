"""Applies the search of a phase to a cell: from the verdicts of its points to the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from troop.bench.definition import search
from troop.bench.definition.definition import Benchmark, Step
from troop.bench.definition.search import Progress, Search


def next_step(benchmark: Benchmark, step: Step, entries: Sequence[Mapping[str, Any]] | None) -> Step | None:
    """Returns the next step of a search with the parameters of its point; None if the search is over.

    Args:
        step: as planned.
        entries: of the cell's record, see :func:`troop.bench.measuring.judging.entry`: those of all earlier points.
    """
    if step.search is None:
        return step
    state = _state(step.phase_name, step.search, entries)
    return None if state.next is None else benchmark.step_at(step, {step.search.parameter: state.next}, state.repeat)


def documents(benchmark: Benchmark, entries: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    """Returns where the search of each phase stands, of phases with a point."""
    return [
        search.document(phase.name, phase.search, state, search.EXPECTATIONS if phase.faults else search.LIMITS)
        for phase in benchmark.phases
        if phase.search and (state := _state(phase.name, phase.search, entries)).points
    ]


def _state(phase: str, its: Search, entries: Sequence[Mapping[str, Any]] | None) -> Progress:
    points = sorted((one for one in entries or () if one["phase"] == phase), key=lambda one: one["point"])
    return search.progress(its, [one["held"] for one in points])
