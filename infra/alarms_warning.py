"""Defines the alarms of the class "warning": the problem gets no worse overnight.

No threshold is a guess for all deployments. Slow means slow by the unit's own history, and the cost of benchmarks is a
setting. The other alarms count what should not happen at all, with a margin for failures that a retry repairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.alarms import IGNORED, AlarmSpec
from infra.metric_helpers import throttled_anywhere, troop_metric, waiting_in
from infra.partitions import in_china
from troop.shared.metrics import CURRENCY, Metric

_SUM = cloudwatch.Stats.SUM
_QUARTER, _HOUR, _DAY = cdk.Duration.minutes(15), cdk.Duration.hours(1), cdk.Duration.days(1)

_TWO_ROUNDS = cdk.Duration.minutes(30)
"""Two rounds of the reaper: a metric that it writes only when there is something to report is written in each of them.
"""

SOME, MANY = 3, 4
"""Failures that are no coincidence: within a quarter of an hour and, for steps, which are retried, within an hour. A
schedule calls its function four times an hour, so a function that always fails raises the alarm alone.
"""

MANY_THROTTLED = 100
"""Requests within an hour. Throttling of a few is normal under load, and they are retried."""

Written = tuple[dynamodb.ITable, Sequence[str]]
"""A table, and the names of its indices with the same write load."""


def warning_specs(
    api: apigateway.RestApi,
    busy: Mapping[str, lambda_.IFunction],
    written: Mapping[str, Written],
) -> Iterator[AlarmSpec]:
    """Yields the warnings of every deployment.

    Args:
        busy: functions with many concurrent calls, by name. All functions share the account's concurrency, so few
            suffice.
        written: tables with many concurrent writes, by name. An index that cannot keep up also throttles its table.
    """
    yield AlarmSpec(
        "SlowRecoveries",
        "A unit took more than twice as long to recover as usual.",
        "slow-recoveries",
        troop_metric(Metric.SLOW_RECOVERIES, _SUM, _HOUR),
    )
    yield AlarmSpec(
        "ApiErrors",
        f"The API failed to answer {SOME} or more requests within a quarter of an hour.",
        "api-errors",
        api.deployment_stage.metric_server_error(period=_QUARTER, statistic=_SUM),
        threshold=SOME,
    )
    yield AlarmSpec(
        "StepsFailing",
        f"Functions failed {MANY} or more times within an hour; a retry may have succeeded.",
        "steps-failing",
        troop_metric(Metric.STEPS_FAILED, _SUM, _HOUR),
        threshold=MANY,
    )
    yield AlarmSpec(
        "NotificationsFailing",
        f"{SOME} or more attempts at notifications failed within a quarter of an hour; they are retried.",
        "notifications-failing",
        troop_metric(Metric.NOTIFICATIONS_FAILED, _SUM, _QUARTER),
        threshold=SOME,
    )
    for name, function in busy.items():
        yield AlarmSpec(
            f"Throttled{name}",
            f"AWS throttled {MANY_THROTTLED} or more calls of the function {name} within an hour.",
            "throttled",
            function.metric_throttles(period=_HOUR, statistic=_SUM),
            threshold=MANY_THROTTLED,
        )
    for name, (table, indices) in written.items():
        yield AlarmSpec(
            f"Throttled{name}",
            f"DynamoDB throttled {MANY_THROTTLED} or more writes to the table {name}"
            f"{''.join(f' or its index {index}' for index in indices)} within an hour.",
            "throttled",
            throttled_anywhere(table, indices, "Write", _HOUR),
            threshold=MANY_THROTTLED,
        )


def benchmark_warning_specs(scope: Construct, daily_cost: float, failed_reports: sqs.IQueue) -> Iterator[AlarmSpec]:
    """Yields the warnings of the part that runs benchmarks.

    Args:
        scope: of the stack, whose partition determines the currency.
        daily_cost: the lowest cost of a day's benchmarks that is an alarm.
        failed_reports: the queue for failed calls for a report.
    """
    yield AlarmSpec(
        "ReaperFound",
        "A benchmark left resources behind, or did not end in time, and the reaper intervened.",
        "reaper-found",
        troop_metric(Metric.REAPER_FINDS),
        IGNORED,  # the reaper writes every quarter of an hour, as the watchdog does
    )
    yield AlarmSpec(
        "ReaperOff",
        "The reaper is switched off: leftovers of benchmarks stay until it is on again.",
        "reaper-off",
        troop_metric(Metric.REAPER_OFF, period=_TWO_ROUNDS),
    )
    yield AlarmSpec(
        "LeftBehind",
        "Troop does not remove a resource with the tags of a benchmark's run: it is protected, or only its tags "
        "connect it with the run.",
        "left-behind",
        troop_metric(Metric.LEFT_BEHIND, period=_TWO_ROUNDS),
    )
    yield AlarmSpec(
        "StartsRefused",
        "A schedule of a benchmark could not start its run.",
        "starts-refused",
        troop_metric(Metric.STARTS_REFUSED),
    )
    # The requester of a report gets no error: the teardown ignores its failure, and the API does not wait. Both leave
    # retries to Lambda, which drops calls that were throttled or failed at every try. China lacks the metric for that,
    # AsyncEventsDropped.
    yield AlarmSpec(
        "ReportFailed",
        "The report of a benchmark's run could not be made.",
        "report-failed",
        waiting_in(failed_reports),
    )
    currency = cdk.Fn.condition_if(in_china(scope), "CNY", "USD").to_string()
    yield AlarmSpec(
        "BenchmarkCost",
        f"Benchmarks and fleets cost {daily_cost:g} or more within a day.",
        "benchmark-cost",
        troop_metric(Metric.RUN_COST, _SUM, _DAY, **{CURRENCY: currency}),
        threshold=daily_cost,
    )
