"""Tells the two sides of a comparison within a run apart: the candidate, which is the file as it is, and its baseline.

Pure. A baseline of parameters alone is compared on the same nodes: candidate and baseline are two points of each cell,
one after the other. Any other baseline needs nodes of its own: candidate and baseline are two cells of each round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from troop.bench.definition.definition import Phase, Point, identity

PARAMETERS = "parameters."
"""The beginning of keys that name a parameter."""

ITSELF = "parameters.aa"
"""A baseline that compares a benchmark with itself on the same nodes: no script reads it, and no file needs to have it.
"""


def on_same_nodes(baseline: Mapping[str, Any]) -> bool:
    """Checks whether candidate and baseline are points of the same cells; if not, they are cells of the same rounds,
    or there is no baseline.

    Args:
        baseline: values by key, as in the file.
    """
    return bool(baseline) and all(key.startswith(PARAMETERS) for key in baseline)


def is_baseline(baseline: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Checks whether something is measured with all values of the baseline.

    Args:
        baseline: values by key, as in the file; {} for none.
        values: the parameters of a point by name; or the values of a cell's variant, by key or as labels name them.
    """
    return bool(baseline) and all(identity(_value(values, key)) == identity(value) for key, value in baseline.items())


def without_baseline(baseline: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values that distinguish pairs from each other: those of a point or cell, without the baseline's keys.

    Candidate and baseline of one pair have the same ones. Arguments as of :func:`is_baseline`.
    """
    keys = {name for key in baseline for name in (key, key.removeprefix(PARAMETERS))}
    return {key: value for key, value in values.items() if key not in keys}


def paired(phase: Phase, parameters: Mapping[str, Any], baseline: Mapping[str, Any]) -> Phase:
    """Returns a phase with each of its points twice, one after the other: as it is, and with the baseline's values.

    Phases that measure nothing, or the effect of faults, stay as they are.

    Args:
        parameters: of the cell.
        baseline: on the same nodes.
    """
    if not phase.is_measured or phase.faults:
        return phase
    theirs = {key.removeprefix(PARAMETERS): value for key, value in baseline.items()}
    own = {name: parameters.get(name, "") for name in theirs}
    points = (
        replace(point, parameters={**point.parameters, **side})
        for point in phase.points or (Point(),)
        for side in (own, theirs)
    )
    return replace(phase, points=tuple(points), paired=True)


def swapped(phase: Phase) -> Phase:
    """Returns a phase whose pairs of points begin with the other side."""
    if not phase.paired:
        return phase
    return replace(phase, points=tuple(phase.points[n ^ 1] for n in range(len(phase.points))))


def _value(values: Mapping[str, Any], key: str) -> Any:
    return values.get(key, values.get(key.removeprefix(PARAMETERS)))
