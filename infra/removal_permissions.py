"""Lists the permissions of functions that remove what runs leave: teardown and reaper."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as sfn

from infra.bench_data import BenchData
from infra.bench_permissions import (
    DATA_OBJECTS,
    OWNED,
    describe_all,
    ec2_arn,
    execution_arns,
    group_arns,
    in_vpc,
    list_objects,
    placement_arns,
    queue_arns,
    record,
    to_sqs,
)
from infra.permissions import allow, index, never_touches
from troop.shared.tables import RUNS_BY_OPEN
from troop.shared.tags import PROTECTED_TAG

_REMOVES = (
    "autoscaling:DeleteAutoScalingGroup",
    "ec2:DeleteLaunchTemplate",
    "ec2:DeletePlacementGroup",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteVolume",
    "ec2:DeleteVpcEndpoints",
    "ec2:TerminateInstances",
)


def teardown(stack: cdk.Stack, data: BenchData, vpc: str, profile: str) -> list[iam.PolicyStatement]:
    """Allows finding and removing a run's resources, and recording their removal.

    Each condition is one that the service authorization reference lists for the action and its resource. For launch
    templates it lists only tags. For queues it lists tags, too, but SQS does not know these in all regions: the role is
    limited to names of Troop's, and the functions check the tags.

    Args:
        vpc: id of the nodes' network.
        profile: ARN of the nodes' instance profile. Passing it to an instance requires ``iam:PassRole`` for it.
    """
    return [
        record(data, "GetItem", "Query", "UpdateItem"),
        *describe_all(stack),
        allow(["autoscaling:DeleteAutoScalingGroup"], group_arns(stack), conditions=OWNED),
        allow(["ec2:DeletePlacementGroup"], placement_arns(stack), conditions=OWNED),
        allow(["ec2:DeleteLaunchTemplate"], ec2_arn(stack, "launch-template"), conditions=OWNED),
        allow(
            ["ec2:DeleteSecurityGroup"],
            ec2_arn(stack, "security-group"),
            conditions={**OWNED, **in_vpc(stack, vpc)},
        ),
        allow(
            ["ec2:DeleteVolume"],
            ec2_arn(stack, "volume"),
            conditions={**OWNED, "Bool": {"ec2:Encrypted": "true"}},
        ),
        allow(["ec2:DeleteVpcEndpoints"], ec2_arn(stack, "vpc-endpoint"), conditions=to_sqs(OWNED)),
        allow(["sqs:DeleteQueue"], *queue_arns(stack)),
        allow(
            ["ec2:TerminateInstances"],
            ec2_arn(stack, "instance"),
            conditions={**OWNED, "ArnEquals": {"ec2:InstanceProfile": profile}},
        ),
        *never_touches([PROTECTED_TAG], *_REMOVES),
    ]


def deletes_data(data: BenchData) -> list[iam.PolicyStatement]:
    """Allows finding and deleting the objects that scripts create to measure with, and no others."""
    return [
        list_objects(data, DATA_OBJECTS),
        allow(["s3:DeleteObject"], data.results.arn_for_objects(DATA_OBJECTS)),
    ]


def reaper(
    stack: cdk.Stack,
    data: BenchData,
    removes: Sequence[iam.PolicyStatement],
    state: dynamodb.ITable,
    workflows: Sequence[sfn.StateMachine],
    teardown_machine: sfn.StateMachine,
) -> list[iam.PolicyStatement]:
    """Allows what teardown does, finding open runs and the state of their executions, stopping these, and starting
    teardowns. The table ``State`` shows whether the reaper is switched off.

    Args:
        removes: the permissions of :func:`teardown`.
    """
    return [
        *removes,
        allow(["dynamodb:GetItem"], state.table_arn),
        allow(["dynamodb:Query"], index(data.runs, RUNS_BY_OPEN)),
        allow(["states:DescribeExecution", "states:StopExecution"], *(execution_arns(stack, one) for one in workflows)),
        allow(["states:StartExecution"], teardown_machine.state_machine_arn),
        allow(["states:ListExecutions"], teardown_machine.state_machine_arn),
    ]
