"""What every role may do, word for word: one action more or less fails here."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam

from cli.prove.permission_probes import state_policy
from infra import roles_doc
from infra.hearing import HEARD
from infra.injections import COMMANDS
from infra.permissions import hits
from infra.roles import MOST_CHARACTERS, characters, make_role
from tests.infra.cfn import permissions, resources_of, text
from tests.infra.conftest import SHARED_CALENDAR
from tests.infra.roles import EARLIER_TABLES, ROLES
from tests.infra.roles_of_benchmarks import INSIDE, ONLY_EXPIRY, QUEUES, TO_SQS
from tests.infra.statements import CREATED, ONE_RUN, OURS, WRITES_ITEMS, Template, allow, ec2, only, protects, state
from tests.infra.test_api import routes
from troop import faults
from troop.bench.definition import names
from troop.bench.fleets.queue_requests import WORKER_ACTIONS
from troop.faults.fault import Permission
from troop.shared.tags import UNTOUCHABLE_TAGS


@pytest.fixture
def template(whole: Template) -> Template:
    """The default settings with what needs all roles."""
    return whole


def test_there_are_no_other_roles(template: Template) -> None:
    assert set(resources_of(template, "AWS::IAM::Role")) == set(ROLES)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_exactly_this(template: Template, role: str) -> None:
    assert permissions(template, role) == ROLES[role]


def test_ticks_search_for_earlier_tables_only_where_settings_unleash(blue: Template) -> None:
    more = permissions(blue, "DecideRole") - ROLES["DecideRole"]
    assert {grant for grant in more if grant[1] != "ssm:GetCalendarState"} == EARLIER_TABLES | allow(
        "<State.Arn>", "dynamodb:GetItem"
    )


def test_only_the_weekly_letter_needs_the_events_of_all_units_and_the_risks(
    synthesised: Callable[..., Template],
) -> None:
    more = permissions(synthesised(weekly_letter=True), "NotifyRole") ^ ROLES["NotifyRole"]
    assert more == allow("<Events.Arn>/index/by-time", "dynamodb:Query") | allow("<Decisions.Arn>", "dynamodb:Query")


@pytest.mark.parametrize("stack", ["template", "blue"])
def test_a_role_writes_only_its_own_items_of_state(stack: str, request: pytest.FixtureRequest) -> None:
    """Only the API writes the switch, and no role all items; see the text of the condition ``ForAllValues``."""
    template = request.getfixturevalue(stack)
    writers = set()
    for role in resources_of(template, "AWS::IAM::Role"):
        its = {g for g in permissions(template, role) if g[2] == "<State.Arn>" and g[1] in WRITES_ITEMS}
        if not its:
            continue
        writers.add(role)
        for _, action, _, *conditions in (g for g in its if g[0] == "Allow"):
            (condition,) = map(ast.literal_eval, conditions)
            assert condition["Null"] == {"dynamodb:LeadingKeys": "false"}, (role, action)
            keys = condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
            if action == "dynamodb:DeleteItem":
                assert (role, sorted(keys)) == ("ApiRole", ["broken", "self-halt"])
            else:
                assert any(fnmatchcase("switch", key) for key in keys) == (role == "ApiRole"), role
        if role != "ApiRole":
            assert {g[1] for g in its if g[0] == "Deny"} == WRITES_ITEMS, role
    assert {"ApiRole", "StartRole", "TerminateRole", "WidgetsRole"} <= writers


def test_the_command_asks_aws_about_the_policy_that_claims_have() -> None:
    checks = allow("<State.Arn>", "dynamodb:ConditionCheckItem")
    assert checks <= ROLES["TerminateRole"]
    statements = {
        tuple(v if isinstance(v, str) else repr(v) for v in one.values()) for one in state_policy("<State.Arn>")
    }
    assert checks < statements < state("unit#*") | checks


def test_change_calendars_are_read_by_whom_they_concern_and_no_others(template: Template, blue: Template) -> None:
    def readers(stack: Template) -> set[tuple[str, str]]:
        granted = ((role, g) for role in resources_of(stack, "AWS::IAM::Role") for g in permissions(stack, role))
        return {(role, resource) for role, (_, action, resource, *_) in granted if action == "ssm:GetCalendarState"}

    assert readers(template) == set()
    documents = {
        "arn:<AWS::Partition>:ssm:<AWS::Region>:<AWS::AccountId>:document/prod",
        SHARED_CALENDAR,
    }
    roles = ("DecideRole", "TerminateRole", "ApiRole", "InjectRole", "RequestRole")
    assert readers(blue) == {(role, one) for role in roles for one in documents}


HARMLESS = re.compile(
    r"(autoscaling|ec2):(Describe|Get|Create|RunInstances$|AuthorizeSecurityGroup|RevokeSecurityGroup|SuspendProcesses$)"
)
"""What ends, shrinks or changes no group and no instance."""


@pytest.mark.parametrize("stack", ["template", "blue"])
def test_troop_protected_holds_for_every_role(stack: str, request: pytest.FixtureRequest) -> None:
    template = request.getfixturevalue(stack)
    touching = set()
    for role in resources_of(template, "AWS::IAM::Role"):
        its = permissions(template, role)
        denied = {g[1] for g in its if g in protects(g[1])}
        actions = {g[1] for g in its if g[0] == "Allow" and g[1].startswith(("autoscaling:", "ec2:"))}
        ending = {action for action in actions if not HARMLESS.match(action)}
        assert ending <= denied, role
        touching |= {role} if ending else set()
    benchmarks = ("Cell", "Fleet", "Launch", "Reaper", "Teardown")
    assert touching == {f"{name}Role" for name in (*benchmarks, "Inject", "Terminate")}


WORDS = (
    *("live", "report", "record", "roster", "definition", "results", "cells", "choices", "doubts", "plan", "agent"),
    *("nodes", "phases", "output", "barriers", "points", "replaced", "targets", "interruptions", "files", "images"),
)
"""Names of Troop's objects and folders that a file may give its phases, roles and files."""


