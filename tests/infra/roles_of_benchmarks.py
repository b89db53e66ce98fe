"""What the roles of benchmarks and standing fleets may do, and the API's for them."""

from __future__ import annotations

from tests.infra.statements import (
    ACCOUNT,
    ARTIFACTS,
    CREATED,
    GROUPS,
    LISTS,
    OBJECTS,
    OF_MACHINES,
    OF_RUNS,
    OURS,
    RUNS,
    allow,
    ec2,
    executions,
    of_function,
    only,
    record,
)

PLACEMENT_GROUPS = ec2("placement-group", OF_RUNS)
CREATED_BY_TROOP = ("LaunchTemplate", "PlacementGroup", "SecurityGroup")

SCHEDULES = "<Results.Arn>/schedules/*"
ADMITS = (
    record("ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem")
    | allow(RUNS, "s3:PutObject")
    | allow("*", *(f"ec2:Describe{what}" for what in ("Images", "InstanceTypeOfferings", "InstanceTypes", "Subnets")))
    | allow(
        "*",
        "ec2:DescribeSpotPriceHistory",
        "pricing:GetProducts",
        "servicequotas:GetAWSDefaultServiceQuota",
        "servicequotas:GetServiceQuota",
    )
    | allow("<BenchmarksBenchmarkMachine>", "states:StartExecution")
)

