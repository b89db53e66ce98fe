"""What both commands ask, refuse and hand to the CDK, with AWS and the CDK played by the tests."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import pytest

from cli.shared.errors import CliError, Exit
from lifecycle import console, destroy, project
from lifecycle.resources import Resource
from tests.unit.lifecycle.world import DEPLOYED, SESSION, TABLES, Printed, Run, World, old


def test_deployment_shows_its_target_and_needs_confirmation(run: Run, world: World, capsys: Printed) -> None:
    run(typed="y\n")
    output = capsys.readouterr().out
    assert "Deployment Troop, account 111122223333, region eu-west-1, as arn:aws:iam::111122223333:user/ada" in output
    assert "Deploy Troop into account 111122223333, region eu-west-1? [y/N]" in output
    assert "It starts leashed" in output
    assert [arguments[0] for arguments in world.done] == ["synth", "deploy"]
    assert world.done[1][-2:] == ("--require-approval", "broadening")


@pytest.mark.parametrize(
    ("typed", "message"), [("n\n", "nothing was changed"), ("", "nothing"), (None, "rerun with YES=1")]
)
def test_without_a_yes_nothing_is_deployed(run: Run, world: World, typed: str | None, message: str) -> None:
    world.bootstrapped = None
    world.retained = [old("t")]
    with pytest.raises(CliError, match=message) as refused:
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
    ("options", "message"),
    [
        ({"stage": "prd"}, "troop:stage is 'prd': must be spelled prod"),
        ({"stage": "prod", "name": "Troop"}, "the stage's deployment is Troop-prod: omit STAGE to deploy Troop"),
    ],
)
def test_a_stage_that_is_not_meant_ends_it_first(run: Run, world: World, options: dict[str, str], message: str) -> None:
    with pytest.raises(CliError, match=message) as refused:
        run(yes=True, **options)
    assert refused.value.code == Exit.USAGE
    assert world.done == []


def test_bootstrapping_is_announced_before_it_begins(run: Run, world: World, capsys: Printed) -> None:
    world.bootstrapped = None
    run(typed="yes\n")
    output = capsys.readouterr().out
    assert output.index("cdk bootstrap aws://111122223333/eu-west-1") < output.index("[y/N]")
    assert [arguments[0] for arguments in world.done] == ["synth", "bootstrap", "deploy"]


@pytest.mark.parametrize("version", ["5", "none"])
def test_a_bootstrap_that_is_too_old_is_refused_before_anything_is_done(run: Run, world: World, version: str) -> None:
    world.bootstrapped, world.retained = version, [old("t")]
    with pytest.raises(CliError, match=f"has version {version}, but Troop requires 6. .* aws://111122223333/eu-west-1"):
        run(yes=True)
    assert [arguments[0] for arguments in world.done] == ["synth"]


@pytest.mark.parametrize(
    ("status", "has"),
    [
        ("CREATE_IN_PROGRESS", {}),
        ("IMPORT_IN_PROGRESS", {}),
        ("ROLLBACK_COMPLETE", {}),
        ("DELETE_FAILED", DEPLOYED),
        ("IMPORT_ROLLBACK_FAILED", TABLES),
    ],
)
def test_a_stack_that_takes_no_deployment(run: Run, world: World, status: str, has: dict[str, Resource]) -> None:
    world.status, world.resources = status, has
    with pytest.raises(CliError, match=status):
        run(yes=True)
    assert world.done == []


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("troop:probabilty=1", "spelled troop:probability"),
        ("troop:probability", "KEY=VALUE"),
        ("troop:method=x", "one of"),
        ("troop:deployment=bad name!", "'bad name!': must be a letter, then letters, digits and hyphens"),
    ],
)
def test_a_bad_setting_ends_it_first(run: Run, world: World, setting: str, message: str) -> None:
    with pytest.raises(CliError, match=message) as refused:
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
    bundles = [argument for argument in world.done[0] if argument.startswith("troop:bundle=")]
    assert bundles == ([f"troop:bundle={bundled}"] if bundled else [])


@pytest.mark.parametrize(
    ("endpoint", "bundle", "where"),
    [("http://127.0.0.1:4566", "lambda", "local AWS"), ("", "machine", "AWS")],
)
def test_layers_for_another_kind_of_machine_are_refused(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch, endpoint: str, bundle: str, where: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(CliError, match=f"functions in {where} cannot import") as refused:
        run(f"troop:bundle={bundle}", yes=True)
    assert refused.value.code == Exit.USAGE
    assert world.done == []


def test_unleashed_start_is_emphasized(run: Run, capsys: Printed) -> None:
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


@pytest.mark.parametrize(("typed", "confirmation", "fine"), [("Troop\n", None, True), ("troop\n", None, False),
                                                      ("", None, False), (None, None, False), (None, "Troop", True),
                                                      (None, "Trop", False)])  # fmt: skip
def test_removing_takes_the_name(
    monkeypatch: pytest.MonkeyPatch, typed: str | None, confirmation: str | None, fine: bool
) -> None:
    monkeypatch.setattr(console, "interactive", lambda: typed is not None)
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed or ""))
    if fine:
        destroy._confirm("Troop", confirmation)
    else:
        with pytest.raises(CliError) as refused:
            destroy._confirm("Troop", confirmation)
        assert refused.value.code == Exit.NOT_CONFIRMED
        nobody = typed is None and confirmation is None
        assert ("rerun with CONFIRM=Troop" if nobody else "nothing was removed") in str(refused.value)


def test_impossible_name_of_a_deployment_is_refused() -> None:
    options = argparse.Namespace(deployment="bad name!", stage=None, confirm=None)
    with pytest.raises(CliError, match="'bad name!' cannot be a deployment's name"):
        destroy.destroy(options)


def test_errors_are_one_line_and_a_code(capsys: Printed) -> None:
    def fail() -> None:
        raise CliError(Exit.NO_DEPLOYMENT, "there is none")

    assert console.run(fail) == Exit.NO_DEPLOYMENT
    assert capsys.readouterr().err == "there is none\n"
