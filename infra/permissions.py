"""Lists the permissions of every role in one place. Each list is complete: no other code adds to it.

The resource is an asterisk only if the action supports no other, or no other that suffices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn

from infra.data import Data
from infra.health_targets import HealthTargets
from troop import faults
from troop.chaos.change_calendars import documents
from troop.chaos.work_keys import TICKS_PREFIX
from troop.faults.crash import CRASH
from troop.faults.fault import Fault
from troop.shared.calendars import Calendar
from troop.shared.state_keys import BENCH_WRITERS, DELETED, SWITCH, WRITERS, written_by
from troop.shared.tables import (
    CHANGES_BY_TIME,
    DECISIONS_BY_DAY,
    EVENTS_BY_OPEN,
    EVENTS_BY_TIME,
    EVENTS_BY_UNIT,
    RISKS,
    Index,
)
from troop.shared.tags import CONSENTS, INSIDE_TAG, UNTOUCHABLE_TAGS

GROUP_NAME_TAG = "aws:autoscaling:groupName"
"""Auto Scaling sets this tag on the instances of its groups; no one else can set tags with the prefix aws:."""

_WATCH = (
    "autoscaling:DescribeAutoScalingGroups",
    "elasticloadbalancing:DescribeInstanceHealth",
    "elasticloadbalancing:DescribeTargetHealth",
)
_READ_UNIT_ACTIONS = (
    *_WATCH,
    "autoscaling:DescribeInstanceRefreshes",
    "cloudwatch:DescribeAlarms",  # composite alarms are returned only to callers that may describe all
    "ec2:DescribeInstances",
)
_READ_ITEMS = ("dynamodb:BatchGetItem", "dynamodb:GetItem")
_TRACE = ("xray:PutTelemetryRecords", "xray:PutTraceSegments")


def decide(data: Data, *, leashed: bool) -> list[iam.PolicyStatement]:
    """Allows reading groups and policies, and writing decisions, LEASHED events and the list of terminations.

    Args:
        leashed: the setting. If it is false, the function looks for tables of earlier deployments before it applies.
    """
    return [
        *([] if leashed else [*earlier_tables(cdk.Stack.of(data)), allow(["dynamodb:GetItem"], data.state.table_arn)]),
        *_read_unit(data),
        allow(["dynamodb:Scan"], data.group_tags.table_arn, data.state.table_arn),
        allow(["dynamodb:BatchWriteItem"], data.decisions.table_arn),
        allow(["dynamodb:PutItem"], data.events.table_arn),
        *writes_state(data.state, "decide"),
        allow(["s3:PutObject"], data.work.arn_for_objects(f"{TICKS_PREFIX}*")),
        _read_salt(data),
    ]


def terminate(stack: cdk.Stack, data: Data) -> list[iam.PolicyStatement]:
    """Allows checking again, claiming, and terminating instances of Auto Scaling groups: no other instances, and never
    a protected one. A reason against the termination replaces the tick's decision.
    """
    return [
        *_read_unit(data, "autoscaling:DescribeAutoScalingInstances"),
        _read_salt(data),
        allow(["dynamodb:GetItem"], data.group_tags.table_arn, data.state.table_arn, data.events.table_arn),
        allow(["dynamodb:PutItem", "dynamodb:UpdateItem"], data.events.table_arn),
        allow(["dynamodb:ConditionCheckItem"], data.group_tags.table_arn, data.state.table_arn),
        allow(["dynamodb:UpdateItem"], data.decisions.table_arn),
        *writes_state(data.state, "terminate"),
        *hits(stack),
    ]


def inject(
    stack: cdk.Stack, data: Data, probe: str, backstops: str, backstop_role: iam.IRole
) -> list[iam.PolicyStatement]:
    """Allows running AWS's documents of the lasting faults, and the stack's own that reads, on instances whose owners
    consent; ending them; and terminating an instance whose fault is not proven to be over.

    Args:
        probe: the name of the stack's own document.
        backstops: the name of the schedule group whose schedules continue a fault.
        backstop_role: the role of these schedules.
    """
    return [
        *_read_unit(data, "autoscaling:DescribeAutoScalingInstances"),
        *_checks(data),
        allow(["dynamodb:GetItem"], data.group_tags.table_arn),
        allow(["dynamodb:BatchGetItem"], data.state.table_arn),
        allow(["dynamodb:Query"], index(data.events, EVENTS_BY_OPEN)),
        *writes_state(data.state, "inject"),
        *_reads_streams(data.group_tags, data.state),
        *_sends_commands(stack, probe),
        # They know no resources: a command is a number that only Systems Manager gives.
        allow(["ssm:CancelCommand", "ssm:ListCommandInvocations"], "*"),
        *hits(stack, [CRASH]),
        allow(
            ["scheduler:CreateSchedule"],
            stack.format_arn(service="scheduler", resource="schedule", resource_name=f"{backstops}/*"),
        ),
        passes_to_scheduler(backstop_role),
    ]


def _sends_commands(stack: cdk.Stack, probe: str) -> list[iam.PolicyStatement]:
    """Allows each document, and apart from that the instances, as AWS describes it for tags: see "Setting up Run
    Command". With the global key ``aws:ResourceTag`` AWS demands further conditions, so these have Systems Manager's.
    """
    own = stack.format_arn(service="ssm", resource="document", resource_name=probe)
    documents = dict.fromkeys(fault.document for fault in faults.LASTING)
    managed = [stack.format_arn(service="ssm", account="", resource="document", resource_name=one) for one in documents]
    instances = stack.format_arn(service="ec2", resource="instance", resource_name="*")
    return [
        allow(["ssm:SendCommand"], *managed, own),
        allow(
            ["ssm:SendCommand"],
            instances,
            conditions={"StringEquals": {f"ssm:resourceTag/{INSIDE_TAG}": list(CONSENTS)}},
        ),
        *(
            iam.PolicyStatement(
                effect=iam.Effect.DENY,
                actions=["ssm:SendCommand"],
                resources=[instances],
                conditions={"Null": {f"ssm:resourceTag/{tag}": "false"}},
            )
            for tag in UNTOUCHABLE_TAGS
        ),
    ]


def passes_to_scheduler(role: iam.IRole) -> iam.PolicyStatement:
    """Allows creating schedules with one role only."""
    return allow(
        ["iam:PassRole"],
        role.role_arn,
        conditions={"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}},
    )


def check_recovery(data: Data) -> list[iam.PolicyStatement]:
    """Allows checking a group until it has recovered, and recording the outcome and the replacement."""
    return [*_checks(data), *writes_state(data.state, "check_recovery")]


def hear(data: Data) -> list[iam.PolicyStatement]:
    """Allows finding the terminations in flight that an event of AWS is about, and checking their groups."""
    return [
        *_checks(data),
        allow(["autoscaling:DescribeAutoScalingInstances"], "*"),
        allow(["dynamodb:Query"], index(data.events, EVENTS_BY_OPEN)),
        *writes_state(data.state, "hear"),
    ]


def sweep(data: Data) -> list[iam.PolicyStatement]:
    """Allows finding terminations in flight, and checking or ending those that no execution handles."""
    return [
        *_checks(data),
        allow(["autoscaling:DescribeAutoScalingInstances"], "*"),
        allow(["dynamodb:Query"], index(data.events, EVENTS_BY_OPEN)),
        *writes_state(data.state, "sweep"),
    ]


def _checks(data: Data) -> list[iam.PolicyStatement]:
    """Allows checking a group, closing its event, and answering the workflow that waits for that."""
    return [
        allow(["states:SendTaskSuccess"], "*"),  # knows no resources: the token says which task
        allow([*_WATCH, "autoscaling:DescribeScalingActivities", "ec2:DescribeInstances"], "*"),
        _lattice(data),
        # Composite alarms are shown only to callers that may see all; GetMetricData knows no resources.
        allow(["cloudwatch:DescribeAlarmHistory", "cloudwatch:DescribeAlarms", "cloudwatch:GetMetricData"], "*"),
        allow(["dynamodb:GetItem", "dynamodb:UpdateItem"], data.events.table_arn),
        allow(["dynamodb:GetItem"], data.state.table_arn),
    ]


def notify(
    data: Data,
    streamed: Sequence[dynamodb.ITable],
    bus: events.IEventBus,
    topic: sns.ITopic,
    undelivered: sqs.IQueue,
    *,
    weekly_letter: bool,
) -> list[iam.PolicyStatement]:
    """Allows reading the records and a unit's earlier recoveries, and publishing them; nothing else. The weekly letter
    reads the events of all units, and the risks on record.
    """
    indices = [EVENTS_BY_UNIT, EVENTS_BY_TIME] if weekly_letter else [EVENTS_BY_UNIT]
    return [
        *_reads_streams(*streamed),
        allow(["dynamodb:Query"], *(index(data.events, one) for one in indices)),
        *([allow(["dynamodb:Query"], data.decisions.table_arn)] if weekly_letter else []),
        allow(["dynamodb:GetItem", "dynamodb:Query"], data.changes.table_arn),  # an edit without a record is by hand
        allow(["events:PutEvents"], bus.event_bus_arn),
        allow(["sns:Publish"], topic.topic_arn),
        # Failed notifications go there, and are sent from there later.
        allow(["sqs:SendMessage"], undelivered.queue_arn),
        drops_letters(undelivered),
    ]


def _reads_streams(*tables: dynamodb.ITable) -> list[iam.PolicyStatement]:
    """Allows Lambda to call a function with the changes of tables."""
    streams = [table.table_stream_arn for table in tables if table.table_stream_arn]
    return [
        allow(["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"], *streams),
        allow(["dynamodb:ListStreams"], "*"),  # supports no resources, and Lambda requires it
    ]


def drops_letters(queue: sqs.IQueue) -> iam.PolicyStatement:
    """Allows reading dead letters, and removing settled ones."""
    return allow(["sqs:DeleteMessage", "sqs:ReceiveMessage"], queue.queue_arn)


def api(data: Data, on_demand: sfn.IStateMachine, has_benchmarks: bool) -> list[iam.PolicyStatement]:
    """Allows reading groups, policies and history; changing a unit's policy and the switch, each with its record;
    claiming terminations on demand, and starting their workflow.
    """
    return [
        *_read_unit(data),
        allow(["dynamodb:GetItem", "dynamodb:PutItem"], data.events.table_arn),
        allow(["states:StartExecution"], on_demand.state_machine_arn),
        allow(
            ["dynamodb:Query"],
            *(index(data.events, EVENTS_BY_TIME), index(data.events, EVENTS_BY_UNIT)),
            *(data.decisions.table_arn, index(data.decisions, DECISIONS_BY_DAY), index(data.changes, CHANGES_BY_TIME)),
        ),
        allow([*_READ_ITEMS, "dynamodb:ConditionCheckItem"], data.state.table_arn),
        allow(
            [*_READ_ITEMS, "dynamodb:ConditionCheckItem", "dynamodb:Scan", "dynamodb:UpdateItem"],  # scans by the page
            data.group_tags.table_arn,
        ),
        *writes_state(data.state, "api", WRITERS | BENCH_WRITERS if has_benchmarks else WRITERS),
        allow(["dynamodb:DeleteItem"], data.state.table_arn, conditions=_only_items(DELETED)),
        allow(["dynamodb:PutItem", "dynamodb:Query"], data.changes.table_arn),
    ]


def request(data: Data, on_demand: sfn.IStateMachine) -> list[iam.PolicyStatement]:
    """Allows claiming what a benchmark requests, starting its workflow, and reading its event: of what the API's
    function may do, what a request to terminate needs.
    """
    return [
        *_read_unit(data),
        allow(["dynamodb:GetItem", "dynamodb:PutItem"], data.events.table_arn),
        allow(["states:StartExecution"], on_demand.state_machine_arn),
        allow([*_READ_ITEMS, "dynamodb:ConditionCheckItem"], data.state.table_arn),
        allow(["dynamodb:GetItem", "dynamodb:ConditionCheckItem"], data.group_tags.table_arn),
        *writes_state(data.state, "request"),
    ]


def widgets(data: Data) -> list[iam.PolicyStatement]:
    """Allows reading only what dashboards show: every viewer of a dashboard sees it, and the function does not know
    the viewer.
    """
    return [
        allow(["autoscaling:DescribeAutoScalingGroups"], "*"),
        allow(
            ["dynamodb:Query"],
            *(index(data.events, EVENTS_BY_TIME), index(data.events, EVENTS_BY_UNIT), data.changes.table_arn),
            *(data.decisions.table_arn, index(data.decisions, DECISIONS_BY_DAY)),
        ),
        allow(_READ_ITEMS, data.group_tags.table_arn, data.state.table_arn),
    ]


def watchdog(
    targets: HealthTargets, state: dynamodb.ITable, tables: Sequence[dynamodb.ITable]
) -> list[iam.PolicyStatement]:
    """Allows checking whether the deployment works, dropping settled dead letters, and recording the release."""
    return [
        *health(targets, state),
        *writes_state(state, "watchdog"),
        allow(["dynamodb:DescribeTable"], *(table.table_arn for table in tables)),
        drops_letters(targets.undelivered),
    ]


def risks(data: Data, undelivered: sqs.IQueue) -> list[iam.PolicyStatement]:
    """Allows reading the account's groups, load balancers, images and leftovers, with prices; and writing the risks on
    record, which are apart from decisions. Listings know no resources. Lambda reports calls that it gives up.
    """
    return [
        allow(
            [
                "autoscaling:DescribeAutoScalingGroups",
                "ec2:DescribeAddresses",
                "ec2:DescribeImages",
                "ec2:DescribeInstances",
                "ec2:DescribeLaunchTemplateVersions",
                "ec2:DescribeLaunchTemplates",
                "ec2:DescribeSnapshots",
                "ec2:DescribeVolumes",
                "elasticloadbalancing:DescribeLoadBalancers",
                "elasticloadbalancing:DescribeTargetGroups",
                "pricing:GetProducts",
            ],
            "*",
        ),
        allow(["dynamodb:Scan"], data.group_tags.table_arn, data.state.table_arn),
        allow(["dynamodb:Query"], index(data.events, EVENTS_BY_TIME), data.decisions.table_arn),
        allow(["dynamodb:BatchWriteItem"], data.decisions.table_arn, conditions=_only_items([RISKS])),
        allow(["sqs:SendMessage"], undelivered.queue_arn),
    ]


def health(targets: HealthTargets, state: dynamodb.ITable) -> list[iam.PolicyStatement]:
    """Allows checking whether the deployment works: its schedules, workflow and dead letters. The tables are extra."""
    return [
        allow(["scheduler:ListSchedules", "cloudwatch:GetMetricStatistics"], "*"),  # know no resources
        allow(["states:ListExecutions"], targets.machine.state_machine_arn),
        allow(["sqs:GetQueueAttributes"], targets.undelivered.queue_arn),
        allow(_READ_ITEMS, state.table_arn),
    ]


def alarms(act_now: sns.ITopic) -> list[iam.PolicyStatement]:
    """Allows reading which alarms are on, and how many subscribers the "act now" alarms have."""
    return [
        allow(["cloudwatch:DescribeAlarms"], "*"),  # listing by a prefix of names requires all alarms
        allow(["sns:GetTopicAttributes"], act_now.topic_arn),
    ]


def change_calendars(stack: cdk.Stack, calendars: Iterable[Calendar]) -> list[iam.PolicyStatement]:
    """Allows reading the states of the SSM Change Calendars that the settings name, and of no others; nothing without
    one.
    """
    named = documents(calendars)
    arns = [
        one if one.startswith("arn:") else stack.format_arn(service="ssm", resource="document", resource_name=one)
        for one in named
    ]
    return [allow(["ssm:GetCalendarState"], *arns)] if arns else []


def registrations() -> iam.PolicyStatement:
    """Allows reading which instances Systems Manager reaches, for faults inside them."""
    return allow(["ssm:DescribeInstanceInformation"], "*")  # knows no resources


def account(stack: cdk.Stack) -> list[iam.PolicyStatement]:
    """Allows reading the deployment's surroundings: Lambda's concurrency limit, and its tables with those that earlier
    deployments left. All their names begin with the stack's.
    """
    return [allow(["lambda:GetAccountSettings"], "*"), *earlier_tables(stack)]  # knows no resources


def earlier_tables(stack: cdk.Stack) -> list[iam.PolicyStatement]:
    """Allows finding the tables that earlier deployments left, and checking whether they are empty, but reading no
    item.
    """
    left = stack.format_arn(service="dynamodb", resource="table", resource_name=f"{cdk.Aws.STACK_NAME}-*")
    return [
        allow(["tag:GetResources"], "*"),  # knows no resources
        allow(["dynamodb:DescribeTable"], left),
        allow(["dynamodb:Scan"], left, conditions={"StringEquals": {"dynamodb:Select": "COUNT"}}),
    ]


def function_scheduler(function: lambda_.IFunction, undelivered: sqs.IQueue) -> list[iam.PolicyStatement]:
    """Allows a schedule to call its function, and to send undeliverable calls to the queue."""
    return [
        allow(["lambda:InvokeFunction"], function.function_arn),
        allow(["sqs:SendMessage"], undelivered.queue_arn),
    ]


def function_telemetry(group: logs.ILogGroup) -> list[iam.PolicyStatement]:
    """Allows a function to write to its own log group, which the deployment creates, and to trace itself."""
    return [allow(["logs:CreateLogStream", "logs:PutLogEvents"], group.log_group_arn), allow(_TRACE, "*")]


def chaos_machine(data: Data, functions: Sequence[lambda_.IFunction]) -> list[iam.PolicyStatement]:
    """Allows the workflow of ticks also to read the items of its Distributed Map."""
    reads = allow(["s3:GetObject"], data.work.arn_for_objects(f"{TICKS_PREFIX}*"))
    return [*machine(functions), reads]


def machine(functions: Sequence[lambda_.IFunction]) -> list[iam.PolicyStatement]:
    """Allows a workflow to call its functions, log and trace."""
    return [
        allow(["lambda:InvokeFunction"], *(function.function_arn for function in functions)),
        allow(
            [  # Step Functions needs these to set up the delivery of its logs
                "logs:CreateLogDelivery",
                "logs:DeleteLogDelivery",
                "logs:DescribeLogGroups",
                "logs:DescribeResourcePolicies",
                "logs:GetLogDelivery",
                "logs:ListLogDeliveries",
                "logs:PutResourcePolicy",
                "logs:UpdateLogDelivery",
            ],
            "*",
        ),
        allow([*_TRACE, "xray:GetSamplingRules", "xray:GetSamplingTargets"], "*"),
    ]


def map_children(stack: cdk.Stack, machine: sfn.StateMachine) -> list[iam.PolicyStatement]:
    """Allows a Distributed Map to run its items as executions of its own machine: ``MACHINE:ID`` or
    ``MACHINE/LABEL:ID``.
    """
    executions = [
        stack.format_arn(
            service="states",
            resource="execution",
            resource_name=f"{machine.state_machine_name}{child}",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        for child in (":*", "/*")
    ]
    return [starts(machine), allow(["states:DescribeExecution", "states:StopExecution"], *executions)]


def starts(machine: sfn.IStateMachine) -> iam.PolicyStatement:
    """Allows starting a workflow."""
    return allow(["states:StartExecution"], machine.state_machine_arn)


def scheduler(machine: sfn.IStateMachine, undelivered: sqs.IQueue) -> list[iam.PolicyStatement]:
    """Allows a schedule to start the workflow, and to send undeliverable starts to the queue."""
    return [
        starts(machine),
        allow(["sqs:SendMessage"], undelivered.queue_arn),
    ]


def allow(actions: Sequence[str], *resources: str, conditions: Mapping[str, Any] | None = None) -> iam.PolicyStatement:
    """Returns a statement that allows all of the actions on all of the resources."""
    return iam.PolicyStatement(
        actions=list(actions), resources=list(resources), conditions=dict(conditions) if conditions else None
    )


def hits(stack: cdk.Stack, terminations: Sequence[Fault] | None = None) -> list[iam.PolicyStatement]:
    """Allows what terminations need, by default all of them, and denies it for each protecting tag. A tag has a
    statement of its own, because all conditions within one must hold, and one tag is enough to refuse.

    The actions know the key: it is the instance's tag for EC2, and the group's for Auto Scaling.
    """
    chosen = faults.FAULTS if terminations is None else terminations
    needed = list(dict.fromkeys(permission for fault in chosen for permission in fault.permissions))
    in_group = {"Null": {f"aws:ResourceTag/{GROUP_NAME_TAG}": "false"}}
    allowed = [
        allow(
            [need.action],
            stack.format_arn(
                service=need.action.partition(":")[0],
                resource=need.resource,
                arn_format=cdk.ArnFormat.NO_RESOURCE_NAME,
            ),
            conditions=in_group if need.grouped else None,
        )
        for need in needed
    ]
    return [*allowed, *never_touches(UNTOUCHABLE_TAGS, *(need.action for need in needed))]


def never_touches(tags: Sequence[str], *actions: str) -> list[iam.PolicyStatement]:
    """Denies actions on whatever carries one of the tags."""
    return [
        iam.PolicyStatement(
            effect=iam.Effect.DENY,
            actions=list(dict.fromkeys(actions)),
            resources=["*"],
            conditions={"Null": {f"aws:ResourceTag/{tag}": "false"}},
        )
        for tag in tags
    ]


def _read_unit(data: Data, *more: str) -> list[iam.PolicyStatement]:
    """Allows the detailed checks of a unit before its claim."""
    # IAM has no condition key for the attribute, so this includes user data. Without a condition on tags: EC2 takes
    # them from an instance that ends, and a refusal would look like a missing permission.
    instances = cdk.Stack.of(data.events).format_arn(service="ec2", resource="instance", resource_name="*")
    return [
        allow([*_READ_UNIT_ACTIONS, *more], "*"),
        allow(["ec2:DescribeInstanceAttribute"], instances),
        _lattice(data),
    ]


def _lattice(data: Data) -> iam.PolicyStatement:
    stack = cdk.Stack.of(data.events)
    groups = stack.format_arn(service="vpc-lattice", resource="targetgroup", resource_name="*")
    return allow(["vpc-lattice:ListTargets"], groups)


def _read_salt(data: Data) -> iam.PolicyStatement:
    return allow(["secretsmanager:GetSecretValue"], data.salt.secret_arn)


_HAS_KEYS = {"Null": {"dynamodb:LeadingKeys": "false"}}
"""``ForAllValues``, which DynamoDB requires with these keys, alone also holds for a request without keys."""

WRITE_ITEMS = (
    "dynamodb:BatchWriteItem",
    "dynamodb:DeleteItem",
    "dynamodb:PartiQLDelete",
    "dynamodb:PartiQLInsert",
    "dynamodb:PartiQLUpdate",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
)


def writes_state(
    state: dynamodb.ITable, function: str, writers: Mapping[str, Sequence[str]] = WRITERS
) -> list[iam.PolicyStatement]:
    """Allows a function to update the items of ``State`` that it writes, and denies it the switch if that is not one.

    IAM checks each item of a transaction as a call of its own: an update of other items may check the switch.
    """
    keys = written_by(function, writers)
    return [
        allow(["dynamodb:UpdateItem"], state.table_arn, conditions=_only_items(keys)),
        *([] if SWITCH in written_by(function, WRITERS) else [_never_switches(state)]),
    ]


def _only_items(keys: Sequence[str]) -> dict[str, Any]:
    """Returns the condition for calls that name no other items."""
    return {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(keys)}, **_HAS_KEYS}


def _never_switches(state: dynamodb.ITable) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=list(WRITE_ITEMS),
        resources=[state.table_arn],
        conditions={"ForAnyValue:StringEquals": {"dynamodb:LeadingKeys": [SWITCH]}},
    )


def index(table: dynamodb.ITable, described: Index) -> str:
    """Returns the ARN of a table's index."""
    return f"{table.table_arn}/index/{described.name}"