def _objects() -> Iterator[tuple[str, set[str]]]:
    """Objects of a run with the most confusing names, and the roles that write each, of those that write only some."""
    run = "20261122-071200-1f0c9b2e"
    for name in ("definition_key", "plan_key", "agent_key", "instance_types_key", "estimate_key", "load_balancers_key"):
        yield getattr(names, name)(run), set()
    yield names.cells_key(run), {"CellRole"}
    yield names.live_key(run), {"ApiRole", "WidgetsRole"}
    for name in (names.REPORT_HTML, names.REPORT_JSON, names.RECORD):
        yield names.run_prefix(run) + name, {"ReportRole"}
    for word in WORDS:
        for kind in (".json", ".html", ".log.gz", ".py", ""):
            yield names.file_key(run, word + kind), set()
    for cell in ("c001", "c012-3"):
        yield names.cell_definition_key(run, cell), set()
        yield names.roster_key(run, cell), {"CellRole", "FleetRole"} if cell == "c001" else {"CellRole"}
        yield names.orders_key(run, cell), {"FleetRole"} if cell == "c001" else set()
        yield names.queue_key(run, cell), set()
        yield f"{names.reports_prefix(run, cell)}AROA:i-1.json", {"BenchmarksNodesRole"}
        for key in (names.results_key, names.report_part_key, names.doubts_key, names.choices_key):
            yield key(run, cell), {"CellRole"}
        yield names.console_key(run, cell, "i-1"), {"CellRole"}
        for word in WORDS:
            yield names.targets_key(run, cell, word), set()
            yield names.barrier_key(run, cell, word), {"CellRole"}
            yield names.point_key(run, cell, word), {"CellRole"}
            yield f"{names.phase_prefix(run, cell, word)}AROA:i-1.json", {"BenchmarksNodesRole"}
            yield f"{names.faults_prefix(run, cell, word)}AROA:i-1.json", {"BenchmarksNodesRole"}
            yield f"{names.output_prefix(run, cell, word)}AROA:i-1.log.gz", {"BenchmarksNodesRole"}
        for prefix in (names.nodes_prefix, names.live_prefix, names.interruptions_prefix):
            yield f"{prefix(run, cell)}AROA:i-1.json", {"BenchmarksNodesRole"}


