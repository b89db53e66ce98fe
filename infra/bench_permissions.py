"""Lists the permissions of roles in the part that runs benchmarks; as in :mod:`infra.permissions`, each list is
complete.

New resources must be tagged as this deployment's. Changes and removals require that tag, and a run's. Tags alone prove
nothing, because others can set them. So removals also require a name, an instance profile or a network of Troop's, if
IAM has a condition key for it. The functions check the rest (:mod:`troop.bench.removal.inventory`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn

from infra import permissions
from infra.bench_data import BenchData
from infra.permissions import allow, index, never_touches, writes_state
from troop.bench.admission.images import PUBLIC_PARAMETERS
from troop.bench.definition.names import (
    ARTIFACTS_PREFIX,
    DATA_PREFIX,
    GROUPS,
    LIVE,
    RECORD,
    REPORT_HTML,
    REPORT_JSON,
    RUNS_PREFIX,
    WRITTEN_BY_CELL,
    cell_id,
    in_any_cell,
    in_any_run,
)
from troop.shared.service_roles import AUTO_SCALING, SPOT, ServiceRole
from troop.shared.state_keys import BENCH_WRITERS
from troop.shared.tables import RUNS_BY_OPEN, RUNS_BY_TIME
from troop.shared.tags import DEPLOYMENT_TAG, PROTECTED_TAG, RUN_TAG
from troop.shared.targets import parse_allowed

RUN_OBJECTS = f"{RUNS_PREFIX}*"
ARTIFACT_OBJECTS = f"{ARTIFACTS_PREFIX}*"
DATA_OBJECTS = f"{DATA_PREFIX}*"
_DATA = ("s3:DeleteObject", "s3:GetObject", "s3:PutObject")
FLEET_CELL = cell_id(1)
REGISTRATIONS = in_any_run(f"{FLEET_CELL}/nodes/*")
ROSTERS = in_any_run(f"{FLEET_CELL}/roster.json")
"""Of standing fleets, which have one cell."""

WRITTEN_BY_NODES = (
    f"{RUN_OBJECTS}/nodes/${{aws:userid}}.json",
    f"{RUN_OBJECTS}/phases/*/${{aws:userid}}.json",
    f"{RUN_OBJECTS}/output/*/${{aws:userid}}.log.gz",
    f"{RUN_OBJECTS}/interruptions/${{aws:userid}}.json",
    f"{RUN_OBJECTS}/live/${{aws:userid}}.json",
)
"""The only objects that a node writes: no instructions to other nodes, no results, and nothing in the name of another
node. The user id of an instance's session is ``ROLEID:INSTANCE-ID``.
"""

REPORTS = (in_any_run(REPORT_HTML), in_any_run(REPORT_JSON))
WRITTEN_BY_REPORT = (*REPORTS, in_any_run(RECORD))
LOOKED_FOR = (*REPORTS, in_any_run("definition.json"))
"""Objects that show whether a report exists, and whether anything is stored of the run."""

LIVE_SUMMARIES = in_any_cell("live/*")
CELL_ROSTERS = in_any_cell("roster.json")
MERGED = in_any_run(LIVE)
CELL_FILES = (*in_any_cell("definition.json"), *CELL_ROSTERS)
WATCHED = (*LIVE_SUMMARIES, *CELL_FILES, MERGED)
"""Objects that show what runs do right now."""

IMAGES = "parameter/aws/service/ami-amazon-linux-latest/*"
"""The parameters with which AWS publishes the latest image of Amazon Linux."""


AWAIT_RULE = "StepFunctionsGetEventsForStepFunctionsExecutionRule"
"""Step Functions' own rule, which reports the end of an execution that another one waits for."""

_CREATED = {"StringEquals": {f"aws:RequestTag/{DEPLOYMENT_TAG}": cdk.Aws.STACK_NAME}}
_OURS = {
    "StringEquals": {f"aws:ResourceTag/{DEPLOYMENT_TAG}": cdk.Aws.STACK_NAME},
    "Null": {f"aws:ResourceTag/{RUN_TAG}": "false"},
}
_NEW_RULES = ("ec2:AuthorizeSecurityGroupEgress", "ec2:AuthorizeSecurityGroupIngress")
_RULES = (*_NEW_RULES, "ec2:RevokeSecurityGroupEgress")
_REMOVES = (
    "autoscaling:DeleteAutoScalingGroup",
    "ec2:DeleteLaunchTemplate",
    "ec2:DeletePlacementGroup",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteVolume",
    "ec2:TerminateInstances",
)
_CREATES = ("CreateLaunchTemplate", "CreatePlacementGroup", "CreateSecurityGroup", "RunInstances")


