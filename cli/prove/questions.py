"""Lists the questions, the cheapest first."""

from __future__ import annotations

from decimal import Decimal

from cli.prove import judgements, runs
from cli.prove.model import Kind, Question

_ROLE = (
    *("iam:CreateRole", "iam:PutRolePolicy", "iam:TagRole", "iam:ListRolePolicies", "iam:DeleteRolePolicy"),
    *("iam:DeleteRole", "sts:AssumeRole"),
)
_STACK = ("cloudformation:ListStackResources",)
_LAUNCHES = (
    *(*_STACK, "ec2:DescribeSubnets", "ssm:GetParameter", "ec2:CreateTags", "ec2:RunInstances"),
    *("ec2:CreatePlacementGroup", "ec2:DeletePlacementGroup"),
    *("ec2:CreateLaunchTemplate", "ec2:DescribeLaunchTemplates", "ec2:DeleteLaunchTemplate"),
    *("autoscaling:CreateAutoScalingGroup", "autoscaling:CreateOrUpdateTags", "iam:CreateServiceLinkedRole"),
    *("autoscaling:DescribeAutoScalingGroups", "autoscaling:DeleteAutoScalingGroup"),
)
_RUNS = (*_STACK, "execute-api:Invoke", "s3:ListBucket", "s3:GetObject")

