"""Makes a summary of what a node had measured when its phase ended early: from its running summary, and from the
summary that it could still write, if it could.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from troop.measure.histogram import Histogram
from troop.measure.live import Live, LiveOperation
from troop.measure.operations import OTHER, Operation
from troop.measure.summary import OK, Summary
from troop.measure.windows import highest_in

PARTIAL = "partial"
"""The outcome of a node that has left a running summary only."""


def partial(live: Live | None, left: Summary | None, rank: int) -> Summary | None:
    """Returns what a node has measured; None for nothing.

    Of both sources, the one with more operations counts: a process that is killed leaves no operations in the summary.
    Times of a running summary are exact to a sixteenth, and kinds of its errors are unknown.
    """
    if left is not None and left.outcome == OK:
        return left
    summary = live_summary(live, rank) if live else None
    if left is not None:
        cut = replace(left, measured_seconds=_seconds(left.measured_from, left.measured_seconds, left.ended_at))
        if summary is not None and _size(summary.operations) > _size(cut.operations):
            summary = replace(cut, operations=summary.operations, measured_seconds=summary.measured_seconds)
        else:
            summary = cut
    return summary if summary and summary.measured_seconds and _size(summary.operations) else None


def live_summary(live: Live, rank: int) -> Summary:
    """Returns a running summary in the form of a summary."""
    return Summary(
        live.node,
        live.role,
        rank,
        live.phase,
        PARTIAL,
        started_at=live.measured_from,
        ended_at=float(max(live.until, live.measured_from)),
        measured_from=live.measured_from,
        measured_seconds=_seconds(live.measured_from, live.measured_seconds, live.until),
        operations={name: _operation(one) for name, one in live.operations.items() if one.measured or one.failed},
    )


def _seconds(measured_from: float | None, measured_seconds: float, ended_at: float) -> float:
    return max(0.0, min(measured_seconds, ended_at - (measured_from or ended_at)))


def _operation(one: LiveOperation) -> Operation:
    times = Histogram()
    for bucket, count in one.measured.items():
        if count:
            times.record(highest_in(bucket), count)
    return Operation(times, {OTHER: one.failed} if one.failed else {})


def _size(operations: Mapping[str, Operation]) -> int:
    return sum(one.count + sum(one.errors.values()) for one in operations.values())
