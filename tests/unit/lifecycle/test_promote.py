"""`make promote`: which deployments get the release, what is shown before, and where it ends."""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.credentials import Credentials

from cli.client import everywhere
from cli.shared import aws, times
from cli.shared.errors import CliError, Exit
from infra import release
from infra.settings_record import record_in
from lifecycle import deploy, project, promote
from lifecycle.deploy import Vet
from lifecycle.promotion import Evidence
from tests.unit.lifecycle.test_promotion import AT_FRIDAY, EVENING, RELEASE
from tests.unit.lifecycle.world import SESSION, Printed, World, synthesised
from troop.shared.outputs import RELEASE_METADATA
from troop.shared.release import Release

FILE = """
deployments:
- {name: Troop-staging, region: eu-west-1, stage: staging}
- {name: Troop-prod, region: eu-west-1, stage: prod, role: "arn:aws:iam::111122223333:role/deployer"}
- {name: Troop-prod, region: us-east-1, stage: prod, role: "arn:aws:iam::444455556666:role/deployer"}
"""
WEST, EAST = "Troop-prod (prod, eu-west-1)", "Troop-prod (prod, us-east-1)"


@dataclass
class Stages:
    """The deployments of the file: what staging shows, what is synthesised, and what was deployed."""

    evidence: Evidence = AT_FRIDAY
    release: Release = RELEASE
    differing: tuple[str, ...] = ()
    fails: int = 99
    alarm: str = ""
    deployed: list[tuple[str, str, bool]] = field(default_factory=list)

    @property
    def template(self) -> dict[str, Any]:
        template = synthesised(["troop:stage=prod"])
        return {**template, "Metadata": template["Metadata"] | {RELEASE_METADATA: json.dumps(self.release.document())}}

    def deploy(self, args: argparse.Namespace, session: boto3.Session, vet: Vet, *, check: bool) -> None:
        vet(self.template)
        if len(self.deployed) >= self.fails:
            raise CliError(Exit.FAILED, "cdk deploy failed (1)")
        self.deployed.append((args.deployment, args.stage, check))
        if self.alarm:
            self.evidence = replace(self.evidence, alarms=((self.alarm, EVENING),))


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> Stages:
    stages = Stages()
    client = type("Client", (), {"health": lambda _: {}})()
    monkeypatch.setattr(everywhere, "connect", lambda _: type("Connection", (), {"client": client}))
    monkeypatch.setattr(aws, "make_session", lambda *_: SESSION)
    monkeypatch.setattr(times, "now", lambda: EVENING)
    monkeypatch.setattr(release, "commit", lambda: RELEASE.commit)
    monkeypatch.setattr(promote, "read_evidence", lambda *_: stages.evidence)
    monkeypatch.setattr(promote, "deploy", stages.deploy)
    monkeypatch.setattr(promote, "template_of", lambda *_: stages.template)
    monkeypatch.setattr(promote, "resources_of", lambda *_: {})
    monkeypatch.setattr(promote, "changed_code", lambda *_: stages.differing)
    return stages


Promote = Callable[..., None]


@pytest.fixture
def run(tmp_path: Path) -> Promote:
    (tmp_path / "deployments.yaml").write_text(FILE)

    def run(before: str | None = "staging", to: str = "prod", days: int = 2, **options: bool) -> None:
        chosen = {"check": False, "yes": True, "keep": False, "reset": False, **options}
        file = str(tmp_path / "deployments.yaml")
        promote.promote(argparse.Namespace(before=before, to=to, days=days, deployments=file, **chosen))

    return run


def test_a_release_goes_to_all_deployments_of_the_next_stage(run: Promote, stages: Stages, capsys: Printed) -> None:
    run()
    assert stages.deployed == [("Troop-prod", "prod", False)] * 2
    printed = capsys.readouterr().out
    assert printed.index(f"== {WEST} (1 of 2)") < printed.index(f"== {EAST} (2 of 2)")
    assert printed.count("runs the release, by the hashes that Lambda reports") == 2


def test_a_label_chooses_a_single_deployment(run: Promote, stages: Stages) -> None:
    run(to=EAST)
    assert len(stages.deployed) == 1


def test_check_deploys_nothing_and_shows_how_settings_differ(run: Promote, stages: Stages, capsys: Printed) -> None:
    stages.evidence = replace(AT_FRIDAY, settings=record_in(synthesised(["troop:stage=staging"])))
    run(check=True)
    assert {check for _, _, check in stages.deployed} == {True}
    printed = capsys.readouterr().out
    assert "Settings that differ from Troop-staging:" in printed
    assert "troop:min_healthy: 2 there, 3 here" in printed
    assert "runs the release" not in printed


def test_too_young_a_release_is_deployed_nowhere(run: Promote, stages: Stages) -> None:
    with pytest.raises(CliError, match=r"Troop-staging: has run this release for 2 of 5 business days") as refused:
        run(days=5)
    assert refused.value.code is Exit.FAILED
    assert stages.deployed == []


