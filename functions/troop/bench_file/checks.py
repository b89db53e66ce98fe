"""One document against all that is asked of it; and which change has brought what a changed one is refused for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from troop.bench.problems import BadBenchmarkError, Place, Problem
from troop.bench_file import relations
from troop.bench_file.models import BenchmarkIn, FleetIn
from troop.bench_file.structure import parsed


def checked(document: Any, files: Collection[str] | None) -> BenchmarkIn:
    """What a document says, its cells aside.

    Raises:
        BadBenchmarkError: with all that is wrong.
    """
    model, problems = parsed(document, BenchmarkIn)
    if model is not None:
        problems = relations.problems(model, files)
    else:
        problems += relations.of_parts(document, files, FleetIn)
    if model is None or problems:
        raise BadBenchmarkError(problems)
    return model


def brought(problem: Problem, places: Mapping[str, Place], at: Place) -> Problem | None:
    """A problem of a changed document as one of the change at its place; None when it is in none of them.

    Args:
        places: what the changes were put to, by their keys.
        at: where the changes are written.
    """
    for key, place in places.items():
        if problem.place[: len(place)] == place:
            inner = ".".join(map(str, problem.place[len(place) :]))
            return Problem((*at, key), f"{inner} {problem.message}".strip(), problem.allowed)
    return None