@pytest.mark.parametrize("stack", ["template", "blue"])
def test_no_name_in_a_file_opens_another_functions_objects(stack: str, request: pytest.FixtureRequest) -> None:
    """IAM's asterisk matches slashes, as fnmatch's does."""
    template = request.getfixturevalue(stack)
    patterns: dict[str, list[str]] = {}
    for role in resources_of(template, "AWS::IAM::Role"):
        puts = (g[2] for g in permissions(template, role) if g[1] == "s3:PutObject" and "<Results.Arn>" in g[2])
        patterns[role] = [one.removeprefix("<Results.Arn>/") for one in puts]
    # They admit or launch a run, and create all that it consists of.
    wide = {role for role, its in patterns.items() if "runs/*" in its}
    assert wide == {"ApiRole", "LaunchRole", "StartRole"}
    for key, writers in _objects():
        for role, its in patterns.items():
            matching = [one for one in its if fnmatchcase(key, one.replace("${aws:userid}", "AROA:i-1"))]
            if role not in wide:
                assert bool(matching) == (role in writers), (role, key, matching)


def test_a_role_has_room_for_settings(template: Template) -> None:
    """With the default settings: IAM's quota counts all inline policies of a role."""
    for name, role in resources_of(template, "AWS::IAM::Role").items():
        documents = [policy["PolicyDocument"] for policy in role["Properties"].get("Policies", [])]
        for policy in resources_of(template, "AWS::IAM::Policy").values():
            documents += (
                [policy["Properties"]["PolicyDocument"]] if f"<{name}>" in text(policy["Properties"]["Roles"]) else []
            )
        assert sum(map(characters, documents)) <= MOST_CHARACTERS - 250, name


def test_all_settings_together_leave_room(synthesised: Callable[..., Template]) -> None:
    """Synth refuses a role that IAM could find too large."""
    key = "arn:aws:kms:us-east-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef"
    assert synthesised(**roles_doc.WITH_MORE, key=key)["Resources"]


def test_no_action_is_a_pattern(template: Template) -> None:
    for role in resources_of(template, "AWS::IAM::Role"):
        assert not [grant for grant in permissions(template, role) if "*" in grant[1]], role


def test_only_api_gateways_own_policy_is_a_managed_one(template: Template, blue: Template) -> None:
    policy = "arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs"
    assert _managed(template) == {}
    assert _managed(blue) == {"ApiRestCloudWatchRole": [policy]}


def _managed(template: Template) -> dict[str, object]:
    return {
        name: text(role["Properties"]["ManagedPolicyArns"])
        for name, role in resources_of(template, "AWS::IAM::Role").items()
        if "ManagedPolicyArns" in role["Properties"]
    }


SCHEDULED = (
    "Schedules",
    "WatchdogSchedule",
    "SweepSchedule",
    "RisksSchedule",
    "RedriveSchedule",
    "ReaperSchedule",
    "FaultsSchedule",
)
TRUSTED = {
    **{f"{name}Role": "scheduler.amazonaws.com" for name in (*SCHEDULED, "BenchmarksScheduled", "Injections")},
    **{f"Benchmarks{name}Role": "states.amazonaws.com" for name in ("Benchmark", "Teardown", "Fleet")},
    **{f"{name}Role": "states.amazonaws.com" for name in ("Chaos", "OnDemand")},
    "BenchmarksNodesRole": "ec2.<AWS::URLSuffix>",
    "NotificationsForwardingRole": "events.amazonaws.com",
}
"""The service that uses a role; Lambda uses the others."""
OWN_GROUPS = {"BenchmarksScheduledRole": "BenchmarksScheduledGroup", "InjectionsRole": "InjectionsBackstops"}
"""The schedule groups of roles that not all schedules use."""


