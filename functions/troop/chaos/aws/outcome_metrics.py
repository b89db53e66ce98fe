"""Counts the outcomes of events as metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from troop.chaos.events import OPEN, Event, Status
from troop.shared.aws.metrics import emit
from troop.shared.metrics import STATUS, VERDICT, Metric

_METRICS = {Status.RECOVERED.value: Metric.RECOVERIES, Status.UNRECOVERED.value: Metric.UNRECOVERED}
_OPEN = frozenset(status.value for status in OPEN)


def emit_outcomes(deployment: str, statuses: Iterable[str]) -> None:
    """Counts ended events, with a line for each status; skips events in flight and missing events."""
    ended = Counter(status for status in statuses if status and status not in _OPEN)
    for status, count in ended.items():
        emit(deployment, {Metric.OUTCOMES: count}, **{STATUS: status})


def emit_closed(deployment: str, event: Event) -> None:
    """Counts the outcome of an event that a recovery check has closed, and how long the group's recovery took."""
    measured = outcomes([event.status.value])
    if event.recovery_seconds is not None:
        measured[Metric.RECOVERY_SECONDS] = event.recovery_seconds
    emit(deployment, measured)
    emit_outcomes(deployment, [event.status.value])
    emit_verdicts(deployment, [event])


def emit_verdicts(deployment: str, events: Iterable[Event]) -> None:
    """Counts the verdicts of events that have just got them, with a line for each value; skips those that await it."""
    values = Counter(event.verdict.value.value for event in events if event.verdict)
    for value, count in values.items():
        emit(deployment, {Metric.VERDICTS: count}, **{VERDICT: value})


def outcomes(statuses: Iterable[str]) -> dict[Metric, float]:
    """Counts events by those final statuses that have a metric; skips other statuses."""
    return dict(Counter(_METRICS[status] for status in statuses if status in _METRICS))
