"""Checks one document, and finds the change that causes a problem of a changed document."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from troop.bench.definition.problems import BadBenchmarkError, Place, Problem
from troop.bench.file import relations
from troop.bench.file.models import BenchmarkIn, FleetIn
from troop.bench.file.structure import parse_structure


def check_document(document: Any, files: Collection[str] | None) -> BenchmarkIn:
    """Returns a document's model. Does not check its cells.

    Raises:
        BadBenchmarkError: with all problems.
    """
    model, problems = parse_structure(document, BenchmarkIn)
    if model is not None:
        problems = relations.problems(model, files)
    else:
        problems += relations.part_problems(document, files, FleetIn)
    if model is None or problems:
        raise BadBenchmarkError(problems)
    return model


def brought(problem: Problem, places: Mapping[str, Place], at: Place) -> Problem | None:
    """Attributes a problem of a changed document to the change at its place; None if no change is there.

    Args:
        places: the changed places, by the keys of the changes.
        at: where the changes are written.
    """
    for key, place in places.items():
        if problem.place[: len(place)] == place:
            inner = ".".join(map(str, problem.place[len(place) :]))
            return Problem((*at, key), f"{inner} {problem.message}".strip(), problem.allowed)
    return None
