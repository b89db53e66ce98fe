"""From a file's document to the benchmark that is run, with one of its sizes and single changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from troop.bench.definition import Benchmark
from troop.bench.problems import BadBenchmarkError, Place, Problem, shown
from troop.bench_file import relations
from troop.bench_file.changes import apply
from troop.bench_file.models import BenchmarkIn
from troop.bench_file.structure import parsed

_DEEPEST = 12
"""Levels of a document; twice what the deepest key needs."""


def read(
    document: Any,
    files: Collection[str] | None = None,
    size: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Benchmark:
    """The benchmark of a file's document.

    The file as it stands and each of its sizes must be right, whichever is chosen.

    Args:
        document: JSON-like values, as read from YAML.
        files: names of what lies beside the file; None when that is not known, and then none is missed.
        size: which of ``sizes`` to apply; None for the file as it stands.
        changes: values by key, applied after the size.

    Raises:
        BadBenchmarkError: with all that is wrong. Places in a size begin ``sizes.NAME``, in changes ``set``.
    """
    if _is_deep(document):
        raise BadBenchmarkError([Problem((), f"is nested deeper than {_DEEPEST} levels", "what the schema describes")])
    found = _checked(document, files)
    variants = {}
    problems: list[Problem] = []
    for name, values in found.sizes.items():
        try:
            variants[name] = _variant(document, values, ("sizes", name), files)
        except BadBenchmarkError as bad:
            problems += bad.problems
    if size is not None and size not in found.sizes:
        allowed = f"one of {', '.join(found.sizes)}" if found.sizes else "left out: the file has no sizes"
        problems.append(Problem(("size",), f"is {shown(size)}", allowed))
    if problems:
        raise BadBenchmarkError(problems)
    base, model = variants[size] if size is not None else (document, found)
    if changes:
        _, model = _variant(base, changes, ("set",), files)
    return model.made(size, tuple(files or ()))


def _checked(document: Any, files: Collection[str] | None) -> BenchmarkIn:
    found, problems = parsed(document)
    if found is not None:
        problems = relations.problems(found, files)
    if found is None or problems:
        raise BadBenchmarkError(problems)
    return found


def _variant(
    document: Mapping[str, Any], values: Mapping[str, Any], at: Place, files: Collection[str] | None
) -> tuple[Any, BenchmarkIn]:
    """The document with changes, and what it is; problems are at the change that brings them."""
    changed, places, problems = apply(document, values, at)
    if problems:
        raise BadBenchmarkError(problems)
    try:
        return changed, _checked(changed, files)
    except BadBenchmarkError as bad:
        raise BadBenchmarkError(_brought(problem, places, at) for problem in bad.problems) from None


def _brought(problem: Problem, places: Mapping[str, Place], at: Place) -> Problem:
    """A problem of a changed document, as one of the change."""
    for key, place in places.items():
        if problem.place[: len(place)] == place:
            inner = ".".join(map(str, problem.place[len(place) :]))
            return Problem((*at, key), f"{inner} {problem.message}".strip(), problem.allowed)
    return Problem(at, f"makes a file in which {problem.where} {problem.message}", problem.allowed)


def _is_deep(document: Any) -> bool:
    level = [document]
    for _ in range(_DEEPEST):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, Mapping):
                inner += value.values()
            elif isinstance(value, list):
                inner += value
        if not inner:
            return False
        level = inner
    return True
