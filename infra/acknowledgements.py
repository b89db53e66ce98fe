"""Runs cdk-nag's AwsSolutions checks, and acknowledges every intended finding with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks
from constructs import IConstruct

from infra.bench_acknowledgements import bench_acknowledgements
from infra.roles import logical_id
from infra.stack import TroopStack
from troop.chaos.work_keys import TICKS_PREFIX

_EVERYWHERE = "Resource::*"
_DESCRIBES = (
    "Describe calls of EC2, Auto Scaling, Elastic Load Balancing and CloudWatch, listing schedules, reading Lambda's "
    "limits, finding resources by tag, cancelling and listing commands, and writing X-Ray traces support no "
    "resource-level permissions."
)
_HEALTH = "Listing schedules, reading metrics and writing X-Ray traces support no resource-level permissions."
_WIDGETS = "Describing Auto Scaling groups and writing X-Ray traces support no resource-level permissions."
_STREAMS = "Listing DynamoDB streams and writing X-Ray traces support no resource-level permissions."
_TICKS = f"A tick's list has a key made of its execution and time; the role is limited to the prefix {TICKS_PREFIX}."


@dataclass(frozen=True)
class Acknowledgement:
    """An intended finding.

    Attributes:
        construct: where; applies to its children, too.
        finding: the rule, followed by the finding in brackets if the rule can have several.
        reason: why it is intended.
    """

    construct: IConstruct
    finding: str
    reason: str


def check(stack: TroopStack) -> None:
    """Makes synth of the stack's app fail on any AwsSolutions finding that is not acknowledged here."""
    root = stack.node.root
    cdk.Validations.of(root).add_plugins(AwsSolutionsChecks(root))
    acknowledge(stack)


def acknowledge(stack: TroopStack) -> None:
    """Records the intended findings."""
    for entry in acknowledgements(stack):
        rule = cdk.Acknowledgment(id=f"AwsSolutions-{entry.finding}", reason=entry.reason)
        cdk.Validations.of(entry.construct).acknowledge(rule)


def acknowledgements(stack: TroopStack) -> Iterator[Acknowledgement]:
    """Yields all acknowledgements, part by part."""
    yield from _roles(stack)
    yield from _data(stack)
    yield from _api(stack)
    for queue, content in ((stack.schedules.undelivered, "ticks"), (stack.notifications.undelivered, "notifications")):
        reason = (
            f"The queue itself holds undelivered {content}. Settled messages are removed; the others stay, and keep an "
            "alarm on."
        )
        yield Acknowledgement(queue, "SQS3", reason)
    if stack.benchmarks:
        reason = "The queue itself holds calls that failed at every try. Only people read it."
        yield Acknowledgement(stack.benchmarks.functions.failed_reports, "SQS3", reason)
        for entry in bench_acknowledgements(stack.benchmarks, stack.functions, stack.allowed_buckets):
            yield Acknowledgement(*entry)


