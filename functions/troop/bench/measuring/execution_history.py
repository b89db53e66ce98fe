"""Limits a cell's steps and time: its execution in Step Functions has a history of at most 25,000 events.

tests/machines/test_benchmark.py computes the events of cells at these limits.
"""

from __future__ import annotations

from troop.bench.definition.definition import Benchmark
from troop.bench.measuring.poll_waits import needs_poll

LONGEST_CELL = 24 * 3600
"""Seconds that a cell can take, and all attempts at it together."""

STEP_SECONDS = 540
"""Seconds of waiting that need as many events as one step: its release, and the frequent checks around its end."""

_FIRST_STEPS, _FURTHER_STEPS = 50, 40
"""Steps that fit beside :data:`LONGEST_CELL`: of one attempt, and of several, which have launches and teardowns."""


def steps_of(benchmark: Benchmark) -> int:
    """Counts the steps of a cell, and as a step each fault that needs polls of its own: fewer than a step has."""
    return len(benchmark.steps) + sum(needs_poll(fault) for step in benchmark.steps for fault in step.phase.faults)


def most_seconds(steps: int) -> int:
    """Returns the seconds that a cell with so many steps can take; 0 or less if that is too many."""
    return min(LONGEST_CELL, LONGEST_CELL + (_FIRST_STEPS - steps) * STEP_SECONDS)


def allows_further(seconds: float, steps: int) -> bool:
    """Checks whether several attempts at a cell fit.

    Args:
        seconds: of all attempts together, with the next one.
        steps: of all attempts together.
    """
    return seconds <= min(LONGEST_CELL, LONGEST_CELL + (_FURTHER_STEPS - steps) * STEP_SECONDS)
