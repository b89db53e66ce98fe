"""What an organization demands of a stack, as organization.md describes it: tags, a boundary, its own bootstrap."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from tests.infra.cfn import resources_of, text
from tests.infra.conftest import CONTEXT, stack_of
from tests.infra.results import result, sources

TAGS = {"CostCenter": "1234", "owner": "platform team"}
CDK_CONTEXT = {
    "@aws-cdk/core:permissionsBoundary": {"name": "org-boundary"},
    "@aws-cdk/core:bootstrapQualifier": "acme",
}


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthesis with all of them."""
    return result("organization", sources(), create=lambda partial: _synthesise(partial))


def _synthesise(partial: Path) -> None:
    app = cdk.App(context=CONTEXT | CDK_CONTEXT, outdir=str(partial / "assembly"))
    stack_of(app, tags=json.dumps(TAGS))
    app.synth()


def read(assembly: Path, name: str) -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads((assembly / "assembly" / name).read_text())
    return document


def test_the_stack_has_the_tags(assembly: Path) -> None:
    properties = read(assembly, "manifest.json")["artifacts"]["Troop"]["properties"]
    assert TAGS.items() <= properties["tags"].items()
    assert properties["tags"]["troop:deployment"] == "Troop"


def test_every_role_has_the_boundary(assembly: Path) -> None:
    roles = resources_of(read(assembly, "Troop.template.json"), "AWS::IAM::Role")
    boundaries = {text(role["Properties"].get("PermissionsBoundary")) for role in roles.values()}
    assert boundaries == {"arn:<AWS::Partition>:iam::<AWS::AccountId>:policy/org-boundary"}


def test_the_bootstrap_is_the_organizations(assembly: Path) -> None:
    properties = read(assembly, "manifest.json")["artifacts"]["Troop"]["properties"]
    assert properties["bootstrapStackVersionSsmParameter"] == "/cdk-bootstrap/acme/version"
