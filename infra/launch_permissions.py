"""Lists the permissions of the function that launches nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from infra.bench_data import BenchData
from infra.bench_permissions import (
    OWNED,
    RUN_OBJECTS,
    ec2_arn,
    group_arns,
    in_vpc,
    list_objects,
    placement_arns,
    queue_arns,
    record,
    to_sqs,
)
from infra.permissions import allow, never_touches
from troop.bench.admission.images import PUBLIC_PARAMETERS
from troop.shared.service_roles import AUTO_SCALING, SPOT, ServiceRole
from troop.shared.tags import DEPLOYMENT_TAG, PROTECTED_TAG

IMAGES = "parameter/aws/service/ami-amazon-linux-latest/*"
"""The parameters with which AWS publishes the latest image of Amazon Linux."""

_CREATED = {"StringEquals": {f"aws:RequestTag/{DEPLOYMENT_TAG}": cdk.Aws.STACK_NAME}}
_NEW_RULES = ("ec2:AuthorizeSecurityGroupEgress", "ec2:AuthorizeSecurityGroupIngress")
_RULES = (*_NEW_RULES, "ec2:RevokeSecurityGroupEgress")
_CREATES = ("CreateLaunchTemplate", "CreatePlacementGroup", "CreateSecurityGroup", "RunInstances")
_TAGGED_BY_EC2 = ("instance", "launch-template", "network-interface", "security-group", "volume")


def launch(
    stack: cdk.Stack,
    data: BenchData,
    vpc: str,
    subnets: Sequence[str],
    role: iam.IRole,
    instance_types: Sequence[str],
    images: Sequence[str],
    snapshots: Sequence[str],
    *,
    queues: bool,
) -> list[iam.PolicyStatement]:
    """Allows creating security groups, placement groups, launch templates and Auto Scaling groups, all tagged, only
    in the network's subnets.

    Auto Scaling checks that the creator of a group with a launch template could launch its instances directly.
    Instances must use Amazon's images or those in ``images``; instances, their volumes and interfaces must carry the
    deployment's tag.

    Args:
        instance_types: patterns of the allowed types.
        images: ids, and names or patterns of parameters, of the other allowed images.
        snapshots: ids of the allowed snapshots, or ``*``.
        queues: whether fleets may have queues.
    """
    return [
        record(data, "ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem"),
        *_objects(data),
        allow(
            [
                "autoscaling:DescribeAutoScalingGroups",
                "autoscaling:DescribeScalingActivities",
                "ec2:DescribeImages",
                "ec2:DescribeInstanceTypeOfferings",
                "ec2:DescribeInstanceTypes",
                "ec2:DescribeLaunchTemplates",
                "ec2:DescribeManagedPrefixLists",
                "ec2:DescribePlacementGroups",
                "ec2:DescribeSecurityGroups",
                "ec2:DescribeSubnets",
            ],
            "*",
        ),
        allow(["ssm:GetParameter"], f"arn:{cdk.Aws.PARTITION}:ssm:{cdk.Aws.REGION}::{IMAGES}"),
        allow(["ec2:CreateSecurityGroup"], ec2_arn(stack, "vpc", vpc)),
        allow(["ec2:CreateSecurityGroup"], ec2_arn(stack, "security-group"), conditions=_CREATED),
        allow(_RULES, ec2_arn(stack, "security-group"), conditions={**OWNED, **in_vpc(stack, vpc)}),
        # EC2 may also check a new rule, which has no tags and no power of its own: the group decides.
        allow(_NEW_RULES, ec2_arn(stack, "security-group-rule")),
        allow(["ec2:CreatePlacementGroup"], placement_arns(stack), conditions=_CREATED),
        allow(["ec2:CreateLaunchTemplate"], ec2_arn(stack, "launch-template"), conditions=_CREATED),
        allow(["autoscaling:CreateAutoScalingGroup"], group_arns(stack), conditions=_CREATED),
        allow(
            [
                "autoscaling:PutScheduledUpdateGroupAction",
                "autoscaling:SuspendProcesses",
                "autoscaling:UpdateAutoScalingGroup",
            ],
            group_arns(stack),
            conditions=OWNED,
        ),
        *never_touches(
            [PROTECTED_TAG], "autoscaling:PutScheduledUpdateGroupAction", "autoscaling:UpdateAutoScalingGroup"
        ),
        allow(["ec2:RunInstances"], ec2_arn(stack, "instance"), conditions=_type_conditions(instance_types)),
        allow(
            ["ec2:RunInstances"],
            *(ec2_arn(stack, kind) for kind in ("network-interface", "volume")),
            conditions=_CREATED,
        ),
        allow(
            ["ec2:RunInstances"],
            *(ec2_arn(stack, "launch-template"), ec2_arn(stack, "security-group"), placement_arns(stack)),
            conditions=OWNED,
        ),
        allow(["ec2:RunInstances"], *(ec2_arn(stack, "subnet", subnet) for subnet in subnets)),
        # For spot, EC2 may also check the request, which carries no tags of Troop's; the instances it launches must.
        allow(["ec2:RunInstances"], ec2_arn(stack, "spot-instances-request")),
        *_allowed_images(images),
        *_allowed_snapshots(snapshots),
        *_tags_at_creation(stack, queues=queues),
        *(_queues(stack, vpc, subnets) if queues else ()),
        allow(
            ["iam:PassRole"],
            role.role_arn,
            conditions={"StringEquals": {"iam:PassedToService": f"ec2.{cdk.Aws.URL_SUFFIX}"}},
        ),
        *(grant for role in (AUTO_SCALING, SPOT) for grant in _service_linked(role)),
    ]


def _tags_at_creation(stack: cdk.Stack, *, queues: bool) -> list[iam.PolicyStatement]:
    """Allows tagging what is being created, and nothing else: existing resources can never be tagged as this
    deployment's.
    """
    kinds = (*_TAGGED_BY_EC2, *(["vpc-endpoint"] if queues else []))
    creates = [*_CREATES, *(["CreateVpcEndpoint"] if queues else [])]
    return [
        allow(
            ["ec2:CreateTags"],
            *(ec2_arn(stack, kind) for kind in kinds),
            placement_arns(stack),
            conditions={"StringEquals": {**_CREATED["StringEquals"], "ec2:CreateAction": creates}},
        )
    ]


def _queues(stack: cdk.Stack, vpc: str, subnets: Sequence[str]) -> list[iam.PolicyStatement]:
    """Allows creating endpoints to SQS, only in the network and its subnets and with a security group of a run, and
    queues with runs' names.

    EC2 needs no permission for the private DNS name that these endpoints do not have.
    """
    return [
        allow(["ec2:DescribeVpcEndpointServices", "ec2:DescribeVpcEndpoints"], "*"),
        allow(["ec2:CreateVpcEndpoint"], ec2_arn(stack, "vpc-endpoint"), conditions=to_sqs(_CREATED)),
        allow(["ec2:CreateVpcEndpoint"], ec2_arn(stack, "security-group"), conditions=OWNED),
        allow(
            ["ec2:CreateVpcEndpoint"],
            ec2_arn(stack, "vpc", vpc),
            *(ec2_arn(stack, "subnet", subnet) for subnet in subnets),
        ),
        # In some regions SQS knows no tags of requests: there the names alone must do.
        allow(
            ["sqs:CreateQueue", "sqs:TagQueue"],
            *queue_arns(stack),
            conditions={"StringEqualsIfExists": _CREATED["StringEquals"]},
        ),
        allow(["sqs:GetQueueUrl", "sqs:ListQueueTags", "sqs:SetQueueAttributes"], *queue_arns(stack)),
    ]


def _objects(data: BenchData) -> list[iam.PolicyStatement]:
    """Allows reading, writing and listing the objects of runs."""
    return [allow(["s3:GetObject", "s3:PutObject"], data.results.arn_for_objects(RUN_OBJECTS)), list_objects(data)]


def _service_linked(role: ServiceRole) -> list[iam.PolicyStatement]:
    """Allows checking for a service's own role in the account, and creating only that role."""
    arn = f"arn:{cdk.Aws.PARTITION}:iam::{cdk.Aws.ACCOUNT_ID}:role/aws-service-role/{role.service}/{role.name}"
    only = {"StringEquals": {"iam:AWSServiceName": role.service}}
    return [allow(["iam:GetRole"], arn), allow(["iam:CreateServiceLinkedRole"], arn, conditions=only)]


