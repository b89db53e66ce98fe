"""The Lambda functions: one asset, one factory, a role and a log group for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra import bench_permissions, permissions
from infra.bench_data import BenchData
from infra.bundling import PYTHON_VERSION, bundle
from infra.data import Data
from infra.logs import make_log_group
from infra.network import Network
from infra.nodes import Nodes
from infra.roles import as_listed, drop_depends_on, make_role
from infra.settings import DeploymentSettings
from infra.watched import Watched
from troop.chaos.metrics import NAMESPACE, VARIABLE

if TYPE_CHECKING:
    from infra.benchmarks import Benchmarks

RUNTIME = lambda_.Runtime.PYTHON_3_14
ARCHITECTURE = lambda_.Architecture.ARM_64


class Functions(Construct):
    """All functions of a deployment.

    Attributes:
        decide, terminate, recovery, sweep: tasks of the chaos workflow.
        api: behind API Gateway; it and ``report`` have pydantic's layer.
        watchdog: looks after the deployment's health.
        notify: tells others what was recorded.
        launch, cell: tasks of the workflow of benchmarks.
        fleet: the task of the workflow of standing fleets.
        teardown: the task of the workflow that removes what a run has created.
        report: makes the report of a run that has ended; the only one with the layer of HTML.
        reaper: removes what that has left, and starts it where it was not.
        widgets: what dashboards show; with the layer of HTML.
        by_name: all of them.
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
        if RUNTIME.name != f"python{PYTHON_VERSION}":
            raise ValueError(f"the layers are bundled for Python {PYTHON_VERSION}, the functions run on {RUNTIME.name}")
        self._settings, self._data = settings, data
        self.by_name: dict[str, lambda_.Function] = {}
        self.roles: dict[str, iam.Role] = {}
        self.log_groups: dict[str, logs.ILogGroup] = {}
        bundled = bundle(settings.bundle, settings.chaos_json)
        self._code = lambda_.Code.from_asset(str(bundled.code))
        self._runtime_layer, self._api_layer, self._report_layer = (
            self._layer(name, path=str(bundled.layers[name]), description=description)
            for name, description in {
                "runtime": "What every function needs",
                "api": "What the API needs",
                "report": "What HTML is made with",
            }.items()
        )

        runtime_layer = self._runtime_layer
        events_and_state = self._events_and_state()
        policy = {
            "TROOP_GROUP_TAGS_TABLE": data.group_tags.table_name,
            "TROOP_SALT_SECRET": data.salt.secret_arn,
        }
        ticks = {
            "TROOP_DECISIONS_TABLE": data.decisions.table_name,
            "TROOP_WORK_BUCKET": data.work.bucket_name,
        }
        self.decide = self._function(
            "decide",
            permissions.decide(data),
            [runtime_layer],
            events_and_state | policy | ticks,
            seconds=300,
            megabytes=1024,
        )
        self.terminate = self._function(
            "terminate",
            permissions.terminate(cdk.Stack.of(self), data),
            [runtime_layer],
            events_and_state | policy,
            seconds=60,
            megabytes=256,
        )
        self.recovery = self._function(
            "recovery", permissions.recovery(data), [runtime_layer], events_and_state, seconds=60, megabytes=256
        )
        self.sweep = self._function(
            "sweep", permissions.sweep(data), [runtime_layer], events_and_state, seconds=120, megabytes=256
        )

    def add_benchmarks(self, bench: BenchData, network: Network, nodes: Nodes) -> None:
        """Makes the functions that run benchmarks and remove what these have created."""
        stack = cdk.Stack.of(self)
        record = {"TROOP_RUNS_TABLE": bench.runs.table_name, "TROOP_RESULTS_BUCKET": bench.results.bucket_name}
        self.launch = self._function(
            "launch",
            bench_permissions.launch(stack, bench, network.vpc_id, network.subnet_ids, nodes.role),
            [self._runtime_layer],
            {**record, **network.environment(), "TROOP_NODE_PROFILE": nodes.profile.instance_profile_arn},
            seconds=120,
            megabytes=256,
        )
        self.cell = self._function(
            "cell",
            bench_permissions.cell(stack, bench),
            [self._runtime_layer],
            record,
            seconds=300,  # what all nodes have left is merged in one call
            megabytes=1769,  # a whole processor
        )
        self.teardown = self._function(
            "teardown",
            bench_permissions.teardown(stack, bench),
            [self._runtime_layer],
            {"TROOP_RUNS_TABLE": bench.runs.table_name},
            seconds=120,
            megabytes=256,
        )

        self.fleet = self._function(
            "fleet",
            bench_permissions.fleet(stack, bench),
            [self._runtime_layer],
            record,
            seconds=120,
            megabytes=256,
        )

        self.report = self._function(
            "report",
            bench_permissions.report(bench),
            [self._runtime_layer, self._api_layer, self._report_layer],
            record,
            seconds=300,  # what all cells have measured is read and drawn in one call
            megabytes=1769,  # a whole processor
        )
        # The API calls it without waiting. Whoever has asked asks again, sooner than Lambda would try for hours.
        self.report.configure_async_invoke(max_event_age=cdk.Duration.minutes(15), retry_attempts=1)

    def add_reaper(self, bench: BenchData, workflows: Sequence[sfn.StateMachine], teardown: sfn.StateMachine) -> None:
        """Makes the function that looks after runs whose workflow is over, or should be.

        Args:
            workflows: of benchmarks, and of standing fleets.
        """
        benchmark, fleet = workflows
        self.reaper = self._function(
            "reaper",
            bench_permissions.reaper(cdk.Stack.of(self), bench, workflows, teardown),
            [self._runtime_layer],
            {
                "TROOP_RUNS_TABLE": bench.runs.table_name,
                "TROOP_BENCHMARK_MACHINE": benchmark.state_machine_arn,
                "TROOP_TEARDOWN_MACHINE": teardown.state_machine_arn,
                "TROOP_FLEET_MACHINE": fleet.state_machine_arn,
            },
            seconds=120,
            megabytes=256,
        )

    def add_observers(self, watched: Watched, on_demand: sfn.IStateMachine, benchmarks: Benchmarks | None) -> None:
        """Makes the functions that also look at what is made of the others: the API's, and the watchdog.

        Args:
            on_demand: the workflow that the API's starts.
            benchmarks: what the API's admits runs to; None where there is none.
        """
        data = self._data
        of_runs = benchmarks.permissions_of_api() if benchmarks else []
        runs_environment = benchmarks.environment_of_api() if benchmarks else {}
        runs = [benchmarks.data.runs] if benchmarks else []
        health = permissions.health(watched, data.state, [*data.tables, *runs])
        health_environment = {
            **self._events_and_state(),
            "TROOP_GROUP_TAGS_TABLE": data.group_tags.table_name,
            "TROOP_DECISIONS_TABLE": data.decisions.table_name,
            "TROOP_CHANGES_TABLE": data.changes.table_name,
            **({"TROOP_RUNS_TABLE": benchmarks.data.runs.table_name} if benchmarks else {}),
            **watched.environment(self._settings.tick_minutes),
        }
        self.api = self._function(
            "api",
            [*permissions.api(data, on_demand), *health, *of_runs],
            [self._runtime_layer, self._api_layer],
            health_environment | {"TROOP_ON_DEMAND_MACHINE": on_demand.state_machine_arn} | runs_environment,
            seconds=29,
            megabytes=512,
        )
        self.watchdog = self._function(
            "watchdog",
            [*health, permissions.drops_letters(watched.undelivered)],
            [self._runtime_layer],
            health_environment,
            seconds=60,
            megabytes=256,
        )

    def add_notifier(
        self, streamed: Sequence[dynamodb.ITable], bus: events.IEventBus, topic: sns.ITopic, undelivered: sqs.IQueue
    ) -> None:
        """Makes the function that tells others what is written into the tables ``streamed``."""
        data = self._data
        self.notify = self._function(
            "notify",
            permissions.notify(data, streamed, bus, topic, undelivered),
            [self._runtime_layer],
            {
                **self._events_and_state(),
                "TROOP_GROUP_TAGS_TABLE": data.group_tags.table_name,
                "TROOP_CHANGES_TABLE": data.changes.table_name,
                "TROOP_EVENT_BUS": bus.event_bus_name,
                "TROOP_NEWS_TOPIC": topic.topic_arn,
                "TROOP_UNTOLD_QUEUE": undelivered.queue_url,
            },
            seconds=300,  # ten records, each with calls that are tried for a while when a service does not answer
            megabytes=256,
        )

    def add_widgets(self, bench: BenchData | None) -> None:
        """Makes the function that dashboards call; None: the deployment runs no benchmarks."""
        data = self._data
        self.widgets = self._function(
            "widgets",
            [*permissions.widgets(data), *(bench_permissions.widgets(bench) if bench else [])],
            [self._runtime_layer, self._report_layer],
            {
                **self._events_and_state(),
                "TROOP_GROUP_TAGS_TABLE": data.group_tags.table_name,
                "TROOP_DECISIONS_TABLE": data.decisions.table_name,
                "TROOP_CHANGES_TABLE": data.changes.table_name,
                **({"TROOP_RUNS_TABLE": bench.runs.table_name} if bench else {}),
            },
            seconds=29,
            megabytes=512,
        )

    def _events_and_state(self) -> dict[str, str]:
        return {
            "TROOP_EVENTS_TABLE": self._data.events.table_name,
            "TROOP_STATE_TABLE": self._data.state.table_name,
        }

    def _layer(self, name: str, *, path: str, description: str) -> lambda_.LayerVersion:
        return lambda_.LayerVersion(
            self,
            f"{name.title()}Layer",
            code=lambda_.Code.from_asset(path),
            description=description,
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[ARCHITECTURE],
        )

    def _function(
        self,
        name: str,
        statements: Sequence[iam.PolicyStatement],
        layers: Sequence[lambda_.ILayerVersion],
        environment: dict[str, str],
        *,
        seconds: int,
        megabytes: int,
    ) -> lambda_.Function:
        """The function whose handler is ``handlers.NAME.handler``.

        No concurrency is reserved: a fresh account has so little that reserving any of it can fail the deployment, and
        the workflow bounds its own concurrency.
        """
        title = name.title()
        log_group = make_log_group(self, f"{title}Logs", self._settings)
        role = make_role(
            self,
            f"{title}Role",
            service="lambda.amazonaws.com",
            description=f"Runs Troop's function {name}",
            statements=[*statements, *permissions.function_telemetry(log_group)],
        )
        self.roles[name] = role
        self.log_groups[name] = log_group
        function = lambda_.Function(
            self,
            title,
            handler=f"handlers.{name}.handler",
            code=self._code,
            layers=list(layers),
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            role=as_listed(role),
            timeout=cdk.Duration.seconds(seconds),
            memory_size=megabytes,
            environment={
                "POWERTOOLS_SERVICE_NAME": name,
                "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
                "POWERTOOLS_LOG_LEVEL": "INFO",
                VARIABLE: cdk.Aws.STACK_NAME,
                **environment,
            },
            logging_format=lambda_.LoggingFormat.JSON,
            log_group=log_group,
            tracing=lambda_.Tracing.ACTIVE,
        )
        drop_depends_on(function)
        self.by_name[name] = function
        return function
