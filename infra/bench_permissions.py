"""Lists the permissions of roles in the part that runs benchmarks; as in :mod:`infra.permissions`, each list is
complete.

New resources must be tagged as this deployment's. Changes and removals require that tag, and a run's. Tags alone prove
nothing, because others can set them. So removals also require a name, an instance profile or a network of Troop's, if
IAM has a condition key for it. The functions check the rest (:mod:`troop.bench.removal.inventory`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn

from infra.bench_data import BenchData
from infra.permissions import allow, index, writes_state
from troop.bench.definition.names import (
    ARTIFACTS_PREFIX,
    DATA_PREFIX,
    GROUPS,
    LIVE,
    QUEUES,
    RECORD,
    REPORT_HTML,
    REPORT_JSON,
    RUNS_PREFIX,
    cell_id,
    in_any_cell,
    in_any_run,
)
from troop.bench.fleets.queue_requests import service_names
from troop.shared.state_keys import BENCH_WRITERS
from troop.shared.tables import RUNS_BY_NAME, RUNS_BY_TIME
from troop.shared.tags import DEPLOYMENT_TAG, RUN_TAG

RUN_OBJECTS = f"{RUNS_PREFIX}*"
ARTIFACT_OBJECTS = f"{ARTIFACTS_PREFIX}*"
DATA_OBJECTS = f"{DATA_PREFIX}*"
FLEET_CELL = cell_id(1)
REGISTRATIONS = in_any_run(f"{FLEET_CELL}/nodes/*")
ROSTERS = in_any_run(f"{FLEET_CELL}/roster.json")
REPORTS = in_any_run(f"{FLEET_CELL}/reports/*")
ORDERS = in_any_run(f"{FLEET_CELL}/orders.json")
"""Objects of standing fleets, which have one cell."""

WORK_RESULTS = in_any_run("results/*")
"""Results that workers of standing fleets deliver."""

LIVE_SUMMARIES = in_any_cell("live/*")
CELL_ROSTERS = in_any_cell("roster.json")
MERGED = in_any_run(LIVE)
CELL_FILES = (*in_any_cell("definition.json"), *CELL_ROSTERS)
WATCHED = (*LIVE_SUMMARIES, *CELL_FILES, MERGED)
"""Objects that show what runs do right now."""


OWNED = {
    "StringEquals": {f"aws:ResourceTag/{DEPLOYMENT_TAG}": cdk.Aws.STACK_NAME},
    "Null": {f"aws:ResourceTag/{RUN_TAG}": "false"},
}
WRITTEN_BY_REPORT = tuple(map(in_any_run, (REPORT_HTML, REPORT_JSON, RECORD)))


def describe_resources() -> iam.PolicyStatement:
    """Allows listing everything that a run creates; none of these calls supports resource-level permissions."""
    return allow(
        [
            "autoscaling:DescribeAutoScalingGroups",
            "ec2:DescribeInstances",
            "ec2:DescribeLaunchTemplates",
            "ec2:DescribePlacementGroups",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeVolumes",
            "ec2:DescribeVpcEndpoints",
            "sqs:ListQueues",
        ],
        "*",
    )


def describe_all(stack: cdk.Stack) -> list[iam.PolicyStatement]:
    """Allows describing everything that a run creates, with its tags."""
    return [describe_resources(), allow(["sqs:ListQueueTags"], *queue_arns(stack))]


def report(data: BenchData, state: dynamodb.ITable, failed_reports: sqs.IQueue) -> list[iam.PolicyStatement]:
    """Allows reading a run's record and stored results; writing its report, its line and a copy of its record; reading
    the lines of its benchmark, and recording which changes of it were told. Lambda uses this role to put calls that
    fail at every try into the queue ``failed_reports``.
    """
    return [
        record(data, "GetItem", "PutItem", "Query"),
        allow(["dynamodb:Query"], index(data.runs, RUNS_BY_NAME)),
        allow(["dynamodb:GetItem"], state.table_arn),
        *writes_state(state, "report", BENCH_WRITERS),
        allow(["s3:GetObject"], data.results.arn_for_objects(RUN_OBJECTS)),
        list_objects(data),
        allow(["s3:PutObject"], *(data.results.arn_for_objects(keys) for keys in WRITTEN_BY_REPORT)),
        allow(["sqs:SendMessage"], failed_reports.queue_arn),
    ]


def widgets(data: BenchData, state: dynamodb.ITable) -> list[iam.PolicyStatement]:
    """Allows listing runs, reading a run's record, and watching what it does, but no results and no reports.

    Of the table ``State``, it opens for changes only the claims that let one viewer merge for all.
    """
    return [
        allow(["dynamodb:Query"], data.runs.table_arn, index(data.runs, RUNS_BY_TIME)),
        allow(["dynamodb:GetItem"], data.runs.table_arn),
        *writes_state(state, "widgets", BENCH_WRITERS),
        *live_view(data),
    ]


def record(data: BenchData, *actions: str) -> iam.PolicyStatement:
    """Allows actions on the record of runs. No role deletes from it."""
    return allow([f"dynamodb:{action}" for action in actions], data.runs.table_arn)


def list_objects(data: BenchData, *prefixes: str) -> iam.PolicyStatement:
    """Allows listing keys with the prefixes; without prefixes, all objects of runs."""
    allowed = {"StringLike": {"s3:prefix": [*prefixes] or [RUN_OBJECTS]}}
    return allow(["s3:ListBucket"], data.results.bucket_arn, conditions=allowed)


def registrations(data: BenchData) -> list[iam.PolicyStatement]:
    """Allows listing and reading the registrations of nodes."""
    return [
        allow(["s3:GetObject"], data.results.arn_for_objects(REGISTRATIONS)),
        allow(["s3:ListBucket"], data.results.bucket_arn, conditions={"StringLike": {"s3:prefix": [REGISTRATIONS]}}),
    ]


def live_view(data: BenchData) -> list[iam.PolicyStatement]:
    """Allows merging the running summaries of nodes, and storing the merge."""
    return [*reads_live(data), allow(["s3:GetObject", "s3:PutObject"], data.results.arn_for_objects(MERGED))]


def reads_live(data: BenchData, *listed: str) -> list[iam.PolicyStatement]:
    """Allows merging the running summaries of nodes; also listing ``listed``, because a statement of its own would make
    a large role larger.
    """
    return [
        allow(["s3:GetObject"], *(data.results.arn_for_objects(keys) for keys in (*LIVE_SUMMARIES, *CELL_FILES))),
        list_objects(data, *LIVE_SUMMARIES, *CELL_ROSTERS, MERGED, *listed),
    ]


def ec2_arn(stack: cdk.Stack, kind: str, name: str = "*") -> str:
    return stack.format_arn(service="ec2", resource=kind, resource_name=name)


def in_vpc(stack: cdk.Stack, vpc: str) -> dict[str, Any]:
    """Returns the condition on security groups that they are in a network."""
    return {"ArnEquals": {"ec2:Vpc": ec2_arn(stack, "vpc", vpc)}}


def to_sqs(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Adds the condition on endpoints that they lead to SQS in the region."""
    equal = {**conditions["StringEquals"], "ec2:VpceServiceName": service_names(cdk.Aws.REGION)}
    return {**conditions, "StringEquals": equal}


def group_arns(stack: cdk.Stack) -> str:
    """Returns the ARN of Auto Scaling groups with runs' names."""
    return stack.format_arn(
        service="autoscaling",
        resource="autoScalingGroup",
        resource_name=f"*:autoScalingGroupName/{GROUPS}",
        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
    )


def placement_arns(stack: cdk.Stack) -> str:
    """Returns the ARN of placement groups with runs' names."""
    return ec2_arn(stack, "placement-group", GROUPS)


def queue_arns(stack: cdk.Stack) -> list[str]:
    """Returns the ARNs of the queues of tasks, and of those of dead letters, with runs' names."""
    return [stack.format_arn(service="sqs", resource=name) for name in QUEUES]


def execution_arns(stack: cdk.Stack, machine: sfn.StateMachine) -> str:
    return stack.format_arn(
        service="states",
        resource="execution",
        resource_name=f"{machine.state_machine_name}:*",
        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
    )
