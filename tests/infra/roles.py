"""What each role of the stack may do: the table that the template is held against."""

from __future__ import annotations

from tests.infra.conftest import NEWS_BUS
from tests.infra.roles_of_benchmarks import API_OF_BENCHMARKS, BENCHMARK_ROLES, watches
from tests.infra.statements import (
    ACCOUNT,
    MACHINE_GRANTS,
    ONE_RUN,
    READS,
    TABLES,
    allow,
    function_grants,
    items,
    only,
    record,
    state,
    stream,
)

SETTLES = ("sqs:DeleteMessage", "sqs:ReceiveMessage")
REGISTRATIONS = allow("*", "ssm:DescribeInstanceInformation")
DOCUMENTS = (
    *("CPU-Stress", "Memory-Stress", "IO-Stress", "Disk-Fill", "Kill-Process", "Network-Latency-Sources"),
    *("Network-Packet-Loss-Sources", "Network-Blackhole-Port"),
)
TERMINATE = ("autoscaling:TerminateInstanceInAutoScalingGroup", "ec2:TerminateInstances")


LATTICE = allow(f"arn:<AWS::Partition>:vpc-lattice:{ACCOUNT}:targetgroup/*", "vpc-lattice:ListTargets")
ATTRIBUTES = allow(f"arn:<AWS::Partition>:ec2:{ACCOUNT}:instance/*", "ec2:DescribeInstanceAttribute")

WATCH = (
    allow(
        "*",
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeScalingActivities",
        "elasticloadbalancing:DescribeInstanceHealth",
        "elasticloadbalancing:DescribeTargetHealth",
    )
    | LATTICE
    | allow("*", "cloudwatch:DescribeAlarmHistory", "cloudwatch:DescribeAlarms", "cloudwatch:GetMetricData")
    | allow("<Events.Arn>", "dynamodb:GetItem", "dynamodb:UpdateItem")
    | allow("<State.Arn>", "dynamodb:GetItem")
    | allow("*", "states:SendTaskSuccess")
)

HEALTH = (
    allow("*", "scheduler:ListSchedules", "cloudwatch:GetMetricStatistics")
    | allow("<ChaosMachine>", "states:ListExecutions")
    | allow("<SchedulesUndelivered.Arn>", "sqs:GetQueueAttributes")
    | allow("<State.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem")
)

WIDGETS = (
    function_grants("Widgets")
    | allow("*", "autoscaling:DescribeAutoScalingGroups")
    | allow("<Events.Arn>/index/by-time", "dynamodb:Query")
    | allow("<Events.Arn>/index/by-unit", "dynamodb:Query")
    | allow("<Decisions.Arn>", "dynamodb:Query")
    | allow("<Decisions.Arn>/index/by-day", "dynamodb:Query")
    | allow("<Changes.Arn>", "dynamodb:Query")
    | allow("<GroupTags.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem")
    | allow("<State.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem")
)
"""They read, and write nothing but merges of what runs do: whoever sees a dashboard calls them."""

_EARLIER = f"arn:<AWS::Partition>:dynamodb:{ACCOUNT}:table/<AWS::StackName>-*"
EARLIER_TABLES = (
    allow("*", "tag:GetResources")
    | allow(_EARLIER, "dynamodb:DescribeTable")
    | {(*grant, str({"StringEquals": {"dynamodb:Select": "COUNT"}})) for grant in allow(_EARLIER, "dynamodb:Scan")}
)
"""Of a scan, the number of items alone."""