def test_each_role_trusts_its_own_service_only(template: Template) -> None:
    """And of the scheduler, only schedules of this deployment."""
    for name, role in resources_of(template, "AWS::IAM::Role").items():
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        service = text(statement["Principal"]["Service"])
        assert (statement["Action"], service) == ("sts:AssumeRole", TRUSTED.get(name, "lambda.amazonaws.com")), name
        condition = text(statement.get("Condition", {}).get("StringEquals", {}))
        source = condition.pop("aws:SourceArn", None)
        is_bound = service in ("states.amazonaws.com", "scheduler.amazonaws.com")
        assert condition == ({"aws:SourceAccount": "<AWS::AccountId>"} if is_bound else {}), name
        if service == "scheduler.amazonaws.com":
            assert source == f"<{OWN_GROUPS.get(name, 'SchedulesGroup')}.Arn>"


def test_nodes_read_the_allowed_buckets_and_write_only_their_data_and_each_result_once(blue: Template) -> None:
    """What nodes may without the settings, ROLES has: no role deletes objects then."""
    buckets = [f"arn:<AWS::Partition>:s3:::{name}" for name in ("my-data", "logs.example.com")]
    allowed = {g for b in buckets for g in only(INSIDE, f"{b}/*", "s3:GetObject") | only(INSIDE, b, "s3:ListBucket")}
    own = only(INSIDE, "<Results.Arn>/data/*", "s3:DeleteObject", "s3:GetObject", "s3:PutObject")
    once = INSIDE | {"Null": {"s3:if-none-match": "false"}}
    works = only(INSIDE, QUEUES[0], *WORKER_ACTIONS) | only(once, f"{ONE_RUN}/results/*", "s3:PutObject")
    assert permissions(blue, "BenchmarksNodesRole") == ROLES["BenchmarksNodesRole"] | allowed | own | works


def test_where_nodes_create_objects_teardown_deletes_these_and_no_others(blue: Template) -> None:
    below = {"StringLike": {"s3:prefix": ["data/*"]}}
    finds = only(below, "<Results.Arn>", "s3:ListBucket")
    deletes = allow("<Results.Arn>/data/*", "s3:DeleteObject")
    assert permissions(blue, "TeardownRole") == ROLES["TeardownRole"] | finds | deletes
    assert permissions(blue, "ReaperRole") == ROLES["ReaperRole"]


def test_launch_runs_the_allowed_images_and_the_api_reads_the_allowed_parameters(blue: Template) -> None:
    """With a parameter of the account, its images are allowed: IAM does not know what the parameter contains."""
    image, parameter = "arn:<AWS::Partition>:ec2:<AWS::Region>::image/", "arn:<AWS::Partition>:ssm:<AWS::Region>:"
    owners = {"StringEquals": {"ec2:Owner": ["amazon", "<AWS::AccountId>"]}}
    launch = {g for g in permissions(blue, "LaunchRole") if image in g[2]}
    assert launch == allow(f"{image}ami-0123456789abcdef0", "ec2:RunInstances") | only(
        owners, f"{image}*", "ec2:RunInstances"
    )
    own, public = (
        f"{parameter}<AWS::AccountId>:parameter/images/*",
        f"{parameter}:parameter/aws/service/canonical/*",
    )
    reads = {g for g in permissions(blue, "ApiRole") if g[1] == "ssm:GetParameter"}
    assert reads == allow(own, "ssm:GetParameter") | allow(public, "ssm:GetParameter")


