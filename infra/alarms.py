"""Defines the alarms of two classes, each with its own topic. "Act now": a person must act. "Warning"
(:mod:`infra.alarms_warning`): something is wrong, but gets no worse overnight. Each alarm links its entry in the
runbook.
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

from infra.health_targets import HealthTargets
from infra.keys import data_key
from infra.metric_helpers import execution_metric, troop_metric, waiting_in
from infra.periodic_schedules import MINUTES
from infra.settings import DeploymentSettings
from troop.shared.metrics import CHILDREN, Metric

SILENT_PERIODS = 3
"""Quarters of an hour without a metric of the watchdog after which an alarm goes off."""

_TWO_ROUNDS = cdk.Duration.minutes(2 * MINUTES)
"""The watchdog writes some metrics only while there is something to report, then in each round."""

IGNORED, BREACHING = cloudwatch.TreatMissingData.IGNORE, cloudwatch.TreatMissingData.BREACHING
NOT_BREACHING = cloudwatch.TreatMissingData.NOT_BREACHING


@dataclass(frozen=True)
class AlarmSpec:
    """An alarm.

    Attributes:
        name: a few words in one, such as ``TicksMissing``, to follow the deployment's name.
        summary: a sentence that states what happened.
        anchor: of its entry in the runbook.
        metric: with its statistic and period.
        missing: how to treat missing values.
        threshold: the lowest value that is an alarm.
        silence: the alarm goes off if there are too few values, instead of too high a value.
    """

    name: str
    summary: str
    anchor: str
    metric: cloudwatch.IMetric
    missing: cloudwatch.TreatMissingData = NOT_BREACHING
    threshold: float = 1
    silence: bool = False


@dataclass(frozen=True)
class AlarmTopics:
    """The topics of both classes of alarms."""

    act_now: sns.ITopic
    warning: sns.ITopic


def _fault_alarm() -> AlarmSpec:
    return AlarmSpec(
        "FaultUnproven",
        "The time of a fault inside an instance is up, but it is not proven to be over, and the instance was not "
        "terminated.",
        "fault-unproven",
        troop_metric(Metric.UNPROVEN_FAULTS, period=_TWO_ROUNDS),
    )


class Alarms(Construct):
    """The alarms, and the topics that receive each alarm and each recovery from it. The topics have no subscribers
    initially.

    Attributes:
        act_now_topic, warning_topic: the topics.
        act_now_alarms, warning_alarms: the alarms that go to each.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: DeploymentSettings) -> None:
        """Creates only the topics, for constructs that need them but are watched by alarms themselves."""
        super().__init__(scope, construct_id)
        self._runbook = settings.runbook_url
        self.act_now_topic, self.warning_topic = self._topic("ActNow"), self._topic("Warning")
        self.act_now_alarms: list[cloudwatch.Alarm] = []
        self.warning_alarms: list[cloudwatch.Alarm] = []

    def watch(
        self,
        *,
        targets: HealthTargets,
        on_demand: sfn.IStateMachine,
        lost_notifications: sqs.IQueue,
        teardown: sfn.IStateMachine | None,
        inside_instances: bool,
        warning_specs: Iterable[AlarmSpec],
    ) -> None:
        """Creates the alarms."""
        act_now_specs = (
            *_chaos_alarms(targets, on_demand, lost_notifications),
            *([_fault_alarm()] if inside_instances else []),
            *(_benchmark_alarms(teardown) if teardown else ()),
        )
        self.act_now_alarms = [self._alarm(spec, self.act_now_topic) for spec in act_now_specs]
        self.warning_alarms = [self._alarm(spec, self.warning_topic) for spec in warning_specs]

    def _topic(self, name: str) -> sns.Topic:
        topic = sns.Topic(self, name, enforce_ssl=True, master_key=data_key(self))
        # A topic's own policy replaces the default one: without this statement, alarms could not publish.
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
            # The name appears in the subject of mails and on the dashboard. No alarm's name contains a hyphen, so
            # these names are unique if the stacks' are. A renamed alarm loses its history.
            alarm_name=f"{cdk.Aws.STACK_NAME}-{spec.name}",
            alarm_description=f"{spec.summary} What to do: {self._runbook}#{spec.anchor}",
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


