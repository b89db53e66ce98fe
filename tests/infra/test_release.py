"""The release: which code a template deploys, and that stages differ in settings alone."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from infra import ROOT
from infra import release as releases
from infra.bundling import AGENT, archive, bundle
from infra.release import COMMIT, release
from tests.infra.cfn import resources_of, text
from troop.shared.outputs import RELEASE_METADATA
from troop.shared.version import VERSION

Template = Mapping[str, Any]

CODE = "0f" * 20


def code_of(template: Template) -> tuple[dict[str, Any], Any]:
    """The archive of each layer by its name, and those of the functions."""
    layers = resources_of(template, "AWS::Lambda::LayerVersion")
    functions = resources_of(template, "AWS::Lambda::Function").values()
    by_layer = {name: text(one["Properties"]["Content"]["S3Key"]) for name, one in layers.items()}
    return by_layer, {text(one["Properties"]["Code"]["S3Key"]) for one in functions}


def test_stages_deploy_the_same_archives_with_other_settings(synthesised: Callable[..., Template]) -> None:
    staging, prod = synthesised(stage="staging"), synthesised(stage="prod")
    (staging_layers, staging_code), (prod_layers, prod_code) = code_of(staging), code_of(prod)
    assert staging_code == prod_code
    assert {name for name in staging_layers if staging_layers[name] != prod_layers[name]} == {"SettingsLayer"}
    assert staging["Metadata"][RELEASE_METADATA] == prod["Metadata"][RELEASE_METADATA]


def test_functions_of_a_stage_know_it(synthesised: Callable[..., Template], template: Template) -> None:
    for one, stage in ((synthesised(stage="prod"), "prod"), (template, None)):
        functions = resources_of(one, "AWS::Lambda::Function").values()
        assert {each["Properties"]["Environment"]["Variables"].get("TROOP_STAGE") for each in functions} == {stage}


def test_the_template_names_what_lambda_gets(template: Template) -> None:
    bundled = bundle("lambda", "{}")
    folders = {"functions": bundled.code, **bundled.layers}
    expected = {name: hashlib.sha256(archive(folder).read_bytes()).hexdigest() for name, folder in folders.items()}
    document = json.loads(template["Metadata"][RELEASE_METADATA])
    assert document["version"] == VERSION
    assert document["assets"].items() >= expected.items()
    assert document["assets"].keys() == {*expected, "agent", "workflows"}
    agent = hashlib.sha256((bundled.code / AGENT).read_bytes()).hexdigest()
    assert document["assets"]["agent"] == agent


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a workflow, of which nothing has changed."""
    monkeypatch.delenv(COMMIT, raising=False)
    monkeypatch.setattr(releases, "ROOT", tmp_path)
    (tmp_path / "statemachines").mkdir()
    (tmp_path / "statemachines" / "chaos.asl.json").write_text("{}")
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "one")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def commit() -> str | None:
    return release({}, ROOT / "cdk.json").commit


def test_release_of_a_checkout_names_its_commit(checkout: Path) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True, check=True)
    assert commit() == head.stdout.strip()


def test_checkout_with_changes_is_of_no_commit(checkout: Path) -> None:
    (checkout / "statemachines" / "chaos.asl.json").write_text("[]")
    assert commit() is None


def test_a_new_list_of_deployments_is_no_change_of_code(checkout: Path) -> None:
    (checkout / "deployments.yaml").write_text("deployments: []")
    assert commit()
    (checkout / "new.py").write_text("")
    assert commit() is None
    assert releases.changes() == "?? new.py"


def test_package_in_the_checkout_of_another_project_is_of_no_commit(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "ROOT", checkout / "statemachines")
    assert commit() is None


def test_pipeline_names_the_commit_where_there_is_no_checkout(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no git
    assert commit() is None
    monkeypatch.setenv(COMMIT, CODE)
    assert commit() == CODE


def test_another_workflow_is_another_release(checkout: Path) -> None:
    before = release({}, ROOT / "cdk.json").assets
    (checkout / "statemachines" / "chaos.asl.json").write_text("[]")
    after = release({}, ROOT / "cdk.json").assets
    assert (before["agent"], before["workflows"]) != (after["agent"], after["workflows"])
    assert before["agent"] == after["agent"]