def launch(
    stack: cdk.Stack,
    data: BenchData,
    vpc: str,
    subnets: Sequence[str],
    role: iam.IRole,
    instance_types: Sequence[str],
    images: Sequence[str],
    snapshots: Sequence[str],
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
    """
    return [
        _record(data, "ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem"),
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
        allow(["ec2:CreateSecurityGroup"], _ec2(stack, "vpc", vpc)),
        allow(["ec2:CreateSecurityGroup"], _ec2(stack, "security-group"), conditions=_CREATED),
        allow(_RULES, _ec2(stack, "security-group"), conditions={**_OURS, **_in_vpc(stack, vpc)}),
        # EC2 may also check a new rule, which has no tags and no power of its own: the group decides.
        allow(_NEW_RULES, _ec2(stack, "security-group-rule")),
        allow(["ec2:CreatePlacementGroup"], _placement_groups(stack), conditions=_CREATED),
        allow(["ec2:CreateLaunchTemplate"], _ec2(stack, "launch-template"), conditions=_CREATED),
        allow(["autoscaling:CreateAutoScalingGroup"], _groups(stack), conditions=_CREATED),
        allow(
            [
                "autoscaling:PutScheduledUpdateGroupAction",
                "autoscaling:SuspendProcesses",
                "autoscaling:UpdateAutoScalingGroup",
            ],
            _groups(stack),
            conditions=_OURS,
        ),
        *never_touches(
            [PROTECTED_TAG], "autoscaling:PutScheduledUpdateGroupAction", "autoscaling:UpdateAutoScalingGroup"
        ),
        allow(["ec2:RunInstances"], _ec2(stack, "instance"), conditions=_type_conditions(instance_types)),
        allow(
            ["ec2:RunInstances"],
            *(_ec2(stack, kind) for kind in ("network-interface", "volume")),
            conditions=_CREATED,
        ),
        allow(
            ["ec2:RunInstances"],
            *(_ec2(stack, "launch-template"), _ec2(stack, "security-group"), _placement_groups(stack)),
            conditions=_OURS,
        ),
        allow(["ec2:RunInstances"], *(_ec2(stack, "subnet", subnet) for subnet in subnets)),
        # For spot, EC2 may also check the request, which carries no tags of Troop's; the instances it launches must.
        allow(["ec2:RunInstances"], _ec2(stack, "spot-instances-request")),
        *_allowed_images(images),
        *_allowed_snapshots(snapshots),
        allow(
            ["ec2:CreateTags"],
            *(
                _ec2(stack, kind)
                for kind in ("instance", "launch-template", "network-interface", "security-group", "volume")
            ),
            _placement_groups(stack),
            # Only at creation: existing resources can never be tagged as this deployment's.
            conditions={"StringEquals": {**_CREATED["StringEquals"], "ec2:CreateAction": list(_CREATES)}},
        ),
        allow(
            ["iam:PassRole"],
            role.role_arn,
            conditions={"StringEquals": {"iam:PassedToService": f"ec2.{cdk.Aws.URL_SUFFIX}"}},
        ),
        *(grant for role in (AUTO_SCALING, SPOT) for grant in _service_linked(role)),
    ]


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


def parameter_arns(images: Sequence[str]) -> list[str]:
    """Returns the ARNs of the parameters among the allowed images; AWS's public ones belong to no account."""
    return [
        f"arn:{cdk.Aws.PARTITION}:ssm:{cdk.Aws.REGION}:"
        f"{'' if name.startswith(PUBLIC_PARAMETERS) else cdk.Aws.ACCOUNT_ID}:parameter{name}"
        for name in images
        if name.startswith("/")
    ]


def cell(stack: cdk.Stack, data: BenchData) -> list[iam.PolicyStatement]:
    """Allows leading a cell through its phases: reading what nodes wrote, writing barriers, results and further
    attempts, having Auto Scaling replace nodes that do not come up, keeping it from replacing others, and reading the
    console of a node that did not register.
    """
    return [
        _record(data, "ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem"),
        allow(["s3:GetObject"], data.results.arn_for_objects(RUN_OBJECTS)),
        allow(["s3:PutObject"], *(data.results.arn_for_objects(keys) for keys in WRITTEN_BY_CELL)),
        _list_objects(data),
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
            _groups(stack),
            conditions=_OURS,
        ),
        *never_touches([PROTECTED_TAG], "autoscaling:TerminateInstanceInAutoScalingGroup"),
        allow(["ec2:GetConsoleOutput"], _ec2(stack, "instance"), conditions=_OURS),
    ]


