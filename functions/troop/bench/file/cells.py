"""Expands a file to the cells of its run: for each scale step, each combination of the matrix and each repetition.

Every cell is checked as a complete file, with the changes of its scale step and then those of its combination.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from math import prod
from typing import Any

from troop.bench.definition import names
from troop.bench.definition.definition import Benchmark, Parameter, plain_parameter, to_document
from troop.bench.definition.keys import written
from troop.bench.definition.plan import Plan, PlannedCell, Variant
from troop.bench.definition.problems import MOST_PROBLEMS, BadBenchmarkError, Place, Problem
from troop.bench.file import relations
from troop.bench.file.changes import apply_changes
from troop.bench.file.checks import brought, check_document
from troop.bench.file.models import LONGEST_RUN, MOST_CELLS, BenchmarkIn, PhaseIn
from troop.bench.file.points import MOST_POINTS_OF_RUN
from troop.bench.file.tiers import fit_tiers

RUN_KEYS = ("sizes", "scale", "matrix", "repetitions", "parallel")
"""Keys that a cell does not use."""

FIXED = (
    *("name", "expires_after", *RUN_KEYS),
    *("attempts", "budget", "billing", "prices", "accept_unknown_prices", "own_data"),
)
"""Keys that scale steps and the matrix cannot change."""

FIXED_IN_MATRIX = (*FIXED, "traffic")
"""Keys that the matrix cannot change. Traffic is no setting to measure, but a step of more nodes has more of it."""

LARGEST_PLAN = 4 * 1024 * 1024
"""Maximum size in bytes of all cells' documents together: every launch reads them. The combinations of all sizes of a
file together may take as much, because each is resolved and checked.
"""


class NoRoomError(Exception):
    """The combinations of all sizes of a file take more than :data:`LARGEST_PLAN` together."""


@dataclass
class Room:
    """The bytes that further combinations may take."""

    left: int = LARGEST_PLAN

    def take(self, size: int) -> None:
        """Takes bytes, before the work for them is done.

        Raises:
            NoRoomError: fewer are left.
        """
        self.left -= size
        if self.left < 0:
            raise NoRoomError


@dataclass(frozen=True)
class _Combination:
    """A scale step and the matrix values by key."""

    step: str | None
    changes: Mapping[str, Any]
    values: Mapping[str, Parameter]

    @property
    def variant(self) -> Variant:
        return Variant(self.step, self.values)

    @property
    def place(self) -> Place:
        """Where to report a problem that no single change causes."""
        return ("matrix",) if self.values else ("scale", *([self.step] if self.step else []))


def plan(
    document: Mapping[str, Any], model: BenchmarkIn, files: Collection[str] | None, size: str | None, room: Room
) -> Plan:
    """Returns the plan of a valid document.

    Args:
        model: the parsed document.
        files: names of the files in the benchmark's folder; None if unknown, which skips the check for missing files.
        size: the selected size, for the record.
        room: for its combinations; repetitions are no more work.

    Raises:
        BadBenchmarkError: with the first problems, located at ``scale.NAME.KEY`` or ``matrix.KEY`` where possible.
        NoRoomError: there is too little room.
    """
    each = len(json.dumps(document))
    if problems := [*_too_many(each, model), *_twice(model)]:
        raise BadBenchmarkError(problems)
    combinations = list(_combinations(model))
    room.take(each * len(combinations))
    # expires_after covers all cells together: _expiry checks it against the whole plan.
    base = {key: value for key, value in document.items() if key not in RUN_KEYS} | {"expires_after": LONGEST_RUN}
    benchmarks: list[Benchmark] = []
    points = 0
    for combination in combinations:
        if len(problems) >= MOST_PROBLEMS or points > MOST_POINTS_OF_RUN:
            break
        try:
            cell_benchmark = _resolved(base, combination, files).build(size, tuple(files or ()))
            benchmarks.append(replace(cell_benchmark, expires_after=model.expires_after))
            points += _points(cell_benchmark) * model.repetitions
        except BadBenchmarkError as bad:
            problems += bad.problems
    if not problems:
        problems = list(_too_many_points(benchmarks, points, model.repetitions))
    if not problems:
        problems = list(_alike(combinations, benchmarks))
    if problems:
        raise BadBenchmarkError(dict.fromkeys(problems))
    number, cells = count(1), []
    for combination, benchmark in zip(combinations, benchmarks, strict=True):
        for repetition in range(1, model.repetitions + 1):
            variant = Variant(combination.step, combination.values, repetition)
            cells.append(PlannedCell(names.cell_id(next(number)), variant, benchmark))
    whole = Plan(tuple(cells), model.parallel)
    if problems := list(_expiry(whole, model.expires_after)):
        raise BadBenchmarkError(problems)
    return whole


def without_effect(keys: Iterable[str], model: BenchmarkIn, at: Place) -> list[Problem]:
    """Lists changes without effect, because every cell takes the key from its scale step or the matrix."""
    problems = []
    for key in keys:
        if key in model.matrix:
            problems.append(Problem((*at, key), "has no effect: the matrix sets it", f"set as matrix.{key}"))
        elif model.scale and all(key in step for step in model.scale.values()):
            allowed = f"set as scale.STEP.{key}"
            problems.append(Problem((*at, key), "has no effect: all scale steps set it", allowed))
        elif phases := _always_set(key, model):
            setter = "search" if phases[0].search else "points"
            text = f"has no effect: the {setter} of the phase {phases[0].name} set{'s' if phases[0].search else ''} it"
            problems.append(Problem((*at, key), text, f"set as phases.{phases[0].name}.{setter}"))
    return problems


def _always_set(key: str, model: BenchmarkIn) -> list[PhaseIn]:
    """Returns the phases that set the parameter of a key, if that is all that measure."""
    measured = [phase for phase in model.phases if phase.measured]
    name = key.partition(".")[2].partition(".")[0] if key.startswith("parameters.") else ""

    def is_set(phase: PhaseIn) -> bool:
        by_points = bool(phase.points) and all(name in point.parameters for point in phase.points)
        return by_points or bool(phase.search and phase.search.parameter == name)

    return measured if measured and name and all(map(is_set, measured)) else []


def _combinations(model: BenchmarkIn) -> Iterator[_Combination]:
    steps: list[tuple[str | None, Mapping[str, Any]]] = [*model.scale.items()]
    for step, changes in steps or [(None, {})]:
        for values in product(*model.matrix.values()):
            yield _Combination(step, changes, dict(zip(model.matrix, values, strict=True)))


def _too_many(each: int, model: BenchmarkIn) -> Iterator[Problem]:
    """Yields a problem of a run with too many cells, or too many bytes in all of them.

    Args:
        each: the size of the document.
    """
    steps, combined = len(model.scale) or 1, prod(map(len, model.matrix.values()))
    cells = steps * combined * model.repetitions
    if cells > MOST_CELLS:
        place = "repetitions" if steps * combined <= MOST_CELLS else "matrix" if model.matrix else "scale"
        product = f"{steps} x {combined} x {model.repetitions} cells (scale steps, combinations, repetitions)"
        yield Problem((place,), f"makes {product}, {cells} in all", f"smaller: a run has at most {MOST_CELLS} cells")
    elif cells > 1 and (size := each * cells) > LARGEST_PLAN:
        allowed = f"at most {LARGEST_PLAN:,} bytes. Put long parameters into a file in the benchmark's folder"
        yield Problem((), f"takes {size:,} bytes for {cells} cells together", allowed)


def _points(benchmark: Benchmark) -> int:
    return sum(phase.number_of_points for phase in benchmark.phases if phase.has_points)


def _too_many_points(benchmarks: Sequence[Benchmark], points: int, repetitions: int) -> Iterator[Problem]:
    if points > MOST_POINTS_OF_RUN:  # further cells were not looked at
        allowed = f"at most {MOST_POINTS_OF_RUN:,} points in all cells together"
        yield Problem(("phases",), f"make more than {MOST_POINTS_OF_RUN:,} points", allowed)
    if not points or points > MOST_POINTS_OF_RUN:
        return
    size = sum(len(json.dumps(to_document(one))) for one in benchmarks) * repetitions
    if size > LARGEST_PLAN:  # the points of one line in the file can be many
        yield Problem(("phases",), f"take {size:,} bytes in all cells together", f"at most {LARGEST_PLAN:,} bytes")


def _overlap(key: str, other: str) -> bool:
    """Checks whether two keys set the same value, or one of them a part of the other's."""
    return f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.")


