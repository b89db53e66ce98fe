"""Searches the largest value of a parameter with which a phase holds its limits, by bisection over points.

The first two points are the ends of the range. Then each point halves the range between a value that holds the limits
and a larger one that does not. At last both are measured again: nodes vary, and one measurement each is no proof.

The search has no state but the verdicts of its points so far, so a repeated step of the workflow decides the same.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Value = int | float

AROUND_BISECTION = 4
"""Points besides the bisection: both ends of the range, and both ends of the last bracket again."""


@dataclass(frozen=True)
class Search:
    """The values to search through, ascending: a list, or whole numbers in equal steps.

    Attributes:
        parameter: its name, without ``parameters.``.
        values: the list; empty for ``low`` to ``high``, both included, in steps of ``step``.
    """

    parameter: str
    values: tuple[Value, ...] = ()
    low: int = 0
    high: int = 0
    step: int = 1

    @property
    def candidates(self) -> Sequence[Value]:
        """All values, ascending."""
        return self.values or range(self.low, self.high + 1, self.step)

    @property
    def most(self) -> int:
        """The number of points in the worst case. The agent computes the same (:mod:`agent.definition`)."""
        return AROUND_BISECTION + (len(self.candidates) - 2).bit_length()

    def document(self) -> dict[str, Any]:
        """Returns its keys as in the file."""
        if self.values:
            return {"parameter": self.parameter, "values": [*self.values]}
        return {"parameter": self.parameter, "from": self.low, "to": self.high, "step": self.step}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Search:
        """Reads a document of :meth:`document`."""
        if document.get("values"):
            return cls(document["parameter"], tuple(document["values"]))
        return cls(document["parameter"], (), document["from"], document["to"], document["step"])


class Outcome(StrEnum):
    """How a search ended.

    BRACKETED: a value holds the limits, and the next larger one does not.
    ALL_HELD: the largest value of the range holds them.
    NONE_HELD: the smallest value of the range does not hold them.
    UNSTABLE: a value that was measured again had the other verdict.
    """

    BRACKETED = "BRACKETED"
    ALL_HELD = "ALL_HELD"
    NONE_HELD = "NONE_HELD"
    UNSTABLE = "UNSTABLE"


ANSWERS = frozenset({Outcome.BRACKETED, Outcome.ALL_HELD})
"""Outcomes with a value that holds the limits, measured twice."""


@dataclass(frozen=True)
class Progress:
    """A search after some points.

    Attributes:
        points: number of points so far.
        largest: the largest value that has held the limits, of those that bound the range; None before one has.
        smallest: the smallest value that has not held them, likewise.
        next: value of the next point; None if the search is over.
        repeat: of the next point, from 1.
        outcome: None until the search is over.
        contradicted: the value that had another verdict when it was measured again; None without one.
    """

    points: int
    largest: Value | None = None
    smallest: Value | None = None
    next: Value | None = None
    repeat: int = 1
    outcome: Outcome | None = None
    contradicted: Value | None = None


def progress(search: Search, verdicts: Sequence[bool]) -> Progress:
    """Returns where a search stands.

    Args:
        verdicts: whether each point so far has held the limits, in the order of execution.
    """
    course = _course(search.candidates)
    state = next(course)
    for n, held in enumerate(verdicts, 1):
        if state.outcome is not None:
            break
        state = course.send((n, held))
    return state


def _course(values: Sequence[Value]) -> Generator[Progress, tuple[int, bool], None]:
    """Yields the search before each point, and when it is over."""
    first, last = 0, len(values) - 1
    n, held = yield Progress(0, next=values[first])
    if not held:
        n, held = yield Progress(n, None, values[first], values[first], 2)
        yield _end(n, Outcome.NONE_HELD, None, values[first], values[first] if held else None)
        return
    n, held = yield Progress(n, values[first], None, values[last])
    if held:
        n, held = yield Progress(n, values[last], None, values[last], 2)
        yield _end(n, Outcome.ALL_HELD, values[last], None, None if held else values[last])
        return
    low, high = first, last
    while high - low > 1:
        middle = (low + high) // 2
        n, held = yield Progress(n, values[low], values[high], values[middle])
        low, high = (middle, high) if held else (low, middle)
    n, low_held = yield Progress(n, values[low], values[high], values[low], 2)
    n, high_held = yield Progress(n, values[low], values[high], values[high], 2)
    contradicted = values[low] if not low_held else values[high] if high_held else None
    yield _end(n, Outcome.BRACKETED, values[low], values[high], contradicted)


def _end(
    n: int, outcome: Outcome, largest: Value | None, smallest: Value | None, contradicted: Value | None
) -> Progress:
    outcome = outcome if contradicted is None else Outcome.UNSTABLE
    return Progress(n, largest, smallest, outcome=outcome, contradicted=contradicted)


def sentence(search: Search, state: Progress) -> str:
    """Describes where a search stands, such as ``the largest threads that holds the limits is 120; 121 does not hold
    them (both measured twice)``.
    """
    name, low, high = search.parameter, state.largest, state.smallest
    match state.outcome:
        case Outcome.BRACKETED:
            return f"the largest {name} that holds the limits is {low}; {high} does not hold them (both measured twice)"
        case Outcome.ALL_HELD:
            return f"{name}={low}, the largest value of the range, holds the limits (measured twice)"
        case Outcome.NONE_HELD:
            return f"{name}={high}, the smallest value of the range, does not hold the limits (measured twice)"
        case Outcome.UNSTABLE:
            before, after = ("held", "not") if state.contradicted == low else ("did not hold", "held them")
            return (
                f"not stable: {name}={state.contradicted} {before} the limits at first, and {after} when it was "
                "measured again"
            )
    parts = [f"{low} holds the limits"] if low is not None else []
    parts += [f"{high} does not hold the limits" if low is None else f"{high} does not"] if high is not None else []
    tried = ", ".join(parts) or "nothing is known yet"
    return f"search for the largest {name}: {tried}; {state.points} of at most {search.most} points"


def document(phase: str, search: Search, state: Progress) -> dict[str, Any]:
    """Returns JSON-like values for the cell's record and its results.

    Returns:
        ``{"phase", "parameter", "outcome", "largest", "smallest", "points", "most", "text"}``.
    """
    return {
        "phase": phase,
        "parameter": search.parameter,
        "outcome": None if state.outcome is None else state.outcome.value,
        "largest": state.largest,
        "smallest": state.smallest,
        "points": state.points,
        "most": search.most,
        "text": sentence(search, state),
    }