def test_a_role_that_is_too_large_for_iam_fails_at_synth() -> None:
    """CloudFormation would find out in the middle of an update."""

    def synth(images: int) -> None:
        stack = cdk.Stack(app := cdk.App(), "Small")
        named = [f"arn:{cdk.Aws.PARTITION}:ec2:{cdk.Aws.REGION}::image/ami-{n:017x}" for n in range(images)]
        statement = iam.PolicyStatement(actions=["ec2:RunInstances"], resources=named)
        make_role(stack, "Role", service="lambda.amazonaws.com", description="-", statements=[statement])
        app.synth()

    synth(120)
    with pytest.raises(RuntimeError, match=r"\[Small/Role\] the permissions of this role may have .* accepts 10,240"):
        synth(160)


def test_the_characters_of_permissions_are_those_that_iam_counts() -> None:
    document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["a:B", "c:D"], "Resource": "*"}]}
    assert characters(document) == len(json.dumps(document, separators=(",", ":")))
    joined = {"Fn::Join": ["-", ["a", {"Ref": "AWS::Region"}, "b"]]}
    assert characters(joined) == len('"a-ap-southeast-1-b"')
    bucket = {"Fn::GetAtt": ["Results", "Arn"]}
    assert characters(bucket, ["Results"]) == len("arn:aws-us-gov:s3:::") + 63 + 2 < characters(bucket)


def test_launch_uses_own_snapshots_that_are_allowed_and_the_api_describes_them(
    blue: Template, template: Template
) -> None:
    allowed = "arn:<AWS::Partition>:ec2:<AWS::Region>::snapshot/snap-0123456789abcdef0"
    launch = {g for g in permissions(blue, "LaunchRole") if "snapshot" in g[2]}
    assert launch == only({"StringEquals": {"ec2:Owner": "<AWS::AccountId>"}}, allowed, "ec2:RunInstances")
    assert allow("*", "ec2:DescribeSnapshots") <= permissions(blue, "ApiRole")
    by_default = permissions(template, "LaunchRole") | permissions(template, "ApiRole")
    assert not {g for g in by_default if "snapshot" in f"{g[1]} {g[2]}".lower()}


def test_the_api_looks_up_only_the_kinds_of_targets_that_are_allowed(
    blue: Template, template: Template, synthesised: Callable[..., Template]
) -> None:
    lookups = {
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeRouteTables",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeVpcEndpoints",
        "elasticloadbalancing:DescribeLoadBalancers",
    }
    endpoint = {"ec2:DescribeRouteTables", "ec2:DescribeVpcEndpoints"}

    def allowed(stack: Template) -> set[str]:
        return {g[1] for g in permissions(stack, "ApiRole") if g[1] in lookups}

    network = json.dumps({"vpc": "vpc-0123456789abcdef0", "subnets": ["subnet-0123456789abcdef0"]})
    balancer = synthesised(network=network, allowed_targets="shop:443,sg-0123456789abcdef0:5432")
    assert allowed(template) == set()
    assert allowed(blue) == {"ec2:DescribeRouteTables"}
    assert allowed(balancer) == lookups
    assert allowed(synthesised(network=network)) == endpoint


def test_the_profile_gives_nodes_their_role_and_no_other(template: Template) -> None:
    (profile,) = resources_of(template, "AWS::IAM::InstanceProfile").values()
    assert text(profile["Properties"]["Roles"]) == ["<BenchmarksNodesRole>"]


def test_functions_are_called_by_the_api_and_others_by_their_rules_alone(template: Template) -> None:
    permitted = [p["Properties"] for p in resources_of(template, "AWS::Lambda::Permission").values()]
    assert {(p["Principal"], text(p["FunctionName"])) for p in permitted} == {
        ("apigateway.amazonaws.com", "<Api.Arn>"),
        ("events.amazonaws.com", "<Hear.Arn>"),
        ("events.amazonaws.com", "<Inject.Arn>"),
        ("events.amazonaws.com", "<Reaper.Arn>"),
    }
    by_rule = [p for p in permitted if p["Principal"] == "events.amazonaws.com"]
    assert {(text(p["FunctionName"]), text(p["SourceArn"])) for p in by_rule} == {
        ("<Reaper.Arn>", "<BenchmarksEnded.Arn>"),
        *(("<Hear.Arn>", f"<Hearing{rule}.Arn>") for rule in HEARD),
        *(("<Inject.Arn>", f"<Hearing{rule}.Arn>") for rule in ("Alarms", COMMANDS)),
    }
    invokers = [p for p in permitted if p not in by_rule]
    paths = {re.sub(r"\{\w+\}", "*", route.replace(" ", "")) for route in routes(template)}
    assert {text(p["SourceArn"]).partition("/")[2] for p in invokers} == {
        f"<ApiRestDeploymentStagev1>/{path}" for path in paths
    }


