"""Writes metrics as log lines that CloudWatch takes them from (embedded metric format)."""

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
    """Writes one line with all ``values``. Never raises: nothing that is done depends on its being counted.

    Args:
        deployment: the stack's name, the dimension that all metrics have.
        values: by metric; nothing is written for none.
        dimensions: further ones, of few values each.
    """
    if not values:
        return
    try:
        # An empty service: its name would be another dimension, by which each function had metrics of its own.
        line = EphemeralMetrics(namespace=NAMESPACE, service="")
        for name, value in {DIMENSION: deployment, **dimensions}.items():
            line.add_dimension(name=name, value=value)
        for metric, number in values.items():
            line.add_metric(name=metric.value, unit=_UNITS.get(metric, MetricUnit.Count), value=number)
        line.flush_metrics()
    except Exception:  # whatever it is, the work itself is done
        logger.warning("metrics were not written", exc_info=True)


def emit_outcomes(deployment: str, statuses: Iterable[str]) -> None:
    """Counts events that have come to an end, a line for each status; those in flight, and none, are passed over."""
    ended = Counter(status for status in statuses if status and status not in _OPEN)
    for status, count in ended.items():
        emit(deployment, {Metric.OUTCOMES: count}, **{STATUS: status})


def emit_repairs(deployment: str, repair: Repair, count: int) -> None:
    """Counts what was mended without anybody's help; no line for nothing."""
    if count:
        emit(deployment, {Metric.REPAIRS: count}, **{KIND: repair.value})


def emit_by_kind(deployment: str, metric: Metric, counts: Mapping[str, int]) -> None:
    """A line for each kind of which there is any. What is not there is no line, and costs nothing."""
    for kind, count in counts.items():
        if count:
            emit(deployment, {metric: count}, **{KIND: kind})


def outcomes(statuses: Iterable[str]) -> dict[Metric, float]:
    """How many events ended in which of the ways that are counted; other statuses are passed over."""
    return dict(Counter(_OF_STATUS[status] for status in statuses if status in _OF_STATUS))