def _chaos_alarms(
    targets: HealthTargets, on_demand: sfn.IStateMachine, lost_notifications: sqs.IQueue
) -> Iterator[AlarmSpec]:
    # The watchdog writes every quarter of an hour: until then, its last value applies.
    until_it_speaks = IGNORED
    yield AlarmSpec(
        "UnitUnrecovered",
        "A unit did not recover in time after a termination, and is excluded from chaos.",
        "unit-unrecovered",
        troop_metric(Metric.UNITS_UNRECOVERED),
        until_it_speaks,
    )
    yield AlarmSpec(
        "HaltedItself",
        "Several units were broken within an hour, and the deployment has halted itself.",
        "halted-itself",
        troop_metric(Metric.HALTED_ITSELF, period=_TWO_ROUNDS),
    )
    yield AlarmSpec(
        "TicksMissing",
        "Ticks are due by the calendars, but the workflow does not start.",
        "ticks-missing",
        troop_metric(Metric.MISSING_TICKS),
        until_it_speaks,
    )
    # The workflow tolerates failures of its children, which have an ARN, and so metrics, of their own.
    yield AlarmSpec(
        "TerminationsFailed",
        "A termination or its recovery checks failed at every try.",
        "terminations-failed",
        execution_metric("Failed", f"{targets.machine.state_machine_arn}/{CHILDREN}"),
        NOT_BREACHING,
    )
    yield AlarmSpec(
        "OnDemandFailed",
        "A termination on demand or its recovery checks failed at every try.",
        "terminations-failed",
        execution_metric("Failed", on_demand.state_machine_arn),
        NOT_BREACHING,
    )
    for kind, how in {"Failed": "failed", "TimedOut": "took too long", "Aborted": "was stopped"}.items():
        yield AlarmSpec(
            f"Ticks{kind}",
            f"An execution of the chaos workflow {how}.",
            "ticks-failed",
            execution_metric(kind, targets.machine.state_machine_arn),
            NOT_BREACHING,
        )
    yield AlarmSpec(
        "DeadLetters",
        "A schedule or a rule could not deliver a call or news, or a scheduled start or reading of risks failed at "
        "every try.",
        "dead-letters",
        waiting_in(targets.undelivered),
        NOT_BREACHING,
    )
    yield AlarmSpec(
        "NotificationsLost",
        "A notification of a recorded event or change could not be delivered.",
        "notifications-lost",
        waiting_in(lost_notifications),
        NOT_BREACHING,
    )
    yield AlarmSpec(
        "WatchdogSilent",
        "The watchdog has written no metrics for a while: other alarms may not go off.",
        "watchdog-silent",
        troop_metric(Metric.FAILING_CHECKS, cloudwatch.Stats.SAMPLE_COUNT, cdk.Duration.minutes(MINUTES)),
        BREACHING,
        silence=True,
    )


def _benchmark_alarms(teardown: sfn.IStateMachine) -> Iterator[AlarmSpec]:
    """Yields the alarms of benchmarks. A failed run is only its owner's concern, but its leftovers cost money by the
    hour.
    """
    yield AlarmSpec(
        "ReaperSilent",
        "The reaper has written no metrics for a while: leftovers of benchmarks are not removed.",
        "reaper-silent",
        troop_metric(Metric.REAPER_FINDS, cloudwatch.Stats.SAMPLE_COUNT, cdk.Duration.minutes(MINUTES)),
        BREACHING,
        silence=True,
    )
    # Nodes that come and go for a while are one alarm.
    yield AlarmSpec(
        "HealingLimited",
        "Nodes of a standing fleet fail, and their repair has reached its limit, or did not help.",
        "healing-limited",
        troop_metric(Metric.HEALING_LIMITED, period=cdk.Duration.minutes(MINUTES)),
    )
    # A stopped teardown is not an alarm: stopping its run stops it, and the reaper starts it again.
    for kind, how in {"Failed": "failed", "TimedOut": "took too long"}.items():
        yield AlarmSpec(
            f"Teardown{kind}",
            f"The teardown of a benchmark {how}: some of its resources may still exist.",
            "teardown-failed",
            execution_metric(kind, teardown.state_machine_arn),
            NOT_BREACHING,
        )
