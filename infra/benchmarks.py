"""The half that runs benchmarks: the workflow of a run, the one that tears down, and the reaper that trusts neither."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra import ROOT, bench_permissions, permissions
from infra.bench_data import BenchData
from infra.functions import Functions
from infra.machines import make_machine
from infra.network import Network
from infra.nodes import Nodes
from infra.roles import make_role
from infra.schedules import Schedules
from infra.settings import DeploymentSettings
from troop.environment import Variable

BENCHMARK = ROOT / "statemachines" / "benchmark.asl.json"
TEARDOWN = ROOT / "statemachines" / "teardown.asl.json"
FLEET = ROOT / "statemachines" / "fleet.asl.json"

_LATEST_HOURS = 1  # the schedule has come round by then
_ATTEMPTS = 8


class Benchmarks(Construct):
    """Everything about benchmarks but the API's routes; without it the stack has nothing of EC2.

    Attributes:
        data: table and bucket.
        network: where fleets run.
        nodes: what they run as.
        benchmark: the workflow of a run.
        fleet: the workflow of a standing fleet.
        teardown: the workflow that removes what a run, or one cell of it, has created.
        roles: of the workflows, ``benchmark_role`` among them.
        map_children: what the workflow of a run may do with itself.
        ended: the rule that hears of runs whose workflow has failed, took too long or was stopped.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: DeploymentSettings,
        functions: Functions,
        schedules: Schedules,
    ) -> None:
        super().__init__(scope, construct_id)
        self.data = BenchData(self, "Data", settings=settings)
        self.network = Network(self, "Network", settings=settings, results=self.data.results)
        self.nodes = Nodes(self, "Nodes", settings=settings, results=self.data.results)
        functions.add_benchmarks(self.data, self.network, self.nodes)
        self.teardown, teardown_role = self._teardown(settings, functions)
        self.benchmark, self.benchmark_role, self.map_children = self._benchmark(settings, functions)
        self.fleet, self.fleet_role = self._fleet(settings, functions)
        self.roles = [teardown_role, self.benchmark_role, self.fleet_role]
        self._functions = functions
        functions.add_reaper(self.data, self.network, self.nodes, [self.benchmark, self.fleet], self.teardown)
        self.ended = self._hear_of_ends(functions, schedules)

    def environment_of_api(self) -> dict[Variable, str]:
        """The variables that name it to the API's function."""
        return {
            Variable.RUNS_TABLE: self.data.runs.table_name,
            Variable.RESULTS_BUCKET: self.data.results.bucket_name,
            Variable.BENCHMARK_MACHINE: self.benchmark.state_machine_arn,
            Variable.TEARDOWN_MACHINE: self.teardown.state_machine_arn,
            Variable.FLEET_MACHINE: self.fleet.state_machine_arn,
            Variable.FLEET_FUNCTION: self._functions.fleet.function_arn,
            Variable.REPORT_FUNCTION: self._functions.report.function_arn,
            **self.network.environment(),
        }

    def permissions_of_api(self) -> list[iam.PolicyStatement]:
        """What the API's function may do with it."""
        stack, workflows = cdk.Stack.of(self), [self.benchmark, self.fleet]
        called = [self._functions.fleet, self._functions.report]
        return bench_permissions.api(stack, self.data, workflows, self.teardown, called)

    def _teardown(self, settings: DeploymentSettings, functions: Functions) -> tuple[sfn.StateMachine, iam.Role]:
        scope = Construct(self, "Teardown")
        role = make_role(
            scope,
            "Role",
            service="states.amazonaws.com",
            description="Removes what Troop's benchmarks have created",
            statements=permissions.machine([functions.teardown, functions.report]),
        )
        substitutions = {
            "TeardownFunction": functions.teardown.function_arn,
            "ReportFunction": functions.report.function_arn,
            "LambdaInvoke": f"arn:{cdk.Aws.PARTITION}:states:::lambda:invoke",
        }
        return make_machine(scope, TEARDOWN.read_text(encoding="utf-8"), substitutions, role, settings), role

    def _benchmark(
        self, settings: DeploymentSettings, functions: Functions
    ) -> tuple[sfn.StateMachine, iam.Role, iam.Policy]:
        scope = Construct(self, "Benchmark")
        stack = cdk.Stack.of(self)
        tasks = [functions.launch, functions.cell]
        role = make_role(
            scope,
            "Role",
            service="states.amazonaws.com",
            description="Runs Troop's benchmarks",
            statements=bench_permissions.benchmark_machine(stack, self.data, tasks, self.teardown),
        )
        substitutions = {
            "LaunchFunction": functions.launch.function_arn,
            "CellFunction": functions.cell.function_arn,
            "TeardownMachine": self.teardown.state_machine_arn,
            "LambdaInvoke": f"arn:{cdk.Aws.PARTITION}:states:::lambda:invoke",
            "S3GetObject": f"arn:{cdk.Aws.PARTITION}:states:::s3:getObject",
            "StartExecutionSync": f"arn:{cdk.Aws.PARTITION}:states:::states:startExecution.sync:2",
        }
        machine = make_machine(scope, BENCHMARK.read_text(encoding="utf-8"), substitutions, role, settings)
        # The machine needs its role first, so what the role may do with the machine itself is attached afterwards.
        statements = permissions.map_children(stack, machine)
        return machine, role, iam.Policy(scope, "MapChildren", roles=[role], statements=statements)

    def _fleet(self, settings: DeploymentSettings, functions: Functions) -> tuple[sfn.StateMachine, iam.Role]:
        scope = Construct(self, "Fleet")
        tasks = [functions.launch, functions.fleet]
        role = make_role(
            scope,
            "Role",
            service="states.amazonaws.com",
            description="Keeps Troop's standing fleets",
            statements=bench_permissions.fleet_machine(cdk.Stack.of(self), tasks, self.teardown),
        )
        substitutions = {
            "LaunchFunction": functions.launch.function_arn,
            "FleetFunction": functions.fleet.function_arn,
            "TeardownMachine": self.teardown.state_machine_arn,
            "LambdaInvoke": f"arn:{cdk.Aws.PARTITION}:states:::lambda:invoke",
            "StartExecutionSync": f"arn:{cdk.Aws.PARTITION}:states:::states:startExecution.sync:2",
        }
        return make_machine(scope, FLEET.read_text(encoding="utf-8"), substitutions, role, settings), role

    def _hear_of_ends(self, functions: Functions, schedules: Schedules) -> events.Rule:
        """Calls the reaper at once for a run that did not end as its workflow has it. Children have ARNs of their own
        and are none of these: a failed cell is torn down by its run.
        """
        reaper = targets.LambdaFunction(
            functions.reaper,
            dead_letter_queue=schedules.undelivered,
            max_event_age=cdk.Duration.hours(_LATEST_HOURS),
            retry_attempts=_ATTEMPTS,
        )
        return events.Rule(
            self,
            "Ended",
            description="Runs whose workflow, or teardown, has failed",
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
