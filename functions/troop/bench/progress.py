"""How long the workflow waits between two looks: short where something may happen soon, and few looks in all.

An execution's history ends at 25,000 events, and a run may last for a day; tests/machines/test_benchmark.py holds the
one against the other.
"""

from __future__ import annotations

from datetime import datetime

from troop.bench.definition import Phase

FIRST_WAIT, LONGEST_WAIT = 2, 60
"""Seconds before the first look at something, and at most between two."""

GROWTH = 3
"""A wait is the time gone by, divided by this: it grows by a third from look to look."""


def wait(elapsed: float) -> int:
    """Seconds until the next look at something that may have come to its end for ``elapsed`` seconds."""
    return int(max(FIRST_WAIT, min(LONGEST_WAIT, elapsed / GROWTH)))


def wait_in_phase(phase: Phase, began: datetime, now: datetime) -> int:
    """Seconds until the next look at a phase: a measured one has a length, before which it does not end well.

    Args:
        began: when the phase starts; can be ahead.
    """
    elapsed = (now - began).total_seconds()
    expected = phase.warm_up + phase.measured if phase.is_measured else 0
    if elapsed < expected:
        return int(max(FIRST_WAIT, min(LONGEST_WAIT, expected - elapsed + 1)))
    return wait(elapsed - expected)
