"""Prepares what a report says about the limits of the benchmark's file: a key figure, and a row for each limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from troop.bench.definition.baseline import is_baseline
from troop.bench.definition.phase_limits import FAILED, PASSED, PhaseLimit
from troop.bench.definition.search import ANSWERS, EXPECTATIONS, LIMITS, Outcome, interval
from troop.bench.measuring.judging import bound, shown
from troop.report.document import Cell, Limit, Phase, Report, Search
from troop.shared import formatting

MOST_ROWS: Final = 1000
"""The most limits of all cells on a page."""


VERDICTS: Final = ("Limits", "Expectations")
"""Labels of the key figure with the verdict: on limits, or only on searches by what planned faults expect."""


@dataclass(frozen=True)
class LimitRow:
    """A limit of one phase or point of a cell. That of a baseline decides no verdict."""

    cell: Cell
    phase: Phase
    limit: Limit
    is_baseline: bool = False

    @property
    def bound(self) -> str:
        """The limit in words: ``p90_ms at most 300 ms in every 10 s``."""
        one = self.limit
        return f"{one.figure} {bound(PhaseLimit(one.figure, one.at_most, one.at_least, one.every))}"

    @property
    def value(self) -> str:
        """The measured value; of parts of the measured time the worst."""
        return formatting.NOTHING if self.limit.value is None else shown(self.limit.figure, self.limit.value)

    @property
    def subject(self) -> str:
        """What the limit concerns: ``drivers · read``."""
        return " · ".join(part for part in (self.limit.role, self.limit.operation) if part)

    @property
    def outcome(self) -> str:
        return PASSED if self.limit.held else FAILED


def rows(report: Report) -> list[LimitRow]:
    """Returns all limits of all cells, also of cells that have not SUCCEEDED."""
    return [
        LimitRow(cell, phase, limit, is_baseline(report.baseline, phase.parameters))
        for cell in report.cells
        for phase in cell.phases
        for limit in phase.limits
    ]


def shown_rows(report: Report) -> tuple[list[list[LimitRow]], int]:
    """Returns the limits of each phase or point for a page, and the number of limits that are left out. Those that are
    not held stay first.
    """
    every = rows(report)
    first = sorted(range(len(every)), key=lambda n: every[n].limit.held)[:MOST_ROWS]
    groups = [list(group) for _, group in groupby((every[n] for n in sorted(first)), key=lambda row: id(row.phase))]
    return groups, len(every) - len(first)


def searches(report: Report) -> list[tuple[Cell, Search]]:
    """Returns the searches of all cells."""
    return [(cell, one) for cell in report.cells for one in cell.searches]


def keys(report: Report) -> Iterator[tuple[str, str, str]]:
    """Yields the label, the value and the note of key figures; nothing without a verdict."""
    judged = [cell for cell in report.cells if cell.verdict]
    bad = [cell for cell in judged if cell.verdict == FAILED]
    if not judged:
        return
    if len(judged) == 1:
        for one in judged[0].searches:
            if one.outcome in ANSWERS:
                has_faults = any(phase.faults for phase in judged[0].phases if phase.phase == one.phase)
                yield f"Largest {one.parameter}", *_answer(one, EXPECTATIONS if has_faults else LIMITS)
    phases = [phase for cell in judged for phase in cell.phases]
    label = VERDICTS[any(one.faults for one in phases) and not any(one.limits for one in phases)]
    if not bad:
        yield label, PASSED, "" if len(judged) == 1 else f"all {len(judged):,} cells"
        return
    cells = f"{len(bad):,} of {len(judged):,} cells: " if len(judged) > 1 else ""
    yield label, FAILED, f"{cells}{_reason(bad[0])}"


def _answer(search: Search, bounds: str) -> tuple[str, str]:
    """Returns the answer of a search, which can be an interval, and a note."""
    low = f"{search.largest:,.10g}"
    high = None if search.smallest is None else f"{search.smallest:,.10g}"
    if search.outcome == Outcome.WIDENED:
        return interval(low, high), f"a value both held and failed {bounds}"
    return low, f"{high} does not hold {bounds}" if high else "the largest value of the range"


def _reason(cell: Cell) -> str:
    searched = {one.phase for one in cell.searches}
    reasons = [
        *(one.reason for phase in cell.phases if phase.phase not in searched for one in phase.limits if not one.held),
        *(one.text for one in cell.searches if one.outcome not in ANSWERS),
    ]
    return next((one for one in reasons if one), "")
