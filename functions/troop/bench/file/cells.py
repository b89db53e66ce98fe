"""Expands a file to the cells of its run: for each scale step, each combination of the matrix and each repetition; and
for a baseline on other nodes, each of these once more.

Every cell is checked as a complete file, with the changes of its scale step, its combination, and then the baseline. So
is a baseline on the same nodes, which makes no cells.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, product
from math import prod
from typing import Any

from troop.bench.definition import names
from troop.bench.definition.baseline import PARAMETERS, on_same_nodes
from troop.bench.definition.definition import Benchmark, Parameter, identity, plain_parameter, to_document
from troop.bench.definition.keys import written
from troop.bench.definition.plan import Plan, PlannedCell, Variant
from troop.bench.definition.problems import MOST_PROBLEMS, BadBenchmarkError, Place, Problem, shown
from troop.bench.file import relations
from troop.bench.file.changes import apply_changes
from troop.bench.file.checks import brought, check_document
from troop.bench.file.fields import VALUE
from troop.bench.file.models import LONGEST_RUN, MOST_CELLS, BenchmarkIn, PhaseIn
from troop.bench.file.points import MOST_POINTS_OF_RUN
from troop.bench.file.tiers import fit_tiers

RUN_KEYS = ("sizes", "scale", "matrix", "repetitions", "parallel")
"""Keys that a cell does not use."""

FIXED = (
    *("name", "expires_after", *RUN_KEYS),
    *("attempts", "budget", "billing", "prices", "accept_unknown_prices", "own_data", "baseline", "version"),
)
"""Keys that scale steps, the matrix and the baseline cannot change."""

FIXED_IN_MATRIX = (*FIXED, "traffic")
"""Keys that the matrix and the baseline cannot change. Traffic is no setting to measure, but a step of more nodes has
more of it.
"""

OWN = "own"
"""The label of the file's own value of a key of the baseline, if the file leaves it out, or if it is too long."""

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
    """A scale step and the matrix values by key.

    Attributes:
        compared: values by the baseline's keys: those of the baseline, or the file's own.
    """

    step: str | None
    changes: Mapping[str, Any]
    values: Mapping[str, Parameter]
    compared: Mapping[str, Parameter] = field(default_factory=dict)

    @property
    def variant(self) -> Variant:
        return Variant(self.step, {**self.values, **self.compared})

    @property
    def place(self) -> Place:
        """Where to report a problem that no single change causes."""
        if self.values:
            return ("matrix",)
        return ("scale", self.step) if self.step else ("baseline",)


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
        BadBenchmarkError: with the first problems, located at ``scale.NAME.KEY``, ``matrix.KEY`` or ``baseline.KEY``
            where possible.
        NoRoomError: there is too little room.
    """
    each = len(json.dumps(document))
    if problems := [*_too_many(each, model), *_twice(model), *_incomparable(model)]:
        raise BadBenchmarkError(problems)
    combinations = list(_combinations(model))
    room.take(each * len(combinations) * (2 if model.baseline else 1))
    # expires_after covers all cells together: _expiry checks it against the whole plan.
    base = {key: value for key, value in document.items() if key not in RUN_KEYS} | {"expires_after": LONGEST_RUN}
    groups: list[list[tuple[_Combination, Benchmark]]] = []
    points = 0
    for combination in combinations:
        if len(problems) >= MOST_PROBLEMS or points > MOST_POINTS_OF_RUN:
            break
        try:
            resolved = _sides(base, combination, files, model.baseline)
            built = [(side, its.build(size, tuple(files or ()))) for side, its in resolved]
            groups.append([(side, replace(one, expires_after=model.expires_after)) for side, one in built])
            points += sum(_points(one) for _, one in built) * model.repetitions
        except BadBenchmarkError as bad:
            problems += bad.problems
    sides = [side for group in groups for side in group]
    if not problems:
        problems = list(_too_many_points([one for _, one in sides], points, model.repetitions))
    if not problems:
        problems = list(_alike(sides))
    if problems:
        raise BadBenchmarkError(dict.fromkeys(problems))
    number, cells = count(1), []
    for group in groups:
        for repetition in range(1, model.repetitions + 1):
            for side, benchmark in group:
                variant = replace(side.variant, repetition=repetition)
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
    has_pairs = bool(model.baseline) and not on_same_nodes(model.baseline)
    combinations = steps * combined * (2 if has_pairs else 1)
    cells = combinations * model.repetitions
    if cells > MOST_CELLS:
        place = "repetitions" if combinations <= MOST_CELLS else "matrix" if model.matrix else "scale"
        factors, parts = f"{steps} x {combined} x {model.repetitions}", "scale steps, combinations, repetitions"
        if has_pairs:
            factors, parts = f"{factors} x 2", f"{parts}, candidate and baseline"
        product = f"{factors} cells ({parts})"
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
    keys += [("baseline", key) for key in model.baseline]
    for at in keys:
        for phase in _setters(str(at[-1]), model):
            key = "search" if phase.search else "points"
            yield Problem(at, f"is also set by the {key} of the phase {phase.name}", "in only one of them")
    for step, changes in model.scale.items():
        for key in changes:
            if key in model.matrix:
                yield Problem(("scale", step, key), "is also in the matrix", "in only one of them")
            yield from _twice_compared(key, f"the scale step {step}", model)
    for key in model.matrix:
        yield from _twice_compared(key, "the matrix", model)


def _twice_compared(key: str, setter: str, model: BenchmarkIn) -> Iterator[Problem]:
    for compared in model.baseline:
        if _overlap(compared, key):
            yield Problem(("baseline", compared), f"is also set by {setter}", "in only one of them")


def _incomparable(model: BenchmarkIn) -> Iterator[Problem]:
    """Yields why the file cannot be compared with its baseline, whatever the values."""
    if not model.baseline:
        return
    for key in model.baseline:
        if key.startswith(PARAMETERS) and key.count(".") > 1:
            allowed = f"a whole parameter, {'.'.join(key.split('.')[:2])}, with all of its values"
            yield Problem(("baseline", key), "leads into a parameter", allowed)
    measured = [phase for phase in model.phases if phase.measured and not phase.faults]
    if not measured:
        yield Problem(("baseline",), "compares nothing", "left out: no phase without faults has a measured time")
    if not on_same_nodes(model.baseline):
        return
    for phase in measured:
        if phase.search:
            allowed = "left out, because a search chooses its own points"
            yield Problem(("baseline",), f"needs pairs of points in the phase {phase.name}", allowed)


def _sides(
    base: Mapping[str, Any], one: _Combination, files: Collection[str] | None, baseline: Mapping[str, Parameter]
) -> list[tuple[_Combination, BenchmarkIn]]:
    """Returns the cells of a combination: one, or a pair of candidate and baseline on nodes of their own."""
    document, candidate, _ = _resolved(base, one, files)
    if not baseline:
        return [(one, candidate)]
    other = replace(one, compared=baseline)
    _, model, places = _resolved(base, other, files)
    own = {key: _value(document, place) for key, place in places.items()}
    problems = [problem for key, value in baseline.items() for problem in _own_value(key, value, own[key])]
    if problems or model == candidate:
        raise BadBenchmarkError(problems or [Problem(("baseline",), "changes nothing", "different from the file")])
    if on_same_nodes(baseline):
        return [(one, candidate)]
    labels = {key: VALUE.parse(value) if VALUE.accepts(value) else OWN for key, value in own.items()}
    return [(replace(one, compared=labels), candidate), (other, model)]


def _value(document: Any, place: Place) -> Any:
    """Returns the value at a place; None if there is none."""
    for step in place:
        is_there = step in document if isinstance(document, Mapping) else isinstance(document, list)
        if not is_there:
            return None
        document = document[step]
    return document


def _own_value(key: str, value: Any, own: Any) -> Iterator[Problem]:
    if identity(value) == identity(own):
        yield Problem(("baseline", key), f"is {shown(plain_parameter(value))}, the file's own value", "another value")
    elif key.startswith(PARAMETERS) and isinstance(own, str) and type(value) in (int, float):
        allowed = f'text as the file\'s own value, {shown(own)}: "{value}" in quotes'
        yield Problem(("baseline", key), f"is the number {value}", allowed)


def _resolved(
    base: Mapping[str, Any], one: _Combination, files: Collection[str] | None
) -> tuple[dict[str, Any], BenchmarkIn, dict[str, Place]]:
    """Returns the file with the changes of a cell, as a document and as a model; and the places that the baseline
    changes, by its keys.
    """
    step_place: Place = ("scale", one.step or "")
    document, stepped, problems = apply_changes(base, one.changes, step_place, FIXED)
    values = {key: plain_parameter(value) for key, value in one.values.items()}
    document, combined, more = apply_changes(document, values, ("matrix",), FIXED_IN_MATRIX)
    values = {key: plain_parameter(value) for key, value in one.compared.items()}
    document, compared, wrong = apply_changes(document, values, ("baseline",), FIXED_IN_MATRIX)
    if problems or more or wrong:
        raise BadBenchmarkError([*problems, *more, *wrong])
    try:
        document, unmanned = fit_tiers(document, {*one.changes, *one.values, *one.compared})
        if unmanned:
            raise BadBenchmarkError(unmanned)
        return document, check_document(document, files), compared
    except BadBenchmarkError as bad:
        raise BadBenchmarkError(
            brought(p, compared, ("baseline",))
            or brought(p, combined, ("matrix",))
            or brought(p, stepped, step_place)
            or _together(p, one)
            for p in bad.problems
        ) from None


def _together(problem: Problem, one: _Combination) -> Problem:
    message = f"with {one.variant.label} makes a file in which {problem.where} {problem.message}"
    return Problem(one.place, message, problem.allowed)


def _alike(sides: Sequence[tuple[_Combination, Benchmark]]) -> Iterator[Problem]:
    if len(sides) == 1:
        return
    seen: dict[str, str] = {}
    for one, benchmark in sides:
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
