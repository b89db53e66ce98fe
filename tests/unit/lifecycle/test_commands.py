"""What both commands ask, refuse and hand to the CDK, with AWS and the CDK played by the tests."""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from cli import aws
from cli.errors import CliError, Exit
from lifecycle import console, deploy, destroy, project, retained
from lifecycle.resources import Resource

SESSION = boto3.Session(aws_access_key_id="a", aws_secret_access_key="b", region_name="eu-west-1")
PARAMETER = "/cdk-bootstrap/hnb659fds/version"
TEMPLATE = {"Resources": {}, "Parameters": {"BootstrapVersion": {"Default": PARAMETER}}}


class World:
    """An account: whether it is bootstrapped, the stack's status, what is retained; and what was done."""

    def __init__(self) -> None:
        self.bootstrapped = True
        self.status: str | None = None
        self.retained: list[retained.RetainedTable] = []
        self.switch: dict[str, Any] = {}
        self.zones = ["eu-west-1a", "eu-west-1b", "eu-west-1c"]
        self.resources: dict[str, Resource] = {}
        self.vpcs, self.quota = 1, 5.0
        self.refuses: dict[str, str] = {}
        self.done: list[tuple[str, ...]] = []
        self.typed: str | None = None

    def client(self, *_: Any, **__: Any) -> Any:
        return self

    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": "111122223333", "Arn": "arn:aws:iam::111122223333:user/ada"}

    def get_parameter(self, Name: str) -> dict[str, Any]:
        assert Name == PARAMETER
        if not self.bootstrapped:
            raise ClientError({"Error": {"Code": "ParameterNotFound", "Message": ""}}, "GetParameter")
        return {}

    def describe_availability_zones(self) -> dict[str, Any]:
        return {"AvailabilityZones": [{"ZoneName": zone, "State": "available"} for zone in self.zones]}

    def describe_subnets(self, Filters: list[dict[str, Any]]) -> dict[str, Any]:
        """Subnets are named for their zones here; there are no default ones."""
        if Filters[0]["Name"] == "default-for-az":
            return {"Subnets": []}
        return {"Subnets": [{"SubnetId": i, "AvailabilityZone": i} for f in Filters for i in f["Values"]]}

    def get_paginator(self, operation: str) -> Any:
        assert operation == "describe_vpcs"
        self._refuse(operation)
        shared = {"OwnerId": "444455556666"}
        pages = [{"Vpcs": [{"OwnerId": "111122223333"}] * self.vpcs}, {"Vpcs": [shared]}]
        return type("Pages", (), {"paginate": lambda _: pages})()

    def get_service_quota(self, **asked: str) -> dict[str, Any]:
        assert asked == {"ServiceCode": "vpc", "QuotaCode": "L-F678F1CE"}
        self._refuse("get_service_quota")
        return {"Quota": {"Value": self.quota}}

    def get_aws_default_service_quota(self, **_: str) -> dict[str, Any]:
        return {"Quota": {"Value": 5.0}}

    def _refuse(self, operation: str) -> None:
        if operation in self.refuses:
            raise ClientError({"Error": {"Code": self.refuses[operation], "Message": "no"}}, operation)

    def get_item(self, **_: Any) -> dict[str, Any]:
        return {"Item": self.switch} if self.switch else {}

    def cdk(self, _session: Any, *arguments: str, quiet: bool = False) -> None:
        self.done.append(arguments)
        if arguments[0] == "synth":
            folder = Path(arguments[arguments.index("--output") + 1])
            (folder / f"{arguments[1]}.template.json").write_text(json.dumps(TEMPLATE))

    def adopt(self, _session: Any, name: str, _template: Any, tables: Any) -> None:
        self.done.append(("adopt", name, *(table.name for table in tables.values())))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(aws, "make_session", lambda *_: SESSION)
    monkeypatch.setattr(aws, "client", world.client)
    monkeypatch.setattr(deploy, "cdk", world.cdk)
    monkeypatch.setattr(deploy, "find_stack", lambda *_: world.status and {"StackStatus": world.status})
    monkeypatch.setattr(deploy, "resources_of", lambda *_: world.resources)
    monkeypatch.setattr(retained, "find_retained", lambda *_: world.retained)
    monkeypatch.setattr(retained, "imports", lambda _, chosen: {f"Data{part}": t for part, t in chosen.items()})
    monkeypatch.setattr(retained, "adopt", world.adopt)
    monkeypatch.setattr(console, "interactive", lambda: world.typed is not None)
    return world


