"""Lists the permissions of functions that admit runs: the API's and that of schedules."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn

from infra.bench_data import BenchData
from infra.bench_permissions import (
    ARTIFACT_OBJECTS,
    MERGED,
    REGISTRATIONS,
    RUN_OBJECTS,
    execution_arns,
    queue_arns,
    reads_live,
    record,
)
from infra.permissions import allow, index, writes_state
from troop.bench.admission.images import PUBLIC_PARAMETERS
from troop.bench.definition.names import in_any_run
from troop.shared.state_keys import BENCH_WRITERS
from troop.shared.tables import RUNS_BY_NAME, RUNS_BY_TIME
from troop.shared.targets import parse_allowed

READ_REPORTS = in_any_run("report.*")
"""Reports of all forms in one pattern: IAM limits the characters of a role's permissions."""

READ_RESULTS = in_any_run("re*")
"""Reports, the results that workers deliver, and the copy of the record, in one pattern for the same reason."""

DEFINITIONS = in_any_run("definition.json")
"""Objects that show whether anything is stored of a run."""


def api(
    stack: cdk.Stack,
    data: BenchData,
    workflows: Sequence[sfn.StateMachine],
    teardown_machine: sfn.StateMachine,
    called: Sequence[lambda_.IFunction],
    images: Sequence[str],
    snapshots: Sequence[str],
    targets: Sequence[str],
    is_own_network: bool,
    *,
    queues: bool,
) -> list[iam.PolicyStatement]:
    """Allows admitting runs: recording them, looking up the images, snapshots and targets that they name, storing
    their files and artifacts, starting and stopping workflows. Also reading standing fleets and calling their function;
    finding reports, signing their addresses, and having them made again; watching what runs do. With ``queues``, also
    sending tasks to fleets, and signing the addresses of results.

    Args:
        called: functions that it calls.
        images, snapshots: as in :func:`infra.launch_permissions.launch`.
        targets: the allowed targets, as in the settings.
        is_own_network: whether the deployment has created the nodes' network, and so knows its routes.
        queues: whether fleets may have queues.
    """
    reports = READ_RESULTS if queues else READ_REPORTS
    return [
        record(data, "ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem"),
        allow(["dynamodb:Query"], index(data.runs, RUNS_BY_TIME), index(data.runs, RUNS_BY_NAME)),
        allow(["s3:PutObject"], *(data.results.arn_for_objects(keys) for keys in (RUN_OBJECTS, ARTIFACT_OBJECTS))),
        allow(["s3:GetObject"], data.results.arn_for_objects(ARTIFACT_OBJECTS)),  # whether one exists
        *_looks_up(images, snapshots, targets, is_own_network),
        allow(
            ["states:StartExecution"],
            *(machine.state_machine_arn for machine in workflows),
            teardown_machine.state_machine_arn,
        ),
        allow(["states:StopExecution"], *(execution_arns(stack, one) for one in workflows)),
        allow(["autoscaling:DescribeScalingActivities"], "*"),
        allow(["s3:GetObject"], *(data.results.arn_for_objects(keys) for keys in (reports, REGISTRATIONS, MERGED))),
        *reads_live(data, reports, DEFINITIONS, REGISTRATIONS),  # it may write the merge, as everything of a run
        *([allow(["sqs:GetQueueUrl", "sqs:SendMessage"], queue_arns(stack)[0])] if queues else []),
        *(allow(["lambda:InvokeFunction"], function.function_arn) for function in called),
    ]


def start(
    data: BenchData,
    state: dynamodb.ITable,
    workflow: sfn.StateMachine,
    request: lambda_.IFunction | None,
    images: Sequence[str],
    snapshots: Sequence[str],
    targets: Sequence[str],
    is_own_network: bool,
) -> list[iam.PolicyStatement]:
    """Allows admitting scheduled runs, as :func:`api` allows admitting others, and recording the outcomes.

    Args:
        request: the function that knows which units may be hit; None if benchmarks may hit none.
    """
    return [
        record(data, "ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem"),
        allow(["dynamodb:GetItem", "dynamodb:BatchGetItem"], state.table_arn),
        *writes_state(state, "start", BENCH_WRITERS),
        allow(["s3:PutObject"], data.results.arn_for_objects(RUN_OBJECTS)),
        allow(["s3:GetObject"], data.results.arn_for_objects(ARTIFACT_OBJECTS)),  # whether one exists
        *_looks_up(images, snapshots, targets, is_own_network),
        allow(["states:StartExecution"], workflow.state_machine_arn),
        *([allow(["lambda:InvokeFunction"], request.function_arn)] if request else []),
    ]


def _looks_up(
    images: Sequence[str], snapshots: Sequence[str], targets: Sequence[str], is_own_network: bool
) -> list[iam.PolicyStatement]:
    """Allows looking up what files name, instance types, prices and quotas."""
    return [
        *([allow(["ssm:GetParameter"], *parameters)] if (parameters := parameter_arns(images)) else []),
        *([allow(["ec2:DescribeSnapshots"], "*")] if snapshots else []),
        *_target_lookups(targets, is_own_network),
        allow(
            [
                "ec2:DescribeImages",
                "ec2:DescribeInstanceTypeOfferings",
                "ec2:DescribeInstanceTypes",
                "ec2:DescribeSpotPriceHistory",
                "ec2:DescribeSubnets",
                "pricing:GetProducts",
                "servicequotas:GetAWSDefaultServiceQuota",
                "servicequotas:GetServiceQuota",
            ],
            "*",
        ),
    ]


def _target_lookups(targets: Sequence[str], is_own_network: bool) -> list[iam.PolicyStatement]:
    """Allows looking up the allowed kinds of targets, and whether an existing network has an endpoint of S3."""
    entries = [parse_allowed(target) for target in targets]
    actions = {
        "ec2:DescribeNetworkInterfaces": any(one.load_balancer for one in entries),
        "ec2:DescribeRouteTables": not is_own_network or any(one.addresses for one in entries),
        "ec2:DescribeSecurityGroups": any(one.security_group for one in entries),
        "ec2:DescribeVpcEndpoints": not is_own_network,
        "elasticloadbalancing:DescribeLoadBalancers": any(one.load_balancer for one in entries),
    }
    needed = [action for action, is_needed in actions.items() if is_needed]
    return [allow(needed, "*")] if needed else []


def parameter_arns(images: Sequence[str]) -> list[str]:
    """Returns the ARNs of the parameters among the allowed images; AWS's public ones belong to no account."""
    return [
        f"arn:{cdk.Aws.PARTITION}:ssm:{cdk.Aws.REGION}:"
        f"{'' if name.startswith(PUBLIC_PARAMETERS) else cdk.Aws.ACCOUNT_ID}:parameter{name}"
        for name in images
        if name.startswith("/")
    ]
