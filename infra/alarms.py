"""Alarms of the class "act now": each means that somebody has to do something, and says where it is written what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.calls import MINUTES
from infra.settings import DeploymentSettings
from infra.watched import Watched
from troop.chaos.metrics import CHILDREN, DIMENSION, NAMESPACE, Metric

SILENT_PERIODS = 3
"""So many quarters of an hour without a word of the watchdog are an alarm."""

_SOON = cdk.Duration.minutes(5)


@dataclass(frozen=True)
class ActNow:
    """An alarm.

    Attributes:
        name: the construct's.
        what: a sentence that says what has happened.
        anchor: of its paragraph in the runbook.
        metric: with its statistic and period.
        missing: what it means when there is no value.
        silence: whether it is an alarm that there are too few values, and not that one of them is 1 or more.
    """

    name: str
    what: str
    anchor: str
    metric: cloudwatch.Metric
    missing: cloudwatch.TreatMissingData
    silence: bool = False


class Alarms(Construct):
    """The alarms, and the topic that they go to, when they begin and when they are over.

    Attributes:
        act_now: the topic. Nobody is subscribed until somebody subscribes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: DeploymentSettings,
        watched: Watched,
        on_demand: sfn.IStateMachine,
        untold: sqs.IQueue,
        teardown: sfn.IStateMachine | None,
        report: lambda_.IFunction | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.act_now = sns.Topic(self, "ActNow", enforce_ssl=True)
        # A topic with a policy has that policy alone: without this, alarms could not publish.
        self.act_now.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.act_now.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
            )
        )
        tell = actions.SnsAction(self.act_now)
        of_benchmarks = _of_benchmarks(teardown, report) if teardown and report else ()
        for act_now in (*_alarms(watched, on_demand, untold), *of_benchmarks):
            alarm = cloudwatch.Alarm(
                self,
                act_now.name,
                alarm_description=f"{act_now.what} What to do: {settings.runbook_url}#{act_now.anchor}",
                metric=act_now.metric,
                threshold=1,
                comparison_operator=(
                    cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
                    if act_now.silence
                    else cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
                ),
                evaluation_periods=SILENT_PERIODS if act_now.silence else 1,
                treat_missing_data=act_now.missing,
            )
            alarm.add_alarm_action(tell)
            alarm.add_ok_action(tell)


def _alarms(watched: Watched, on_demand: sfn.IStateMachine, untold: sqs.IQueue) -> Iterator[ActNow]:
    # The watchdog speaks every quarter of an hour: in between, what it said last holds.
    until_it_speaks = cloudwatch.TreatMissingData.IGNORE
    yield ActNow(
        "UnitUnrecovered",
        "A unit was not whole again in time after a termination, and has left chaos.",
        "unit-unrecovered",
        _of_watchdog(Metric.UNITS_UNRECOVERED),
        until_it_speaks,
    )
    yield ActNow(
        "TicksMissing",
        "Chaos is due by its calendars, and the workflow is not started.",
        "ticks-missing",
        _of_watchdog(Metric.MISSING_TICKS),
        until_it_speaks,
    )
    # What the workflow tolerates is not its own failure: children have an ARN, and so metrics, of their own.
    yield ActNow(
        "TerminationsFailed",
        "A termination, or the watch over a group's recovery, has failed at every try.",
        "terminations-failed",
        _of_executions("Failed", f"{watched.machine.state_machine_arn}/{CHILDREN}"),
        cloudwatch.TreatMissingData.NOT_BREACHING,
    )
    yield ActNow(
        "OnDemandFailed",
        "A termination on demand, or the watch over its group's recovery, has failed at every try.",
        "terminations-failed",
        _of_executions("Failed", on_demand.state_machine_arn),
        cloudwatch.TreatMissingData.NOT_BREACHING,
    )
    for kind, how in {"Failed": "has failed", "TimedOut": "took too long", "Aborted": "was stopped"}.items():
        yield ActNow(
            f"Ticks{kind}",
            f"An execution of the chaos workflow {how}.",
            "ticks-failed",
            _of_executions(kind, watched.machine.state_machine_arn),
            cloudwatch.TreatMissingData.NOT_BREACHING,
        )
    yield ActNow(
        "DeadLetters",
        "A schedule, or the rule about failed runs, could not deliver what it is for.",
        "dead-letters",
        _waiting_in(watched.undelivered),
        cloudwatch.TreatMissingData.NOT_BREACHING,
    )
    yield ActNow(
        "NotificationsLost",
        "Others were not told of something that is on record.",
        "notifications-lost",
        _waiting_in(untold),
        cloudwatch.TreatMissingData.NOT_BREACHING,
    )
    yield ActNow(
        "WatchdogSilent",
        "The watchdog has been silent, or blind, for a while: whatever happens now, no other alarm may tell.",
        "watchdog-silent",
        _of_watchdog(Metric.FAILING_CHECKS, cloudwatch.Stats.SAMPLE_COUNT, cdk.Duration.minutes(MINUTES)),
        cloudwatch.TreatMissingData.BREACHING,
        silence=True,
    )


