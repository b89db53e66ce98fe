"""Defines the alarms of two classes, each with its own topic. "Act now": somebody has to act. "Warning"
(:mod:`infra.alarms_warning`): something is wrong, but gets no worse over night. Each names its entry in the runbook.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.health_targets import Watched
from infra.metric_helpers import of_executions, ours, waiting_in
from infra.periodic_schedules import MINUTES
from infra.settings import DeploymentSettings
from troop.metrics import CHILDREN, Metric

SILENT_PERIODS = 3
"""So many quarters of an hour without a word of the watchdog are an alarm."""

IGNORED, BREACHING = cloudwatch.TreatMissingData.IGNORE, cloudwatch.TreatMissingData.BREACHING
NOT_BREACHING = cloudwatch.TreatMissingData.NOT_BREACHING


@dataclass(frozen=True)
class AlarmSpec:
    """An alarm.

    Attributes:
        name: of a few words in one, such as ``TicksMissing``; the deployment's is put before it.
        what: a sentence that says what has happened.
        anchor: of its paragraph in the runbook.
        metric: with its statistic and period.
        missing: what it means when there is no value.
        threshold: from which value on it is an alarm.
        silence: whether it is an alarm that there are too few values, and not that one of them is too high.
    """

    name: str
    what: str
    anchor: str
    metric: cloudwatch.IMetric
    missing: cloudwatch.TreatMissingData = NOT_BREACHING
    threshold: float = 1
    silence: bool = False


class Alarms(Construct):
    """The alarms, and the topics that they go to, when they begin and when they are over. Nobody is subscribed until
    somebody subscribes.

    Attributes:
        act_now_topic, warning_topic: the topics.
        act_now_alarms, warning_alarms: the alarms that go to each.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: DeploymentSettings) -> None:
        """The topics alone, for those to see who are watched themselves."""
        super().__init__(scope, construct_id)
        self._runbook = settings.runbook_url
        self.act_now_topic, self.warning_topic = self._topic("ActNow"), self._topic("Warning")
        self.act_now_alarms: list[cloudwatch.Alarm] = []
        self.warning_alarms: list[cloudwatch.Alarm] = []

    def watch(
        self,
        *,
        watched: Watched,
        on_demand: sfn.IStateMachine,
        untold: sqs.IQueue,
        teardown: sfn.IStateMachine | None,
        warning_specs: Iterable[AlarmSpec],
    ) -> None:
        """Makes the alarms."""
        act_now_specs = (*_alarms(watched, on_demand, untold), *(_of_benchmarks(teardown) if teardown else ()))
        self.act_now_alarms = [self._alarm(spec, self.act_now_topic) for spec in act_now_specs]
        self.warning_alarms = [self._alarm(spec, self.warning_topic) for spec in warning_specs]

    def _topic(self, name: str) -> sns.Topic:
        topic = sns.Topic(self, name, enforce_ssl=True)
        # A topic with a policy has that policy alone: without this, alarms could not publish.
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}},
            )
        )
        return topic

    def _alarm(self, spec: AlarmSpec, topic: sns.Topic) -> cloudwatch.Alarm:
        alarm = cloudwatch.Alarm(
            self,
            spec.name,
            # What a mail's subject and the dashboard show. No name of an alarm has a hyphen, so these are unique where
            # the stacks' are. Another name makes another alarm: the old one's history goes with it.
            alarm_name=f"{cdk.Aws.STACK_NAME}-{spec.name}",
            alarm_description=f"{spec.what} What to do: {self._runbook}#{spec.anchor}",
            metric=spec.metric,
            threshold=spec.threshold,
            comparison_operator=(
                cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
                if spec.silence
                else cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            evaluation_periods=SILENT_PERIODS if spec.silence else 1,
            treat_missing_data=spec.missing,
        )
        tell = actions.SnsAction(topic)
        alarm.add_alarm_action(tell)
        alarm.add_ok_action(tell)
        return alarm


def _alarms(watched: Watched, on_demand: sfn.IStateMachine, untold: sqs.IQueue) -> Iterator[AlarmSpec]:
    # The watchdog speaks every quarter of an hour: in between, what it said last holds.
    until_it_speaks = IGNORED
    yield AlarmSpec(
        "UnitUnrecovered",
        "A unit was not whole again in time after a termination, and has left chaos.",
        "unit-unrecovered",
        ours(Metric.UNITS_UNRECOVERED),
        until_it_speaks,
    )
    yield AlarmSpec(
        "TicksMissing",
        "Chaos is due by its calendars, and the workflow is not started.",
        "ticks-missing",
        ours(Metric.MISSING_TICKS),
        until_it_speaks,
    )
    # What the workflow tolerates is not its own failure: children have an ARN, and so metrics, of their own.
    yield AlarmSpec(
        "TerminationsFailed",
        "A termination, or the watch over a group's recovery, has failed at every try.",
        "terminations-failed",
        of_executions("Failed", f"{watched.machine.state_machine_arn}/{CHILDREN}"),
        NOT_BREACHING,
    )
    yield AlarmSpec(
        "OnDemandFailed",
        "A termination on demand, or the watch over its group's recovery, has failed at every try.",
        "terminations-failed",
        of_executions("Failed", on_demand.state_machine_arn),
        NOT_BREACHING,
    )
    for kind, how in {"Failed": "has failed", "TimedOut": "took too long", "Aborted": "was stopped"}.items():
        yield AlarmSpec(
            f"Ticks{kind}",
            f"An execution of the chaos workflow {how}.",
            "ticks-failed",
            of_executions(kind, watched.machine.state_machine_arn),
            NOT_BREACHING,
        )
    yield AlarmSpec(
        "DeadLetters",
        "A schedule, or the rule about failed runs, could not deliver what it is for.",
        "dead-letters",
        waiting_in(watched.undelivered),
        NOT_BREACHING,
    )
    yield AlarmSpec(
        "NotificationsLost",
        "Others were not told of something that is on record.",
        "notifications-lost",
        waiting_in(untold),
        NOT_BREACHING,
    )
    yield AlarmSpec(
        "WatchdogSilent",
        "The watchdog has been silent, or blind, for a while: whatever happens now, no other alarm may tell.",
        "watchdog-silent",
        ours(Metric.FAILING_CHECKS, cloudwatch.Stats.SAMPLE_COUNT, cdk.Duration.minutes(MINUTES)),
        BREACHING,
        silence=True,
    )


def _of_benchmarks(teardown: sfn.IStateMachine) -> Iterator[AlarmSpec]:
    """That a run fails is for whoever has started it to know. What may be left of it costs money by the hour."""
    yield AlarmSpec(
        "ReaperSilent",
        "The reaper has been silent for a while: what benchmarks leave behind now, nobody removes.",
        "reaper-silent",
        ours(Metric.REAPER_FINDS, cloudwatch.Stats.SAMPLE_COUNT, cdk.Duration.minutes(MINUTES)),
        BREACHING,
        silence=True,
    )
    # That one is stopped is no alarm: it is with its run, when somebody stops that. The reaper starts it again.
    for kind, how in {"Failed": "has failed", "TimedOut": "took too long"}.items():
        yield AlarmSpec(
            f"Teardown{kind}",
            f"Removing what a benchmark has created {how}: some of it may still be there.",
            "teardown-failed",
            of_executions(kind, teardown.state_machine_arn),
            NOT_BREACHING,
        )
