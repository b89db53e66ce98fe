"""`troop prove` asks about each step, removes what it creates, and writes answers in which nobody finds the account."""

from __future__ import annotations

import ast
import gzip
import json
import platform
import re
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError, EndpointConnectionError
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from cli.bench import files as bench_files
from cli.client.api import Answer
from cli.client.client import TroopClient
from cli.client.deployment import Deployment
from cli.commands import prove
from cli.prove import judgements as judge
from cli.prove import runs
from cli.prove.ledger import PREFIX, Ledger
from cli.prove.model import Kind, Verdict
from cli.prove.node import ask
from cli.prove.probes import Probes, answers_in, removers
from cli.prove.questions import QUESTIONS
from cli.prove.redaction import Redaction
from cli.shared import aws
from cli.shared.errors import Exit
from infra import ROOT
from tests.aws_facts.sources import authorization
from tests.unit.cli.conftest import ARN, FakeApi, Run, event
from troop.bench.admission.estimate import estimate
from troop.bench.money.prices import Prices, VolumePrice
from troop.shared.state_keys import SWITCH, UNIT

REGION = "eu-central-1"
NODE = Path(ask.__file__).parent


# What a redacted file must not contain.

_ACCOUNTS = st.from_regex(r"[0-9]{12}", fullmatch=True)
_IDS = st.builds(
    "{}-{}".format, st.sampled_from(["i", "vpc", "eni", "eipalloc"]), st.from_regex("[0-9a-f]{17}", fullmatch=True)
)
_ARNS = st.builds("arn:{}:iam::{}:role/a b".format, st.sampled_from(["aws", "aws-cn", "aws-us-gov"]), _ACCOUNTS)
_SECRETS = st.one_of(_ACCOUNTS, _IDS, st.ip_addresses().map(str), _ARNS)
_AROUND = st.sampled_from(["", " ", "'", "(", "role ", ": ", "=", "\n", "x/"])
_TEXTS = st.builds("{}{}{}".format, _AROUND, _SECRETS, st.sampled_from(["", " ", "'", ")", ".", ",", "\n"]))
_DOCUMENTS = st.recursive(
    st.one_of(_TEXTS, st.integers(), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXTS, inner, max_size=3)),
    max_leaves=8,
)
_FORBIDDEN = re.compile(r"\d{12}|arn:|\b[a-z]+-[0-9a-f]{17}\b|\b\d{1,3}(\.\d{1,3}){3}\b|[0-9a-f]:[0-9a-f]*:")


@given(_DOCUMENTS)
def test_no_account_no_arn_no_id_and_no_address_is_left(document: Any) -> None:
    assert not _FORBIDDEN.search(json.dumps(Redaction().document(document)))


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("arn:aws:iam::111122223333:role/x and 111122223333", "<arn 1> and <account 1>"),
        ("111122223333, 444455556666, 111122223333", "<account 1>, <account 2>, <account 1>"),
        ("arn:aws-cn:sts::111122223333:assumed-role/Ada/ada@example.com", "<arn 1>"),
        ("AROAEXAMPLEEXAMPLEEX:i-0123456789abcdef0", "<principal 1>:<id 1>"),
        ("ip-10-0-1-2.eu-central-1.compute.internal, ip-10-0-1-2", "<host 1>, <host 2>"),
        ("https://b.s3.amazonaws.com/k?X-Amz-Signature=1", "<url 1>"),
        ("vol0123456789abcdef0 on 02:42:ac:11:00:02", "<id 1> on <mac 1>"),
        (
            "nvme-nvme.1d0f-766f6c3031323334353637383961626364656630-416d617a6f6e-00000001",
            "nvme-<id 1>-416d617a6f6e-00000001",
        ),
        ("fe80::1ff:fe23:4567:890a, 2001:db8:0:0:0:0:0:1", "<address 1>, <address 2>"),
        (
            "at 12:30:45 with 6.1.134-152.225.amzn2023 and 2.9.19",
            "at 12:30:45 with 6.1.134-152.225.amzn2023 and 2.9.19",
        ),
        ("ada@example.com", "<mail 1>"),
        ("the stack Shop-prod of shop-prod-results", "the stack <name 1> of <name 2>"),
    ],
)
def test_the_same_value_has_the_same_label(text: str, redacted: str) -> None:
    assert Redaction(["Shop-prod", "shop-prod-results", ""]).text(text) == redacted


# The table.


