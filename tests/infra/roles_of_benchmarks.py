"""What the roles of benchmarks and standing fleets may do, and the API's for them."""

from __future__ import annotations

from tests.infra.statements import (
    ACCOUNT,
    ARTIFACTS,
    CELLS,
    CREATED,
    GROUPS,
    LISTS,
    MACHINE_GRANTS,
    OBJECTS,
    ONE_RUN,
    OURS,
    RUN_NAMES,
    RUNS,
    allow,
    ec2,
    executions,
    function_grants,
    only,
    protects,
    record,
    state,
)

PLACEMENT_GROUPS = ec2("placement-group", RUN_NAMES)
CREATED_BY_TROOP = ("LaunchTemplate", "PlacementGroup", "SecurityGroup")

SCHEDULES = "<Results.Arn>/schedules/*"
ADMITS = (
    record("ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem")
    | allow(RUNS, "s3:PutObject")
    | allow("*", *(f"ec2:Describe{kind}" for kind in ("Images", "InstanceTypeOfferings", "InstanceTypes", "Subnets")))
    | allow(
        "*",
        "ec2:DescribeSpotPriceHistory",
        "pricing:GetProducts",
        "servicequotas:GetAWSDefaultServiceQuota",
        "servicequotas:GetServiceQuota",
    )
    | allow("<BenchmarksBenchmarkMachine>", "states:StartExecution")
)

QUEUES = tuple(f"arn:<AWS::Partition>:sqs:{ACCOUNT}:troop-????????-??????-????????-c???{end}" for end in ("", "-dead"))
TO_SQS = {"ec2:VpceServiceName": [f"{before}com.amazonaws.<AWS::Region>.sqs" for before in ("", "cn.")]}


def on_queues(*actions: str) -> set[tuple[str, ...]]:
    return {grant for queue in QUEUES for grant in allow(queue, *actions)}