def _setters(key: str, model: BenchmarkIn) -> list[PhaseIn]:
    """Returns the phases whose points or search set the parameter of a key."""
    return [phase for phase in model.phases if any(_overlap(key, f"parameters.{name}") for name in _set_by(phase))]


def _set_by(phase: PhaseIn) -> set[str]:
    searched = {phase.search.parameter} if phase.search else set()
    return {name for point in phase.points for name in point.parameters} | searched


def _twice(model: BenchmarkIn) -> Iterator[Problem]:
    keys: list[Place] = [("matrix", key) for key in model.matrix]
    keys += [("scale", step, key) for step, changes in model.scale.items() for key in changes]
    for at in keys:
        for phase in _setters(str(at[-1]), model):
            key = "search" if phase.search else "points"
            yield Problem(at, f"is also set by the {key} of the phase {phase.name}", "in only one of them")
    for step, changes in model.scale.items():
        for key in changes:
            if key in model.matrix:
                yield Problem(("scale", step, key), "is also in the matrix", "in only one of them")


def _resolved(base: Mapping[str, Any], one: _Combination, files: Collection[str] | None) -> BenchmarkIn:
    """Returns the file with the changes of a cell."""
    step_place: Place = ("scale", one.step or "")
    document, stepped, problems = apply_changes(base, one.changes, step_place, FIXED)
    values = {key: plain_parameter(value) for key, value in one.values.items()}
    document, combined, more = apply_changes(document, values, ("matrix",), FIXED_IN_MATRIX)
    if problems or more:
        raise BadBenchmarkError([*problems, *more])
    try:
        document, unmanned = fit_tiers(document, {*one.changes, *one.values})
        if unmanned:
            raise BadBenchmarkError(unmanned)
        return check_document(document, files)
    except BadBenchmarkError as bad:
        raise BadBenchmarkError(
            brought(p, combined, ("matrix",)) or brought(p, stepped, step_place) or _together(p, one)
            for p in bad.problems
        ) from None