def test_questions_are_complete() -> None:
    assert len({question.name for question in QUESTIONS}) == len(QUESTIONS)
    for question in QUESTIONS:
        assert callable(getattr(Probes, question.probe))
        assert question.text.endswith("?")
        assert question.why.endswith(".")
        assert question.price == 0 or question.kind is not Kind.READS
        assert question.needs
        assert [action for action in question.needs if authorization(action) is None] == []
    total = sum(question.price for question in QUESTIONS)
    assert f"${total}" in (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
    assert f"${total}" in (ROOT / "docs" / "first-hour.md").read_text(encoding="utf-8")


def _keys(**codes: str) -> dict[str, str]:
    denied = "AccessDeniedException"
    return {"item": "success", "switch": denied, "item_if_switch": "success", "switch_if_item": denied} | codes


def _writes(**codes: str) -> dict[str, str]:
    return {"new": "success", "same": "success", "exists": "PreconditionFailed", "other": "PreconditionFailed"} | codes


def _record(status: str = "SUCCEEDED", zones: str = "ab", **purchases: str) -> dict[str, Any]:
    bought = {"spot": "spot", "backup": "on-demand"} | purchases
    return {
        "cells": [{"label": "spot", "status": "SUCCEEDED"}, {"label": "backup", "status": status, "reason": "no"}],
        "nodes": [{"label": name, "purchase": how, "zone": zone} for name, how in bought.items() for zone in zones],
    }


@pytest.mark.parametrize(
    ("judged", "verdict"),
    [
        (judge.runtime({"python3.14": "", "arm64": ""}), Verdict.YES),
        (judge.runtime({"python3.14": "InvalidParameterValueException", "arm64": ""}), Verdict.NO),
        (judge.mapping_tags({"mappings": 4, "tagged": 4}), Verdict.YES),
        (judge.mapping_tags({"mappings": 4, "tagged": 0}), Verdict.NO),
        (judge.mapping_tags({"mappings": 0, "tagged": 0}), Verdict.OPEN),
        (judge.alarm_states({"OK": 3}), Verdict.YES),
        (judge.alarm_states({"OK": 3, "INSUFFICIENT_DATA": 1}), Verdict.NO),
        (judge.alarm_states({}), Verdict.OPEN),
        (judge.stack_failures([]), Verdict.YES),
        (judge.stack_failures(["AWS::Scheduler::Schedule: the role cannot be assumed"]), Verdict.NO),
        (judge.crashes({"without_shutdown": 2, "with_shutdown": 0}), Verdict.YES),
        (judge.crashes({"without_shutdown": 2, "with_shutdown": 1}), Verdict.NO),
        (judge.crashes({"without_shutdown": 0, "with_shutdown": 0}), Verdict.OPEN),
        (judge.absent_role("NoSuchEntity"), Verdict.YES),
        (judge.absent_role("AccessDenied"), Verdict.NO),
        (judge.absent_role("Throttling"), Verdict.OPEN),
        (judge.attribute_condition({"allowed": "DryRunOperation", "other": "UnauthorizedOperation"}), Verdict.YES),
        (judge.attribute_condition({"allowed": "DryRunOperation", "other": "DryRunOperation"}), Verdict.NO),
        (
            judge.attribute_condition({"allowed": "UnauthorizedOperation", "other": "UnauthorizedOperation"}),
            Verdict.OPEN,
        ),
        (judge.attribute_condition({"allowed": "InternalError", "other": "InternalError"}), Verdict.OPEN),
        (judge.attribute_condition({}), Verdict.OPEN),
        (judge.late_termination([{"has_tag": True, "code": "DryRunOperation"}]), Verdict.YES),
        (judge.late_termination([{"has_tag": False, "code": "UnauthorizedOperation"}]), Verdict.NO),
        (judge.late_termination([]), Verdict.OPEN),
        (judge.leading_keys(_keys()), Verdict.YES),
        (judge.leading_keys(_keys(item_if_switch="AccessDeniedException")), Verdict.NO),
        (judge.leading_keys(_keys(switch="success")), Verdict.NO),
        (judge.leading_keys(_keys(switch_if_item="success")), Verdict.NO),
        (judge.leading_keys(_keys(item="AccessDeniedException", item_if_switch="AccessDeniedException")), Verdict.OPEN),
        (judge.leading_keys(_keys(item_if_switch="TransactionCanceledException")), Verdict.OPEN),
        (judge.leading_keys(_keys(switch="ThrottlingException")), Verdict.OPEN),
        (judge.completion([{"step": "create", "status": "done"}]), Verdict.YES),
        (judge.completion([{"step": "create", "status": "done"}, {"step": "leave", "status": "no"}]), Verdict.NO),
        (judge.completion([]), Verdict.OPEN),
        (judge.completion([{"step": "create", "status": "EC2 answers UnauthorizedOperation"}]), Verdict.OPEN),
        (judge.runtime({"python3.14": "AccessDeniedException", "arm64": ""}), Verdict.OPEN),
        (judge.conditional_writes(_writes()), Verdict.YES),
        (judge.conditional_writes(_writes(exists="success")), Verdict.NO),
        (judge.conditional_writes(_writes(other="success")), Verdict.NO),
        (judge.conditional_writes(_writes(same="PreconditionFailed")), Verdict.NO),
        (judge.conditional_writes(_writes(new="AccessDenied")), Verdict.OPEN),
        (judge.conditional_writes(_writes(exists="SlowDown")), Verdict.OPEN),
        (judge.cells(_record()), Verdict.YES),
        (judge.cells(_record(status="FAILED")), Verdict.NO),
        (judge.spot(_record()), Verdict.YES),
        (judge.spot(_record(status="INVALID")), Verdict.NO),
        (judge.spot(_record(spot="on-demand")), Verdict.OPEN),
        (judge.spot(_record(backup="spot")), Verdict.OPEN),
        (judge.spot(_record(zones="a")), Verdict.NO),
        (judge.node_checks([{"name": "a", "ok": True}]), Verdict.YES),
        (judge.node_checks([{"name": "a", "ok": True}, {"name": "b", "ok": False}]), Verdict.NO),
        (judge.node_checks([]), Verdict.OPEN),
    ],
)
def test_evidence_is_judged(judged: tuple[Verdict, str], verdict: Verdict) -> None:
    assert judged[0] is verdict
    assert judged[1]


# What steps create.


class Things:
    """Things that exist, and what removes them; ``broken`` ones stay."""

    def __init__(self) -> None:
        self.removed: list[str] = []
        self.broken: set[str] = set()

    def remove(self, name: str) -> None:
        if name in self.broken:
            raise RuntimeError("no")
        self.removed.append(name)


def test_resource_is_in_the_ledger_before_it_exists_and_is_removed_after_failures(tmp_path: Path) -> None:
    path, things = tmp_path / "created.json", Things()
    ledger = Ledger(path, {"role": things.remove})
    for name in ("a", "b", "c"):
        ledger.add("role", PREFIX + name)
        assert PREFIX + name in path.read_text()
    things.broken = {PREFIX + "b"}
    assert not ledger.remove_all()
    assert things.removed == [PREFIX + "c", PREFIX + "a"], "the newest first, and one failure keeps no other"
    things.broken = set()
    assert Ledger(path, {"role": things.remove}).remove_all(), "by the next command"
    assert things.removed[-1] == PREFIX + "b"
    assert not path.exists()


def test_nothing_is_removed_that_this_command_cannot_have_created(tmp_path: Path) -> None:
    path, things = tmp_path / "created.json", Things()
    path.write_text('[["role", "Admin"]]')
    assert not Ledger(path, {"role": things.remove}).remove_all()
    assert things.removed == []


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    session = boto3.Session("a", "b", region_name=REGION)
    monkeypatch.setattr(aws, "make_session", lambda *_: session)
    monkeypatch.setattr("cli.prove.probes._PROPAGATION_SECONDS", 0)
    monkeypatch.setattr(prove, "_names", lambda *_: ["Shop-prod"])
    with mock_aws():
        yield session


@pytest.fixture
def probes(account: boto3.Session, client: TroopClient, tmp_path: Path) -> Probes:
    deployment = Deployment("Troop", REGION, "123456789012", {}, ARN)
    ledger = Ledger(tmp_path / "created.json", removers(account, client))
    return Probes(account, deployment, client, ledger, lambda _: {}, lambda: "f1", lambda _: None)


def test_role_has_only_its_permissions_and_only_this_caller_assumes_it(probes: Probes, account: boto3.Session) -> None:
    ec2, iam = account.client("ec2"), account.client("iam")
    image = ec2.register_image(Name="image")["ImageId"]
    other, ended = (one["InstanceId"] for one in ec2.run_instances(ImageId=image, MinCount=2, MaxCount=2)["Instances"])
    ec2.terminate_instances(InstanceIds=[ended])
    ec2.create_tags(Resources=[ended], Tags=[{"Key": "aws:autoscaling:groupName", "Value": "web"}])
    before = {role["RoleName"] for role in iam.list_roles()["Roles"]}
    (answer,) = probes.late_termination()
    assert (answer["has_tag"], answer["code"]) == (True, "DryRunOperation")
    assert probes.attribute_condition() == {"allowed": "success", "other": "success"}, "moto knows no dry run here"
    assert probes.absent_role() == "NoSuchEntity"
    roles = [role for role in iam.list_roles()["Roles"] if role["RoleName"] not in before]
    assert len(roles) == 3
    actions = set()
    for role in roles:
        assert role["RoleName"].startswith(PREFIX)
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        caller = account.client("sts").get_caller_identity()["UserId"]
        assert trust["Condition"] == {"StringEquals": {"aws:userid": caller}}
        policy = iam.get_role_policy(RoleName=role["RoleName"], PolicyName="probe")["PolicyDocument"]
        actions |= {statement["Action"] for statement in policy["Statement"]}
        assert iam.list_role_tags(RoleName=role["RoleName"])["Tags"][0]["Key"] == "troop:prove"
    assert actions == {"ec2:TerminateInstances", "ec2:DescribeInstanceAttribute", "iam:GetRole"}
    assert probes.ledger.remove_all()
    assert {role["RoleName"] for role in iam.list_roles()["Roles"]} == before
    state = ec2.describe_instances(InstanceIds=[other])["Reservations"][0]["Instances"][0]["State"]["Name"]
    assert state == "running"


def test_the_items_of_a_transaction_are_tried_on_a_table_of_their_own(probes: Probes, account: boto3.Session) -> None:
    dynamodb = account.client("dynamodb")
    assert set(probes.leading_keys().values()) == {"success"}, "moto checks no permissions"
    (table,) = dynamodb.list_tables()["TableNames"]
    assert table.startswith(PREFIX)
    keys = {item["key"]["S"] for item in dynamodb.scan(TableName=table)["Items"]}
    assert keys == {f"{UNIT}probe", SWITCH}
    assert probes.ledger.remove_all()
    assert dynamodb.list_tables()["TableNames"] == []


@pytest.mark.parametrize(("desired", "ready"), [(2, 1), (1, 1)])
def test_a_fleet_is_scaled_and_ends_also_if_a_step_fails(
    probes: Probes, monkeypatch: pytest.MonkeyPatch, desired: int, ready: int
) -> None:
    fleet: dict[str, Any] = {"roles": [{"desired": 1, "in_service": 1, "ready": 1, "role": "nodes"}], "ended_at": None}
    done: list[Any] = []

    def scale(_: str, request: Any) -> None:
        done.append(request["count"])
        fleet["roles"] = [{"desired": desired, "in_service": desired, "ready": ready, "role": "n"}]

    def remove(_: str) -> None:
        done.append("down")
        fleet["ended_at"] = "now"

    def start() -> str:
        probes.ledger.add("fleet", "f1")
        return "f1"

    client = SimpleNamespace(fleet=lambda _: {"fleet": fleet}, scale_fleet=scale, remove_fleet=remove)
    monkeypatch.setattr(TroopClient, "benchmarks", client, raising=False)
    probes = replace(probes, start_fleet=start)
    status = f"[{{'desired': {desired}, 'in_service': {desired}, 'ready': {ready}}}]"
    assert probes.fleet()[-1] == {"step": "two nodes", "status": status}
    assert probes.ledger.remove_all()
    assert done == [2, "down"]


def test_run_that_the_deployment_does_not_know_any_more_counts_as_removed(probes: Probes, api: FakeApi) -> None:
    missing = Answer(404, {"statusCode": 404, "message": "no", "code": "no-such-run"})
    for kind, name in (("benchmarks", "r1"), ("fleets", "r1"), ("fleets", "f1"), ("benchmarks", "f1")):
        api.refusals["GET", f"{kind}/{name}"] = [missing]
    probes.ledger.add("run", "r1")
    probes.ledger.add("fleet", "f1")
    assert probes.ledger.remove_all()


@pytest.fixture
def launches(account: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Adds to moto what it lacks; returns the placement groups."""
    subnets = [one["SubnetId"] for one in account.client("ec2").describe_subnets()["Subnets"]]
    monkeypatch.setattr(Probes, "_resources", lambda *_: subnets)
    placements, real = dict[str, Any](), BaseClient._make_api_call  # type: ignore[attr-defined]

    def missing(code: str) -> NoReturn:
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "Delete")

    def call(self: Any, operation: str, parameters: Any) -> Any:
        if operation == "CreatePlacementGroup":  # moto has none
            placements[parameters["GroupName"]] = parameters
            return {}
        if operation == "DeletePlacementGroup":
            return placements.pop(parameters["GroupName"], None) or missing("InvalidPlacementGroup.Unknown")
        if operation == "DeleteLaunchTemplate" and "never" in parameters["LaunchTemplateName"]:  # moto has another code
            missing("InvalidLaunchTemplateName.NotFoundException")
        if operation == "CreateLaunchTemplate":  # moto has no placement groups, or looks for them after other tests
            data = {key: value for key, value in parameters["LaunchTemplateData"].items() if key != "Placement"}
            parameters = parameters | {"LaunchTemplateData": data}
        answer = real(self, operation, parameters)
        for reservation in answer["Reservations"] if operation == "DescribeInstances" else ():
            for instance in reservation["Instances"]:
                instance |= {"InstanceLifecycle": "spot", "Placement": {"GroupName": next(iter(placements), "")}}
        for volume in answer["Volumes"] if operation == "DescribeVolumes" else ():
            volume["VolumeInitializationRate"] = 100
        return answer

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    return placements


def test_a_fleets_requests_are_tried_with_a_group_of_size_zero(
    probes: Probes, account: boto3.Session, launches: dict[str, Any]
) -> None:
    ec2, scaling = account.client("ec2"), account.client("autoscaling")
    outcomes = probes.launch_requests()
    assert {one["status"] for one in outcomes} == {"done"}, outcomes
    (group,) = scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert (group["MaxSize"], group["DesiredCapacity"]) == (0, 0)
    assert group["MixedInstancesPolicy"]["InstancesDistribution"]["OnDemandPercentageAboveBaseCapacity"] == 0
    (template,) = ec2.describe_launch_templates()["LaunchTemplates"]
    names = {group["AutoScalingGroupName"], template["LaunchTemplateName"], *launches}
    assert len(names) == 3
    assert all(name.startswith(PREFIX) for name in names)
    assert probes.ledger.remove_all()
    assert not launches
    assert not scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert not ec2.describe_launch_templates()["LaunchTemplates"]
    assert not ec2.describe_instances()["Reservations"]
    for kind in ("placement group", "launch template", "group", "bucket"):
        probes.ledger.add(kind, f"{PREFIX}never-created")
    assert probes.ledger.remove_all(), "a missing thing is no error"


def test_one_node_is_launched_and_ended(probes: Probes, account: boto3.Session, launches: dict[str, Any]) -> None:
    outcomes = probes.launch()
    assert [one["status"] for one in outcomes] == ["done"] * 9, outcomes
    scaling = account.client("autoscaling")
    (action,) = scaling.describe_scheduled_actions()["ScheduledUpdateGroupActions"]
    assert (action["MaxSize"], action["DesiredCapacity"]) == (0, 0), "the node ends even if this command is killed"
    assert probes.ledger.remove_all()
    assert _running(account) == []


def test_a_node_whose_step_fails_is_removed_before_its_placement_group(
    probes: Probes, account: boto3.Session, launches: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.prove.probes._INITIALIZATION_RATE", 200)
    failed = probes.launch()[-1]
    assert failed == {"step": "volume with an initialization rate", "status": "the volumes have the rates {100}"}
    assert len(_running(account)) == 1
    assert probes.ledger.remove_all()
    assert _running(account) == []
    assert not launches


def _running(account: boto3.Session) -> list[str]:
    reservations = account.client("ec2").describe_instances()["Reservations"]
    instances = [instance for reservation in reservations for instance in reservation["Instances"]]
    return [one["InstanceId"] for one in instances if one["State"]["Name"] != "terminated"]


def test_conditional_writes_go_to_a_bucket_of_their_own(probes: Probes, account: boto3.Session) -> None:
    answers = probes.conditional_writes()
    assert judge.conditional_writes(answers)[0] is Verdict.YES, answers
    s3 = account.client("s3")
    (bucket,) = s3.list_buckets()["Buckets"]
    assert bucket["Name"].startswith(PREFIX)
    assert probes.ledger.remove_all()
    assert s3.list_buckets()["Buckets"] == []


# The command.


def test_the_list_needs_no_account(run: Run) -> None:
    result = run("prove", "--list")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == [question.name for question in QUESTIONS]


def test_each_step_shows_its_price_and_needs_confirmation(
    run: Run, api: FakeApi, account: boto3.Session, tmp_path: Path
) -> None:
    api.events = [
        event("web", method="crash", os_shutdown=True, detail="i-0123456789abcdef0 of Shop-prod", group="web"),
        event("web", method="crash", os_shutdown=False),
    ]
    out = tmp_path / "answers.json"
    words = ("prove", "--out", str(out), "--only", "crashes", "--only", "absent-role")
    result = run(*words, typed="y\nn\n")
    assert result.exit_code == 0, result.output
    assert "It costs at most $0, and needs execute-api:Invoke." in result.output
    document = json.loads(out.read_text())
    assert [(one["name"], one["verdict"]) for one in document["answers"]] == [
        ("crashes", "no"),
        ("absent-role", "skipped"),
    ]
    assert document["answers"][0]["evidence"]["details"] == ["<id 1> of <name 1>"]
    assert [role for role in account.client("iam").list_roles()["Roles"] if role["RoleName"].startswith(PREFIX)] == []


def test_nobody_to_ask_needs_a_yes_in_advance(run: Run, account: boto3.Session, tmp_path: Path) -> None:
    assert account
    assert run("prove", "--out", str(tmp_path / "a.json")).exit_code == Exit.NOT_CONFIRMED
    assert run("prove", "--only", "everything").exit_code == Exit.USAGE
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_step_leaves_nothing(
    run: Run, account: boto3.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def created() -> list[str]:
        names = [role["RoleName"] for role in account.client("iam").list_roles()["Roles"]]
        return [name for name in names if name.startswith(PREFIX)]

    seen: list[str] = []

    def interrupt(*_: Any) -> Any:
        seen.extend(created())
        raise KeyboardInterrupt

    monkeypatch.setattr(Probes, "_assumed", interrupt)
    run("prove", "--yes", "--out", str(tmp_path / "a.json"), "--only", "absent-role")
    assert len(seen) == 1
    assert created() == []
    assert list(tmp_path.glob("*created*")) == []


def test_local_aws_proves_nothing(
    run: Run, account: boto3.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert account
    monkeypatch.setattr(aws, "is_local", lambda: True)
    monkeypatch.setattr(Probes, "runtime", lambda _: {"arm64": ""})

    def fail(_: Probes) -> Any:
        raise ValueError("no such operation")

    monkeypatch.setattr(Probes, "absent_role", fail)
    out = tmp_path / "a.json"
    assert run("prove", "--yes", "--out", str(out), "--only", "runtime", "--only", "absent-role").exit_code == 0
    answers = json.loads(out.read_text())["answers"]
    assert {one["verdict"] for one in answers} == {"only AWS proves this"}
    assert [one["detail"] for one in answers] == [
        "local AWS: yes, Lambda accepts both",
        "local AWS cannot run this step: no such operation",
    ]


# The node.


_HOURLY = {"t4g.small": "0.0168", "t4g.medium": "0.0336", "t3.small": "0.0208", "c6gd.medium": "0.0384"}
"""On demand in us-east-1, in US dollars."""


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue in which k6 and JMeter are built."""
    for name in ("k6-arm64", "jmeter.tar"):
        path = tmp_path / "catalogue" / runs.BUILT[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    monkeypatch.setattr(runs, "CATALOGUE", tmp_path / "catalogue")
    return tmp_path


CATALOGUE = runs.CATALOGUE


def test_runs_cost_no_more_than_their_price(built: Path) -> None:
    assert built
    volume = VolumePrice(Decimal("0.08"), (Decimal("0.005"),), Decimal("0.04"))
    hourly = {name: Decimal(one) for name, one in _HOURLY.items()}
    prices = Prices(on_demand=hourly, volumes={"gp3": volume}, cross_zone_gb=Decimal("0.02"))
    programs = runs.programs()
    assert programs
    for run in (runs.NODE, runs.SPOT, runs.CACHES, runs.CASSANDRA, programs):
        source = bench_files.load(run.folder, run.size, {"attempts": 1, **run.changes})
        most = estimate(source.plan, source.benchmark.money, prices).most
        assert 1.4 * float(most) < run.price, "some regions cost more"
        assert source.benchmark.expires_after <= 3000
    assert bench_files.CATALOGUE == CATALOGUE
    fleet = bench_files.load_fleet(runs.FLEET)
    assert Decimal(str(fleet.document["budget"])) == runs.FLEET_PRICE


def test_only_built_programs_are_part_of_the_run(built: Path, probes: Probes) -> None:
    run = runs.programs()
    assert run
    source = bench_files.load(run.folder, run.size, run.changes)
    assert [artifact.name for artifact in source.artifacts()] == ["k6-arm64", "jmeter.tar"]
    assert (run.folder / source.artifacts()[0].source).resolve() == built / "catalogue/http-load/build/k6-arm64"
    for name in ("k6-arm64", "jmeter.tar"):
        (built / "catalogue" / runs.BUILT[name]).unlink()
    assert probes.programs() == []


def _answers(monkeypatch: pytest.MonkeyPatch, capsys: Any, home: Path, phase: str) -> list[dict[str, Any]]:
    (home / "parameters.json").write_text('{"system": true, "filtered": false}')
    monkeypatch.setenv("TROOP_PARAMETERS", str(home / "parameters.json"))
    monkeypatch.setenv("TROOP_PHASE", phase)
    ask.main()
    return answers_in("noise\n" + capsys.readouterr().out)


def test_a_node_answers_one_line_a_check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    assert ast.parse((NODE / "ask.py").read_text(), feature_version=(3, 9))
    checks = [
        ask.Check("fine", ("echo", "7")),
        ask.Check("pattern", ("sh", "-c", "echo masked; exit 1"), "masked"),
        ask.Check("other", ("echo", "enabled"), "masked"),
        ask.Check("missing", ("no-such-program",)),
        ask.Check("killed", ("sh", "-c", "kill -9 $$"), code=-9),
        ask.Check("change", ("touch", str(tmp_path / "changed")), changes=True),
    ]
    monkeypatch.setattr(ask, "phase_checks", lambda *_: iter(checks))
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")
    answers = _answers(monkeypatch, capsys, tmp_path, "ask")
    assert [(one["name"], one["ok"], one["code"]) for one in answers] == [
        ("fine", True, 0),
        ("pattern", True, 1),
        ("other", False, 0),
        ("missing", False, None),
        ("killed", True, -9),
    ]
    assert answers[0]["command"] == "echo 7"
    assert not (tmp_path / "changed").exists(), "a node of local AWS is somebody's machine"
    monkeypatch.delenv("AWS_EC2_METADATA_SERVICE_ENDPOINT")
    ask.main()
    assert (tmp_path / "changed").exists()


def _all_checks(home: Path) -> list[ask.Check]:
    (home / "artifacts").mkdir()
    for name in runs.BUILT:
        (home / "artifacts" / name).touch()
    boot = {"bucket": "b", "run": "r", "cell": "c001", "role_id": "AROA", "region": REGION}
    (home / "boot.json").write_text(json.dumps(boot))
    phases = ("ask", "programs", "memory", "reboot")
    return [check for phase in phases for check in ask.phase_checks(phase, home, {"filtered": True})]


def test_check_that_changes_a_machine_is_marked(tmp_path: Path) -> None:
    for check in _all_checks(tmp_path):
        words = " ".join(check.command)
        risky = any(
            word in words for word in ("dnf install", "modprobe", "sysctl", "drop_caches", "reboot", "oom_score")
        )
        assert check.changes or not risky, check.name
    (extra,) = [one for one in ask.checks("6.12.40-64.114.amzn2023.aarch64") if "modules-extra" in one.name]
    assert "kernel6.12-modules-extra-6.12.40-64.114.amzn2023 ||" in extra.command[-1]


def test_commands_of_a_node_are_well_formed(tmp_path: Path) -> None:
    for check in _all_checks(tmp_path):
        if check.command[0] in ("sh", "bash"):
            subprocess.run(["bash", "-n", "-c", check.command[-1]], check=True)
        elif check.command[1:2] == ("-c",):
            assert ast.parse(check.command[2], feature_version=(3, 9))
    subprocess.run(["sh", "-n", runs.SPOT.folder / "meet.sh"], check=True)


def test_a_node_starts_the_programs_for_its_processor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    artifacts, tools = tmp_path / "artifacts", tmp_path / "tools"
    artifacts.mkdir()
    tools.mkdir()
    for name in ("k6-arm64", "k6-x86_64", "latte-x86_64"):
        (artifacts / name).write_text(f'#!/bin/sh\necho {name} "$@"; [ "$1" = --version ] || cat\n')
    for name, inner in (("jmeter.tar", "apache-jmeter-5.6.3/bin/ApacheJMeter.jar"), ("locust-arm64.tar", "locust.py")):
        with tarfile.open(artifacts / name, "w") as archive:
            archive.addfile(tarfile.TarInfo(inner))
    for name in ("java", "python3.11", "dnf"):
        (tools / name).write_text('#!/bin/sh\necho "$0" "$@"\n')
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.delenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", raising=False)
    answers = {one["name"]: one for one in _answers(monkeypatch, capsys, tmp_path, "programs")}
    assert [name for name, one in answers.items() if not one["ok"]] == []
    assert [*answers][2:] == ["jmeter.tar", "k6-arm64", "locust-arm64.tar"]
    assert answers["k6-arm64"]["output"] == "k6-arm64 run --quiet --iterations 3 -\nexport default () => {}"
    assert "apache-jmeter-5.6.3/bin/ApacheJMeter.jar --version" in answers["jmeter.tar"]["output"]


@pytest.mark.parametrize(
    ("name", "output", "ok"),
    [
        ("corretto", 'openjdk version "17.0.17" LTS\nOpenJDK Runtime Environment Corretto-17.0.17.10.1', True),
        ("corretto", 'openjdk version "21.0.9" LTS\nOpenJDK Runtime Environment Corretto-21.0.9.10.1', False),
        ("oom-policy", "OOMPolicy=continue", True),
        ("oom-policy", "OOMPolicy=stop\nKillMode=process", False),
        ("masked-dnf-makecache.timer", "masked-runtime", True),
    ],
)
def test_an_answer_depends_on_what_a_node_prints(name: str, output: str, ok: bool) -> None:
    (check,) = [one for one in ask.checks("6.1.0-1.amzn2023.aarch64") if one.name == name]
    assert ask.answer(replace(check, command=("printf", "%s", output)))["ok"] is ok


def test_a_long_output_begins_with_a_whole_word() -> None:
    output = ask.answer(ask.Check("long", ("printf", "%s", "i-0123456789abcdef0 " + "7 " * 295)))["output"]
    assert str(output).startswith("... 7 7")


_URL = f"https://shop-prod-results.s3.{REGION}.amazonaws.com/runs/r/c001/definition.json?X-Amz-Signature=1"


@pytest.mark.parametrize(("status", "ok"), [(403, True), (200, False), (None, False)])
def test_the_address_for_the_nodes_network_is_tried_from_here_and_not_written(
    probes: Probes, account: boto3.Session, monkeypatch: pytest.MonkeyPatch, status: int | None, ok: bool
) -> None:
    s3, bucket = account.client("s3"), "shop-prod-results"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    outputs = {
        "ask": {"name": "presigned", "ok": True, "output": _URL},
        "memory": {"name": "out-of-memory", "ok": True, "output": ""},
    }
    for phase, one in outputs.items():
        body = gzip.compress(f"{ask.MARK}{json.dumps(one)}\n".encode())
        s3.put_object(Bucket=bucket, Key=f"runs/r/c001/output/{phase}/AROA:i-1.log.gz", Body=body)
    addresses: list[str] = []

    def send(_: Any, request: Any) -> Any:
        addresses.append(request.url)
        if status is None:
            raise EndpointConnectionError(endpoint_url=request.url)
        return SimpleNamespace(status_code=status)

    monkeypatch.setattr("botocore.httpsession.URLLib3Session.send", send)
    monkeypatch.setattr(Probes, "_resources", lambda *_: ["association"])
    ran: list[runs.Run] = []

    def run(one: runs.Run) -> Any:
        ran.append(one)
        return {"run": {"run": "r"}, "cells": [{"reason": "nodes 1: the node rebooted"}]}

    deployment = replace(probes.deployment, outputs={"ResultsBucket": bucket})
    answers = replace(probes, run=run, deployment=deployment).node()
    assert addresses == [_URL]
    assert ran[0].changes == {"parameters.filtered": True}
    assert answers == [
        {"name": "presigned", "ok": ok, "output": f"from here: {status}"},
        outputs["memory"],
        {"name": "end", "ok": True, "output": "nodes 1: the node rebooted"},
    ]


def test_output_of_nodes_is_redacted() -> None:
    denied = "upload failed: ../os-release to s3://shop-prod-results/runs/r An error occurred (AccessDenied): User: "
    denied += "arn:aws:sts::111122223333:assumed-role/Troop-Nodes/i-0123456789abcdef0 is not authorized"
    answers = [
        {"name": "objects-of-other-nodes", "command": "aws s3 cp x AROAEXAMPLEEXAMPLEEX:i-00000000000000000.json"},
        {"name": "denied", "output": denied},
        {"name": "presigned", "output": _URL},
        {"name": "disks", "output": '"serial":"vol0123456789abcdef0"},{"serial":"AWS0123456789ABCDEF0"'},
        {"name": "hosts", "output": "10.0.1.2 ip-10-0-1-2.ec2.internal 2600:1f18::1 02:42:ac:11:00:02"},
        {"label": "backup", "reason": "i-0123456789abcdef0 in subnet-0123456789abcdef0: the node rebooted"},
    ]
    text = json.dumps(Redaction(["shop-prod-results"]).document(answers))
    assert not re.search(r"\d{12}|arn:|AROA|-[0-9a-f]{17}|vol0|AWS0|10[.-]0|1f18|42:ac|Signature|shop|Nodes", text), (
        text
    )


def test_a_run_that_could_cost_more_than_its_price_is_not_started(
    run: Run, api: FakeApi, account: boto3.Session, tmp_path: Path
) -> None:
    assert account
    api.estimate["most"] = 0.09
    out = tmp_path / "a.json"
    run("prove", "--yes", "--out", str(out), "--only", "spot")
    (answer,) = json.loads(out.read_text())["answers"]
    assert (answer["verdict"], answer["detail"]) == ("failed", "it could cost 0.09 here: more than 0.08")
    assert [path for method, path, _ in api.calls if path == "benchmarks"] == []


def test_a_run_that_is_interrupted_is_stopped(
    run: Run, api: FakeApi, account: boto3.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert account

    def interrupt(*_: Any) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.shared.watching.poll", interrupt)
    api.estimate["most"] = 0.01
    api.refusals = {
        ("POST", "benchmarks"): [Answer(202, {"run": "r1"})],
        ("GET", "benchmarks/r1"): [Answer(200, {"run": {"ended_at": None}})],
        ("DELETE", "benchmarks/r1"): [Answer(202, {})],
    }
    result = run("prove", "--yes", "--out", str(tmp_path / "a.json"), "--only", "spot")
    assert "continues" not in result.output
    assert [path for method, path, _ in api.calls if method == "DELETE"] == ["benchmarks/r1"]


def test_documents_link_to_the_command() -> None:
    for document in ("command.md", "first-hour.md"):
        assert "troop prove" in (ROOT / "docs" / document).read_text(encoding="utf-8")
    rows = "".join(f"| `{one.name}` | {one.text} | {one.kind} | ${one.price} |\n" for one in QUESTIONS)
    assert rows in (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
