"""What every role may do, word for word: one action more or less fails here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.infra.cfn import of_type, permissions, text

Template = Mapping[str, Any]

ACCOUNT = "<AWS::Region>:<AWS::AccountId>"
LOOK = {
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeInstanceRefreshes",
    "cloudwatch:DescribeAlarms",
    "ec2:DescribeInstanceAttribute",
    "ec2:DescribeInstances",
}
TRACE = {"xray:PutTelemetryRecords", "xray:PutTraceSegments"}
TABLES = ("GroupTags", "Events", "State", "Decisions", "Changes", "Runs")
SETTLES = ("sqs:DeleteMessage", "sqs:ReceiveMessage")
TERMINATE = ("autoscaling:TerminateInstanceInAutoScalingGroup", "ec2:TerminateInstances")


def allow(resource: str, *actions: str) -> set[tuple[str, ...]]:
    return {("Allow", action, resource) for action in actions}


def of_function(name: str) -> set[tuple[str, ...]]:
    return allow(f"<{name}Logs.Arn>", "logs:CreateLogStream", "logs:PutLogEvents") | allow("*", *TRACE)


WATCH = (
    allow(
        "*",
        "autoscaling:DescribeAutoScalingGroups",
        "elasticloadbalancing:DescribeInstanceHealth",
        "elasticloadbalancing:DescribeTargetHealth",
    )
    | allow(f"arn:<AWS::Partition>:vpc-lattice:{ACCOUNT}:targetgroup/*", "vpc-lattice:ListTargets")
    | allow("<Events.Arn>", "dynamodb:GetItem", "dynamodb:UpdateItem")
    | allow("<State.Arn>", "dynamodb:UpdateItem")
)

HEALTH = (
    allow("*", "scheduler:ListSchedules", "cloudwatch:GetMetricStatistics")
    | allow("<ChaosMachine>", "states:ListExecutions")
    | allow("<SchedulesUndelivered.Arn>", "sqs:GetQueueAttributes")
    | {grant for name in TABLES for grant in allow(f"<{name}.Arn>", "dynamodb:DescribeTable")}
    | allow("<State.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem")
)

OF_MACHINES = allow("*", *TRACE, "xray:GetSamplingRules", "xray:GetSamplingTargets") | allow(
    "*",
    "logs:CreateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:DescribeLogGroups",
    "logs:DescribeResourcePolicies",
    "logs:GetLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:UpdateLogDelivery",
)

CREATED = {"StringEquals": {"aws:RequestTag/troop:deployment": {"Ref": "AWS::StackName"}}}
OURS = {
    "StringEquals": {"aws:ResourceTag/troop:deployment": {"Ref": "AWS::StackName"}},
    "Null": {"aws:ResourceTag/troop:run": "false"},
}
GROUPS = f"arn:<AWS::Partition>:autoscaling:{ACCOUNT}:autoScalingGroup:*:autoScalingGroupName/*"
RUNS = "<Results.Arn>/runs/*"
ARTIFACTS = "<Results.Arn>/artifacts/*"


def only(condition: Mapping[str, Any], resource: str, *actions: str) -> set[tuple[str, ...]]:
    return {("Allow", action, resource, repr(condition)) for action in actions}


def record(*actions: str) -> set[tuple[str, ...]]:
    return allow("<Runs.Arn>", *(f"dynamodb:{action}" for action in actions))


LISTS = only({"StringLike": {"s3:prefix": ["runs/*"]}}, "<Results.Arn>", "s3:ListBucket")
OBJECTS = allow(RUNS, "s3:GetObject", "s3:PutObject") | LISTS


def ec2(kind: str, name: str = "*") -> str:
    return f"arn:<AWS::Partition>:ec2:{ACCOUNT}:{kind}/{name}"


def executions(machine: str, children: str = ":*") -> str:
    return f"arn:<AWS::Partition>:states:{ACCOUNT}:execution:<Benchmarks{machine}Machine.Name>{children}"


REMOVES = (
    record("GetItem", "Query", "UpdateItem")
    | allow(
        "*",
        "autoscaling:DescribeAutoScalingGroups",
        *(f"ec2:Describe{what}" for what in ("Instances", "LaunchTemplates", "SecurityGroups", "Volumes")),
    )
    | only(OURS, GROUPS, "autoscaling:DeleteAutoScalingGroup")
    | only(OURS, ec2("launch-template"), "ec2:DeleteLaunchTemplate")
    | only(OURS, ec2("security-group"), "ec2:DeleteSecurityGroup")
    | only(OURS, ec2("volume"), "ec2:DeleteVolume")
    | only(OURS, ec2("instance"), "ec2:TerminateInstances")
)

TEARS_DOWN = (
    allow("<BenchmarksTeardownMachine>", "states:StartExecution")
    | allow(executions("Teardown"), "states:DescribeExecution", "states:StopExecution")
    | allow(
        f"arn:<AWS::Partition>:events:{ACCOUNT}:rule/StepFunctionsGetEventsForStepFunctionsExecutionRule",
        "events:DescribeRule",
        "events:PutRule",
        "events:PutTargets",
    )
)

REGISTRATIONS = allow(f"{RUNS}/nodes/*", "s3:GetObject") | only(
    {"StringLike": {"s3:prefix": ["runs/*/nodes/*"]}}, "<Results.Arn>", "s3:ListBucket"
)
WRITTEN = ("nodes", "phases", "output", "interruptions")
"""Below which prefixes of a cell nodes write."""

OF_BENCHMARKS: dict[str, set[tuple[str, ...]]] = {
    "LaunchRole": of_function("Launch")
    | record("ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem")
    | OBJECTS
    | allow(
        "*",
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeScalingActivities",
        "ec2:DescribeImages",
        "ec2:DescribeInstanceTypeOfferings",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeLaunchTemplates",
        "ec2:DescribeManagedPrefixLists",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
    )
    | allow(
        "arn:<AWS::Partition>:ssm:<AWS::Region>::parameter/aws/service/ami-amazon-linux-latest/*", "ssm:GetParameter"
    )
    | allow(ec2("vpc", "<BenchmarksNetworkVpc>"), "ec2:CreateSecurityGroup")
    | only(CREATED, ec2("security-group"), "ec2:CreateSecurityGroup")
    | only(
        OURS,
        ec2("security-group"),
        "ec2:AuthorizeSecurityGroupEgress",
        "ec2:AuthorizeSecurityGroupIngress",
        "ec2:RevokeSecurityGroupEgress",
        "ec2:RunInstances",
    )
    | allow(
        ec2("security-group-rule"),
        "ec2:AuthorizeSecurityGroupEgress",
        "ec2:AuthorizeSecurityGroupIngress",
        "ec2:RevokeSecurityGroupEgress",
    )
    | only(CREATED, ec2("launch-template"), "ec2:CreateLaunchTemplate")
    | only(CREATED, GROUPS, "autoscaling:CreateAutoScalingGroup")
    | only(
        OURS,
        GROUPS,
        "autoscaling:PutScheduledUpdateGroupAction",
        "autoscaling:SuspendProcesses",
        "autoscaling:UpdateAutoScalingGroup",
    )
    | allow(ec2("spot-instances-request"), "ec2:RunInstances")
    | {g for kind in ("instance", "network-interface", "volume") for g in only(CREATED, ec2(kind), "ec2:RunInstances")}
    | only(OURS, ec2("launch-template"), "ec2:RunInstances")
    | {
        grant
        for zone in (1, 2, 3)
        for grant in allow(ec2("subnet", f"<BenchmarksNetworkVpcNodesSubnet{zone}Subnet>"), "ec2:RunInstances")
    }
    | only(
        {"StringEquals": {"ec2:Owner": "amazon"}}, "arn:<AWS::Partition>:ec2:<AWS::Region>::image/*", "ec2:RunInstances"
    )
    | {
        grant
        for kind in ("instance", "launch-template", "network-interface", "security-group", "volume")
        for grant in only(
            {
                "StringEquals": CREATED["StringEquals"]
                | {"ec2:CreateAction": ["CreateLaunchTemplate", "CreateSecurityGroup", "RunInstances"]}
            },
            ec2(kind),
            "ec2:CreateTags",
        )
    }
    | only(
        {"StringEquals": {"iam:PassedToService": {"Fn::Join": ["", ["ec2.", {"Ref": "AWS::URLSuffix"}]]}}},
        "<BenchmarksNodesRole.Arn>",
        "iam:PassRole",
    )
    | only(
        {"StringEquals": {"iam:AWSServiceName": "autoscaling.amazonaws.com"}},
        "arn:<AWS::Partition>:iam::<AWS::AccountId>:role/aws-service-role/autoscaling.amazonaws.com/"
        "AWSServiceRoleForAutoScaling",
        "iam:CreateServiceLinkedRole",
    ),
    "CellRole": of_function("Cell")
    | record("ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem")
    | OBJECTS
    | allow(
        "*",
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeScalingActivities",
        "ec2:DescribeInstances",
    )
    | only(OURS, GROUPS, "autoscaling:SuspendProcesses")
    | only(OURS, ec2("instance"), "ec2:GetConsoleOutput"),
    "FleetRole": of_function("Fleet")
    | record("ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem")
    | REGISTRATIONS
    | allow(
        "*",
        "autoscaling:DescribeAutoScalingGroups",
        "ec2:DescribeInstances",
        "ec2:DescribeLaunchTemplates",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeVolumes",
    )
    | only(OURS, GROUPS, "autoscaling:UpdateAutoScalingGroup"),
    "TeardownRole": of_function("Teardown") | REMOVES,
    "ReportRole": of_function("Report")
    | record("GetItem", "Query")
    | allow(RUNS, "s3:GetObject")
    | LISTS
    | {g for name in ("report.html", "report.json", "record.json") for g in allow(f"{RUNS}/{name}", "s3:PutObject")}
    | allow("<ReportsGivenUp.Arn>", "sqs:SendMessage"),
    "ReaperRole": of_function("Reaper")
    | REMOVES
    | allow("<Runs.Arn>/index/by-open", "dynamodb:Query")
    | allow(executions("Benchmark"), "states:DescribeExecution", "states:StopExecution")
    | allow(executions("Fleet"), "states:DescribeExecution", "states:StopExecution")
    | allow("<BenchmarksTeardownMachine>", "states:StartExecution", "states:ListExecutions"),
    "BenchmarksNodesRole": allow(RUNS, "s3:GetObject")
    | allow(ARTIFACTS, "s3:GetObject")
    | {g for part in WRITTEN for g in allow(f"{RUNS}/{part}/*", "s3:PutObject")},
    "BenchmarksTeardownRole": allow("<Teardown.Arn>", "lambda:InvokeFunction")
    | allow("<Report.Arn>", "lambda:InvokeFunction")
    | OF_MACHINES,
    "BenchmarksFleetRole": allow("<Launch.Arn>", "lambda:InvokeFunction")
    | allow("<Fleet.Arn>", "lambda:InvokeFunction")
    | TEARS_DOWN
    | OF_MACHINES,
    "BenchmarksBenchmarkRole": allow("<Launch.Arn>", "lambda:InvokeFunction")
    | allow("<Cell.Arn>", "lambda:InvokeFunction")
    | allow(RUNS, "s3:GetObject")
    | TEARS_DOWN
    | allow("<BenchmarksBenchmarkMachine>", "states:StartExecution")
    | allow(executions("Benchmark"), "states:DescribeExecution", "states:StopExecution")
    | allow(executions("Benchmark", "/*"), "states:DescribeExecution", "states:StopExecution")
    | OF_MACHINES,
    "ReaperScheduleRole": allow("<Reaper.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
}

API_OF_BENCHMARKS = (
    record("ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem")
    | allow("<Runs.Arn>/index/by-time", "dynamodb:Query")
    | allow(RUNS, "s3:PutObject")
    | allow(ARTIFACTS, "s3:GetObject", "s3:PutObject")
    | allow("*", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes", "ec2:DescribeSubnets")
    | allow("*", "ec2:DescribeSpotPriceHistory", "pricing:GetProducts", "servicequotas:GetServiceQuota")
    | allow("<BenchmarksBenchmarkMachine>", "states:StartExecution")
    | allow("<BenchmarksTeardownMachine>", "states:StartExecution")
    | allow(executions("Benchmark"), "states:StopExecution")
    | allow("<BenchmarksFleetMachine>", "states:StartExecution")
    | allow(executions("Fleet"), "states:StopExecution")
    | REGISTRATIONS
    | allow("*", "autoscaling:DescribeScalingActivities")
    | allow("<Fleet.Arn>", "lambda:InvokeFunction")
    | allow("<Report.Arn>", "lambda:InvokeFunction")
    | {g for name in ("report.html", "report.json") for g in allow(f"{RUNS}/{name}", "s3:GetObject")}
    | only(
        {"StringLike": {"s3:prefix": [f"runs/*/{name}" for name in ("report.html", "report.json", "definition.json")]}},
        "<Results.Arn>",
        "s3:ListBucket",
    )
)

WIDGETS = (
    of_function("Widgets")
    | allow("*", "autoscaling:DescribeAutoScalingGroups")
    | allow("<Events.Arn>/index/by-time", "dynamodb:Query")
    | allow("<Events.Arn>/index/by-unit", "dynamodb:Query")
    | allow("<Decisions.Arn>", "dynamodb:Query")
    | allow("<Decisions.Arn>/index/by-day", "dynamodb:Query")
    | allow("<Changes.Arn>", "dynamodb:Query")
    | allow("<GroupTags.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem")
    | allow("<State.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem")
)
"""They read, and nothing else: whoever sees a dashboard calls them."""

ROLES: dict[str, set[tuple[str, ...]]] = {
    **OF_BENCHMARKS,
    "WidgetsRole": WIDGETS | record("Query") | allow("<Runs.Arn>/index/by-time", "dynamodb:Query"),
    "DecideRole": of_function("Decide")
    | allow("*", *LOOK)
    | allow("<GroupTags.Arn>", "dynamodb:Scan")
    | allow("<State.Arn>", "dynamodb:Scan", "dynamodb:UpdateItem")
    | allow("<Decisions.Arn>", "dynamodb:BatchWriteItem")
    | allow("<Events.Arn>", "dynamodb:PutItem")
    | allow("<WorkBucket.Arn>/ticks/*", "s3:PutObject")
    | allow("<Salt>", "secretsmanager:GetSecretValue"),
    "TerminateRole": of_function("Terminate")
    | allow("*", *LOOK, "autoscaling:DescribeAutoScalingInstances")
    | allow("<Salt>", "secretsmanager:GetSecretValue")
    | allow("<GroupTags.Arn>", "dynamodb:GetItem", "dynamodb:ConditionCheckItem")
    | allow("<State.Arn>", "dynamodb:GetItem", "dynamodb:ConditionCheckItem", "dynamodb:UpdateItem")
    | allow("<Events.Arn>", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
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
    "RecoveryRole": of_function("Recovery") | WATCH,
    "SweepRole": of_function("Sweep")
    | WATCH
    | allow("*", "autoscaling:DescribeAutoScalingInstances", "ec2:DescribeInstances")
    | allow("<Events.Arn>/index/by-open", "dynamodb:Query"),
    "NotifyRole": of_function("Notify")
    | {
        grant
        for name in ("Events", "Changes", "GroupTags", "State")
        for grant in allow(
            f"<{name}.StreamArn>", "dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"
        )
    }
    | allow("*", "dynamodb:ListStreams")
    | allow("<Events.Arn>/index/by-unit", "dynamodb:Query")
    | allow("<Bus.Arn>", "events:PutEvents")
    | allow("<NotificationsNews>", "sns:Publish")
    | allow("<NotificationsUndelivered.Arn>", "sqs:SendMessage", *SETTLES),
    "ApiRole": of_function("Api")
    | allow("<Events.Arn>", "dynamodb:GetItem", "dynamodb:PutItem")
    | allow("<Events.Arn>/index/by-time", "dynamodb:Query")
    | allow("<Events.Arn>/index/by-unit", "dynamodb:Query")
    | allow("*", *LOOK)
    | allow("<GroupTags.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Scan", "dynamodb:UpdateItem")
    | allow("<State.Arn>", "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:UpdateItem")
    | {grant for name in ("GroupTags", "State") for grant in allow(f"<{name}.Arn>", "dynamodb:ConditionCheckItem")}
    | allow("<OnDemandMachine>", "states:StartExecution")
    | allow("<Decisions.Arn>", "dynamodb:Query")
    | allow("<Decisions.Arn>/index/by-day", "dynamodb:Query")
    | allow("<Changes.Arn>", "dynamodb:Query", "dynamodb:PutItem")
    | API_OF_BENCHMARKS
    | HEALTH,
    "WatchdogRole": of_function("Watchdog") | HEALTH | allow("<SchedulesUndelivered.Arn>", *SETTLES),
    "ChaosRole": allow("<Decide.Arn>", "lambda:InvokeFunction")
    | allow("<Terminate.Arn>", "lambda:InvokeFunction")
    | allow("<Recovery.Arn>", "lambda:InvokeFunction")
    | allow("<Sweep.Arn>", "lambda:InvokeFunction")
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
    | OF_MACHINES,
    "OnDemandRole": allow("<Terminate.Arn>", "lambda:InvokeFunction")
    | allow("<Recovery.Arn>", "lambda:InvokeFunction")
    | OF_MACHINES,
    "SchedulesRole": allow("<ChaosMachine>", "states:StartExecution")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "WatchdogScheduleRole": allow("<Watchdog.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "SweepScheduleRole": allow("<Sweep.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "RedriveScheduleRole": allow("<Notify.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
}


def test_there_are_no_other_roles(template: Template) -> None:
    assert set(of_type(template, "AWS::IAM::Role")) == set(ROLES)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_exactly_this(template: Template, role: str) -> None:
    assert permissions(template, role) == ROLES[role]


def test_no_action_is_a_pattern(template: Template) -> None:
    for role in of_type(template, "AWS::IAM::Role"):
        assert not [grant for grant in permissions(template, role) if "*" in grant[1]], role


def test_only_api_gateways_own_policy_is_a_managed_one(template: Template, blue: Template) -> None:
    policy = "arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs"
    assert _managed(template) == {}
    assert _managed(blue) == {"ApiRestCloudWatchRole": [policy]}


def _managed(template: Template) -> dict[str, object]:
    return {
        name: text(role["Properties"]["ManagedPolicyArns"])
        for name, role in of_type(template, "AWS::IAM::Role").items()
        if "ManagedPolicyArns" in role["Properties"]
    }


def test_each_role_trusts_its_own_service_only(template: Template) -> None:
    trusted = {}
    for name, role in of_type(template, "AWS::IAM::Role").items():
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Action"] == "sts:AssumeRole"
        trusted[name] = text(statement["Principal"]["Service"])
    of_others = {
        "ChaosRole": "states.amazonaws.com",
        "OnDemandRole": "states.amazonaws.com",
        "SchedulesRole": "scheduler.amazonaws.com",
        "WatchdogScheduleRole": "scheduler.amazonaws.com",
        "ReaperScheduleRole": "scheduler.amazonaws.com",
        "BenchmarksBenchmarkRole": "states.amazonaws.com",
        "BenchmarksTeardownRole": "states.amazonaws.com",
        "BenchmarksFleetRole": "states.amazonaws.com",
        "BenchmarksNodesRole": "ec2.<AWS::URLSuffix>",
        "SweepScheduleRole": "scheduler.amazonaws.com",
        "RedriveScheduleRole": "scheduler.amazonaws.com",
    }
    assert trusted == {name: of_others.get(name, "lambda.amazonaws.com") for name in trusted}


@pytest.mark.parametrize(
    "name",
    ["SchedulesRole", "WatchdogScheduleRole", "SweepScheduleRole", "RedriveScheduleRole", "ReaperScheduleRole"],
)
def test_only_schedules_of_this_deployment_can_use_the_schedulers_role(template: Template, name: str) -> None:
    role = of_type(template, "AWS::IAM::Role")[name]["Properties"]
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert text(statement["Condition"]) == {
        "StringEquals": {"aws:SourceAccount": "<AWS::AccountId>", "aws:SourceArn": "<SchedulesGroup.Arn>"}
    }


def test_nodes_read_the_allowed_buckets_and_write_none(blue: Template) -> None:
    buckets = [f"arn:<AWS::Partition>:s3:::{name}" for name in ("my-data", "logs.example.com")]
    allowed = {g for b in buckets for g in allow(f"{b}/*", "s3:GetObject") | allow(b, "s3:ListBucket")}
    assert permissions(blue, "BenchmarksNodesRole") == ROLES["BenchmarksNodesRole"] | allowed


def test_the_profile_gives_nodes_their_role_and_no_other(template: Template) -> None:
    (profile,) = of_type(template, "AWS::IAM::InstanceProfile").values()
    assert text(profile["Properties"]["Roles"]) == ["<BenchmarksNodesRole>"]


def test_functions_are_called_by_the_api_and_the_reaper_by_its_rule_alone(template: Template) -> None:
    permitted = [p["Properties"] for p in of_type(template, "AWS::Lambda::Permission").values()]
    assert {(p["Principal"], text(p["FunctionName"])) for p in permitted} == {
        ("apigateway.amazonaws.com", "<Api.Arn>"),
        ("events.amazonaws.com", "<Reaper.Arn>"),
    }
    by_rule = [p for p in permitted if p["Principal"] == "events.amazonaws.com"]
    assert [text(p["SourceArn"]) for p in by_rule] == ["<BenchmarksEnded.Arn>"]
    invokers = [p for p in permitted if p not in by_rule]
    assert {text(p["SourceArn"]).partition("/")[2] for p in invokers} == {
        "<ApiRestDeploymentStagev1>/GET/events",
        "<ApiRestDeploymentStagev1>/GET/events/*",
        "<ApiRestDeploymentStagev1>/GET/decisions",
        "<ApiRestDeploymentStagev1>/GET/groups",
        "<ApiRestDeploymentStagev1>/GET/groups/*",
        "<ApiRestDeploymentStagev1>/PATCH/groups/*",
        "<ApiRestDeploymentStagev1>/GET/policies",
        "<ApiRestDeploymentStagev1>/GET/switch",
        "<ApiRestDeploymentStagev1>/PATCH/switch",
        "<ApiRestDeploymentStagev1>/GET/health",
        "<ApiRestDeploymentStagev1>/POST/terminations",
        *(f"<ApiRestDeploymentStagev1>/{method}/fleets" for method in ("POST", "GET")),
        "<ApiRestDeploymentStagev1>/POST/fleets/estimate",
        *(f"<ApiRestDeploymentStagev1>/{method}/fleets/*" for method in ("GET", "PATCH", "DELETE")),
        "<ApiRestDeploymentStagev1>/POST/benchmarks",
        "<ApiRestDeploymentStagev1>/GET/benchmarks",
        "<ApiRestDeploymentStagev1>/POST/benchmarks/artifacts",
        "<ApiRestDeploymentStagev1>/POST/benchmarks/estimate",
        "<ApiRestDeploymentStagev1>/GET/benchmarks/*",
        "<ApiRestDeploymentStagev1>/DELETE/benchmarks/*",
        "<ApiRestDeploymentStagev1>/GET/benchmarks/*/report",
        "<ApiRestDeploymentStagev1>/POST/benchmarks/*/report",
        "<ApiRestDeploymentStagev1>/GET/simianarmy/api/v1/chaos",
        "<ApiRestDeploymentStagev1>/POST/simianarmy/api/v1/chaos",
    }