def _together(problem: Problem, one: _Combination) -> Problem:
    message = f"with {one.variant.label} makes a file in which {problem.where} {problem.message}"
    return Problem(one.place, message, problem.allowed)


def _alike(combinations: Sequence[_Combination], benchmarks: Sequence[Benchmark]) -> Iterator[Problem]:
    if len(benchmarks) == 1:
        return
    seen: dict[str, str] = {}
    for one, benchmark in zip(combinations, benchmarks, strict=True):
        text = json.dumps(to_document(benchmark), sort_keys=True)
        if text in seen:
            message = f"makes two identical cells, {seen[text]} and {one.variant.label}"
            yield Problem(one.place, message, "changed so that all cells differ: use `repetitions` to repeat cells")
        seen.setdefault(text, one.variant.label)


def _expiry(whole: Plan, expires_after: int) -> Iterator[Problem]:
    """Checks that ``expires_after`` is enough if every cell takes as long as it can, ``parallel`` cells at a time."""
    each, parallel = [relations.longest(cell.benchmark) for cell in whole.cells], whole.parallel
    needed = whole.in_waves(each)
    if expires_after >= needed:
        return
    if len(each) == 1:
        subject = "its only cell"
    else:
        at_once = f"{parallel} at a time" if parallel > 1 else "one after the other"
        subject = f"{len(each)} cells, {at_once}, the longest of which"
    allowed = f"at least {written(needed)}: {subject} may take {written(max(each))}"
    yield Problem(("expires_after",), f"is {written(expires_after)}", allowed)
