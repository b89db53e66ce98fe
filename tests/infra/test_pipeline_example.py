"""The pipeline that promotes: it builds once, checks, asks, deploys, and may only assume the deployers' roles."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.client import deployments_file
from infra import ROOT
from tests.infra.cfn import text

EXAMPLE = ROOT / "examples" / "pipeline"
LISTED = deployments_file.read(EXAMPLE / "deployments.yaml")


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The template, with the flags of the checkout's cdk.json."""
    return synthesise(tmp_path_factory.mktemp("pipeline"), json.loads((ROOT / "cdk.json").read_text())["context"])


def synthesise(folder: Path, context: Mapping[str, Any]) -> dict[str, Any]:
    """Fails on a finding of AwsSolutions without a reason. Its own process reads the context."""
    variables = {"CDK_OUTDIR": str(folder), "CDK_CONTEXT_JSON": json.dumps(context)}
    subprocess.run([sys.executable, str(EXAMPLE / "pipeline.py")], env=os.environ | variables, check=True)
    template: dict[str, Any] = json.loads((folder / "TroopPromotion.template.json").read_text())
    return template


def properties(pipeline: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {name: one["Properties"] for name, one in pipeline["Resources"].items() if one["Type"] == kind}


def stages_of(pipeline: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The actions of each stage, in their order."""
    (one,) = properties(pipeline, "AWS::CodePipeline::Pipeline").values()
    return {s["Name"]: sorted(s["Actions"], key=lambda action: action["RunOrder"]) for s in one["Stages"]}


def spec_of(pipeline: Mapping[str, Any], action: Mapping[str, Any]) -> dict[str, Any]:
    project = pipeline["Resources"][action["Configuration"]["ProjectName"]["Ref"]]["Properties"]
    spec: dict[str, Any] = json.loads(project["Source"]["BuildSpec"])
    return spec


def command_of(pipeline: Mapping[str, Any], action: Mapping[str, Any]) -> str:
    (command,) = spec_of(pipeline, action)["phases"]["build"]["commands"]
    return str(command)


def test_prod_is_checked_then_approved_and_only_then_deployed(pipeline: dict[str, Any]) -> None:
    stages = stages_of(pipeline)
    assert [(stage, [one["Name"] for one in actions]) for stage, actions in stages.items()] == [
        ("Source", ["Source"]),
        ("Build", ["Build"]),
        ("Staging", ["Deploy"]),
        ("Prod", ["Check", "Approval", "Deploy"]),
    ]
    check, approval, deploy = stages["Prod"]
    assert [one["RunOrder"] for one in stages["Prod"]] == [1, 2, 3]
    assert approval["ActionTypeId"]["Category"] == "Approval"
    assert command_of(pipeline, check) == "make promote FROM=staging TO=prod DAYS=3 CHECK=1"
    assert command_of(pipeline, deploy) == "make promote FROM=staging TO=prod DAYS=3 YES=1"
    assert command_of(pipeline, stages["Staging"][0]) == "make promote FROM=none TO=staging DAYS=0 YES=1"


def test_a_project_without_flags_of_the_cdk_can_synthesise_it_too(tmp_path: Path) -> None:
    assert stages_of(synthesise(tmp_path, {}))


def test_every_stage_deploys_what_was_built_once_from_one_commit(pipeline: dict[str, Any]) -> None:
    stages = stages_of(pipeline)
    (source,), (build,) = stages["Source"], stages["Build"]
    assert build["InputArtifacts"] == source["OutputArtifacts"]
    later = [one for stage in ("Staging", "Prod") for one in stages[stage] if one["Name"] != "Approval"]
    assert all(one["InputArtifacts"] == build["OutputArtifacts"] for one in later)
    commit = {"name": "TROOP_COMMIT", "type": "PLAINTEXT", "value": "#{Source.CommitId}"}
    for action in (build, *later):
        assert json.loads(action["Configuration"]["EnvironmentVariables"]) == [commit]
    artifacts = spec_of(pipeline, build)["artifacts"]
    assert artifacts["files"] == ["**/*"]  # also .build, with the archives
    assert not any(path.startswith(".build") for path in artifacts["exclude-paths"])


def test_projects_may_only_assume_the_roles_of_their_stages(pipeline: dict[str, Any]) -> None:
    roles = {stage: sorted({str(one.role) for one in LISTED if one.stage == stage}) for stage in ("staging", "prod")}
    assert all(roles.values())
    assumed = {}
    for policy in properties(pipeline, "AWS::IAM::Policy").values():
        (role,) = policy["Roles"]
        for statement in policy["PolicyDocument"]["Statement"]:
            resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
            if statement["Action"] == "sts:AssumeRole" and "deployer" in str(resources):
                assumed[re.sub(r"Role\w+$", "", role["Ref"])] = sorted(resources)
    both = sorted(roles["staging"] + roles["prod"])
    assert assumed == {"DeployStaging": roles["staging"], "CheckProd": both, "DeployProd": both}
    assert pipeline["Outputs"].keys() == {f"{project}Role" for project in assumed}  # for the roles' trust policies


def test_artifacts_are_private_encrypted_and_expire(pipeline: dict[str, Any]) -> None:
    (bucket,) = properties(pipeline, "AWS::S3::Bucket").values()
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    assert bucket["LifecycleConfiguration"]["Rules"][0]["ExpirationInDays"] == 90
    assert "AES256" in text(json.dumps(bucket["BucketEncryption"]))
    assert not properties(pipeline, "AWS::KMS::Key")


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (
            "make promote FROM=staging TO=prod DAYS=3 CHECK=1",
            ["--from", "staging", "--to", "prod", "--days", "3", "--check"],
        ),
        (
            "make promote FROM=none TO=staging DAYS=0 YES=1",
            ["--from", "none", "--to", "staging", "--days", "0", "--yes"],
        ),
        ("make promote TO=prod FROM=staging DEPLOYMENTS=all.yaml KEEP=1", None),
    ],
)
def test_make_passes_its_options_on(command: str, options: list[str] | None) -> None:
    recipe = subprocess.run(
        ["make", "-s", "-n", *shlex.split(command)[1:]], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    words = " ".join(shlex.split(recipe.replace("\\\n", " ").split("-m lifecycle.promote ")[1]))
    expected = " ".join(options or ["--from", "staging", "--to", "prod", "--deployments", "all.yaml", "--keep"])
    assert words.replace("=", " ") == expected


def test_setup_executes_no_file_of_the_source_directly(pipeline: dict[str, Any]) -> None:
    """CodePipeline does not keep the permission to execute of a source from GitHub."""
    (install,) = spec_of(pipeline, stages_of(pipeline)["Build"][0])["phases"]["install"]["commands"]
    recipes = subprocess.run(
        ["make", "-n", "-B", *shlex.split(install)[1:]], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "scripts/venv" in recipes
    assert not re.findall(r"^scripts/\S+", recipes, re.MULTILINE)


def test_its_stages_and_commands_exist() -> None:
    known = json.loads((ROOT / "cdk.json").read_text())["context"]["troop:stages"]
    assert {one.stage for one in LISTED} <= set(known)
    targets = re.findall(r"^([\w./$()-]+):", Path(ROOT / "Makefile").read_text(), re.MULTILINE)
    source = (EXAMPLE / "pipeline.py").read_text()
    install = re.search(r"make (\.venv/.ready[^\"]*)", source)
    assert install
    assert {target.replace(".venv/bin", "$(BIN)") for target in install[1].split()} <= set(targets)
