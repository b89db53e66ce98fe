"""Writes metrics as log lines in CloudWatch's embedded metric format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from troop.chaos.events import OPEN, Status
from troop.metrics import DIMENSION, KIND, NAMESPACE, STATUS, Metric, Repair

_OF_STATUS = {Status.RECOVERED.value: Metric.RECOVERIES, Status.UNRECOVERED.value: Metric.UNRECOVERED}
_OPEN = frozenset(status.value for status in OPEN)
_UNITS = {Metric.RECOVERY_SECONDS: MetricUnit.Seconds, Metric.RUN_COST: MetricUnit.NoUnit}

logger = Logger()


def emit(deployment: str, values: Mapping[Metric, float], **dimensions: str) -> None:
    """Writes one line with all ``values``. Never raises, because no work may fail for its metrics.

    Args:
        deployment: the stack's name, the dimension of all metrics.
        values: by metric; if empty, nothing is written.
        dimensions: further ones, each with few values.
    """
    if not values:
        return
    try:
        # The service is empty: its name would become a dimension, with separate metrics for each function.
        line = EphemeralMetrics(namespace=NAMESPACE, service="")
        for name, value in {DIMENSION: deployment, **dimensions}.items():
            line.add_dimension(name=name, value=value)
        for metric, number in values.items():
            line.add_metric(name=metric.value, unit=_UNITS.get(metric, MetricUnit.Count), value=number)
        line.flush_metrics()
    except Exception:  # whatever the error, the work itself is done
        logger.warning("metrics were not written", exc_info=True)


def emit_outcomes(deployment: str, statuses: Iterable[str]) -> None:
    """Counts ended events, with a line for each status; skips events in flight and missing events."""
    ended = Counter(status for status in statuses if status and status not in _OPEN)
    for status, count in ended.items():
        emit(deployment, {Metric.OUTCOMES: count}, **{STATUS: status})


def emit_repairs(deployment: str, repair: Repair, count: int) -> None:
    """Counts automatic repairs; writes no line for 0."""
    if count:
        emit(deployment, {Metric.REPAIRS: count}, **{KIND: repair.value})


def emit_by_kind(deployment: str, metric: Metric, counts: Mapping[str, int]) -> None:
    """Writes a line for each kind with a count above 0; other kinds get no line, and cost nothing."""
    for kind, count in counts.items():
        if count:
            emit(deployment, {metric: count}, **{KIND: kind})


def outcomes(statuses: Iterable[str]) -> dict[Metric, float]:
    """Counts events by those final statuses that have a metric; skips other statuses."""
    return dict(Counter(_OF_STATUS[status] for status in statuses if status in _OF_STATUS))