# With faults inside instances, and hits under load.
ROLES: dict[str, set[tuple[str, ...]]] = {
    **BENCHMARK_ROLES,
    "WidgetsRole": WIDGETS
    | record("GetItem", "Query")
    | allow("<Runs.Arn>/index/by-time", "dynamodb:Query")
    | state("live-claim#*")
    | watches()
    | allow(f"{ONE_RUN}/live.json", "s3:PutObject"),
    "DecideRole": function_grants("Decide")
    | allow("*", *READS)
    | ATTRIBUTES
    | LATTICE
    | allow("<GroupTags.Arn>", "dynamodb:Scan")
    | allow("<State.Arn>", "dynamodb:Scan")
    | state("earlier-tables", "unit#*", "stray-items")
    | allow("<Decisions.Arn>", "dynamodb:BatchWriteItem")
    | allow("<Events.Arn>", "dynamodb:PutItem")
    | allow("<WorkBucket.Arn>/ticks/*", "s3:PutObject")
    | allow("<Salt>", "secretsmanager:GetSecretValue")
    | REGISTRATIONS,
    "TerminateRole": function_grants("Terminate")
    | REGISTRATIONS
    | allow("*", *READS, "autoscaling:DescribeAutoScalingInstances")
    | ATTRIBUTES
    | LATTICE
    | allow("<Salt>", "secretsmanager:GetSecretValue")
    | allow("<GroupTags.Arn>", "dynamodb:GetItem", "dynamodb:ConditionCheckItem")
    | allow("<State.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem")
    | state("in-flight", "day#*", "unit#*", "hit#*")
    | allow("<Events.Arn>", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
    | allow("<Decisions.Arn>", "dynamodb:UpdateItem")
    | {
        (
            "Allow",
            "ec2:TerminateInstances",
            f"arn:<AWS::Partition>:ec2:{ACCOUNT}:instance/*",
            "{'Null': {'aws:ResourceTag/aws:autoscaling:groupName': 'false'}}",
        ),
        (
            "Allow",
            "autoscaling:TerminateInstanceInAutoScalingGroup",
            f"arn:<AWS::Partition>:autoscaling:{ACCOUNT}:autoScalingGroup:*:autoScalingGroupName/*",
        ),
    }
    | {
        ("Deny", action, "*", f"{{'Null': {{'aws:ResourceTag/{tag}': 'false'}}}}")
        for action in TERMINATE
        for tag in ("troop:protected", "troop:fleet")
    },
    "RequestRole": function_grants("Request")
    | REGISTRATIONS
    | allow("*", *READS)
    | ATTRIBUTES
    | LATTICE
    | allow("<GroupTags.Arn>", "dynamodb:GetItem", "dynamodb:ConditionCheckItem")
    | allow("<State.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem")
    | state("in-flight", "day#*", "unit#*", "hit#*", "key#*")
    | allow("<Events.Arn>", "dynamodb:GetItem", "dynamodb:PutItem")
    | allow("<OnDemandMachine>", "states:StartExecution"),
    "CheckRecoveryRole": function_grants("CheckRecovery")
    | WATCH
    | allow("*", "ec2:DescribeInstances")
    | state("in-flight", "unit#*", "unrecovered", "broken", "self-halt"),
    "InjectRole": function_grants("Inject")
    | WATCH
    | allow("*", *READS, "autoscaling:DescribeAutoScalingInstances")
    | ATTRIBUTES
    | REGISTRATIONS
    | allow("<Events.Arn>/index/by-open", "dynamodb:Query")
    | allow("<GroupTags.Arn>", "dynamodb:GetItem")
    | allow("<State.Arn>", "dynamodb:BatchGetItem")
    | state("in-flight", "day#*", "unit#*", "unrecovered", "broken", "self-halt", "hit#*")
    | {grant for name in ("GroupTags", "State") for grant in stream(name)}
    | allow("*", "dynamodb:ListStreams")
    | {
        grant
        for name in DOCUMENTS
        for grant in allow(f"arn:<AWS::Partition>:ssm:<AWS::Region>::document/AWSFIS-Run-{name}", "ssm:SendCommand")
    }
    | allow(f"arn:<AWS::Partition>:ssm:{ACCOUNT}:document/<InjectionsProbe>", "ssm:SendCommand")
    | only(
        {"StringEquals": {"ssm:resourceTag/troop:inside": ["yes", "install"]}},
        f"arn:<AWS::Partition>:ec2:{ACCOUNT}:instance/*",
        "ssm:SendCommand",
    )
    | {
        (
            "Deny",
            "ssm:SendCommand",
            f"arn:<AWS::Partition>:ec2:{ACCOUNT}:instance/*",
            f"{{'Null': {{'ssm:resourceTag/{tag}': 'false'}}}}",
        )
        for tag in ("troop:protected", "troop:fleet")
    }
    | allow("*", "ssm:CancelCommand", "ssm:ListCommandInvocations")
    | {
        (
            "Allow",
            "ec2:TerminateInstances",
            f"arn:<AWS::Partition>:ec2:{ACCOUNT}:instance/*",
            "{'Null': {'aws:ResourceTag/aws:autoscaling:groupName': 'false'}}",
        ),
        *(
            ("Deny", "ec2:TerminateInstances", "*", f"{{'Null': {{'aws:ResourceTag/{tag}': 'false'}}}}")
            for tag in ("troop:protected", "troop:fleet")
        ),
    }
    | allow(f"arn:<AWS::Partition>:scheduler:{ACCOUNT}:schedule/<InjectionsBackstops>/*", "scheduler:CreateSchedule")
    | only(
        {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}},
        "<InjectionsRole.Arn>",
        "iam:PassRole",
    ),
    "InjectionsRole": allow("<Inject.Arn>", "lambda:InvokeFunction"),
    "HearRole": function_grants("Hear")
    | WATCH
    | state("in-flight", "day#*", "unit#*", "unrecovered", "broken", "self-halt", "hit#*")
    | allow("*", "autoscaling:DescribeAutoScalingInstances", "ec2:DescribeInstances")
    | allow("<Events.Arn>/index/by-open", "dynamodb:Query"),
    "SweepRole": function_grants("Sweep")
    | WATCH
    | state("in-flight", "day#*", "unit#*", "unrecovered", "broken", "self-halt", "hit#*")
    | allow("*", "autoscaling:DescribeAutoScalingInstances", "ec2:DescribeInstances")
    | allow("<Events.Arn>/index/by-open", "dynamodb:Query"),
    "NotifyRole": function_grants("Notify")
    | {grant for name in ("Events", "Changes", "GroupTags", "State") for grant in stream(name)}
    | allow("*", "dynamodb:ListStreams")
    | allow("<Events.Arn>/index/by-unit", "dynamodb:Query")
    | allow("<Changes.Arn>", "dynamodb:GetItem", "dynamodb:Query")
    | allow("<Bus.Arn>", "events:PutEvents")
    | allow("<NotificationsNews>", "sns:Publish")
    | allow("<NotificationsUndelivered.Arn>", "sqs:SendMessage", *SETTLES),
    "NotificationsForwardingRole": allow(NEWS_BUS, "events:PutEvents"),
    "ApiRole": function_grants("Api")
    | allow("<Events.Arn>", "dynamodb:GetItem", "dynamodb:PutItem")
    | allow("<Events.Arn>/index/by-time", "dynamodb:Query")
    | allow("<Events.Arn>/index/by-unit", "dynamodb:Query")
    | allow("*", *READS)
    | ATTRIBUTES
    | LATTICE
    | allow("<GroupTags.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Scan", "dynamodb:UpdateItem")
    | allow("<State.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem")
    | only(items("broken", "self-halt"), "<State.Arn>", "dynamodb:DeleteItem")
    | state(
        *("switch", "earlier-tables", "in-flight", "day#*", "unit#*", "unrecovered", "hit#*", "key#*", "repeat#*"),
        *("bench-schedules#*", "bench-schedule#*", "run-key#*", "report-claim#*", "live-claim#*", "permit#*"),
        "price#*",
    )
    | {grant for name in ("GroupTags", "State") for grant in allow(f"<{name}.Arn>", "dynamodb:ConditionCheckItem")}
    | allow("<OnDemandMachine>", "states:StartExecution")
    | allow("<Decisions.Arn>", "dynamodb:Query")
    | allow("<Decisions.Arn>/index/by-day", "dynamodb:Query")
    | allow("<Changes.Arn>", "dynamodb:Query", "dynamodb:PutItem")
    | allow("<Changes.Arn>/index/by-time", "dynamodb:Query")
    | API_OF_BENCHMARKS
    | HEALTH
    | allow("*", "cloudwatch:DescribeAlarms")
    | allow("<AlarmsActNow>", "sns:GetTopicAttributes")
    | allow("*", "lambda:GetAccountSettings")
    | REGISTRATIONS
    | EARLIER_TABLES,
    "RisksRole": function_grants("Risks")
    | allow(
        "*",
        *("autoscaling:DescribeAutoScalingGroups", "ec2:DescribeAddresses", "ec2:DescribeImages"),
        *("ec2:DescribeInstances", "ec2:DescribeLaunchTemplateVersions", "ec2:DescribeLaunchTemplates"),
        *("ec2:DescribeSnapshots", "ec2:DescribeVolumes"),
        *("elasticloadbalancing:DescribeLoadBalancers", "elasticloadbalancing:DescribeTargetGroups"),
        "pricing:GetProducts",
    )
    | allow("<GroupTags.Arn>", "dynamodb:Scan")
    | allow("<State.Arn>", "dynamodb:Scan")
    | allow("<Events.Arn>/index/by-time", "dynamodb:Query")
    | allow("<Decisions.Arn>", "dynamodb:Query")
    | only(items("\trisks"), "<Decisions.Arn>", "dynamodb:BatchWriteItem")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "WatchdogRole": function_grants("Watchdog")
    | HEALTH
    | state("release")
    | {grant for name in TABLES for grant in allow(f"<{name}.Arn>", "dynamodb:DescribeTable")}
    | allow("<SchedulesUndelivered.Arn>", *SETTLES),
    "ChaosRole": allow("<Decide.Arn>", "lambda:InvokeFunction")
    | allow("<Terminate.Arn>", "lambda:InvokeFunction")
    | allow("<CheckRecovery.Arn>", "lambda:InvokeFunction")
    | allow("<Sweep.Arn>", "lambda:InvokeFunction")
    | allow("<Inject.Arn>", "lambda:InvokeFunction")
    | allow("<WorkBucket.Arn>/ticks/*", "s3:GetObject")
    | allow("<ChaosMachine>", "states:StartExecution")
    | allow(
        f"arn:<AWS::Partition>:states:{ACCOUNT}:execution:<ChaosMachine.Name>:*",
        "states:DescribeExecution",
        "states:StopExecution",
    )
    | allow(
        f"arn:<AWS::Partition>:states:{ACCOUNT}:execution:<ChaosMachine.Name>/*",
        "states:DescribeExecution",
        "states:StopExecution",
    )
    | MACHINE_GRANTS,
    "OnDemandRole": allow("<Terminate.Arn>", "lambda:InvokeFunction")
    | allow("<CheckRecovery.Arn>", "lambda:InvokeFunction")
    | allow("<Inject.Arn>", "lambda:InvokeFunction")
    | MACHINE_GRANTS,
    "SchedulesRole": allow("<ChaosMachine>", "states:StartExecution")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "WatchdogScheduleRole": allow("<Watchdog.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "SweepScheduleRole": allow("<Sweep.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "FaultsScheduleRole": allow("<Inject.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "RisksScheduleRole": allow("<Risks.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "RedriveScheduleRole": allow("<Notify.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
}
