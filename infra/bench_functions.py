"""Defines the functions that run benchmarks and remove their resources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn

from infra import bench_permissions, cell_permissions, launch_permissions, removal_permissions
from infra.alarms import AlarmTopics
from infra.bench_data import BenchData
from infra.data import Data, make_queue
from infra.functions import Functions
from infra.network import Network
from infra.nodes import Nodes
from infra.settings import DeploymentSettings
from troop.bench.admission.merging import FUNCTION_SECONDS
from troop.shared.variables import Variable

_FAILED_REPORT_HOURS = 6


@dataclass(frozen=True)
class BenchFunctions:
    """Tasks of the workflows of benchmarks.

    Attributes:
        launch, cell: tasks of the workflow of benchmarks.
        fleet: the task of the workflow of standing fleets.
        teardown: the task of the workflow that removes a run's resources.
        report: makes the report of an ended run.
        failed_reports: the queue for asynchronous calls of ``report`` that failed at every try.
    """

    launch: lambda_.Function
    cell: lambda_.Function
    teardown: lambda_.Function
    fleet: lambda_.Function
    report: lambda_.Function
    failed_reports: sqs.Queue


def make_bench_functions(
    functions: Functions,
    data: Data,
    bench: BenchData,
    network: Network,
    nodes: Nodes,
    topics: AlarmTopics,
    *,
    settings: DeploymentSettings,
    request: lambda_.IFunction | None,
) -> BenchFunctions:
    """Creates the functions in ``functions``.

    Args:
        topics: those of alarms, which also get findings about fleets.
        request: the function that requests hits on units; None if benchmarks may request none.
    """
    stack, allowed = cdk.Stack.of(functions), settings.chaos
    runs = {Variable.RUNS_TABLE: bench.runs.table_name}
    record = {**runs, Variable.RESULTS_BUCKET: bench.results.bucket_name}
    profile = nodes.profile.instance_profile_arn
    # With these, the functions distinguish a run's resources from others that only carry its tags.
    site = {Variable.NETWORK_VPC: network.vpc_id, Variable.NODE_PROFILE: profile}
    launch = functions.make(
        "launch",
        launch_permissions.launch(
            stack,
            bench,
            network.vpc_id,
            network.subnet_ids,
            nodes.role,
            allowed.instance_types,
            allowed.allowed_images,
            allowed.allowed_snapshots,
            queues=allowed.queues,
        ),
        {
            **record,
            **network.environment(),
            Variable.NODE_PROFILE: profile,
            Variable.NODE_ROLE_ID: nodes.role.role_id,
            **({Variable.DATA_KEY: settings.key} if settings.key else {}),
        },
        seconds=120,
        megabytes=256,
    )
    cell = functions.make(
        "cell",
        cell_permissions.cell(stack, bench, request),
        {
            **record,
            Variable.NODE_PROFILE: profile,
            **({Variable.REQUEST_FUNCTION: request.function_arn} if request else {}),
        },
        seconds=FUNCTION_SECONDS,  # one call merges the samples of all nodes
        megabytes=1769,  # a whole processor
    )
    teardown = functions.make(
        "teardown",
        [
            *removal_permissions.teardown(stack, bench, network.vpc_id, profile),
            *(removal_permissions.deletes_data(bench) if allowed.own_data else []),
        ],
        record | site,
        seconds=120,
        megabytes=256,
    )
    fleet = functions.make(
        "fleet",
        cell_permissions.fleet(stack, bench, [topics.act_now, topics.warning], queues=allowed.queues),
        {
            **record,
            **site,
            Variable.NODE_ROLE_ID: nodes.role.role_id,
            Variable.ACT_NOW_TOPIC: topics.act_now.topic_arn,
            Variable.WARNING_TOPIC: topics.warning.topic_arn,
        },
        seconds=120,
        megabytes=1024,  # one call reads the reports of hundreds of nodes
    )
    # No metric of Lambda in every partition counts calls that it drops. An alarm has reported each message here,
    # and is over when the message expires.
    failed_reports = make_queue(functions, "ReportsGivenUp", cdk.Duration.hours(_FAILED_REPORT_HOURS))
    report = functions.make(
        "report",
        bench_permissions.report(bench, data.state, failed_reports),
        {**record, Variable.STATE_TABLE: data.state.table_name},
        layers=[functions.api_layer, functions.report_layer],
        seconds=300,  # one call reads and draws the measurements of all cells
        megabytes=1769,  # a whole processor
    )
    # The API calls it asynchronously. The caller asks again sooner than Lambda, which would otherwise try for hours.
    report.configure_async_invoke(
        max_event_age=cdk.Duration.minutes(15),
        retry_attempts=1,
        on_failure=destinations.SqsDestination(failed_reports),
    )
    return BenchFunctions(
        launch=launch, cell=cell, teardown=teardown, fleet=fleet, report=report, failed_reports=failed_reports
    )


def make_reaper(
    functions: Functions,
    data: Data,
    bench: BenchData,
    network: Network,
    nodes: Nodes,
    workflows: Sequence[sfn.StateMachine],
    teardown: sfn.StateMachine,
) -> lambda_.Function:
    """Creates the function that ends runs whose workflow has ended, or should have.

    Args:
        workflows: of benchmarks, and of standing fleets.
    """
    benchmark, fleet = workflows
    stack, profile = cdk.Stack.of(functions), nodes.profile.instance_profile_arn
    removes = removal_permissions.teardown(stack, bench, network.vpc_id, profile)
    return functions.make(
        "reaper",
        removal_permissions.reaper(stack, bench, removes, data.state, workflows, teardown),
        {
            Variable.RUNS_TABLE: bench.runs.table_name,
            Variable.STATE_TABLE: data.state.table_name,
            Variable.NETWORK_VPC: network.vpc_id,
            Variable.NODE_PROFILE: profile,
            Variable.BENCHMARK_MACHINE: benchmark.state_machine_arn,
            Variable.TEARDOWN_MACHINE: teardown.state_machine_arn,
            Variable.FLEET_MACHINE: fleet.state_machine_arn,
        },
        seconds=120,
        megabytes=256,
    )
