"""Writes metrics as log lines in CloudWatch's embedded metric format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from troop.shared.metrics import DIMENSION, KIND, NAMESPACE, Metric, Repair

_UNITS = {
    Metric.RECOVERY_SECONDS: MetricUnit.Seconds,
    Metric.RUN_COST: MetricUnit.NoUnit,
    Metric.FLEET_HEALTH: MetricUnit.NoUnit,
}

logger = Logger()


def emit(deployment: str, values: Mapping[Metric, float | Sequence[float]], **dimensions: str) -> None:
    """Writes one line with all ``values``. Never raises, because no work may fail for its metrics.

    Args:
        deployment: the stack's name, the dimension of all metrics.
        values: the value of each metric, or at most 100 of them; if empty, nothing is written.
        dimensions: further ones, each with few values.
    """
    if not values:
        return
    try:
        # The service is empty: its name would become a dimension, with separate metrics for each function.
        line = EphemeralMetrics(namespace=NAMESPACE, service="")
        for name, value in {DIMENSION: deployment, **dimensions}.items():
            line.add_dimension(name=name, value=value)
        for metric, some in values.items():
            for number in some if isinstance(some, Sequence) else (some,):
                line.add_metric(name=metric.value, unit=_UNITS.get(metric, MetricUnit.Count), value=number)
        if line.metric_set:  # the line of 100 values is written already
            line.flush_metrics()
    except Exception:  # whatever the error, the work itself is done
        logger.warning("metrics were not written", exc_info=True)


def emit_repairs(deployment: str, repair: Repair, count: int) -> None:
    """Counts automatic repairs; writes no line for 0."""
    if count:
        emit(deployment, {Metric.REPAIRS: count}, **{KIND: repair.value})


def emit_by_kind(deployment: str, metric: Metric, counts: Mapping[str, int]) -> None:
    """Writes a line for each kind with a count above 0; other kinds get no line, and cost nothing."""
    for kind, count in counts.items():
        if count:
            emit(deployment, {metric: count}, **{KIND: kind})
