"""Compares the answers of searches: each search chooses its own points, so these are not the same on both sides."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median

from cli.bench import noise
from cli.bench.compared_row import with_setting
from cli.bench.pairing import Cells, Chosen
from troop.bench.definition.search import ANSWERS, Outcome, interval
from troop.report.comparison import Row, Spread
from troop.report.document import Cell, Phase, Search
from troop.report.points import Key, middle

ROLE = "search"
"""The role of rows that compare answers."""


@dataclass(frozen=True)
class Answers:
    """The answers that the searches of one variant give.

    Attributes:
        phases: with a search on a side.
        rows: one for each phase with answers on both sides.
        lost: searches with an answer in A and none in B.
    """

    phases: frozenset[str]
    rows: list[Row]
    lost: list[str]
    warnings: list[str]


def compare(label: str, ours: Cells, theirs: Cells, confidence: float, fail_below: float | None) -> Answers:
    """Compares the answers of the searches of two variants: a repetition contributes one value."""
    mine, other = _searches(ours), _searches(theirs)
    answers = Answers(frozenset(phase for phase, _ in (*mine, *other)), [], [], [])
    for (phase, parameter), searches in mine.items():
        subject = with_setting(f"the largest {parameter} of {phase}", label)
        theirs_too = other.get((phase, parameter), [])
        left, right = _largest(searches), _largest(theirs_too)
        answers.warnings.extend(_warnings(subject, searches, theirs_too))
        if left and not right:
            answers.lost.append(subject)
        elif left and min(left) > 0 and min(right) > 0:
            estimate = noise.ratio(left, right, confidence).widened(*_factors(searches, theirs_too))
            answers.rows.append(_row(label, phase, parameter, left, right, estimate, fail_below))
        else:
            answers.warnings.append(f"{subject}: there is no ratio without answers above 0 on both sides")
    return answers


def with_answers(side: Chosen) -> Chosen:
    """Returns the side with the points of its answers once more, under a label that is the same on both sides.

    Each search chooses its own points. What a system does at its largest value is what a comparison at equal
    throughput needs, with the times that this value has.
    """
    cells = [
        cell.model_copy(update={"phases": [*cell.phases, *_answers(cell)]}) if cell.searches else cell
        for cell in side.report.cells
    ]
    return replace(side, report=side.report.model_copy(update={"cells": cells}))


def _answers(cell: Cell) -> Iterator[Phase]:
    for search in cell.searches:
        if search.outcome not in ANSWERS or search.largest is None:
            continue
        for phase in cell.phases:
            if phase.phase == search.phase and phase.parameters.get(search.parameter) == search.largest:
                yield phase.model_copy(update={"label": answer_label(search.parameter)})


def answer_label(parameter: str) -> str:
    """Returns the label of the points at the answers of searches."""
    return f"largest {parameter}"


def answer_labels(a: Chosen, b: Chosen) -> frozenset[tuple[str, str]]:
    """Returns phase and label of the points at answers."""
    searches = (one for side in (a, b) for cell in side.report.cells for one in cell.searches)
    return frozenset((one.phase, answer_label(one.parameter)) for one in searches)


def _searches(cells: Cells) -> dict[tuple[str, str], list[Search]]:
    by_phase: dict[tuple[str, str], list[Search]] = {}
    for one in (one for cell in cells.cells for one in cell.searches):
        by_phase.setdefault((one.phase, one.parameter), []).append(one)
    return by_phase


def _largest(searches: list[Search]) -> list[float]:
    return [one.largest for one in searches if one.outcome in ANSWERS and one.largest is not None]


def _warnings(subject: str, a: list[Search], b: list[Search]) -> Iterator[str]:
    for name, searches in (("A", a), ("B", b)):
        if without := [one for one in searches if one.outcome not in ANSWERS]:
            yield f"{subject}: {len(without)} of {len(searches)} searches of {name} have no answer"
        if any(one.outcome == Outcome.ALL_HELD for one in searches):
            yield f"{subject}: {name} holds the limits up to the end of the range, and may hold them beyond it"
        if wide := [_interval(one) for one in searches if one.outcome == Outcome.WIDENED]:
            yield f"{subject}: {len(wide)} of {len(searches)} answers of {name} are intervals: {', '.join(wide)}"


def _interval(one: Search) -> str:
    return interval(f"{one.largest:,.10g}", None if one.smallest is None else f"{one.smallest:,.10g}")


def factors(operation: Key, ours: Cells, theirs: Cells) -> tuple[float, float]:
    """Returns the factors that widen the interval of a row at the answers of searches; (1, 1) for other rows.

    What a system does at its answer grows at most with the parameter, so the intervals of the answers are those of
    their throughput, too.
    """
    mine, other = _searches(ours), _searches(theirs)
    its = next((key for key in mine if (key[0], answer_label(key[1])) == operation[:2]), None)
    return (1.0, 1.0) if its is None else _factors(mine[its], other.get(its, []))


def _factors(a: list[Search], b: list[Search]) -> tuple[float, float]:
    return 1 / _width(a), _width(b)


def _width(searches: list[Search]) -> float:
    """Returns how much larger the true answers can be than those that held the limits each time: a factor."""
    return middle([_times_larger(one) for one in searches if one.outcome in ANSWERS] or [1.0])


def _times_larger(one: Search) -> float:
    if one.outcome != Outcome.WIDENED or one.largest is None or one.largest <= 0:
        return 1.0
    return math.exp(noise.WIDEST) if one.smallest is None else one.smallest / one.largest


def _row(
    label: str,
    phase: str,
    parameter: str,
    a: list[float],
    b: list[float],
    estimate: noise.Ratio,
    fail_below: float | None,
) -> Row:
    below = None if fail_below is None else estimate.ratio < fail_below and estimate.exceeds_noise is not False
    return Row(
        label=label,
        phase=phase,
        role=ROLE,
        operation=answer_label(parameter),
        a=_spread(a),
        b=_spread(b),
        ratio=estimate.ratio,
        low=estimate.low,
        high=estimate.high,
        exceeds_noise=estimate.exceeds_noise,
        regression=below,
    )


def _spread(values: list[float]) -> Spread:
    return Spread(
        median=median(values),
        low=min(values),
        high=max(values),
        repetitions=len(values),
        geometric_mean=middle(values),
    )
