"""Metrics as alarms and dashboards name them: the deployment's own, and those that AWS counts of its parts."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_sqs as sqs

from troop.metrics import DIMENSION, NAMESPACE, SECOND, Metric

SOON = cdk.Duration.minutes(5)


def ours(
    metric: Metric,
    statistic: str = cloudwatch.Stats.MAXIMUM,
    period: cdk.Duration = SOON,
    label: str | None = None,
    **dimensions: str,
) -> cloudwatch.Metric:
    """A metric of the deployment's own.

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


def ours_by(metric: Metric, statistic: str, period: cdk.Duration, *, filled: bool = True) -> cloudwatch.MathExpression:
    """The same metric once for each value that its second dimension has had within two weeks; by a search, so that
    nobody has to say which values there are.

    Args:
        filled: where there is no value it is zero.
    """
    dimension = SECOND[metric]
    # In double quotes: without, the search would also find deployments whose names have the words of this one's.
    criteria = f'{{{NAMESPACE},{DIMENSION},{dimension}}} MetricName="{metric.value}" {DIMENSION}="{cdk.Aws.STACK_NAME}"'
    search = f"SEARCH('{criteria}', '{statistic}')"
    expression = f"FILL({search}, 0)" if filled else search
    return cloudwatch.MathExpression(expression=expression, period=period, label="")


def of_executions(kind: str, machine: str, period: cdk.Duration = SOON, label: str | None = None) -> cloudwatch.Metric:
    """How many executions of a state machine ended so.

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
    """How many messages a queue has that nobody is reading just now."""
    return cloudwatch.Metric(
        namespace="AWS/SQS",
        metric_name="ApproximateNumberOfMessagesVisible",
        dimensions_map={"QueueName": queue.queue_name},
        statistic=cloudwatch.Stats.MAXIMUM,
        period=SOON,
        label=label,
    )


def throttled_indices(table: dynamodb.ITable, kind: str, period: cdk.Duration) -> cloudwatch.MathExpression:
    """The same of each index of a table, which does not count as the table's; by a search, so it is no metric that a
    dashboard names. An alarm cannot have it: see :func:`throttled_anywhere`.
    """
    criteria = f'{{AWS/DynamoDB,TableName,GlobalSecondaryIndexName}} MetricName="{kind}ThrottleEvents"'
    search = f"SEARCH('{criteria} TableName=\"{table.table_name}\"', 'Sum')"
    return cloudwatch.MathExpression(expression=search, period=period, label="")


def throttled_anywhere(
    table: dynamodb.ITable, indices: Sequence[str], kind: str, period: cdk.Duration
) -> cloudwatch.MathExpression:
    """The sum over a table and its indices, zero where DynamoDB has put off nothing.

    Zero, and not nothing: DynamoDB writes these metrics only when there is something to count, and alarms on a metric
    of its namespace ignore missing data whatever they are told, so that one which is on would never end.

    Args:
        indices: their names. At most nine: an alarm's expression has at most ten metrics, and each is paid for.
    """
    using: dict[str, cloudwatch.IMetric] = {"table": throttled(table, kind, period)}
    using |= {f"index{n}": throttled(table, kind, period, index=name) for n, name in enumerate(indices)}
    return cloudwatch.MathExpression(expression="SUM(FILL(METRICS(), 0))", using_metrics=using, period=period)


def throttled(
    table: dynamodb.ITable, kind: str, period: cdk.Duration, label: str | None = None, index: str | None = None
) -> cloudwatch.Metric:
    """Requests that DynamoDB has put off.

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