FINDS_RESOURCES = allow(
    "*",
    "autoscaling:DescribeAutoScalingGroups",
    "sqs:ListQueues",
    *(
        f"ec2:Describe{kind}"
        for kind in ("Instances", "LaunchTemplates", "PlacementGroups", "SecurityGroups", "Volumes", "VpcEndpoints")
    ),
) | on_queues("sqs:ListQueueTags")
IN_NETWORK = OURS | {"ArnEquals": {"ec2:Vpc": ec2("vpc", "<BenchmarksNetworkVpc>")}}
REMOVES = (
    record("GetItem", "Query", "UpdateItem")
    | FINDS_RESOURCES
    | on_queues("sqs:DeleteQueue")
    | only(
        OURS | {"StringEquals": {"aws:ResourceTag/troop:deployment": {"Ref": "AWS::StackName"}, **TO_SQS}},
        ec2("vpc-endpoint"),
        "ec2:DeleteVpcEndpoints",
    )
    | only(OURS, GROUPS, "autoscaling:DeleteAutoScalingGroup")
    | only(OURS, PLACEMENT_GROUPS, "ec2:DeletePlacementGroup")
    | only(OURS, ec2("launch-template"), "ec2:DeleteLaunchTemplate")
    | only(IN_NETWORK, ec2("security-group"), "ec2:DeleteSecurityGroup")
    | only(OURS | {"Bool": {"ec2:Encrypted": "true"}}, ec2("volume"), "ec2:DeleteVolume")
    | only(
        OURS | {"ArnEquals": {"ec2:InstanceProfile": "<BenchmarksNodesProfile.Arn>"}},
        ec2("instance"),
        "ec2:TerminateInstances",
    )
    | protects(
        "autoscaling:DeleteAutoScalingGroup",
        "ec2:DeleteLaunchTemplate",
        "ec2:DeletePlacementGroup",
        "ec2:DeleteSecurityGroup",
        "ec2:DeleteVolume",
        "ec2:DeleteVpcEndpoints",
        "ec2:TerminateInstances",
    )
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


def finds(*names: str) -> set[tuple[str, ...]]:
    prefixes = [f"{ONE_RUN.removeprefix('<Results.Arn>/')}/{name}" for name in names]
    return only({"StringLike": {"s3:prefix": prefixes}}, "<Results.Arn>", "s3:ListBucket")


LEADS = (
    *("barriers/*", "points/*", "output/boot/*", "replaced/*", "unit-faults/*"),
    *("choices.json", "doubts.json", "report-part.json", "results.json", "roster.json"),
)
"""What leads a cell, below its folder."""

REGISTRATIONS = allow(f"{ONE_RUN}/c001/nodes/*", "s3:GetObject") | finds("c001/nodes/*")


def watches(*names: str) -> set[tuple[str, ...]]:
    """Reads what is needed to merge running summaries, and the merge, and lists those objects, too."""
    return (
        {
            g
            for cell in CELLS
            for name in ("live/*", "definition.json", "roster.json")
            for g in allow(f"{cell}/{name}", "s3:GetObject")
        }
        | allow(f"{ONE_RUN}/live.json", "s3:GetObject")
        | finds("c???/live/*", "c???-?/live/*", "c???/roster.json", "c???-?/roster.json", "live.json", *names)
    )


INSIDE = {"StringEquals": {"aws:SourceVpc": "<BenchmarksNetworkVpc>"}}
WRITTEN = (
    *("nodes/${aws:userid}.json", "phases/*/${aws:userid}.json"),
    *("output/*/${aws:userid}.log.gz", "interruptions/${aws:userid}.json", "live/${aws:userid}.json"),
    *("faults/*/${aws:userid}.json", "reports/${aws:userid}.json"),
)
"""What nodes write in a cell: each under its own session's id."""

CHANGES = (
    *("autoscaling:PutScheduledUpdateGroupAction", "autoscaling:SetInstanceHealth"),
    *("autoscaling:SetInstanceProtection", "autoscaling:UpdateAutoScalingGroup"),
)
"""What keeps a fleet at its size and healthy."""
ONLY_EXPIRY = {"ForAllValues:StringEquals": {"aws:TagKeys": ["troop:expires-at"]}}

LINKED = {
    "autoscaling.amazonaws.com": "AWSServiceRoleForAutoScaling",
    "spot.amazonaws.com": "AWSServiceRoleForEC2Spot",
}
"""The services that launch, and the role that each has in an account."""

BENCHMARK_ROLES: dict[str, set[tuple[str, ...]]] = {
    "LaunchRole": function_grants("Launch")
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
        IN_NETWORK,
        ec2("security-group"),
        "ec2:AuthorizeSecurityGroupEgress",
        "ec2:AuthorizeSecurityGroupIngress",
        "ec2:RevokeSecurityGroupEgress",
    )
    | only(OURS, ec2("security-group"), "ec2:RunInstances")
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
    | protects("autoscaling:PutScheduledUpdateGroupAction", "autoscaling:UpdateAutoScalingGroup")
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
                | {"ec2:CreateAction": [f"Create{kind}" for kind in CREATED_BY_TROOP] + ["RunInstances"]}
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
    "CellRole": function_grants("Cell")
    | record("ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem")
    | allow(RUNS, "s3:GetObject")
    | LISTS
    | allow(f"{ONE_RUN}/cells.json", "s3:PutObject")
    | {grant for cell in CELLS for name in LEADS for grant in allow(f"{cell}/{name}", "s3:PutObject")}
    | allow(
        "*",
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeScalingActivities",
        "ec2:DescribeInstances",
    )
    | protects("autoscaling:TerminateInstanceInAutoScalingGroup")
    | only(OURS, GROUPS, "autoscaling:SuspendProcesses", "autoscaling:TerminateInstanceInAutoScalingGroup")
    | only(OURS, ec2("instance"), "ec2:GetConsoleOutput")
    | allow("<Request.Arn>", "lambda:InvokeFunction"),
    "FleetRole": function_grants("Fleet")
    | record("ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem")
    | REGISTRATIONS
    | FINDS_RESOURCES
    | only(OURS, GROUPS, *CHANGES)
    | protects(*CHANGES)
    | only(OURS | ONLY_EXPIRY, GROUPS, "autoscaling:CreateOrUpdateTags")
    | allow(f"{ONE_RUN}/c001/roster.json", "s3:GetObject", "s3:PutObject")
    | allow(f"{ONE_RUN}/c001/orders.json", "s3:GetObject", "s3:PutObject")
    | allow(f"{ONE_RUN}/c001/reports/*", "s3:GetObject")
    | finds("c001/roster.json", "c001/reports/*", "c001/orders.json")
    | allow("<AlarmsActNow>", "sns:Publish")
    | allow("<AlarmsWarning>", "sns:Publish"),
    "TeardownRole": function_grants("Teardown") | REMOVES,
    "ReportRole": function_grants("Report")
    | record("GetItem", "PutItem", "Query")
    | allow("<Runs.Arn>/index/by-name", "dynamodb:Query")
    | allow("<State.Arn>", "dynamodb:GetItem")
    | state("change-point#*")
    | allow(RUNS, "s3:GetObject")
    | LISTS
    | {g for name in ("report.html", "report.json", "record.json") for g in allow(f"{ONE_RUN}/{name}", "s3:PutObject")}
    | allow("<ReportsGivenUp.Arn>", "sqs:SendMessage"),
    "ReaperRole": function_grants("Reaper")
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
    | MACHINE_GRANTS,
    "BenchmarksFleetRole": allow("<Launch.Arn>", "lambda:InvokeFunction")
    | allow("<Fleet.Arn>", "lambda:InvokeFunction")
    | allow("<BenchmarksFleetMachine>", "states:StartExecution")
    | TEARS_DOWN
    | MACHINE_GRANTS,
    "BenchmarksBenchmarkRole": allow("<Launch.Arn>", "lambda:InvokeFunction")
    | allow("<Cell.Arn>", "lambda:InvokeFunction")
    | allow(RUNS, "s3:GetObject")
    | TEARS_DOWN
    | allow("<BenchmarksBenchmarkMachine>", "states:StartExecution")
    | allow(executions("Benchmark"), "states:DescribeExecution", "states:StopExecution")
    | allow(executions("Benchmark", "/*"), "states:DescribeExecution", "states:StopExecution")
    | MACHINE_GRANTS,
    "StartRole": function_grants("Start")
    | ADMITS
    | allow("<State.Arn>", "dynamodb:BatchGetItem", "dynamodb:GetItem")
    | state("bench-schedule#*", "scheduled-cost#*", "scheduled-start#*", "run-key#*", "price#*")
    | allow(ARTIFACTS, "s3:GetObject")
    | allow(SCHEDULES, "s3:GetObject")
    | allow("<Request.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "BenchmarksScheduledRole": allow("<Start.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
    "ReaperScheduleRole": allow("<Reaper.Arn>", "lambda:InvokeFunction")
    | allow("<SchedulesUndelivered.Arn>", "sqs:SendMessage"),
}

API_OF_BENCHMARKS = (
    ADMITS
    | allow("<Runs.Arn>/index/by-time", "dynamodb:Query")
    | allow("<Runs.Arn>/index/by-name", "dynamodb:Query")
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
    | watches("report.*", "definition.json", "c001/nodes/*")
    | allow("*", "autoscaling:DescribeScalingActivities")
    | allow("<Fleet.Arn>", "lambda:InvokeFunction")
    | allow("<Report.Arn>", "lambda:InvokeFunction")
    | allow("<Request.Arn>", "lambda:InvokeFunction")
    | {g for name in ("report.*", "c001/nodes/*") for g in allow(f"{ONE_RUN}/{name}", "s3:GetObject")}
)
