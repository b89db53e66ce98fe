"""Searches the largest value of a parameter with which a phase holds its limits, by bisection over points.

The first two points are the ends of the range. Then each point halves the range between a value that holds the limits
and a larger one that does not. At last both are measured again: nodes vary, and one measurement each is no proof.

A value with both verdicts shows noise that is wider than the distance of the values. It counts neither as held nor as
failed, and the answer becomes an interval around it: points that are left measure values beside it.

The search has no state but the verdicts of its points so far, so a repeated step of the workflow decides the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isqrt
from typing import Any

Value = int | float

LIMITS, EXPECTATIONS = "the limits", "the expectations"
"""Words for what values hold: the phase's limits, or what its faults expect."""

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
        """Returns its keys as in the file: either the list, or the range."""
        if self.values:
            return {"parameter": self.parameter, "values": [*self.values]}
        return {"parameter": self.parameter, "from": self.low, "to": self.high, "step": self.step}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Search:
        """Reads a document of :meth:`document`."""
        if document.get("values"):
            return cls(document["parameter"], tuple(document["values"]))
        return cls(document["parameter"], (), document["from"], document["to"], document["step"])


class Outcome(StrEnum):
    """How a search ended.

    BRACKETED: a value holds the limits, and the next larger one does not, both measured twice.
    WIDENED: a value had both verdicts. The answer is an interval from a value that held the limits each time.
    ALL_HELD: the largest value of the range holds them.
    NONE_HELD: the smallest value of the range does not hold them.
    UNSTABLE: no value held them each time, because the smallest value of the range had both verdicts.
    """

    BRACKETED = "BRACKETED"
    WIDENED = "WIDENED"
    ALL_HELD = "ALL_HELD"
    NONE_HELD = "NONE_HELD"
    UNSTABLE = "UNSTABLE"


ANSWERS = frozenset({Outcome.BRACKETED, Outcome.WIDENED, Outcome.ALL_HELD})
"""Outcomes with a value that held the limits each time."""


@dataclass(frozen=True)
class Progress:
    """A search after some points.

    Attributes:
        points: number of points so far.
        largest: the largest value that has held the limits each time; None without one.
        smallest: the smallest value that has failed each time; None without one.
        times: how often ``largest`` and ``smallest`` were measured; 0 without one.
        both: values with both verdicts, ascending.
        next: value of the next point; None if the search is over.
        repeat: of the next point, from 1.
        outcome: None until the search is over.
    """

    points: int
    largest: Value | None = None
    smallest: Value | None = None
    times: tuple[int, int] = (0, 0)
    both: tuple[Value, ...] = ()
    next: Value | None = None
    repeat: int = 1
    outcome: Outcome | None = None


class _Tried:
    """The verdicts so far. Values count by their place in the list of all."""

    def __init__(self, number: int) -> None:
        self.last = number - 1
        self.times: Counter[int] = Counter()
        self.held: set[int] = set()
        self.failed: set[int] = set()

    def add(self, at: int, held: bool) -> None:
        self.times[at] += 1
        (self.held if held else self.failed).add(at)

    @property
    def both(self) -> list[int]:
        return sorted(self.held & self.failed)

    @property
    def largest(self) -> int | None:
        return max(self.held - self.failed, default=None)

    @property
    def smallest(self) -> int | None:
        return min(self.failed - self.held, default=None)

    def next(self, left: int) -> int | None:
        """Returns the place to measure next; None if the search is over.

        Args:
            left: the number of points that it may still measure.
        """
        low = self.largest
        if not left:
            return None
        if low is None:
            return self._unless_repeated(0)
        if not self.failed:
            return self._unless_repeated(self.last)
        at = self._below(low, min(self.failed), left)
        if at is None and self.smallest is not None:
            return self._unless_repeated(self.smallest)
        return at

    def _unless_repeated(self, at: int) -> int | None:
        return at if self.times[at] < 2 else None

    def _below(self, low: int, lowest_failed: int, left: int) -> int | None:
        """Returns the next place from the largest value that held each time up to the smallest that ever failed.

        Without enough points to bisect once more, this is a place near the value that failed. The width of the noise
        is unknown: too near, a value can have both verdicts as well, and too far away, it makes the interval wider than
        necessary. The square root of the gap loses little either way.
        """
        gap = lowest_failed - low
        if gap > 1 and left > (gap - 1).bit_length():  # enough to bisect, and to measure an end again
            return low + gap // 2
        at = max(low, lowest_failed - max(2, isqrt(gap)))
        return at if at != low else self._unless_repeated(low)

    def outcome(self) -> Outcome:
        if self.largest is None:
            return Outcome.UNSTABLE if self.both else Outcome.NONE_HELD
        if self.both:
            return Outcome.WIDENED
        return Outcome.BRACKETED if self.failed else Outcome.ALL_HELD