def _seeing() -> iam.PolicyStatement:
    """Allows describing everything that a run creates; none of these calls supports resource-level permissions."""
    return allow(
        [
            "autoscaling:DescribeAutoScalingGroups",
            "ec2:DescribeInstances",
            "ec2:DescribeLaunchTemplates",
            "ec2:DescribePlacementGroups",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeVolumes",
        ],
        "*",
    )


def teardown(stack: cdk.Stack, data: BenchData, vpc: str, profile: str) -> list[iam.PolicyStatement]:
    """Allows finding and removing a run's resources, and recording their removal.

    Each condition is one that the service authorization reference lists for the action and its resource. For launch
    templates it lists only tags.

    Args:
        vpc: id of the nodes' network.
        profile: ARN of the nodes' instance profile. Passing it to an instance requires ``iam:PassRole`` for it.
    """
    return [
        _record(data, "GetItem", "Query", "UpdateItem"),
        _seeing(),
        allow(["autoscaling:DeleteAutoScalingGroup"], _groups(stack), conditions=_OURS),
        allow(["ec2:DeletePlacementGroup"], _placement_groups(stack), conditions=_OURS),
        allow(["ec2:DeleteLaunchTemplate"], _ec2(stack, "launch-template"), conditions=_OURS),
        allow(
            ["ec2:DeleteSecurityGroup"],
            _ec2(stack, "security-group"),
            conditions={**_OURS, **_in_vpc(stack, vpc)},
        ),
        allow(["ec2:DeleteVolume"], _ec2(stack, "volume"), conditions={**_OURS, "Bool": {"ec2:Encrypted": "true"}}),
        allow(
            ["ec2:TerminateInstances"],
            _ec2(stack, "instance"),
            conditions={**_OURS, "ArnEquals": {"ec2:InstanceProfile": profile}},
        ),
        *never_touches([PROTECTED_TAG], *_REMOVES),
    ]


def deletes_data(data: BenchData) -> list[iam.PolicyStatement]:
    """Allows finding and deleting the objects that scripts create to measure with, and no others."""
    return [
        _list_objects(data, DATA_OBJECTS),
        allow(["s3:DeleteObject"], data.results.arn_for_objects(DATA_OBJECTS)),
    ]


def fleet(stack: cdk.Stack, data: BenchData) -> list[iam.PolicyStatement]:
    """Allows keeping standing fleets: reading their nodes' registrations and resources, resizing their groups, writing
    rosters, and recording all of that. The creator of the groups holds the permissions for what they launch.
    """
    return [
        _record(data, "ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem"),
        *_registrations(data),
        _seeing(),
        allow(["autoscaling:UpdateAutoScalingGroup"], _groups(stack), conditions=_OURS),
        *never_touches([PROTECTED_TAG], "autoscaling:UpdateAutoScalingGroup"),
        allow(["s3:GetObject", "s3:PutObject"], data.results.arn_for_objects(ROSTERS)),
        allow(["s3:ListBucket"], data.results.bucket_arn, conditions={"StringLike": {"s3:prefix": [ROSTERS]}}),
    ]


