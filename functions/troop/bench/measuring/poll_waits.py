"""Computes the workflow's waits between polls: short while a change is likely, and few polls in total.

An execution's history has at most 25,000 events, and a cell may last a day; tests/machines/test_benchmark.py checks
that the history suffices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from math import ceil

from troop.bench.definition.definition import Phase
from troop.bench.definition.planned_fault import CRASH, PlannedFault

FIRST_WAIT, LONGEST_WAIT = 2, 60
"""Seconds before the first poll, and maximum seconds between two."""

BEFORE_CRASH = 5
"""Seconds before a planned crash of a node when a poll looks whether the node is still there. A node that is lost
earlier is no planned fault.
"""

GROWTH = 3
"""Divisor of the elapsed time, whose quotient is the wait: so the elapsed time grows by a third from poll to poll."""


def wait(elapsed: float, moments: Iterable[float] = ()) -> int:
    """Computes the seconds until the next poll of something that could have ended ``elapsed`` seconds ago.

    Args:
        moments: seconds after the same beginning at which there is something to decide; no wait goes on over one.
    """
    longest = min((ceil(moment - elapsed) for moment in moments if moment > elapsed), default=LONGEST_WAIT)
    return int(max(FIRST_WAIT, min(LONGEST_WAIT, elapsed / GROWTH, longest)))


def wait_in_phase(
    phase: Phase, began: datetime, now: datetime, looked_at: datetime | None = None, *, seconds: int | None = None
) -> int:
    """Computes the seconds until the next poll of a phase. A measured phase cannot succeed before its measured time
    ends. Polls hit units when they are due, and look for lost nodes just before others crash.

    Args:
        began: when the phase starts; can be in the future.
        looked_at: when this poll has looked for faults that are due, if that was earlier.
        seconds: a wait that only a fault shortens; None for one of a phase.
    """
    elapsed, looked = (now - began).total_seconds(), ((looked_at or now) - began).total_seconds()
    expected = phase.warm_up + phase.measured if phase.is_measured else 0
    if elapsed < expected:
        waits = (max(1, ceil(moment - elapsed)) for moment in _moments(phase) if moment > looked)
        due = min(waits, default=LONGEST_WAIT)
        return min(due, seconds or int(max(FIRST_WAIT, min(LONGEST_WAIT, expected - elapsed + 1))))
    return seconds or wait(elapsed - expected)


def _moments(phase: Phase) -> Iterator[float]:
    """Yields the seconds from the start of a phase to the polls that its faults need."""
    for fault in phase.faults:
        if needs_poll(fault):
            yield phase.warm_up + fault.at - (BEFORE_CRASH if fault.unit is None else 0)


def needs_poll(fault: PlannedFault) -> bool:
    """Checks whether the workflow must poll because of a fault: it hits a unit, or crashes nodes."""
    return fault.unit is not None or fault.method == CRASH