QUESTIONS: tuple[Question, ...] = (
    Question(
        name="runtime",
        text="Does Lambda offer python3.14 and arm64 here?",
        why="Without them, the deployment fails at the first layer.",
        step="lists layers for the runtime and for the processor",
        kind=Kind.READS,
        needs=("lambda:ListLayers",),
        judge=judgements.runtime,
    ),
    Question(
        name="mapping-tags",
        text="Do event source mappings have the tags of the stack?",
        why="AWS documents that China has no such tags.",
        step="reads the tags of the stack's event source mappings",
        kind=Kind.READS,
        needs=(*_STACK, "lambda:GetEventSourceMapping", "lambda:ListTags"),
        judge=judgements.mapping_tags,
    ),
    Question(
        name="alarm-states",
        text="Are alarms on filled metrics OK while the metrics have no value?",
        why="Otherwise they show insufficient data for as long as nothing happens.",
        step="reads the states of the stack's alarms",
        kind=Kind.READS,
        needs=(*_STACK, "cloudwatch:DescribeAlarms"),
        judge=judgements.alarm_states,
    ),
    Question(
        name="stack-failures",
        text="Did CloudFormation create everything at the first try?",
        why="A role that IAM does not know everywhere yet can fail the schedules that use it.",
        step="reads the events of the stack",
        kind=Kind.READS,
        needs=("cloudformation:DescribeStackEvents",),
        judge=judgements.stack_failures,
    ),
    Question(
        name="crashes",
        text="Does EC2 end instances without a shutdown of the operating system?",
        why="Where EC2 refuses that, a crash becomes a shutdown; the text of the refusal decides.",
        step="reads the terminations on record",
        kind=Kind.READS,
        needs=("execute-api:Invoke",),
        judge=judgements.crashes,
    ),
    Question(
        name="fault-documents",
        text="Does AWS have the documents of faults inside instances here, with the parameters that Troop sends?",
        why="AWS can change its documents; a command with another parameter is refused.",
        step="describes eight documents of AWS",
        kind=Kind.READS,
        needs=("ssm:DescribeDocument",),
        judge=judgements.fault_documents,
    ),
    Question(
        name="command-rate",
        text="Does Service Quotas name a rate of SendCommand that allows a command a second?",
        why="A throttled command ends its event without a fault.",
        step="lists the quotas of Systems Manager",
        kind=Kind.READS,
        needs=("servicequotas:ListServiceQuotas",),
        judge=judgements.command_rate,
    ),
    Question(
        name="injections",
        text="Was every fault inside an instance proven to be over?",
        why="What is replaced although it was clean is the price of the proof; what stays open needs a person.",
        step="reads the faults on record",
        kind=Kind.READS,
        needs=("execute-api:Invoke",),
        judge=judgements.injections,
    ),
    Question(
        name="absent-role",
        text="Does IAM say of a service-linked role that it does not exist, if the policy has its path?",
        why="Otherwise Troop takes a missing role for an existing one, and the message for administrators is lost.",
        step="creates a role that may read service-linked roles, and asks for one that does not exist",
        kind=Kind.CREATES,
        needs=_ROLE,
        judge=judgements.absent_role,
    ),
    Question(
        name="attribute-condition",
        text="Does IAM honour ec2:Attribute when an attribute of an instance is read?",
        why="Then the roles of Troop need not be able to read user data, which can contain secrets.",
        step="creates a role with this condition, and reads two attributes of a running instance as dry runs",
        kind=Kind.CREATES,
        needs=(*_ROLE, "ec2:DescribeInstances"),
        judge=judgements.attribute_condition,
    ),
    Question(
        name="late-termination",
        text="Does the condition on the group's tag hold for an instance that has ended?",
        why="If not, IAM refuses a repeated termination, which must not count as a missing permission.",
        step="creates a role with Troop's condition, and repeats terminations of ended instances as dry runs",
        kind=Kind.CREATES,
        needs=(*_ROLE, "ec2:DescribeInstances", "execute-api:Invoke"),
        judge=judgements.late_termination,
    ),
    Question(
        name="command-tag",
        text="Does IAM check the tag of the instance to which a command is sent?",
        why="By it, Troop acts only inside instances whose owners have consented.",
        step="creates three roles, which send the probe, a command that only reads, to one instance that consents",
        kind=Kind.CREATES,
        needs=(
            *(*_ROLE, *_STACK, "ec2:DescribeInstances", "ssm:DescribeInstanceInformation"),
            "ssm:ListCommandInvocations",
        ),
        judge=judgements.command_tag,
    ),
    Question(
        name="launch-requests",
        text="Do EC2 and Auto Scaling accept what fleets are launched from, together?",
        why="If not, Troop cannot launch fleets on spot in two zones, in placement groups or with initialized volumes.",
        step="creates a placement group, a launch template and an empty group, and tries a launch as a dry run",
        kind=Kind.CREATES,
        needs=_LAUNCHES,
        judge=judgements.completion,
    ),
    Question(
        name="leading-keys",
        text="Does IAM check the key of each item of a transaction by that item's own action?",
        why="If it puts the keys together, it refuses every claim, and Troop terminates nothing.",
        step="creates an empty table, and a role that may check its switch but not write it; sends two transactions",
        price=Decimal("0.01"),
        kind=Kind.CREATES,
        needs=(
            *_ROLE,
            *("dynamodb:CreateTable", "dynamodb:DescribeTable", "dynamodb:TagResource", "dynamodb:DeleteTable"),
        ),
        judge=judgements.leading_keys,
    ),
    Question(
        name="table-import",
        text="Does CloudFormation record a retained table, import it, and then add a stream to it?",
        why="A new deployment takes over the tables of an earlier one in this way.",
        step="creates an empty table in a stack, removes the stack, and imports the table into another stack",
        price=Decimal("0.01"),
        kind=Kind.CREATES,
        needs=(
            *("cloudformation:CreateStack", "cloudformation:DeleteStack", "cloudformation:UpdateStack"),
            *("cloudformation:CreateChangeSet", "cloudformation:DescribeChangeSet", "cloudformation:ExecuteChangeSet"),
            *("cloudformation:DescribeStacks", "cloudformation:TagResource"),
            *("cloudformation:ListStacks", "cloudformation:ListStackResources"),
            *("dynamodb:CreateTable", "dynamodb:DescribeTable", "dynamodb:UpdateTable", "dynamodb:DeleteTable"),
            *("dynamodb:TagResource", "dynamodb:UntagResource", "dynamodb:ListTagsOfResource"),
            *("dynamodb:DescribeContinuousBackups", "dynamodb:DescribeContributorInsights"),
            *("dynamodb:DescribeKinesisStreamingDestination", "dynamodb:DescribeTimeToLive"),
            "dynamodb:GetResourcePolicy",
        ),
        judge=judgements.completion,
    ),
    Question(
        name="conditional-writes",
        text="Does S3 write an object only if its condition holds?",
        why="Cells of a run would otherwise overwrite what another one has written.",
        step="creates a bucket, and writes an object with If-None-Match and If-Match",
        price=Decimal("0.01"),
        kind=Kind.CREATES,
        needs=(
            *("s3:CreateBucket", "s3:PutBucketTagging", "s3:PutObject", "s3:GetObject", "s3:ListBucket"),
            *("s3:DeleteObject", "s3:DeleteBucket"),
        ),
        judge=judgements.conditional_writes,
    ),
    Question(
        name="launch",
        text="Does a node on spot start, with an initialized volume, in a placement group, and can a group end it?",
        why="A dry run shows neither the launch nor what EC2 tells of a node's console.",
        step="launches one t4g.small on spot without a script, reads its console, and ends it",
        price=Decimal("0.02"),
        kind=Kind.LAUNCHES,
        needs=(
            *_LAUNCHES,
            *("autoscaling:PutScheduledUpdateGroupAction", "autoscaling:UpdateAutoScalingGroup"),
            *("autoscaling:DescribeScalingActivities", "autoscaling:TerminateInstanceInAutoScalingGroup"),
            *("ec2:DescribeInstances", "ec2:DescribeVolumes", "ec2:GetConsoleOutput"),
        ),
        judge=judgements.completion,
    ),
    Question(
        name="faults",
        text="Do AWS's documents of faults run, and are they gone soon after a cancel?",
        why="Troop's own tests never run them; packages, kernel and AWS's agent decide.",
        step="launches one t4g.small in the default network, runs and cancels four faults on it, and ends it",
        price=Decimal("0.03"),
        kind=Kind.LAUNCHES,
        needs=(
            *(*_STACK, "iam:CreateRole", "iam:PutRolePolicy", "iam:TagRole", "iam:ListRolePolicies"),
            *("iam:DeleteRolePolicy", "iam:DeleteRole", "iam:PassRole", "iam:CreateInstanceProfile"),
            *("iam:TagInstanceProfile", "iam:GetInstanceProfile", "iam:AddRoleToInstanceProfile"),
            *("iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile", "ec2:DescribeSubnets"),
            *("ec2:RunInstances", "ec2:CreateTags", "ec2:DescribeInstances", "ec2:TerminateInstances"),
            *("ssm:GetParameter", "ssm:DescribeInstanceInformation", "ssm:SendCommand", "ssm:CancelCommand"),
            "ssm:ListCommandInvocations",
        ),
        judge=judgements.faults,
    ),
    Question(
        name="node",
        text="Does a node have the packages, modules, devices, units and permissions that benchmarks need?",
        why="No local test has Amazon Linux 2023 with its packages, kernel, NVMe volumes and systemd.",
        step="runs a benchmark of one t4g.small, which installs packages, runs out of memory, and reboots",
        price=runs.NODE.price,
        kind=Kind.LAUNCHES,
        needs=_RUNS,
        judge=judgements.node_checks,
    ),
    Question(
        name="spot",
        text="Do nodes start on spot in two zones and a placement group, and on demand if spot has none?",
        why="A run on spot otherwise ends without nodes, or with all of them in one zone.",
        step="runs a benchmark of two t4g.small on spot, and another with a price for which spot has none",
        price=runs.SPOT.price,
        kind=Kind.LAUNCHES,
        needs=("execute-api:Invoke",),
        judge=judgements.spot,
    ),
    Question(
        name="fleet",
        text="Can a standing fleet be started, doubled, halved and ended?",
        why="Its role may change only the size of groups, and no local test has IAM's and Auto Scaling's own checks.",
        step="starts a fleet of one t4g.micro on spot, adds a second one, and removes both",
        price=runs.FLEET_PRICE,
        kind=Kind.LAUNCHES,
        needs=("execute-api:Invoke",),
        judge=judgements.completion,
    ),
    Question(
        name="caches",
        text="Do RAID-0 of EBS volumes, dm-cache, dm-writecache and bcache work, with fio?",
        why="disk-io and event-processor need these drivers of Amazon's kernel, on NVMe devices.",
        step="runs disk-io in size smoke on four c6gd.medium with two volumes each, with and without caches",
        price=runs.CACHES.price,
        kind=Kind.LAUNCHES,
        needs=("execute-api:Invoke",),
        judge=judgements.cells,
    ),
    Question(
        name="cassandra",
        text="Does Cassandra run with Corretto, and do its writes arrive?",
        why="Only on a node is Corretto the Java of Cassandra and of cassandra-stress.",
        step="fetches Cassandra from Apache, and runs cassandra-write with one server and one driver, both t4g.medium",
        price=runs.CASSANDRA.price,
        kind=Kind.LAUNCHES,
        needs=("execute-api:Invoke",),
        judge=judgements.cells,
    ),
    Question(
        name="programs",
        text="Do k6, JMeter, Locust, latte and iozone run on nodes, as far as you have built them?",
        why="A program that is built elsewhere can lack a library or a version of Python.",
        step="runs a benchmark of one t4g.small and one t3.small, which start the programs in the catalogue's folders",
        price=runs.PROGRAMS_PRICE,
        kind=Kind.LAUNCHES,
        needs=_RUNS,
        judge=judgements.node_checks,
    ),
)


def selected(names: list[str]) -> list[Question]:
    """Returns the questions of these names in the order of the table; all without names.

    Raises:
        KeyError: there is no such question.
    """
    known = {question.name for question in QUESTIONS}
    for name in names:
        if name not in known:
            raise KeyError(name)
    return [question for question in QUESTIONS if not names or question.name in names]