REMOVES = (
    record("GetItem", "Query", "UpdateItem")
    | allow(
        "*",
        "autoscaling:DescribeAutoScalingGroups",
        *(
            f"ec2:Describe{what}"
            for what in ("Instances", "LaunchTemplates", "PlacementGroups", "SecurityGroups", "Volumes")
        ),
    )
    | only(OURS, GROUPS, "autoscaling:DeleteAutoScalingGroup")
    | only(OURS, PLACEMENT_GROUPS, "ec2:DeletePlacementGroup")
    | only(OURS, ec2("launch-template"), "ec2:DeleteLaunchTemplate")
    | only(
        OURS | {"ArnEquals": {"ec2:Vpc": ec2("vpc", "<BenchmarksNetworkVpc>")}},
        ec2("security-group"),
        "ec2:DeleteSecurityGroup",
    )
    | only(OURS | {"Bool": {"ec2:Encrypted": "true"}}, ec2("volume"), "ec2:DeleteVolume")
    | only(
        OURS | {"ArnEquals": {"ec2:InstanceProfile": "<BenchmarksNodesProfile.Arn>"}},
        ec2("instance"),
        "ec2:TerminateInstances",
    )
    | {
        ("Deny", action, "*", repr({"Null": {"aws:ResourceTag/troop:protected": "false"}}))
        for action in (
            "autoscaling:DeleteAutoScalingGroup",
            "ec2:DeleteLaunchTemplate",
            "ec2:DeletePlacementGroup",
            "ec2:DeleteSecurityGroup",
            "ec2:DeleteVolume",
            "ec2:TerminateInstances",
        )
    }
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
WATCHES = (
    allow(f"{RUNS}/live/*", "s3:GetObject")
    | allow(f"{RUNS}/c*/definition.json", "s3:GetObject")
    | allow(f"{RUNS}/live.json", "s3:GetObject", "s3:PutObject")
    | only({"StringLike": {"s3:prefix": ["runs/*/live/*", "runs/*/live.json"]}}, "<Results.Arn>", "s3:ListBucket")
)
INSIDE = {"StringEquals": {"aws:SourceVpc": "<BenchmarksNetworkVpc>"}}
WRITTEN = (
    *("nodes/${aws:userid}.json", "phases/*/${aws:userid}.json"),
    *("output/*/${aws:userid}.log.gz", "interruptions/${aws:userid}.json", "live/${aws:userid}.json"),
)
"""What nodes write in a cell: each under its own session's id."""

LINKED = {
    "autoscaling.amazonaws.com": "AWSServiceRoleForAutoScaling",
    "spot.amazonaws.com": "AWSServiceRoleForEC2Spot",
}
"""The services that launch, and the role that each has in an account."""

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
        "ec2:DescribePlacementGroups",
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
    )
    | only(CREATED, PLACEMENT_GROUPS, "ec2:CreatePlacementGroup")
    | only(OURS, PLACEMENT_GROUPS, "ec2:RunInstances")
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
        for kind in (
            *(ec2(kind) for kind in ("instance", "launch-template", "network-interface", "security-group", "volume")),
            PLACEMENT_GROUPS,
        )
        for grant in only(
            {
                "StringEquals": CREATED["StringEquals"]
                | {"ec2:CreateAction": [f"Create{what}" for what in CREATED_BY_TROOP] + ["RunInstances"]}
            },
            kind,
            "ec2:CreateTags",
        )
    }
    | only(
        {"StringEquals": {"iam:PassedToService": {"Fn::Join": ["", ["ec2.", {"Ref": "AWS::URLSuffix"}]]}}},
        "<BenchmarksNodesRole.Arn>",
        "iam:PassRole",
    )
    | {
        grant
        for service, name in LINKED.items()
        for role in [f"arn:<AWS::Partition>:iam::<AWS::AccountId>:role/aws-service-role/{service}/{name}"]
        for grant in (
            *only({"StringEquals": {"iam:AWSServiceName": service}}, role, "iam:CreateServiceLinkedRole"),
            *allow(role, "iam:GetRole"),
        )
    },
    "CellRole": of_function("Cell")
    | record("ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem")
    | OBJECTS
    | allow(
        "*",
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeScalingActivities",
        "ec2:DescribeInstances",
    )
    | only(OURS, GROUPS, "autoscaling:SuspendProcesses", "autoscaling:TerminateInstanceInAutoScalingGroup")
    | only(OURS, ec2("instance"), "ec2:GetConsoleOutput"),
    "FleetRole": of_function("Fleet")
    | record("ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem")
    | REGISTRATIONS
    | allow(
        "*",
        "autoscaling:DescribeAutoScalingGroups",
        "ec2:DescribeInstances",
        "ec2:DescribeLaunchTemplates",
        "ec2:DescribePlacementGroups",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeVolumes",
    )
    | only(OURS, GROUPS, "autoscaling:UpdateAutoScalingGroup")
    | allow(f"{RUNS}/roster.json", "s3:GetObject", "s3:PutObject")
    | only({"StringLike": {"s3:prefix": ["runs/*/roster.json"]}}, "<Results.Arn>", "s3:ListBucket"),
    "TeardownRole": of_function("Teardown") | REMOVES,
    "ReportRole": of_function("Report")
    | record("GetItem", "Query")
    | allow(RUNS, "s3:GetObject")
    | LISTS
    | {g for name in ("report.html", "report.json", "record.json") for g in allow(f"{RUNS}/{name}", "s3:PutObject")}
    | allow("<ReportsGivenUp.Arn>", "sqs:SendMessage"),
    "ReaperRole": of_function("Reaper")
    | REMOVES
    | allow("<State.Arn>", "dynamodb:GetItem")
    | allow("<Runs.Arn>/index/by-open", "dynamodb:Query")
    | allow(executions("Benchmark"), "states:DescribeExecution", "states:StopExecution")
    | allow(executions("Fleet"), "states:DescribeExecution", "states:StopExecution")
    | allow("<BenchmarksTeardownMachine>", "states:StartExecution", "states:ListExecutions"),
    "BenchmarksNodesRole": only(INSIDE, RUNS, "s3:GetObject")
    | only(INSIDE, ARTIFACTS, "s3:GetObject")
    | {g for part in WRITTEN for g in only(INSIDE, f"{RUNS}/{part}", "s3:PutObject")},
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
    "StartRole": of_function("Start")
    | ADMITS
    | allow("<State.Arn>", "dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem")
    | allow(ARTIFACTS, "s3:GetObject")
    | allow(SCHEDULES, "s3:GetObject")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "BenchmarksScheduledRole": allow("<Start.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "ReaperScheduleRole": allow("<Reaper.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
}

API_OF_BENCHMARKS = (
    ADMITS
    | allow("<Runs.Arn>/index/by-time", "dynamodb:Query")
    | allow(ARTIFACTS, "s3:GetObject", "s3:PutObject")
    | allow(SCHEDULES, "s3:DeleteObject", "s3:PutObject")
    | allow(
        f"arn:<AWS::Partition>:scheduler:{ACCOUNT}:schedule/<BenchmarksScheduledGroup>/*",
        "scheduler:CreateSchedule",
        "scheduler:DeleteSchedule",
    )
    | only(
        {"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}},
        "<BenchmarksScheduledRole.Arn>",
        "iam:PassRole",
    )
    | allow("<BenchmarksTeardownMachine>", "states:StartExecution")
    | allow(executions("Benchmark"), "states:StopExecution")
    | allow("<BenchmarksFleetMachine>", "states:StartExecution")
    | allow(executions("Fleet"), "states:StopExecution")
    | REGISTRATIONS
    | WATCHES
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
