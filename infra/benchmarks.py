"""Defines the part that runs benchmarks: the workflows of runs, fleets and teardowns, and the reaper, which does not
rely on them.
"""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra import admission_permissions, cell_permissions, permissions
from infra.alarms import AlarmTopics
from infra.bench_data import BenchData
from infra.bench_functions import make_bench_functions, make_reaper
from infra.data import Data
from infra.functions import Functions
from infra.machines import make_machine
from infra.network import Network
from infra.nodes import Nodes
from infra.scheduled_runs import ScheduledRuns
from infra.schedules import Schedules
from infra.settings import DeploymentSettings
from troop.shared.tables import RUNS
from troop.shared.variables import Variable

_LATEST_HOURS = 1  # by then, the scheduled reaper has run
_ATTEMPTS = 8


class Benchmarks(Construct):
    """Everything about benchmarks except the API's routes; without it the stack has no resources of EC2.

    Attributes:
        data: table and bucket.
        network: where fleets run.
        nodes: the nodes' role and instance profile.
        functions: the tasks of the workflows.
        reaper: removes leftovers of teardowns, and starts missing teardowns.
        benchmark: the workflow of a run.
        images: the images that files may name, besides the default.
        snapshots: the snapshots that files may name.
        targets: what nodes may reach if files name it.
        own_data: whether scripts may create objects.
        queues: whether fleets may have queues.
        fleet: the workflow of a standing fleet.
        teardown: the workflow that removes the resources of a run or of one cell.
        roles: of the workflows, including ``benchmark_role``.
        map_children: the permissions of a run's workflow on itself.
        scheduled: the schedules of runs, and the function that starts them.
        ended: the rule for runs whose workflow failed, timed out or was stopped.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: DeploymentSettings,
        data: Data,
        functions: Functions,
        schedules: Schedules,
        request: lambda_.IFunction | None,
        topics: AlarmTopics,
    ) -> None:
        """Creates everything.

        Args:
            request: the function that requests hits on units; None if benchmarks may request none.
            topics: those of alarms, which also get findings about fleets.
        """
        super().__init__(scope, construct_id)
        self.data = BenchData(self, "Data", settings=settings)
        data.name_on_salt(RUNS, self.data.runs)
        self.network = Network(self, "Network", settings=settings, results=self.data.results)
        self.nodes = Nodes(self, "Nodes", settings=settings, results=self.data.results, vpc=self.network.vpc_id)
        self.images, self.snapshots = settings.chaos.allowed_images, settings.chaos.allowed_snapshots
        self.targets = settings.chaos.allowed_targets
        self.own_data, self.queues = settings.chaos.own_data, settings.chaos.queues
        self._request = request
        self.functions = make_bench_functions(
            functions,
            data,
            self.data,
            self.network,
            self.nodes,
            topics,
            settings=settings,
            request=request,
        )
        self.teardown, teardown_role = self._teardown(settings)
        self.benchmark, self.benchmark_role, self.map_children = self._benchmark(settings)
        self.fleet, self.fleet_role = self._fleet(settings)
        self.roles = [teardown_role, self.benchmark_role, self.fleet_role]
        workflows = [self.benchmark, self.fleet]
        self.reaper = make_reaper(functions, data, self.data, self.network, self.nodes, workflows, self.teardown)
        self.scheduled = ScheduledRuns(
            self,
            "Scheduled",
            data=self.data,
            functions=functions,
            schedules=schedules,
            statements=admission_permissions.start(self.data, data.state, self.benchmark, request, *self._allowed),
            environment={
                Variable.RUNS_TABLE: self.data.runs.table_name,
                Variable.STATE_TABLE: data.state.table_name,
                Variable.RESULTS_BUCKET: self.data.results.bucket_name,
                Variable.BENCHMARK_MACHINE: self.benchmark.state_machine_arn,
                Variable.TEARDOWN_MACHINE: self.teardown.state_machine_arn,
                **self.network.environment(),
                **self._environment_of_request(),
            },
        )
        self.ended = self._hear_of_ends(schedules)

    def environment_of_api(self) -> dict[Variable, str]:
        """Returns the variables with these resources' names for the API's function."""
        return {
            Variable.RUNS_TABLE: self.data.runs.table_name,
            Variable.RESULTS_BUCKET: self.data.results.bucket_name,
            Variable.BENCHMARK_MACHINE: self.benchmark.state_machine_arn,
            Variable.TEARDOWN_MACHINE: self.teardown.state_machine_arn,
            Variable.FLEET_MACHINE: self.fleet.state_machine_arn,
            Variable.FLEET_FUNCTION: self.functions.fleet.function_arn,
            Variable.REPORT_FUNCTION: self.functions.report.function_arn,
            **self.network.environment(),
            **self.scheduled.environment_of_api(),
            **self._environment_of_request(),
        }

    def _environment_of_request(self) -> dict[Variable, str]:
        return {Variable.REQUEST_FUNCTION: self._request.function_arn} if self._request else {}

    def permissions_of_api(self) -> list[iam.PolicyStatement]:
        """Returns the permissions of the API's function on these resources."""
        stack, workflows = cdk.Stack.of(self), [self.benchmark, self.fleet]
        called = [self.functions.fleet, self.functions.report, *([self._request] if self._request else [])]
        runs = admission_permissions.api(
            stack, self.data, workflows, self.teardown, called, *self._allowed, queues=self.queues
        )
        return [*runs, *self.scheduled.permissions_of_api()]

    @property
    def _allowed(self) -> tuple[Sequence[str], Sequence[str], Sequence[str], bool]:
        return self.images, self.snapshots, self.targets, self.network.vpc is not None

    def _teardown(self, settings: DeploymentSettings) -> tuple[sfn.StateMachine, iam.Role]:
        functions = self.functions
        return make_machine(
            Construct(self, "Teardown"),
            "teardown",
            description="Removes the resources of Troop's benchmarks",
            statements=permissions.machine([functions.teardown, functions.report]),
            substitutions={
                "TeardownFunction": functions.teardown.function_arn,
                "ReportFunction": functions.report.function_arn,
            },
            settings=settings,
        )

    def _benchmark(self, settings: DeploymentSettings) -> tuple[sfn.StateMachine, iam.Role, iam.Policy]:
        scope = Construct(self, "Benchmark")
        stack, functions = cdk.Stack.of(self), self.functions
        tasks = [functions.launch, functions.cell]
        machine, role = make_machine(
            scope,
            "benchmark",
            description="Runs Troop's benchmarks",
            statements=cell_permissions.benchmark_machine(stack, self.data, tasks, self.teardown),
            substitutions={
                "LaunchFunction": functions.launch.function_arn,
                "CellFunction": functions.cell.function_arn,
                "TeardownMachine": self.teardown.state_machine_arn,
            },
            settings=settings,
        )
        # The machine needs its role first, so permissions on the machine itself are attached afterwards.
        statements = permissions.map_children(stack, machine)
        return machine, role, iam.Policy(scope, "MapChildren", roles=[role], statements=statements)

    def _fleet(self, settings: DeploymentSettings) -> tuple[sfn.StateMachine, iam.Role]:
        scope, functions = Construct(self, "Fleet"), self.functions
        tasks = [functions.launch, functions.fleet]
        machine, role = make_machine(
            scope,
            "fleet",
            description="Keeps Troop's standing fleets",
            statements=cell_permissions.fleet_machine(cdk.Stack.of(self), tasks, self.teardown),
            substitutions={
                "LaunchFunction": functions.launch.function_arn,
                "FleetFunction": functions.fleet.function_arn,
                "TeardownMachine": self.teardown.state_machine_arn,
            },
            settings=settings,
        )
        # As above: an execution starts the next one.
        iam.Policy(scope, "Continue", roles=[role], statements=[permissions.starts(machine)])
        return machine, role

    def _hear_of_ends(self, schedules: Schedules) -> events.Rule:
        """Calls the reaper at once for a run that did not end through its workflow. Children have ARNs of their own
        and do not match: their run tears down a failed cell.
        """
        reaper = targets.LambdaFunction(
            self.reaper,
            dead_letter_queue=schedules.undelivered,
            max_event_age=cdk.Duration.hours(_LATEST_HOURS),
            retry_attempts=_ATTEMPTS,
        )
        return events.Rule(
            self,
            "Ended",
            description="Runs whose workflow or teardown failed",
            event_pattern=events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={
                    "status": ["FAILED", "TIMED_OUT", "ABORTED"],
                    "stateMachineArn": [
                        machine.state_machine_arn for machine in (self.benchmark, self.teardown, self.fleet)
                    ],
                },
            ),
            targets=[reaper],
        )