def _of_benchmarks(teardown: sfn.IStateMachine, report: lambda_.IFunction) -> Iterator[ActNow]:
    """That a run fails is for whoever has started it to know. What may be left of it costs money by the hour."""
    yield ActNow(
        "ReaperFound",
        "A benchmark had left something behind, or had not ended in its time, and the reaper had to see to it.",
        "reaper-found",
        _of_watchdog(Metric.REAPER_FINDS),
        cloudwatch.TreatMissingData.IGNORE,  # it speaks every quarter of an hour, as the watchdog does
    )
    yield ActNow(
        "ReaperSilent",
        "The reaper has been silent for a while: what benchmarks leave behind now, nobody removes.",
        "reaper-silent",
        _of_watchdog(Metric.REAPER_FINDS, cloudwatch.Stats.SAMPLE_COUNT, cdk.Duration.minutes(MINUTES)),
        cloudwatch.TreatMissingData.BREACHING,
        silence=True,
    )
    for kind, how in {"Failed": "has failed", "TimedOut": "took too long", "Aborted": "was stopped"}.items():
        yield ActNow(
            f"Teardown{kind}",
            f"Removing what a benchmark has created {how}: some of it may still be there.",
            "teardown-failed",
            _of_executions(kind, teardown.state_machine_arn),
            cloudwatch.TreatMissingData.NOT_BREACHING,
        )
    # Whoever waits for a report hears of nothing: the teardown passes over its failure, and the API does not wait. In
    # the end both leave it to Lambda's queue; what that gives up was throttled, or failed, at every try.
    yield ActNow(
        "ReportFailed",
        "The report of a benchmark's run could not be made.",
        "report-failed",
        cloudwatch.Metric(
            namespace="AWS/Lambda",
            metric_name="AsyncEventsDropped",
            dimensions_map={"FunctionName": report.function_name},
            statistic=cloudwatch.Stats.SUM,
            period=_SOON,
        ),
        cloudwatch.TreatMissingData.NOT_BREACHING,
    )


def _of_executions(kind: str, machine: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="AWS/States",
        metric_name=f"Executions{kind}",
        dimensions_map={"StateMachineArn": machine},
        statistic=cloudwatch.Stats.SUM,
        period=_SOON,
    )


def _of_watchdog(
    metric: Metric, statistic: str = cloudwatch.Stats.MAXIMUM, period: cdk.Duration = _SOON
) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name=metric.value,
        dimensions_map={DIMENSION: cdk.Aws.STACK_NAME},
        statistic=statistic,
        period=period,
    )


def _waiting_in(queue: sqs.IQueue) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="AWS/SQS",
        metric_name="ApproximateNumberOfMessagesVisible",
        dimensions_map={"QueueName": queue.queue_name},
        statistic=cloudwatch.Stats.MAXIMUM,
        period=_SOON,
    )