def _roles(stack: TroopStack) -> Iterator[Acknowledgement]:
    functions, workflow = stack.functions, stack.workflow
    ticks = f"Resource::<{logical_id(stack.data.work)}.Arn>/{TICKS_PREFIX}*"
    account = "<AWS::Region>:<AWS::AccountId>"
    inside = ["inject"] if stack.injections else []
    request = ["request"] if "request" in functions.roles else []
    reasons = {"watchdog": _HEALTH, "notify": _STREAMS, "widgets": _WIDGETS}
    for name, role in functions.roles.items():
        yield Acknowledgement(role, f"IAM5[{_EVERYWHERE}]", reasons.get(name, _DESCRIBES))
    yield Acknowledgement(functions.roles["decide"], f"IAM5[{ticks}]", _TICKS)
    yield Acknowledgement(
        functions.roles["terminate"],
        f"IAM5[Resource::arn:<AWS::Partition>:ec2:{account}:instance/*]",
        "The terminated instance is decided at run time: only an instance of an Auto Scaling group, by the "
        "condition on the tag that Auto Scaling sets, and never one with a tag that protects it.",
    )
    yield Acknowledgement(
        functions.roles["terminate"],
        f"IAM5[Resource::arn:<AWS::Partition>:autoscaling:{account}:autoScalingGroup:*:autoScalingGroupName/*]",
        "The group that loses an instance is decided at run time; a Deny applies to groups with a tag that "
        "protects them.",
    )
    if stack.injections:
        yield Acknowledgement(
            functions.roles["inject"],
            f"IAM5[Resource::arn:<AWS::Partition>:ec2:{account}:instance/*]",
            "The instance that has a fault is decided at run time. Commands run only on instances whose tag says that "
            "their owner consents, and terminations end only those of Auto Scaling groups; both never on one with a "
            "tag that protects it.",
        )
        yield Acknowledgement(
            functions.roles["inject"],
            f"IAM5[Resource::arn:<AWS::Partition>:scheduler:{account}:schedule/"
            f"<{logical_id(stack.injections.backstops)}>/*]",
            "Each fault has schedules with names of its own; the role is limited to their group.",
        )
    for name in ("api", "decide", *request):
        yield Acknowledgement(
            functions.roles[name],
            f"IAM5[Resource::arn:<AWS::Partition>:ec2:{account}:instance/*]",
            "The instances whose protection is read are decided at run time.",
        )
    for name in ("api", "decide", "check_recovery", "hear", "sweep", "terminate", *inside, *request):
        yield Acknowledgement(
            functions.roles[name],
            f"IAM5[Resource::arn:<AWS::Partition>:vpc-lattice:{account}:targetgroup/*]",
            "The groups to check, and so the target groups of VPC Lattice to read, are decided at run time.",
        )
    for name in ("api",) if stack.leashed else ("api", "decide"):
        yield Acknowledgement(
            functions.roles[name],
            f"IAM5[Resource::arn:<AWS::Partition>:dynamodb:{account}:table/<AWS::StackName>-*]",
            "CloudFormation generates the ends of table names. The role may describe tables that earlier stacks of "
            "this name left, and count their items, but read no item.",
        )
    yield Acknowledgement(workflow.role, f"IAM5[{ticks}]", _TICKS)
    yield Acknowledgement(
        workflow.role,
        f"IAM5[{_EVERYWHERE}]",
        "Setting up the delivery of logs and writing X-Ray traces support no resource-level permissions.",
    )
    yield Acknowledgement(
        stack.on_demand.role,
        f"IAM5[{_EVERYWHERE}]",
        "Setting up the delivery of logs and writing X-Ray traces support no resource-level permissions.",
    )
    for children in (":*", "/*"):
        machine = f"<{logical_id(workflow.machine)}.Name>"
        yield Acknowledgement(
            workflow.ready,
            f"IAM5[Resource::arn:<AWS::Partition>:states:{account}:execution:{machine}{children}]",
            "Executions of a Distributed Map get their names at run time; the role is limited to those of its machine.",
        )


def _data(stack: TroopStack) -> Iterator[Acknowledgement]:
    yield Acknowledgement(
        stack.data.work,
        "S1",
        "The bucket holds only lists that a workflow passes to itself, for a week. Decisions and terminations are "
        "in the tables. Access logs would need a bucket of their own, which would outlive the objects it reports "
        "on.",
    )
    yield Acknowledgement(
        stack.data.salt,
        "SMG4",
        "A new salt would roll a second time for units that were already rolled today, and past rolls could no "
        "longer be verified.",
    )


def _api(stack: TroopStack) -> Iterator[Acknowledgement]:
    api = stack.api.rest_api
    if stack.api.access_logs:
        yield Acknowledgement(
            api,
            "IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]",
            "AWS maintains this policy for this one purpose: API Gateway refuses a role without all of its "
            "permissions.",
        )
    else:
        yield Acknowledgement(
            api,
            "APIG1",
            "Access logs need a setting of the whole account and region that other APIs share, so they are opt-in "
            "(troop:api_access_logs). The function always logs each request and its caller.",
        )
    yield Acknowledgement(
        api,
        "APIG3",
        "Every request is signed with IAM credentials and throttled by the stage. A web ACL would add cost to an "
        "API that only the account's own users and programs call.",
    )
    yield Acknowledgement(
        api,
        "APIG6",
        "The function logs each request. Execution logs would repeat that in a log group that API Gateway creates "
        "and keeps forever, and need a setting that all APIs of the account and region share.",
    )
    yield Acknowledgement(
        api, "COG4", "Callers are authorised by IAM (AWS_IAM), method by method; there is no user pool."
    )