def _type_conditions(instance_types: Sequence[str]) -> dict[str, Any]:
    """Returns the condition on new instances: tagged as this deployment's, and of an allowed type."""
    if "*" in instance_types:
        return _CREATED
    return {**_CREATED, "StringLike": {"ec2:InstanceType": list(instance_types)}}


def _allowed_images(images: Sequence[str]) -> list[iam.PolicyStatement]:
    """Allows launching Amazon's images and those with allowed ids; with an allowed parameter of the account, also the
    account's images: what a parameter contains is unknown here.
    """
    has_own = any(name.startswith("/") and not name.startswith(PUBLIC_PARAMETERS) for name in images)
    owners = ["amazon", cdk.Aws.ACCOUNT_ID] if has_own else "amazon"
    ids = [image_arn(name) for name in images if not name.startswith("/")]
    return [
        allow(["ec2:RunInstances"], image_arn("*"), conditions={"StringEquals": {"ec2:Owner": owners}}),
        *([allow(["ec2:RunInstances"], *ids)] if ids else []),
    ]


def _allowed_snapshots(snapshots: Sequence[str]) -> list[iam.PolicyStatement]:
    """Allows launching with volumes that have the data of allowed snapshots, if the account owns these."""
    arns = [snapshot_arn(name) for name in snapshots]
    own = {"StringEquals": {"ec2:Owner": cdk.Aws.ACCOUNT_ID}}
    return [allow(["ec2:RunInstances"], *arns, conditions=own)] if arns else []


def snapshot_arn(name: str) -> str:
    """Returns the ARN of a snapshot, which contains no account."""
    return f"arn:{cdk.Aws.PARTITION}:ec2:{cdk.Aws.REGION}::snapshot/{name}"


def image_arn(name: str) -> str:
    """Returns the ARN of an image; images belong to no account."""
    return f"arn:{cdk.Aws.PARTITION}:ec2:{cdk.Aws.REGION}::image/{name}"