def test_first_stage_follows_on_none(run: Promote, stages: Stages, capsys: Printed) -> None:
    run(before="none", to="staging", days=5)
    assert stages.deployed == [("Troop-staging", "staging", False)]
    assert "FROM=none: no deployment has proven this release" in capsys.readouterr().out


@pytest.mark.parametrize("before", ["none", "staging"])
def test_changes_without_a_commit_are_named_and_deployed_nowhere(
    run: Promote, stages: Stages, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    monkeypatch.setattr(release, "commit", lambda: None)
    monkeypatch.setattr(release, "changes", lambda: "?? functions/new.py")
    with pytest.raises(CliError, match=r"needs a commit: commit or remove what differs:\n\?\? functions/new.py"):
        run(before=before)
    assert stages.deployed == []


def test_a_failure_ends_the_rollout_and_names_both_halves(run: Promote, stages: Stages) -> None:
    stages.fails = 1
    with pytest.raises(CliError) as failed:
        run()
    assert f"Deployed: {WEST}; not: {EAST}" in str(failed.value)
    assert str(failed.value).startswith(f"{EAST}: cdk deploy failed")


def test_an_alarm_of_the_stage_before_ends_the_rollout_between_deployments(run: Promote, stages: Stages) -> None:
    stages.alarm = "Troop-staging-TicksFailed"
    with pytest.raises(CliError, match="alarm Troop-staging-TicksFailed was on"):
        run()
    assert len(stages.deployed) == 1


def test_other_code_in_lambda_after_the_deployment_fails(run: Promote, stages: Stages) -> None:
    stages.differing = ("FunctionsDecide",)
    with pytest.raises(CliError, match="does not run the release: FunctionsDecide have other code"):
        run()
    assert len(stages.deployed) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"to": "prd"}, "has no deployment of the stage prd"),
        ({"before": "prod"}, "would follow on itself"),
        ({"before": None}, "FROM is missing: the stage before, or FROM=none"),
        ({"days": -1}, "between 0 and 20, because CloudWatch keeps the history of alarms for 30 days"),
        ({"days": 21}, "between 0 and 20"),
    ],
)
def test_stages_and_days_that_make_no_sense_are_refused(run: Promote, words: dict[str, Any], message: str) -> None:
    with pytest.raises(CliError, match=message) as refused:
        run(**words)
    assert refused.value.code is Exit.USAGE


def test_a_check_ends_before_the_first_change(world: World, monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    world.deployed_with("troop:probability=0.05")
    names = ("deployment", "stage", "adopt", "repair", "unleashed", "yes", "keep", "reset")
    options = argparse.Namespace(context=[], **dict.fromkeys(names))
    options.adopt, options.reset = "ask", True
    deploy.deploy(options, SESSION, lambda template: None, check=True)
    assert [command[0] for command in world.done] == ["synth"]
    assert "troop:probability: 0.05 -> 0.2" in capsys.readouterr().out

    def refuse(_: Mapping[str, Any]) -> None:
        raise CliError(Exit.FAILED, "too young")

    with pytest.raises(CliError, match="too young"):
        deploy.deploy(options, SESSION, refuse)
    assert [command[0] for command in world.done] == ["synth", "synth"]


class Chained(botocore.session.Session):
    """A session of a profile whose role is assumed with the environment's keys."""

    full_config = {  # noqa: RUF012 as botocore's
        "profiles": {"prod": {"source_profile": "hub"}, "hub": {"credential_source": "Environment"}}
    }

    def get_credentials(self, *_: Any, **__: Any) -> Any:
        return Keys.lent


class Keys(aws.Session):
    """A session in a role, as entries of the file with one have."""

    lent = Credentials("AKIA", "secret", "token")


LENT = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}
MINE = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"), "mine")


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        (Keys(), LENT),
        (botocore.session.Session(profile="prod"), {"AWS_PROFILE": "prod"}),  # boto3 ignores the keys, too
        (Chained(profile="prod"), LENT),
        (botocore.session.Session(), {"AWS_PROFILE": "own", **MINE}),
    ],
)
def test_the_cdk_acts_as_the_session_does(
    monkeypatch: pytest.MonkeyPatch, session: Any, expected: Mapping[str, str]
) -> None:
    seen: dict[str, str] = {}

    def run(*_: Any, env: dict[str, str], **__: Any) -> Any:
        seen.update({key: value for key, value in env.items() if key.startswith(("AWS_A", "AWS_S", "AWS_P"))})
        return subprocess.CompletedProcess([], 0)

    for name, value in {**MINE, "AWS_PROFILE": "own"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(subprocess, "run", run)
    session.set_config_variable("region", "eu-west-1")
    project.cdk(type("Wrapped", (), {"_session": session, "region_name": "eu-west-1"})(), "deploy")
    assert seen == expected