@pytest.fixture
def run(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def run(
        *settings: str,
        typed: str | None = None,
        yes: bool = False,
        adopt: str = "ask",
        name: str = "",
        stage: str | None = None,
    ) -> None:
        world.typed = typed
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed or ""))
        given = argparse.Namespace(deployment=name, stage=stage, yes=yes, adopt=adopt, context=list(settings))
        deploy.deploy(given)

    return run


Run = Callable[..., None]
Printed = pytest.CaptureFixture[str]


def old(name: str, part: str = "State") -> retained.RetainedTable:
    moment = datetime(2026, 11, 20, 10, tzinfo=UTC)
    return retained.RetainedTable(name, part, moment, 1, {})


def test_it_says_where_it_goes_and_asks(run: Run, world: World, capsys: Printed) -> None:
    run(typed="y\n")
    told = capsys.readouterr().out
    assert "Deployment Troop, account 111122223333, region eu-west-1, as arn:aws:iam::111122223333:user/ada" in told
    assert "Deploy Troop into account 111122223333, region eu-west-1? [y/N]" in told
    assert "It starts leashed" in told
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]
    assert world.done[1][-2:] == ("--require-approval", "broadening")


@pytest.mark.parametrize(("typed", "told"), [("n\n", "nothing was done"), ("", "nothing"), (None, "add YES=1")])
def test_without_a_yes_nothing_is_deployed(run: Run, world: World, typed: str | None, told: str) -> None:
    world.bootstrapped = False
    world.retained = [old("t")]
    with pytest.raises(CliError, match=told) as refused:
        run(typed=typed)
    assert refused.value.code == Exit.NOT_CONFIRMED
    assert [arguments[0] for arguments in world.done] == ["synth"]


def test_a_yes_beforehand_also_holds_for_wider_permissions(run: Run, world: World) -> None:
    run("troop:probability=0.1", yes=True, name="Troop-Staging")
    assert "troop:probability=0.1" in world.done[0]
    assert "troop:deployment=Troop-Staging" in world.done[0]
    assert world.done[1][:2] == ("deploy", "Troop-Staging")
    assert world.done[1][-1] == "never"


def test_a_stage_is_a_deployment_of_its_own(run: Run, world: World, capsys: Printed) -> None:
    run(yes=True, stage="prod")
    assert "Deployment Troop-prod, " in capsys.readouterr().out
    assert "troop:stage=prod" in world.done[0]
    assert world.done[1][:2] == ("deploy", "Troop-prod")
    world.done.clear()
    run(yes=True, stage="prod", name="Elsewhere")
    assert world.done[1][:2] == ("deploy", "Elsewhere")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"stage": "prd"}, "troop:stage is 'prd': must be spelled prod"),
        ({"stage": "prod", "name": "Troop"}, "the stage's deployment is Troop-prod: leave STAGE out to deploy Troop"),
    ],
)
def test_a_stage_that_is_not_meant_ends_it_first(run: Run, world: World, asked: dict[str, str], told: str) -> None:
    with pytest.raises(CliError, match=told) as refused:
        run(yes=True, **asked)
    assert refused.value.code == Exit.USAGE
    assert world.done == []


def test_bootstrapping_is_told_before_it_is_done(run: Run, world: World, capsys: Printed) -> None:
    world.bootstrapped = False
    run(typed="yes\n")
    told = capsys.readouterr().out
    assert told.index("cdk bootstrap aws://111122223333/eu-west-1") < told.index("[y/N]")
    assert [arguments[0] for arguments in world.done] == ["synth", "bootstrap", "deploy"]


@pytest.mark.parametrize("status", ["CREATE_IN_PROGRESS", "ROLLBACK_COMPLETE", "DELETE_FAILED"])
def test_a_stack_that_takes_no_deployment(run: Run, world: World, status: str) -> None:
    world.status = status
    with pytest.raises(CliError, match=status):
        run(yes=True)
    assert world.done == []


def test_an_update_looks_for_nothing_retained(run: Run, world: World, capsys: Printed) -> None:
    world.status, world.retained = "UPDATE_COMPLETE", [old("t")]
    run(yes=True)
    assert "brought up to date" in capsys.readouterr().out
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]


def test_retained_tables_are_told_and_taken_over(run: Run, world: World, capsys: Printed) -> None:
    world.retained = [old("Troop-State-1"), old("Troop-Events-1", "Events")]
    world.switch = {"leashed": {"BOOL": False}}
    run(typed="y\n")
    told = capsys.readouterr().out
    assert told.index("Troop-Events-1") < told.index("[y/N]")
    assert told.index("UNLEASHED (the switch in the retained table)") < told.index("[y/N]")
    assert world.done[1] == ("adopt", "Troop", "Troop-State-1", "Troop-Events-1")


