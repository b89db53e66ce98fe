"""The examples for pipelines: what they run exists, and their role may do what deploying and `troop doctor` need."""

from __future__ import annotations

import fnmatch
import json
import re
import runpy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from aws_cdk.assertions import Template

from infra import ROOT
from tests.infra.conftest import Synthesised
from troop.shared.outputs import API_URL

CI = ROOT / "examples" / "ci"
PLACES = {"${AWS::Partition}": "aws", "${AWS::AccountId}": "111122223333", "${AWS::Region}": "eu-central-1"}
POLICY = json.loads((CI / "deployer-policy.json").read_text())
API = "arn:aws:execute-api:eu-central-1:111122223333:a1b2c3/v1"


def _strings(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _allowed(action: str, resource: str) -> bool:
    return any(
        action in _strings(statement["Action"]) and fnmatch.fnmatchcase(resource, pattern)
        for statement in POLICY["Statement"]
        for pattern in _strings(statement["Resource"])
    )


def _roles(value: Any, key: str = "") -> Iterator[str]:
    """The roles of the CDK that its CLI assumes, from the manifests of an assembly."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _roles(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _roles(inner, key)
    elif isinstance(value, str) and ":role/cdk-" in value and key in ("assumeRoleArn", "arn"):
        for name, text in PLACES.items():
            value = value.replace(name, text)
        yield value


def test_the_role_may_assume_every_role_that_the_cdk_assumes(cli_synth: Synthesised) -> None:
    roles = {*_roles(cli_synth.read("manifest.json")), *_roles(cli_synth.read("Troop.assets.json"))}
    assert len(roles) == 3
    assert [role for role in roles if not _allowed("sts:AssumeRole", role)] == []
    # CloudFormation passes this one to itself; whoever assumes it can do anything.
    assert not _allowed(
        "sts:AssumeRole", "arn:aws:iam::111122223333:role/cdk-hnb659fds-cfn-exec-role-111122223333-eu-central-1"
    )


@pytest.mark.parametrize("path", ["GET/health", "GET/groups", "GET/switch"])
def test_the_role_may_call_doctor(path: str) -> None:
    assert _allowed("execute-api:Invoke", f"{API}/{path}")
    assert _allowed(
        "cloudformation:DescribeStacks", "arn:aws:cloudformation:eu-central-1:111122223333:stack/Troop/1-2-3"
    )


def test_the_role_may_change_nothing_through_the_api() -> None:
    description = json.loads((ROOT / "docs" / "reference" / "openapi.json").read_text())
    for path, methods in description["paths"].items():
        for method in methods:
            if method != "get":
                assert not _allowed("execute-api:Invoke", f"{API}/{method.upper()}{path}"), (method, path)
    assert API_URL == "ApiUrl"


def test_the_workflow_is_valid_and_pins_its_actions() -> None:
    workflow = yaml.safe_load((CI / "github-actions.yml").read_text())
    assert {"pull_request", "push"} == workflow[True].keys()  # YAML reads the key `on` as a boolean
    assert workflow["permissions"] == {"contents": "read"}
    assert "id-token" not in workflow["jobs"]["synth"].get("permissions", {})
    assert workflow["jobs"]["deploy"]["permissions"] == {"contents": "read", "id-token": "write"}
    assert workflow["jobs"]["deploy"]["concurrency"]["cancel-in-progress"] is False
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    uses = [step["uses"] for step in steps if "uses" in step]
    assert [action for action in uses if not re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|[0-9a-f]{40})", action)] == []
    _check_commands([step["run"] for step in workflow["jobs"]["deploy"]["steps"] if "run" in step])


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Template:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CDK_OUTDIR", str(tmp_path_factory.mktemp("pipeline")))
        return Template.from_stack(runpy.run_path(str(CI / "codepipeline.py"))["stack"])


def test_the_pipeline_deploys_only_after_an_approval_of_the_difference(pipeline: Template) -> None:
    (stages,) = [one["Properties"]["Stages"] for one in pipeline.find_resources("AWS::CodePipeline::Pipeline").values()]
    order = [action for stage in stages for action in sorted(stage["Actions"], key=lambda one: one["RunOrder"])]
    assert [action["Name"] for action in order] == ["Source", "Difference", "Approval", "Deployment"]
    assert order[2]["ActionTypeId"]["Category"] == "Approval"
    commands = []
    for action in (order[1], order[3]):
        project = pipeline.to_json()["Resources"][action["Configuration"]["ProjectName"]["Ref"]]["Properties"]
        phases = json.loads(project["Source"]["BuildSpec"])["phases"]
        assert list(phases) == ["install", "build"]  # a post_build would run after a failure, too
        commands += [command for phase in phases.values() for command in phase["commands"]]
    _check_commands(commands)


def test_the_pipeline_may_use_its_connection_and_its_projects_have_the_policy(pipeline: Template) -> None:
    policies = [
        one["Properties"]["PolicyDocument"]["Statement"] for one in pipeline.find_resources("AWS::IAM::Policy").values()
    ]
    projects = [policy for policy in policies if any(one.get("Sid") == "CheckItsHealth" for one in policy)]
    assert len(projects) == 2
    for policy in projects:
        assert [one for one in policy if one.get("Sid")] == [
            {**one, "Action": _single(one["Action"]), "Resource": _single(one["Resource"])}
            for one in POLICY["Statement"]
        ]
    (own,) = [policy for policy in policies if policy not in projects]
    connection = {one["Action"] for one in own if "connection/" in str(one["Resource"])}
    assert connection == {"codeconnections:UseConnection", "codestar-connections:UseConnection"}
    starts = [one["Resource"]["Fn::GetAtt"][0] for one in own if "codebuild:StartBuild" in one["Action"]]
    assert {*starts} == {*pipeline.find_resources("AWS::CodeBuild::Project")}
    pipeline.resource_count_is("AWS::KMS::Key", 0)


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _check_commands(commands: list[str]) -> None:
    """They install, show the difference, deploy, and check, in this order."""
    order = [
        next(n for n, one in enumerate(commands) if word in one) for word in ("npm ci", "diff", "deploy ", "doctor")
    ]
    assert order == sorted(order)
    assert not [one for one in commands if "npx --yes" in one or "@latest" in one]


def test_the_example_app_synthesises_with_settings_that_exist() -> None:
    source = (CI / "app.py").read_text()
    keys = {f"troop:{key}" for key in re.findall(r"(\w+)=", re.search(r"TroopStack\((.*)\)", source)[1])}  # type: ignore[index]
    assert keys
    assert keys <= json.loads((ROOT / "cdk.json").read_text())["context"].keys()