def progress(search: Search, verdicts: Sequence[bool]) -> Progress:
    """Returns where a search stands.

    Args:
        verdicts: whether each point so far has held the limits, in the order of execution.
    """
    values = search.candidates
    tried, most, points = _Tried(len(values)), search.most, 0
    at = tried.next(most)
    for held in verdicts:
        if at is None:
            break
        tried.add(at, held)
        points += 1
        at = tried.next(most - points)
    low, high = tried.largest, tried.smallest
    return Progress(
        points,
        largest=None if low is None else values[low],
        smallest=None if high is None else values[high],
        times=(0 if low is None else tried.times[low], 0 if high is None else tried.times[high]),
        both=tuple(values[place] for place in tried.both),
        next=None if at is None else values[at],
        repeat=1 if at is None else tried.times[at] + 1,
        outcome=tried.outcome() if at is None else None,
    )


def sentence(search: Search, state: Progress, bounds: str = LIMITS) -> str:
    """Describes where a search stands, such as ``the largest threads that holds the limits is 120; 121 does not hold
    them (both measured twice)``.

    Args:
        bounds: what values hold: :data:`LIMITS` or :data:`EXPECTATIONS`.
    """
    name, low, high = search.parameter, state.largest, state.smallest
    match state.outcome:
        case Outcome.BRACKETED:
            return f"the largest {name} that holds {bounds} is {low}; {high} does not hold them (both measured twice)"
        case Outcome.WIDENED:
            held, failed = (f"measured {'once' if times == 1 else 'twice'}" for times in state.times)
            answer = interval(f"{low}", None if high is None else f"{high}")
            above = "no value" if high is None else f"{high} ({failed})"
            return (
                f"the largest {name} that holds {bounds} is {answer}: {low} ({held}) held them each time, {above} "
                f"failed each time, {_list(state.both)} did both"
            )
        case Outcome.ALL_HELD:
            return f"{name}={low}, the largest value of the range, holds {bounds} (measured twice)"
        case Outcome.NONE_HELD:
            return f"{name}={high}, the smallest value of the range, does not hold {bounds} (measured twice)"
        case Outcome.UNSTABLE:
            both = _list(state.both)
            return f"not stable: no {name} held {bounds} each time, {both} did both; {_remedy(search, state)}"
    parts = [f"{low} holds {bounds}"] if low is not None else []
    parts += [f"{high} does not hold {bounds}" if low is None else f"{high} does not"] if high is not None else []
    tried = ", ".join(parts) or "nothing is known yet"
    return f"search for the largest {name}: {tried}; {state.points} of at most {search.most} points"


def interval(low: str, high: str | None) -> str:
    """Returns the answer of a search that is an interval, as text; without ``high``, it has no upper end."""
    return f"at least {low}" if high is None else f"between {low} and {high}"


def _list(values: Sequence[Value]) -> str:
    *others, last = (str(value) for value in values)
    return f"{', '.join(others)} and {last}" if others else last


def _remedy(search: Search, state: Progress) -> str:
    """Says which values do not all lie within the noise, which is at least as wide as the values with both verdicts."""
    first, beyond = search.candidates[0], search.candidates.index(state.both[-1]) + 1
    if search.values:
        return f"use values further apart, the first of them below {first}"
    return f"use a larger step, such as {max(2, beyond) * search.step}, from a value below {first}"


def document(phase: str, search: Search, state: Progress, bounds: str = LIMITS) -> dict[str, Any]:
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
        "text": sentence(search, state, bounds),
    }
