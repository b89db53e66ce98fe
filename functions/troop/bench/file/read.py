"""Reads a benchmark file's document, with one of its sizes and single changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from troop.bench.definition.definition import Benchmark
from troop.bench.definition.plan import Plan
from troop.bench.definition.problems import BadBenchmarkError, Place, Problem, shown
from troop.bench.file import cells
from troop.bench.file.changes import apply_changes
from troop.bench.file.checks import brought, check_document
from troop.bench.file.models import BenchmarkIn
from troop.shared.values import MOST_VALUES, excess

_DEEPEST = 12
"""Maximum levels of a document; twice what the deepest key needs."""


@dataclass(frozen=True)
class ReadFile:
    """A file's benchmark with its size and changes, and the plan of its cells."""

    benchmark: Benchmark
    plan: Plan


def read_all(
    document: Any,
    files: Collection[str] | None = None,
    size: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> ReadFile:
    """Reads the benchmark of a file's document and the cells of its run.

    The unchanged file and each of its sizes must be valid with all their cells, whichever is selected.

    Args:
        document: JSON-like values, as read from YAML.
        files: names of the files in the benchmark's folder; None if unknown, which skips the check for missing files.
        size: which of ``sizes`` to apply; None for none, several with commas between them. A later one wins.
        changes: values by key, applied after the size.

    Raises:
        BadBenchmarkError: with all problems. Places in a size begin with ``sizes.NAME``, in changes with ``set``.
    """
    refuse_excess(document)
    try:
        return _read(document, files, size, changes)
    except cells.NoRoomError:
        message = (
            f"takes more than {cells.LARGEST_PLAN:,} bytes for the cells of all sizes together, without repetitions"
        )
        raise BadBenchmarkError([Problem((), message, "split into several files")]) from None


def _read(
    document: Any, files: Collection[str] | None, size: str | None, changes: Mapping[str, Any] | None
) -> ReadFile:
    room = cells.Room()
    checked_model = check_document(document, files)
    problems: list[Problem] = []
    variants = {}
    try:
        plan = cells.plan(document, checked_model, files, None, room)
    except BadBenchmarkError as bad:
        problems += bad.problems
    for name, values in checked_model.sizes.items():
        try:
            variants[name] = _variant(document, values, ("sizes", name), files, name, room)
        except BadBenchmarkError as bad:
            # Report problems of the file's own cells only once.
            problems += [p for p in bad.problems if not (problems and p.place == ("sizes", name))]
    chosen = [] if size is None else list(dict.fromkeys(size.split(",")))
    for name in chosen:
        if name not in checked_model.sizes:
            allowed = (
                f"one of {', '.join(checked_model.sizes)}" if checked_model.sizes else "left out: the file has no sizes"
            )
            problems.append(Problem(("size",), f"is {shown(name)}", allowed))
    if problems:
        raise BadBenchmarkError(problems)
    base, model = document, checked_model
    size = ",".join(chosen) if chosen else None
    room = cells.Room()  # a file that is valid has room for each choice of its sizes
    for n, name in enumerate(chosen):
        if n == 0:
            base, model, plan = variants[name]
        else:
            base, model, plan = _combined(base, name, checked_model.sizes[name], files, size, room)
    if changes:
        _, model, plan = _variant(base, changes, ("set",), files, size, cells.Room())
    return ReadFile(model.build(size, tuple(files or ())), plan)


def _combined(
    document: Mapping[str, Any],
    name: str,
    values: Mapping[str, Any],
    files: Collection[str] | None,
    size: str | None,
    room: cells.Room,
) -> tuple[Any, BenchmarkIn, Plan]:
    """Applies another size, which is valid alone, to a document; locates problems at the choice of sizes."""
    try:
        return _variant(document, values, ("sizes", name), files, size, room)
    except BadBenchmarkError as bad:
        raise BadBenchmarkError(
            Problem(("size",), f"is {shown(size)}: {p.where} {p.message}", p.allowed) for p in bad.problems
        ) from None


def _variant(
    document: Mapping[str, Any],
    values: Mapping[str, Any],
    at: Place,
    files: Collection[str] | None,
    size: str | None,
    room: cells.Room,
) -> tuple[Any, BenchmarkIn, Plan]:
    """Returns the changed document, its model and its plan; locates problems at the change that causes them."""
    changed, places, problems = apply_changes(document, values, at)
    if problems:
        raise BadBenchmarkError(problems)
    try:
        model = check_document(changed, files)
        plan = cells.plan(changed, model, files, size, room)
    except BadBenchmarkError as bad:
        raise BadBenchmarkError(brought(p, places, at) or somewhere(p, at) for p in bad.problems) from None
    if problems := cells.without_effect(values, model, at):
        raise BadBenchmarkError(problems)
    return changed, model, plan


def somewhere(problem: Problem, at: Place) -> Problem:
    """Locates a problem of a changed document at all changes together, because no single one causes it."""
    return Problem(at, f"makes a file in which {problem.where} {problem.message}", problem.allowed)


def refuse_excess(document: Any) -> None:
    """Raises BadBenchmarkError for a document with too many values, or more levels than a valid one can have."""
    if too_much := excess(document, _DEEPEST, MOST_VALUES):
        raise BadBenchmarkError([Problem((), too_much, "what the schema describes, and smaller")])
