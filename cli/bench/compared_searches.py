"""Compares the answers of searches: each search chooses its own points, so these are not the same on both sides."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from cli.bench.compared_row import ratio_fields, spread, with_setting
from cli.bench.pairing import Cells, Chosen, Values, Variant
from troop.bench.definition.search import ANSWERS, Outcome, interval
from troop.report.comparison import Row
from troop.report.document import Report, Search
from troop.report.points import Key, answer_label, answers, middle
from troop.statistics.pairs import WIDEST

ROLE = "search"
"""The role of rows that compare answers."""


@dataclass(frozen=True)
class Answers:
    """The answers that the searches of one variant give.

    Attributes:
        phases: with a search on a side.
        rows: one for each phase with answers on both sides.
        lost: searches with an answer in A and none in B.
        undecided: searches without a ratio.
    """

    phases: frozenset[str]
    rows: list[Row]
    lost: list[str]
    undecided: list[str]
    warnings: list[str]


def compare(one: Variant, fail_below: float | None) -> Answers:
    """Compares the answers of the searches of two variants: a repetition contributes one value."""
    mine, other = _searches(one.ours), _searches(one.theirs)
    gathered = Answers(frozenset(phase for phase, _ in (*mine, *other)), [], [], [], [])
    for (phase, parameter), searches in mine.items():
        subject = with_setting(f"the largest {parameter} of {phase}", one.label)
        theirs_too = other.get((phase, parameter), [])
        gathered.warnings.extend(_warnings(subject, searches, theirs_too))
        compared = one.compared(lambda cells, phase=phase, parameter=parameter: _largest(cells, phase, parameter))  # type: ignore[misc]
        if _answered(searches) and not _answered(theirs_too):
            gathered.lost.append(subject)
        elif compared.ratio is None or min(compared.b) <= 0:
            gathered.undecided.append(subject)
            gathered.warnings.append(f"{subject}: there is no ratio without answers above 0 on both sides")
        else:
            label = answer_label(parameter)
            estimate = compared.ratio.widened(*factors((phase, label, "", ""), one))
            a, b = (
                spread(values).model_copy(update={"geometric_mean": middle(values)})
                for values in (compared.a, compared.b)
            )
            row = Row(
                label=one.label, phase=phase, role=ROLE, operation=label, a=a, b=b, **ratio_fields(estimate, fail_below)
            )
            gathered.rows.append(row)
    return gathered


def with_answers(side: Chosen) -> Chosen:
    """Returns the side with the points of its answers once more, under a label that is the same on both sides.

    Each search chooses its own points. What a system does at its largest value is what a comparison at equal
    throughput needs, with the times that this value has.
    """
    return replace(
        side, report=_answered_report(side.report), baseline=side.baseline and _answered_report(side.baseline)
    )


def _answered_report(report: Report) -> Report:
    cells = [
        cell.model_copy(update={"phases": [*cell.phases, *answers(cell)]}) if cell.searches else cell
        for cell in report.cells
    ]
    return report.model_copy(update={"cells": cells})


def answer_labels(a: Chosen, b: Chosen) -> frozenset[tuple[str, str]]:
    """Returns phase and label of the points at answers."""
    searches = (one for side in (a, b) for cell in side.report.cells for one in cell.searches)
    return frozenset((one.phase, answer_label(one.parameter)) for one in searches)


def _searches(cells: Cells) -> dict[tuple[str, str], list[Search]]:
    by_phase: dict[tuple[str, str], list[Search]] = {}
    for one in (one for cell in cells.cells for one in cell.searches):
        by_phase.setdefault((one.phase, one.parameter), []).append(one)
    return by_phase


def _largest(cells: Cells, phase: str, parameter: str) -> Values:
    return [
        (cell, one.largest)
        for cell in cells.cells
        for one in _answered(cell.searches)
        if (one.phase, one.parameter) == (phase, parameter) and one.largest is not None
    ]


def _answered(searches: Iterable[Search]) -> list[Search]:
    return [one for one in searches if one.outcome in ANSWERS and one.largest is not None]


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


def factors(operation: Key, one: Variant) -> tuple[float, float]:
    """Returns the factors that widen the interval of a row at the answers of searches; (1, 1) for other rows, and
    without pairs, as there is no interval.

    What a system does at its answer grows at most with the parameter, so the intervals of the answers are those of
    their throughput, too.
    """
    if one.source == "runs":
        return 1.0, 1.0
    its = next((key for key in _searches(one.ours) if (key[0], answer_label(key[1])) == operation[:2]), None)
    widths = [1.0 if its is None else _width(_searches(cells).get(its, [])) for cells in one.every()]
    a, b, base_of_a, base_of_b = (*widths, 1.0, 1.0)[:4]
    return 1 / (a * base_of_b), b * base_of_a


def _width(searches: list[Search]) -> float:
    """Returns how much larger the true answers can be than those that held the limits each time: a factor."""
    return middle([_times_larger(one) for one in searches if one.outcome in ANSWERS] or [1.0])


def _times_larger(one: Search) -> float:
    if one.outcome != Outcome.WIDENED or one.largest is None or one.largest <= 0:
        return 1.0
    return math.exp(WIDEST) if one.smallest is None else one.smallest / one.largest