def test_a_fault_brings_its_permissions_and_a_tag_denies_them(monkeypatch: pytest.MonkeyPatch) -> None:
    freeze = replace(faults.FAULTS[0], name="freeze", permissions=(Permission("ssm:SendCommand", "instance/*", True),))
    monkeypatch.setattr(faults, "FAULTS", (*faults.FAULTS, freeze))
    statements = [statement.to_statement_json() for statement in hits(cdk.Stack())]
    (allowed,) = [s for s in statements if s["Effect"] == "Allow" and s["Action"] == "ssm:SendCommand"]
    assert allowed["Condition"] == {"Null": {"aws:ResourceTag/aws:autoscaling:groupName": "false"}}
    denied = [s["Action"] for s in statements if s["Effect"] == "Deny"]
    assert len(denied) == len(UNTOUCHABLE_TAGS)
    assert all("ssm:SendCommand" in actions for actions in denied)


def test_where_settings_allow_queues_roles_create_them_or_work_on_them(blue: Template) -> None:
    touching: dict[str, set[str]] = {}
    for role in resources_of(blue, "AWS::IAM::Role"):
        for grant in permissions(blue, role):
            if grant[1] == "ec2:CreateVpcEndpoint" or (":troop-?" in grant[2] and grant[1].startswith("sqs:")):
                touching.setdefault(role, set()).add(grant[1])
    finds = {"sqs:ListQueueTags"}
    assert touching == {
        "ApiRole": {"sqs:GetQueueUrl", "sqs:SendMessage"},
        "BenchmarksNodesRole": set(WORKER_ACTIONS),
        "FleetRole": finds | {"sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:TagQueue"},
        "LaunchRole": finds
        | {"ec2:CreateVpcEndpoint", "sqs:CreateQueue", "sqs:GetQueueUrl", "sqs:SetQueueAttributes", "sqs:TagQueue"},
        "ReaperRole": finds | {"sqs:DeleteQueue"},
        "TeardownRole": finds | {"sqs:DeleteQueue"},
    }


def test_queues_can_be_created_where_sqs_knows_no_tags(blue: Template) -> None:
    its = {g for role in ("LaunchRole", "FleetRole") for g in permissions(blue, role) if "sqs:" in g[1] and g[3:]}
    tagged = {"StringEqualsIfExists": CREATED["StringEquals"]}
    assert its == {
        grant
        for queue in QUEUES
        for grant in only(tagged, queue, "sqs:CreateQueue", "sqs:TagQueue") | only(ONLY_EXPIRY, queue, "sqs:TagQueue")
    }


def test_launch_creates_endpoints_to_sqs_only_in_the_network_with_an_own_group(blue: Template) -> None:
    its = {g for g in permissions(blue, "LaunchRole") if g[1] == "ec2:CreateVpcEndpoint"}
    created = {"StringEquals": CREATED["StringEquals"] | TO_SQS}
    subnets = [f"<BenchmarksNetworkVpcNodesSubnet{zone}Subnet>" for zone in (1, 2)]
    assert its == (
        only(created, ec2("vpc-endpoint"), "ec2:CreateVpcEndpoint")
        | only(OURS, ec2("security-group"), "ec2:CreateVpcEndpoint")
        | allow(ec2("vpc", "<BenchmarksNetworkVpc>"), "ec2:CreateVpcEndpoint")
        | {grant for subnet in subnets for grant in allow(ec2("subnet", subnet), "ec2:CreateVpcEndpoint")}
    )