def report(data: BenchData, failed_reports: sqs.IQueue) -> list[iam.PolicyStatement]:
    """Allows reading a run's record and stored results, and writing its report and a copy of its record. Lambda uses
    this role to put calls that fail at every try into the queue ``failed_reports``.
    """
    return [
        _record(data, "GetItem", "Query"),
        allow(["s3:GetObject"], data.results.arn_for_objects(RUN_OBJECTS)),
        _list_objects(data),
        allow(["s3:PutObject"], *(data.results.arn_for_objects(keys) for keys in WRITTEN_BY_REPORT)),
        allow(["sqs:SendMessage"], failed_reports.queue_arn),
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
        allow(["states:DescribeExecution", "states:StopExecution"], *(_executions(stack, one) for one in workflows)),
        allow(["states:StartExecution"], teardown_machine.state_machine_arn),
        allow(["states:ListExecutions"], teardown_machine.state_machine_arn),
    ]


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
) -> list[iam.PolicyStatement]:
    """Allows admitting runs: recording them, looking up the images, snapshots and targets that they name, storing
    their files and artifacts, starting and stopping workflows. Also reading standing fleets and calling their function;
    finding reports, signing their addresses, and having them made again; watching what runs do.

    Args:
        called: functions that it calls asynchronously.
        images, snapshots: as in :func:`launch`.
        targets: the allowed targets, as in the settings.
        is_own_network: whether the deployment has created the nodes' network, and so knows its routes.
    """
    return [
        _record(data, "ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem"),
        allow(["dynamodb:Query"], index(data.runs, RUNS_BY_TIME)),
        allow(["s3:PutObject"], *(data.results.arn_for_objects(keys) for keys in (RUN_OBJECTS, ARTIFACT_OBJECTS))),
        allow(["s3:GetObject"], data.results.arn_for_objects(ARTIFACT_OBJECTS)),  # whether one exists
        *_looks_up(images, snapshots, targets, is_own_network),
        allow(
            ["states:StartExecution"],
            *(machine.state_machine_arn for machine in workflows),
            teardown_machine.state_machine_arn,
        ),
        allow(["states:StopExecution"], *(_executions(stack, one) for one in workflows)),
        *_registrations(data),
        allow(["autoscaling:DescribeScalingActivities"], "*"),
        allow(["s3:GetObject"], *(data.results.arn_for_objects(keys) for keys in REPORTS)),
        _list_objects(data, *LOOKED_FOR),
        *_watches(data),
        *(allow(["lambda:InvokeFunction"], function.function_arn) for function in called),
    ]


