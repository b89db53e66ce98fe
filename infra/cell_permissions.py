"""Lists the permissions of functions and workflows that lead cells and fleets."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_stepfunctions as sfn

from infra import permissions
from infra.bench_data import BenchData
from infra.bench_permissions import (
    ORDERS,
    OWNED,
    REPORTS,
    ROSTERS,
    RUN_OBJECTS,
    describe_all,
    ec2_arn,
    execution_arns,
    group_arns,
    list_objects,
    queue_arns,
    record,
    registrations,
)
from infra.permissions import allow, never_touches
from troop.bench.definition.names import WRITTEN_BY_CELL
from troop.shared.tags import EXPIRES_TAG, PROTECTED_TAG

AWAIT_RULE = "StepFunctionsGetEventsForStepFunctionsExecutionRule"
"""Step Functions' own rule, which reports the end of an execution that another one waits for."""


def cell(stack: cdk.Stack, data: BenchData, request: lambda_.IFunction | None) -> list[iam.PolicyStatement]:
    """Allows leading a cell through its phases: reading what nodes wrote, writing barriers, results and further
    attempts, having Auto Scaling replace nodes that do not come up, keeping it from replacing others, and reading the
    console of a node that did not register.

    Args:
        request: the function that requests hits on units; None if benchmarks may request none.
    """
    return [
        record(data, "ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem"),
        allow(["s3:GetObject"], data.results.arn_for_objects(RUN_OBJECTS)),
        allow(["s3:PutObject"], *(data.results.arn_for_objects(keys) for keys in WRITTEN_BY_CELL)),
        list_objects(data),
        allow(
            [
                "autoscaling:DescribeAutoScalingGroups",
                "autoscaling:DescribeScalingActivities",
                "ec2:DescribeInstances",
            ],
            "*",
        ),
        allow(
            ["autoscaling:SuspendProcesses", "autoscaling:TerminateInstanceInAutoScalingGroup"],
            group_arns(stack),
            conditions=OWNED,
        ),
        *never_touches([PROTECTED_TAG], "autoscaling:TerminateInstanceInAutoScalingGroup"),
        allow(["ec2:GetConsoleOutput"], ec2_arn(stack, "instance"), conditions=OWNED),
        *([allow(["lambda:InvokeFunction"], request.function_arn)] if request else []),
    ]


def fleet(
    stack: cdk.Stack, data: BenchData, topics: Sequence[sns.ITopic], *, queues: bool
) -> list[iam.PolicyStatement]:
    """Allows keeping standing fleets: reading their nodes' registrations, reports and resources, resizing their groups,
    having Auto Scaling replace nodes that fail, writing rosters and orders, telling people, and recording all of that.
    The creator of the groups holds the permissions for what they launch.

    Args:
        topics: those of alarms.
        queues: whether fleets may have queues, whose tasks it counts.
    """
    changes = (
        *("autoscaling:PutScheduledUpdateGroupAction", "autoscaling:SetInstanceHealth"),
        *("autoscaling:SetInstanceProtection", "autoscaling:UpdateAutoScalingGroup"),
    )
    only_expiry = {**OWNED, "ForAllValues:StringEquals": {"aws:TagKeys": [EXPIRES_TAG]}}
    return [
        record(data, "ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem"),
        *registrations(data),
        *describe_all(stack),
        allow(changes, group_arns(stack), conditions=OWNED),
        allow(["autoscaling:CreateOrUpdateTags"], group_arns(stack), conditions=only_expiry),
        *never_touches([PROTECTED_TAG], *changes),
        allow(["s3:GetObject"], data.results.arn_for_objects(REPORTS)),
        allow(["s3:GetObject", "s3:PutObject"], *(data.results.arn_for_objects(keys) for keys in (ROSTERS, ORDERS))),
        list_objects(data, ROSTERS, REPORTS, ORDERS),
        allow(["sns:Publish"], *(topic.topic_arn for topic in topics)),
        *(_counts_tasks(stack) if queues else ()),
    ]


def _counts_tasks(stack: cdk.Stack) -> list[iam.PolicyStatement]:
    """Allows counting the tasks of queues, but not reading them, and tagging a queue with a later expiry. In regions in
    which SQS knows no tags of requests, the condition holds for any tag.
    """
    only_expiry = {"ForAllValues:StringEquals": {"aws:TagKeys": [EXPIRES_TAG]}}
    return [
        allow(["sqs:GetQueueAttributes", "sqs:GetQueueUrl"], *queue_arns(stack)),
        allow(["sqs:TagQueue"], *queue_arns(stack), conditions=only_expiry),
        allow(["cloudwatch:GetMetricData"], "*"),  # of metrics it knows no resources
    ]


def benchmark_machine(
    stack: cdk.Stack, data: BenchData, functions: Sequence[lambda_.IFunction], teardown_machine: sfn.StateMachine
) -> list[iam.PolicyStatement]:
    """Allows a run's workflow also to read the list of its cells."""
    return [
        *fleet_machine(stack, functions, teardown_machine),
        allow(["s3:GetObject"], data.results.arn_for_objects(RUN_OBJECTS)),
    ]


def fleet_machine(
    stack: cdk.Stack, functions: Sequence[lambda_.IFunction], teardown_machine: sfn.StateMachine
) -> list[iam.PolicyStatement]:
    """Allows a standing fleet's workflow also to start its teardown and wait for it."""
    rule = stack.format_arn(service="events", resource="rule", resource_name=AWAIT_RULE)
    return [
        *permissions.machine(functions),
        allow(["states:StartExecution"], teardown_machine.state_machine_arn),
        allow(["states:DescribeExecution", "states:StopExecution"], execution_arns(stack, teardown_machine)),
        allow(["events:DescribeRule", "events:PutRule", "events:PutTargets"], rule),
    ]
