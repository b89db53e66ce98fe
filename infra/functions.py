"""Defines the Lambda functions: permissions, environment and resources of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra import bench_permissions, permissions
from infra.bench_data import BenchData
from infra.data import Data
from infra.function_factory import FunctionFactory
from infra.health_targets import Watched
from infra.network import Network
from infra.nodes import Nodes
from infra.settings import DeploymentSettings
from troop.environment import Variable

if TYPE_CHECKING:
    from infra.benchmarks import Benchmarks

_FAILED_REPORT_HOURS = 6


class Functions(Construct):
    """All functions of a deployment.

    Attributes:
        decide, terminate, check_recovery, sweep: tasks of the chaos workflow.
        api: behind API Gateway; it and ``report`` have pydantic's layer.
        watchdog: checks the deployment's health.
        notify: publishes recorded events and changes.
        launch, cell: tasks of the workflow of benchmarks.
        fleet: the task of the workflow of standing fleets.
        teardown: the task of the workflow that removes a run's resources.
        report: makes the report of an ended run; it and ``widgets`` have the layer of HTML.
        failed_reports: the queue for asynchronous calls of ``report`` that failed at every try.
        reaper: removes leftovers of teardowns, and starts missing teardowns.
        widgets: renders custom widgets of dashboards.
        by_name: all functions.
        roles, log_groups: by the function's name.
    """

    api: lambda_.Function
    watchdog: lambda_.Function
    notify: lambda_.Function
    launch: lambda_.Function
    cell: lambda_.Function
    fleet: lambda_.Function
    teardown: lambda_.Function
    report: lambda_.Function
    failed_reports: sqs.Queue
    reaper: lambda_.Function
    widgets: lambda_.Function

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: DeploymentSettings,
        data: Data,
    ) -> None:
        super().__init__(scope, construct_id)
        self._settings, self._data = settings, data
        self._factory = FunctionFactory(self, settings)
        self.by_name, self.roles, self.log_groups = self._factory.by_name, self._factory.roles, self._factory.log_groups
        runtime_layer = self._factory.runtime_layer
        events_and_state = self._events_and_state()
        policy = {
            Variable.GROUP_TAGS_TABLE: data.group_tags.table_name,
            Variable.SALT_SECRET: data.salt.secret_arn,
        }
        ticks = {
            Variable.DECISIONS_TABLE: data.decisions.table_name,
            Variable.WORK_BUCKET: data.work.bucket_name,
        }
        self.decide = self._factory.make(
            "decide",
            permissions.decide(data),
            [runtime_layer],
            events_and_state | policy | ticks,
            seconds=300,
            megabytes=1024,
        )
        self.terminate = self._factory.make(
            "terminate",
            permissions.terminate(cdk.Stack.of(self), data),
            [runtime_layer],
            events_and_state | policy | {Variable.DECISIONS_TABLE: data.decisions.table_name},
            seconds=60,
            megabytes=256,
        )
        self.check_recovery = self._factory.make(
            "check_recovery",
            permissions.check_recovery(data),
            [runtime_layer],
            events_and_state,
            seconds=60,
            megabytes=256,
        )
        self.sweep = self._factory.make(
            "sweep", permissions.sweep(data), [runtime_layer], events_and_state, seconds=120, megabytes=256
        )

    def add_benchmarks(self, bench: BenchData, network: Network, nodes: Nodes) -> None:
        """Creates the functions that run benchmarks and remove their resources."""
        stack = cdk.Stack.of(self)
        record = {Variable.RUNS_TABLE: bench.runs.table_name, Variable.RESULTS_BUCKET: bench.results.bucket_name}
        profile = nodes.profile.instance_profile_arn
        # With these, the functions distinguish a run's resources from others that only carry its tags.
        site = {Variable.NETWORK_VPC: network.vpc_id, Variable.NODE_PROFILE: profile}
        self.launch = self._factory.make(
            "launch",
            bench_permissions.launch(
                stack, bench, network.vpc_id, network.subnet_ids, nodes.role, self._settings.chaos.instance_types
            ),
            [self._factory.runtime_layer],
            {**record, **network.environment(), Variable.NODE_PROFILE: profile},
            seconds=120,
            megabytes=256,
        )
        self.cell = self._factory.make(
            "cell",
            bench_permissions.cell(stack, bench),
            [self._factory.runtime_layer],
            record,
            seconds=300,  # one call merges the samples of all nodes
            megabytes=1769,  # a whole processor
        )
        self.teardown = self._factory.make(
            "teardown",
            bench_permissions.teardown(stack, bench, network.vpc_id, profile),
            [self._factory.runtime_layer],
            {Variable.RUNS_TABLE: bench.runs.table_name, **site},
            seconds=120,
            megabytes=256,
        )

        self.fleet = self._factory.make(
            "fleet",
            bench_permissions.fleet(stack, bench),
            [self._factory.runtime_layer],
            record | site,
            seconds=120,
            megabytes=256,
        )

        # No metric of Lambda in every partition counts calls that it drops. An alarm has reported each message here,
        # and is over when the message expires.
        self.failed_reports = sqs.Queue(
            self,
            "ReportsGivenUp",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=cdk.Duration.hours(_FAILED_REPORT_HOURS),
        )
        self.report = self._factory.make(
            "report",
            bench_permissions.report(bench, self.failed_reports),
            [self._factory.runtime_layer, self._factory.api_layer, self._factory.report_layer],
            record,
            seconds=300,  # one call reads and draws the measurements of all cells
            megabytes=1769,  # a whole processor
        )
        # The API calls it asynchronously. The caller asks again sooner than Lambda, which would otherwise try for
        # hours.
        self.report.configure_async_invoke(
            max_event_age=cdk.Duration.minutes(15),
            retry_attempts=1,
            on_failure=destinations.SqsDestination(self.failed_reports),
        )

    def add_reaper(
        self,
        bench: BenchData,
        network: Network,
        nodes: Nodes,
        workflows: Sequence[sfn.StateMachine],
        teardown: sfn.StateMachine,
    ) -> None:
        """Creates the function that ends runs whose workflow has ended, or should have.

        Args:
            workflows: of benchmarks, and of standing fleets.
        """
        benchmark, fleet = workflows
        stack, profile = cdk.Stack.of(self), nodes.profile.instance_profile_arn
        removes = bench_permissions.teardown(stack, bench, network.vpc_id, profile)
        self.reaper = self._factory.make(
            "reaper",
            bench_permissions.reaper(stack, bench, removes, self._data.state, workflows, teardown),
            [self._factory.runtime_layer],
            {
                Variable.RUNS_TABLE: bench.runs.table_name,
                Variable.STATE_TABLE: self._data.state.table_name,
                Variable.NETWORK_VPC: network.vpc_id,
                Variable.NODE_PROFILE: profile,
                Variable.BENCHMARK_MACHINE: benchmark.state_machine_arn,
                Variable.TEARDOWN_MACHINE: teardown.state_machine_arn,
                Variable.FLEET_MACHINE: fleet.state_machine_arn,
            },
            seconds=120,
            megabytes=256,
        )

    def add_observers(
        self, watched: Watched, on_demand: sfn.IStateMachine, benchmarks: Benchmarks | None, act_now: sns.ITopic
    ) -> None:
        """Creates the functions that also observe what is built from the others: the API's, and the watchdog.

        Args:
            on_demand: the workflow that the API's function starts.
            benchmarks: the part to which the API's function admits runs; None without it.
            act_now: the topic of "act now" alarms, whose subscribers the API's function counts. The watchdog, on whose
                metrics alarms depend, reads no alarms.
        """
        data = self._data
        of_runs = benchmarks.permissions_of_api() if benchmarks else []
        runs_environment = benchmarks.environment_of_api() if benchmarks else {}
        runs = [benchmarks.data.runs] if benchmarks else []
        health = permissions.health(watched, data.state, [*data.tables, *runs])
        health_environment = {
            **self._events_and_state(),
            Variable.GROUP_TAGS_TABLE: data.group_tags.table_name,
            Variable.DECISIONS_TABLE: data.decisions.table_name,
            Variable.CHANGES_TABLE: data.changes.table_name,
            **({Variable.RUNS_TABLE: benchmarks.data.runs.table_name} if benchmarks else {}),
            **watched.environment(self._settings.tick_minutes),
        }
        self.api = self._factory.make(
            "api",
            [
                *permissions.api(data, on_demand),
                *health,
                *permissions.alarms(act_now),
                *permissions.account(cdk.Stack.of(self)),
                *of_runs,
            ],
            [self._factory.runtime_layer, self._factory.api_layer],
            {
                **health_environment,
                Variable.ON_DEMAND_MACHINE: on_demand.state_machine_arn,
                Variable.ACT_NOW_TOPIC: act_now.topic_arn,
                **runs_environment,
            },
            seconds=29,
            megabytes=512,
        )
        self.watchdog = self._factory.make(
            "watchdog",
            [*health, permissions.drops_letters(watched.undelivered)],
            [self._factory.runtime_layer],
            health_environment,
            seconds=60,
            megabytes=256,
        )

    def tell_observers(self, other_schedules: int) -> None:
        """Passes the number of schedules besides the calendars' to the functions that check health. Those schedules
        are created later, because one of them calls the watchdog.
        """
        for function in (self.api, self.watchdog):
            function.add_environment(Variable.OTHER_SCHEDULES, str(other_schedules))

    def add_notifier(
        self, streamed: Sequence[dynamodb.ITable], bus: events.IEventBus, topic: sns.ITopic, undelivered: sqs.IQueue
    ) -> None:
        """Creates the function that publishes what is written to the tables ``streamed``."""
        data = self._data
        self.notify = self._factory.make(
            "notify",
            permissions.notify(data, streamed, bus, topic, undelivered),
            [self._factory.runtime_layer],
            {
                **self._events_and_state(),
                Variable.GROUP_TAGS_TABLE: data.group_tags.table_name,
                Variable.CHANGES_TABLE: data.changes.table_name,
                Variable.EVENT_BUS: bus.event_bus_name,
                Variable.NEWS_TOPIC: topic.topic_arn,
                Variable.UNTOLD_QUEUE: undelivered.queue_url,
            },
            seconds=300,  # ten records, each with calls that are retried for a while if a service does not answer
            megabytes=256,
        )

    def add_widgets(self, bench: BenchData | None) -> None:
        """Creates the function that dashboards call. Without ``bench``, the deployment does not run benchmarks."""
        data = self._data
        self.widgets = self._factory.make(
            "widgets",
            [*permissions.widgets(data), *(bench_permissions.widgets(bench) if bench else [])],
            [self._factory.runtime_layer, self._factory.report_layer],
            {
                **self._events_and_state(),
                Variable.GROUP_TAGS_TABLE: data.group_tags.table_name,
                Variable.DECISIONS_TABLE: data.decisions.table_name,
                Variable.CHANGES_TABLE: data.changes.table_name,
                # The bucket's name is part of links. The function may not read its objects.
                **({Variable.RUNS_TABLE: bench.runs.table_name} if bench else {}),
                **({Variable.RESULTS_BUCKET: bench.results.bucket_name} if bench else {}),
            },
            seconds=29,
            megabytes=512,
        )

    def _events_and_state(self) -> dict[Variable, str]:
        return {
            Variable.EVENTS_TABLE: self._data.events.table_name,
            Variable.STATE_TABLE: self._data.state.table_name,
        }