def start(
    data: BenchData,
    state: dynamodb.ITable,
    workflow: sfn.StateMachine,
    images: Sequence[str],
    snapshots: Sequence[str],
    targets: Sequence[str],
    is_own_network: bool,
) -> list[iam.PolicyStatement]:
    """Allows admitting scheduled runs, as :func:`api` allows admitting others, and recording the outcomes."""
    return [
        _record(data, "ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem"),
        allow(["dynamodb:GetItem", "dynamodb:BatchGetItem"], state.table_arn),
        *writes_state(state, "start", BENCH_WRITERS),
        allow(["s3:PutObject"], data.results.arn_for_objects(RUN_OBJECTS)),
        allow(["s3:GetObject"], data.results.arn_for_objects(ARTIFACT_OBJECTS)),  # whether one exists
        *_looks_up(images, snapshots, targets, is_own_network),
        allow(["states:StartExecution"], workflow.state_machine_arn),
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


def node(results: s3.IBucket, buckets: Sequence[str], vpc: str, *, own_data: bool) -> list[iam.PolicyStatement]:
    """Allows a node to read its instructions, write its measurements, and read the allowed buckets, all through an
    endpoint of its network: a request that comes another way has no source VPC. So credentials that leave a node are
    of no use.

    Args:
        vpc: id of the nodes' network.
        own_data: whether it may also create, read and delete objects to measure with.
    """
    inside = {"StringEquals": {"aws:SourceVpc": vpc}}
    own = (results.arn_for_objects(keys) for keys in (RUN_OBJECTS, ARTIFACT_OBJECTS))
    return [
        allow(["s3:GetObject"], *own, conditions=inside),
        allow(["s3:PutObject"], *(results.arn_for_objects(keys) for keys in WRITTEN_BY_NODES), conditions=inside),
        *_read(buckets, inside),
        *([allow(_DATA, results.arn_for_objects(DATA_OBJECTS), conditions=inside)] if own_data else []),
    ]


def endpoint(results: s3.IBucket, buckets: Sequence[str], *, own_data: bool) -> list[iam.PolicyStatement]:
    """Allows what the own network can reach in S3 with any credentials: the deployment's bucket, the allowed buckets,
    and Amazon Linux's packages.
    """
    packages = f"al2023-repos-{cdk.Aws.REGION}-de612dc2"
    return [
        allow(["s3:GetObject", "s3:PutObject"], results.arn_for_objects("*")),
        *_read(buckets),
        *([allow(["s3:DeleteObject"], results.arn_for_objects(DATA_OBJECTS))] if own_data else []),
        allow(["s3:GetObject"], f"{_bucket(packages)}/*"),
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
        allow(["states:DescribeExecution", "states:StopExecution"], _executions(stack, teardown_machine)),
        allow(["events:DescribeRule", "events:PutRule", "events:PutTargets"], rule),
    ]


def widgets(data: BenchData, state: dynamodb.ITable) -> list[iam.PolicyStatement]:
    """Allows listing runs, reading a run's record, and watching what it does, but no results and no reports.

    Of the table ``State``, it opens for changes only the claims that let one viewer merge for all.
    """
    return [
        allow(["dynamodb:Query"], data.runs.table_arn, index(data.runs, RUNS_BY_TIME)),
        allow(["dynamodb:GetItem"], data.runs.table_arn),
        *writes_state(state, "widgets", BENCH_WRITERS),
        *_watches(data),
    ]


def _record(data: BenchData, *actions: str) -> iam.PolicyStatement:
    """Allows actions on the record of runs. No role deletes from it."""
    return allow([f"dynamodb:{action}" for action in actions], data.runs.table_arn)


def _objects(data: BenchData) -> list[iam.PolicyStatement]:
    """Allows reading, writing and listing the objects of runs."""
    return [allow(["s3:GetObject", "s3:PutObject"], data.results.arn_for_objects(RUN_OBJECTS)), _list_objects(data)]


def _list_objects(data: BenchData, *prefixes: str) -> iam.PolicyStatement:
    """Allows listing keys with the prefixes; without prefixes, all objects of runs."""
    allowed = {"StringLike": {"s3:prefix": [*prefixes] or [RUN_OBJECTS]}}
    return allow(["s3:ListBucket"], data.results.bucket_arn, conditions=allowed)


def _registrations(data: BenchData) -> list[iam.PolicyStatement]:
    """Allows listing and reading the registrations of nodes."""
    return [
        allow(["s3:GetObject"], data.results.arn_for_objects(REGISTRATIONS)),
        allow(["s3:ListBucket"], data.results.bucket_arn, conditions={"StringLike": {"s3:prefix": [REGISTRATIONS]}}),
    ]


def _watches(data: BenchData) -> list[iam.PolicyStatement]:
    """Allows merging the running summaries of nodes, and storing the merge."""
    results = data.results
    return [
        allow(["s3:GetObject"], *(results.arn_for_objects(keys) for keys in (*LIVE_SUMMARIES, *CELL_FILES))),
        allow(["s3:GetObject", "s3:PutObject"], results.arn_for_objects(MERGED)),
        _list_objects(data, *LIVE_SUMMARIES, *CELL_ROSTERS, MERGED),
    ]


def _read(buckets: Sequence[str], conditions: dict[str, Any] | None = None) -> list[iam.PolicyStatement]:
    if not buckets:
        return []
    return [
        allow(["s3:GetObject"], *(f"{_bucket(name)}/*" for name in buckets), conditions=conditions),
        allow(["s3:ListBucket"], *(_bucket(name) for name in buckets), conditions=conditions),
    ]


def _bucket(name: str) -> str:
    return f"arn:{cdk.Aws.PARTITION}:s3:::{name}"


def _ec2(stack: cdk.Stack, kind: str, name: str = "*") -> str:
    return stack.format_arn(service="ec2", resource=kind, resource_name=name)


def _in_vpc(stack: cdk.Stack, vpc: str) -> dict[str, Any]:
    """Returns the condition on security groups that they are in a network."""
    return {"ArnEquals": {"ec2:Vpc": _ec2(stack, "vpc", vpc)}}


def _groups(stack: cdk.Stack) -> str:
    """Returns the ARN of Auto Scaling groups with runs' names."""
    return stack.format_arn(
        service="autoscaling",
        resource="autoScalingGroup",
        resource_name=f"*:autoScalingGroupName/{GROUPS}",
        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
    )


def _placement_groups(stack: cdk.Stack) -> str:
    """Returns the ARN of placement groups with runs' names."""
    return _ec2(stack, "placement-group", GROUPS)


def _executions(stack: cdk.Stack, machine: sfn.StateMachine) -> str:
    return stack.format_arn(
        service="states",
        resource="execution",
        resource_name=f"{machine.state_machine_name}:*",
        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
    )
