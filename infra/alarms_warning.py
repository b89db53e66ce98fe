"""Alarms of the class "warning": nothing of it gets worse over night.

None of them has a threshold that somebody felt was right for all: slow is what is slow by the unit's own history, what
benchmarks may cost is a setting, and the rest counts what should not happen at all, with room for what a repetition
mends by itself.
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
from infra.metric_helpers import ours, throttled_anywhere, waiting_in
from infra.partitions import in_china
from troop.metrics import CURRENCY, Metric

_SUM = cloudwatch.Stats.SUM
_QUARTER, _HOUR, _DAY = cdk.Duration.minutes(15), cdk.Duration.hours(1), cdk.Duration.days(1)

_TWO_ROUNDS = cdk.Duration.minutes(30)
"""Of the reaper: what it writes only when there is something to say is written in each of these, or is over."""

SOME, MANY = 3, 4
"""So many failures are no accident: within a quarter of an hour, and of steps, which are repeated, within an hour. A
schedule calls its function four times an hour: one that fails every time is told of, if nothing else fails.
"""

MANY_THROTTLED = 100
"""Requests within an hour. A few are put off whenever there is much to do at once, and are made again."""

Written = tuple[dynamodb.ITable, Sequence[str]]
"""A table, and the names of those of its indices into which as many write."""


def warning_specs(
    api: apigateway.RestApi, busy: Mapping[str, lambda_.IFunction], written: Mapping[str, Written]
) -> Iterator[AlarmSpec]:
    """Those of every deployment.

    Args:
        busy: functions of which many run at once, by name. All share the account's concurrency, so few will do.
        written: tables into which many write at once, by name. That an index cannot keep up holds its table up, too.
    """
    yield AlarmSpec(
        "SlowRecoveries",
        "A unit took more than twice as long to recover as it usually does.",
        "slow-recoveries",
        ours(Metric.SLOW_RECOVERIES, _SUM, _HOUR),
    )
    yield AlarmSpec(
        "ApiErrors",
        f"The API has failed to answer {SOME} requests or more within a quarter of an hour.",
        "api-errors",
        api.deployment_stage.metric_server_error(period=_QUARTER, statistic=_SUM),
        threshold=SOME,
    )
    yield AlarmSpec(
        "StepsFailing",
        f"Functions have failed {MANY} times or more within an hour; what is repeated may have succeeded since.",
        "steps-failing",
        ours(Metric.STEPS_FAILED, _SUM, _HOUR),
        threshold=MANY,
    )
    yield AlarmSpec(
        "NotificationsFailing",
        f"{SOME} tries or more to tell others something have failed within a quarter of an hour; they are repeated.",
        "notifications-failing",
        ours(Metric.NOTIFICATIONS_FAILED, _SUM, _QUARTER),
        threshold=SOME,
    )
    for name, function in busy.items():
        yield AlarmSpec(
            f"Throttled{name}",
            f"AWS has put off {MANY_THROTTLED} calls or more of the function {name} within an hour.",
            "throttled",
            function.metric_throttles(period=_HOUR, statistic=_SUM),
            threshold=MANY_THROTTLED,
        )
    for name, (table, indices) in written.items():
        yield AlarmSpec(
            f"Throttled{name}",
            f"DynamoDB has put off {MANY_THROTTLED} writes or more to the table {name}"
            f"{''.join(f' or its index {index}' for index in indices)} within an hour.",
            "throttled",
            throttled_anywhere(table, indices, "Write", _HOUR),
            threshold=MANY_THROTTLED,
        )


def benchmark_warning_specs(scope: Construct, daily_cost: float, failed_reports: sqs.IQueue) -> Iterator[AlarmSpec]:
    """Those of the half that runs benchmarks.

    Args:
        scope: of the stack, on whose partition the currency of the prices depends.
        daily_cost: from which on a day's benchmarks are an alarm.
        failed_reports: where Lambda puts calls for a report that have failed.
    """
    yield AlarmSpec(
        "ReaperFound",
        "A benchmark had left something behind, or had not ended in its time, and the reaper had to see to it.",
        "reaper-found",
        ours(Metric.REAPER_FINDS),
        IGNORED,  # it speaks every quarter of an hour, as the watchdog does
    )
    yield AlarmSpec(
        "ReaperOff",
        "Somebody has switched the reaper off: what benchmarks leave behind stays until it is on again.",
        "reaper-off",
        ours(Metric.REAPER_OFF, period=_TWO_ROUNDS),
    )
    yield AlarmSpec(
        "LeftBehind",
        "Something with the tags of a benchmark's run stays: it is protected, or nothing but the tags says it is ours.",
        "left-behind",
        ours(Metric.LEFT_BEHIND, period=_TWO_ROUNDS),
    )
    # Whoever waits for a report hears of nothing: the teardown passes over its failure, and the API does not wait. In
    # the end both leave it to Lambda; what that gives up was throttled, or failed, at every try. The metric for this,
    # AsyncEventsDropped, China has not.
    yield AlarmSpec(
        "ReportFailed",
        "The report of a benchmark's run could not be made.",
        "report-failed",
        waiting_in(failed_reports),
    )
    currency = cdk.Fn.condition_if(in_china(scope), "CNY", "USD").to_string()
    yield AlarmSpec(
        "BenchmarkCost",
        f"Benchmarks and fleets have cost {daily_cost:g} or more within a day.",
        "benchmark-cost",
        ours(Metric.RUN_COST, _SUM, _DAY, **{CURRENCY: currency}),
        threshold=daily_cost,
    )
