"""Defines the part that runs benchmarks: the workflows of runs, fleets and teardowns, and the reaper, which does not
rely on them.
"""

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

_LATEST_HOURS = 1  # by then, the scheduled reaper has run
_ATTEMPTS = 8


class Benchmarks(Construct):
    """Everything about benchmarks except the API's routes; without it the stack has no resources of EC2.

    Attributes:
        data: table and bucket.
        network: where fleets run.
        nodes: the nodes' role and instance profile.
        benchmark: the workflow of a run.
        fleet: the workflow of a standing fleet.
        teardown: the workflow that removes the resources of a run or of one cell.
        roles: of the workflows, including ``benchmark_role``.
        map_children: the permissions of a run's workflow on itself.
        ended: the rule for runs whose workflow failed, timed out or was stopped.
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
        """Returns the variables with these resources' names for the API's function."""
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
        """Returns the permissions of the API's function on these resources."""
        stack, workflows = cdk.Stack.of(self), [self.benchmark, self.fleet]
        called = [self._functions.fleet, self._functions.report]
        return bench_permissions.api(stack, self.data, workflows, self.teardown, called)

    def _teardown(self, settings: DeploymentSettings, functions: Functions) -> tuple[sfn.StateMachine, iam.Role]:
        scope = Construct(self, "Teardown")
        role = make_role(
            scope,
            "Role",
            service="states.amazonaws.com",
            description="Removes the resources of Troop's benchmarks",
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
        # The machine needs its role first, so permissions on the machine itself are attached afterwards.
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
        """Calls the reaper at once for a run that did not end through its workflow. Children have ARNs of their own
        and do not match: their run tears down a failed cell.
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
