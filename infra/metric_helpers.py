"""Builds metrics for alarms and dashboards: the deployment's own, and those of AWS for its parts."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_sqs as sqs

from troop.shared.metrics import DIMENSION, NAMESPACE, SECOND, Metric

SOON = cdk.Duration.minutes(5)


def troop_metric(
    metric: Metric,
    statistic: str = cloudwatch.Stats.MAXIMUM,
    period: cdk.Duration = SOON,
    label: str | None = None,
    **dimensions: str,
) -> cloudwatch.Metric:
    """Returns a metric of the deployment.

    Args:
        dimensions: the second one, for metrics that have one.
    """
    return cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name=metric.value,
        dimensions_map={DIMENSION: cdk.Aws.STACK_NAME, **dimensions},
        statistic=statistic,
        period=period,
        label=label,
    )


def troop_metrics(
    metric: Metric, statistic: str, period: cdk.Duration, *, filled: bool = True
) -> cloudwatch.MathExpression:
    """Returns the metric for each value that its second dimension has had within two weeks. A search finds these
    values.

    Args:
        filled: missing values are zero.
    """
    dimension = SECOND[metric]
    # In double quotes, because without them the search would also find deployments whose names contain the words of
    # this one's.
    criteria = f'{{{NAMESPACE},{DIMENSION},{dimension}}} MetricName="{metric.value}" {DIMENSION}="{cdk.Aws.STACK_NAME}"'
    search = f"SEARCH('{criteria}', '{statistic}')"
    expression = f"FILL({search}, 0)" if filled else search
    return cloudwatch.MathExpression(expression=expression, period=period, label="")


def filled(metrics: Sequence[cloudwatch.IMetric]) -> list[cloudwatch.IMetric]:
    """Returns the metrics of a widget, sums with zero for missing values: a count is written only if there is one.

    A missing maximum is not zero: it says that nobody looked. Expressions stay as they are. Sums need a label.
    """
    return [
        cloudwatch.MathExpression(
            expression=f"FILL(m{number}, 0)",
            using_metrics={f"m{number}": metric},
            period=metric.period,
            label=metric.label,
        )
        if isinstance(metric, cloudwatch.Metric) and metric.statistic == cloudwatch.Stats.SUM
        else metric
        for number, metric in enumerate(metrics)
    ]


def execution_metric(
    kind: str, machine: str, period: cdk.Duration = SOON, label: str | None = None
) -> cloudwatch.Metric:
    """Returns the number of a state machine's executions that ended this way.

    Args:
        kind: Failed, TimedOut or Aborted.
        machine: ARN of the machine, or ``ARN/LABEL`` for the children of one of its maps.
    """
    return cloudwatch.Metric(
        namespace="AWS/States",
        metric_name=f"Executions{kind}",
        dimensions_map={"StateMachineArn": machine},
        statistic=cloudwatch.Stats.SUM,
        period=period,
        label=label,
    )


def waiting_in(queue: sqs.IQueue, label: str | None = None) -> cloudwatch.Metric:
    """Returns the number of visible messages in a queue."""
    return cloudwatch.Metric(
        namespace="AWS/SQS",
        metric_name="ApproximateNumberOfMessagesVisible",
        dimensions_map={"QueueName": queue.queue_name},
        statistic=cloudwatch.Stats.MAXIMUM,
        period=SOON,
        label=label,
    )


def throttled_indices(table: dynamodb.ITable, kind: str, period: cdk.Duration) -> cloudwatch.MathExpression:
    """Returns the throttled requests of each index of a table, which the table's metric excludes. Uses a search, so it
    is not a named metric of a dashboard. An alarm cannot use it: see :func:`throttled_anywhere`.
    """
    criteria = f'{{AWS/DynamoDB,TableName,GlobalSecondaryIndexName}} MetricName="{kind}ThrottleEvents"'
    search = f"SEARCH('{criteria} TableName=\"{table.table_name}\"', 'Sum')"
    return cloudwatch.MathExpression(expression=search, period=period, label="")


def throttled_anywhere(
    table: dynamodb.ITable, indices: Sequence[str], kind: str, period: cdk.Duration
) -> cloudwatch.MathExpression:
    """Returns the throttled requests of a table and its indices together, zero without throttling.

    Missing values must be zero: DynamoDB writes these metrics only if they count something. Alarms on its namespace
    always ignore missing data, whatever their setting, so an alarm would never end.

    Args:
        indices: their names. At most nine: an alarm's expression has at most ten metrics, and each costs money.
    """
    using: dict[str, cloudwatch.IMetric] = {"table": throttled(table, kind, period)}
    using |= {f"index{n}": throttled(table, kind, period, index=name) for n, name in enumerate(indices)}
    return cloudwatch.MathExpression(expression="SUM(FILL(METRICS(), 0))", using_metrics=using, period=period)


def throttled(
    table: dynamodb.ITable, kind: str, period: cdk.Duration, label: str | None = None, index: str | None = None
) -> cloudwatch.Metric:
    """Returns the requests that DynamoDB throttled.

    Args:
        kind: Read or Write.
        index: of the table; None for the table itself, which does not count those of its indices.
    """
    return cloudwatch.Metric(
        namespace="AWS/DynamoDB",
        metric_name=f"{kind}ThrottleEvents",
        dimensions_map={"TableName": table.table_name, **({"GlobalSecondaryIndexName": index} if index else {})},
        statistic=cloudwatch.Stats.SUM,
        period=period,
        label=label,
    )