def test_what_a_failed_creation_has_left_is_named_and_not_taken_over(run: Run, world: World, capsys: Printed) -> None:
    world.retained = [dataclasses.replace(old("Troop-State-1"), empty=True, stack="failed")]
    run(typed="y\n")
    told = capsys.readouterr().out
    assert "aws dynamodb delete-table --region eu-west-1 --table-name Troop-State-1" in told
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]


def test_retained_tables_are_left_alone_on_request(run: Run, world: World) -> None:
    world.retained = [old("t")]
    run(yes=True, adopt="none")
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]


def test_a_throw_away_deployment_takes_nothing_over(run: Run, world: World) -> None:
    world.retained = [old("t")]
    with pytest.raises(CliError, match="would delete them"):
        run("troop:retain_data=false", yes=True)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("troop:probabilty=1", "spelled troop:probability"),
        ("troop:probability", "KEY=VALUE"),
        ("troop:method=x", "one of"),
    ],
)
def test_a_bad_setting_ends_it_first(run: Run, world: World, setting: str, told: str) -> None:
    with pytest.raises(CliError, match=told) as refused:
        run(setting, yes=True)
    assert refused.value.code == Exit.USAGE
    assert world.done == []


@pytest.mark.parametrize(
    ("endpoint", "settings", "bundled"),
    [
        ("http://127.0.0.1:4566", (), "machine"),
        ("http://localhost:4566", ("troop:bundle=machine",), "machine"),
        ("http://vpce-1.cloudformation.eu-west-1.vpce.amazonaws.com", (), None),
        ("", ("troop:bundle=lambda",), "lambda"),
    ],
)
def test_functions_get_what_the_machine_that_runs_them_can_import(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch, endpoint: str, settings: tuple[str, ...], bundled: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    run(*settings, yes=True)
    told = [argument for argument in world.done[0] if argument.startswith("troop:bundle=")]
    assert told == ([f"troop:bundle={bundled}"] if bundled else [])


@pytest.mark.parametrize(
    ("endpoint", "bundle", "where"),
    [("http://127.0.0.1:4566", "lambda", "AWS on this machine"), ("", "machine", "AWS itself")],
)
def test_layers_for_another_kind_of_machine_are_refused(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch, endpoint: str, bundle: str, where: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(CliError, match=f"functions of {where} cannot import") as refused:
        run(f"troop:bundle={bundle}", yes=True)
    assert refused.value.code == Exit.USAGE
    assert world.done == []


def zones_of(world: World) -> list[str]:
    return [word for word in world.done[0] if word.startswith("troop:zones=")]


def test_zones_are_named_once_and_for_all(run: Run, world: World, capsys: Printed) -> None:
    world.zones.reverse()
    run(typed="y\n")
    told = capsys.readouterr().out
    assert told.index("a subnet in each of eu-west-1a, eu-west-1b, eu-west-1c") < told.index("[y/N]")
    assert zones_of(world) == ["troop:zones=eu-west-1a,eu-west-1b,eu-west-1c"]


def test_subnets_stay_where_they_are_whatever_the_region_has_now(run: Run, world: World) -> None:
    world.status, world.zones = "UPDATE_COMPLETE", ["eu-west-1a", "eu-west-1b", "eu-west-1c", "eu-west-1d"]
    prefix = "BenchmarksNetworkVpcNodesSubnet"
    world.resources = {
        "BenchmarksNetworkVpc0123ABCD": Resource("AWS::EC2::VPC", "vpc-1"),
        f"{prefix}1Subnet0123ABCD": Resource("AWS::EC2::Subnet", "eu-west-1b"),
        f"{prefix}2Subnet0123ABCD": Resource("AWS::EC2::Subnet", "eu-west-1d"),
        f"{prefix}2RouteTable0123ABCD": Resource("AWS::EC2::RouteTable", "rtb-1"),
    }
    world.vpcs = 5  # of which this is one
    run(yes=True)
    assert zones_of(world) == ["troop:zones=eu-west-1b,eu-west-1d,eu-west-1a"]
    world.done.clear()
    run("troop:zones=2", yes=True)
    assert zones_of(world) == ["troop:zones=eu-west-1b,eu-west-1d"]
    world.done.clear()
    with pytest.raises(CliError, match="must begin with eu-west-1b, eu-west-1d"):
        run("troop:zones=eu-west-1a,eu-west-1d", yes=True)
    assert world.done == []


def test_fewer_zones_than_wanted_are_taken_and_told(run: Run, world: World, capsys: Printed) -> None:
    world.zones.pop()
    run(typed="y\n")
    told = capsys.readouterr().out
    assert told.index("troop:zones is 3, and eu-west-1 has 2") < told.index("-c troop:zones=2") < told.index("[y/N]")
    assert zones_of(world) == ["troop:zones=eu-west-1a,eu-west-1b"]


def test_a_zone_the_region_does_not_have_is_refused(run: Run, world: World) -> None:
    with pytest.raises(CliError, match="eu-west-1z is not: it has eu-west-1a, eu-west-1b, eu-west-1c") as refused:
        run("troop:zones=eu-west-1a,eu-west-1z", yes=True)
    assert refused.value.code == Exit.USAGE
    assert world.done == []


GIVEN = 'troop:network={"vpc": "vpc-0123abcd", "subnets": ["subnet-0123abcd"]}'


def test_a_network_beyond_the_quota_is_refused_before_anything_is_made(run: Run, world: World) -> None:
    world.vpcs = 5
    with pytest.raises(CliError, match=r"5 of the 5 VPCs.*troop:network.*troop:benchmarks=false"):
        run(yes=True)
    world.refuses = {"get_service_quota": "NoSuchResourceException"}  # the account has none of its own
    with pytest.raises(CliError, match="5 of the 5 VPCs"):
        run(yes=True)
    assert world.done == []


@pytest.mark.parametrize("settings", [(GIVEN,), ("troop:benchmarks=false",)])
def test_without_a_network_of_its_own_nothing_is_asked_of_it(run: Run, world: World, settings: tuple[str, ...]) -> None:
    world.vpcs = 5
    run(*settings, yes=True)
    assert zones_of(world) == []


@pytest.mark.parametrize("operation", ["get_service_quota", "describe_vpcs"])
def test_a_quota_that_nobody_tells_ends_nothing(run: Run, world: World, operation: str, capsys: Printed) -> None:
    world.refuses = {operation: "AccessDeniedException"}
    run(yes=True)
    assert f"could not be found out (An error occurred (AccessDeniedException) when calling the {operation}" in (
        capsys.readouterr().out
    )
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]


def test_starting_unleashed_is_said_aloud(run: Run, capsys: Printed) -> None:
    run("troop:leashed=false", yes=True)
    assert "It starts UNLEASHED (troop:leashed)" in capsys.readouterr().out


def test_the_cdk_is_run_with_the_sessions_region(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "cdk"
    script.write_text('#!/bin/sh\necho "$AWS_REGION $NODE_EXTRA_CA_CERTS $*"; exit ${CDK_CODE:-0}\n')
    script.chmod(0o755)
    monkeypatch.setattr(project, "CDK", script)
    monkeypatch.setenv("AWS_CA_BUNDLE", "/ca.pem")
    monkeypatch.setenv("CDK_CODE", "3")
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    with pytest.raises(CliError, match=r"cdk synth failed \(3\)"):
        project.cdk(SESSION, "synth", "Troop", quiet=True)
    assert stderr.getvalue().startswith("eu-west-1 /ca.pem synth Troop")


@pytest.mark.parametrize(("typed", "given", "fine"), [("Troop\n", None, True), ("troop\n", None, False),
                                                      ("", None, False), (None, None, False), (None, "Troop", True),
                                                      (None, "Trop", False)])  # fmt: skip
def test_removing_takes_the_name(
    monkeypatch: pytest.MonkeyPatch, typed: str | None, given: str | None, fine: bool
) -> None:
    monkeypatch.setattr(destroy, "interactive", lambda: typed is not None)
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed or ""))
    if fine:
        destroy._confirm("Troop", given)
    else:
        with pytest.raises(CliError) as refused:
            destroy._confirm("Troop", given)
        assert refused.value.code == Exit.NOT_CONFIRMED
        nobody = typed is None and given is None
        assert ("add CONFIRM=Troop" if nobody else "nothing was removed") in str(refused.value)


def test_errors_are_one_line_and_a_code(capsys: Printed) -> None:
    def fail() -> None:
        raise CliError(Exit.NO_DEPLOYMENT, "there is none")

    assert console.run(fail) == Exit.NO_DEPLOYMENT
    assert capsys.readouterr().err == "there is none\n"
