"""The policy for an owner in docs/reference/security.md: what it lets an owner do, on the ARNs of this stack."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from infra import ROOT
from local.project import ACCOUNT_PYTHON
from tests.infra.cfn import resources_of
from tests.infra.test_api import routes
from troop.chaos.units import unit_to_url
from troop.shared.tables import GROUP_TAGS

HEADING = "### A policy for an owner"
ARN = "arn:aws:execute-api:REGION:ACCOUNT:API/v1/"
TABLE = "arn:aws:dynamodb:REGION:ACCOUNT:table/"

EVALUATE = """
import json, sys
from ministack.core.iam_evaluator import EvalContext, evaluate, parse_policy_document
asked = json.load(sys.stdin)
statements = [parse_policy_document(asked["policy"])]
print(json.dumps([
    evaluate(EvalContext(
        "arn:aws:iam::111122223333:user/owner", "User", "111122223333", action, resource, "REGION",
        service_context={} if keys is None else {"dynamodb:leadingkeys": keys},
    ), statements).decision == "Allow"
    for action, resource, keys in asked["calls"]
]))
"""
"""IAM's rules are those of local AWS."""

Call = tuple[str, str, list[str] | None]
"""Action, resource, and keys of the items that it is about."""


@pytest.fixture(scope="module")
def policy() -> dict[str, Any]:
    text = (ROOT / "docs" / "reference" / "security.md").read_text(encoding="utf-8")
    paragraph = text.partition(HEADING)[2].partition("\n## ")[0]
    (block,) = re.findall(r"^```json\n(.*?)^```", paragraph, re.M | re.S)
    document: dict[str, Any] = json.loads(block)
    return document


def allowed(policy: Mapping[str, Any], calls: list[Call]) -> list[Call]:
    done = subprocess.run(
        [str(ACCOUNT_PYTHON), "-c", EVALUATE],
        input=json.dumps({"policy": policy, "calls": calls}),
        text=True,
        capture_output=True,
        check=True,
    )
    return [call for call, may in zip(calls, json.loads(done.stdout), strict=True) if may]


def test_policy_allows_only_the_owners_units_in_the_api(template: Mapping[str, Any], policy: Mapping[str, Any]) -> None:
    calls: list[Call] = []
    for route in routes(template):
        method, _, path = route.partition(" ")
        for unit in ("ledger", "ledger-2", "web", unit_to_url("ledger/web"), "ledger/web"):
            filled = re.sub(r"\{\w+\}", unit, path)
            calls.append(("execute-api:Invoke", f"{ARN}{method}{filled}", None))
    own = {("execute-api:Invoke", f"{ARN}{method}/groups/ledger", None) for method in ("GET", "PATCH")}
    assert set(allowed(policy, calls)) == own


ONE, OTHER, BOTH, NO_KEY = ["ledger"], ["web"], ["ledger", "web"], None


@pytest.mark.parametrize("operation", ["GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query"])
def test_policy_allows_only_the_owners_items_in_the_table(policy: Mapping[str, Any], operation: str) -> None:
    action, table = f"dynamodb:{operation}", f"{TABLE}GROUP-TAGS-TABLE"
    calls: list[Call] = [(action, table, keys) for keys in (ONE, OTHER, BOTH, NO_KEY, ["Ledger"], ["ledger-2"])]
    calls.append((action, f"{TABLE}STATE-TABLE", ["switch"]))
    assert allowed(policy, calls) == [(action, table, ONE)]


@pytest.mark.parametrize("operation", ["Scan", "BatchWriteItem", "PartiQLUpdate", "UpdateTable", "PutResourcePolicy"])
def test_nothing_else_of_the_table_is_open(policy: Mapping[str, Any], operation: str) -> None:
    calls: list[Call] = [(f"dynamodb:{operation}", f"{TABLE}GROUP-TAGS-TABLE", keys) for keys in (ONE, NO_KEY)]
    assert allowed(policy, calls) == []


def test_the_table_has_the_key_that_the_condition_is_about(template: Mapping[str, Any]) -> None:
    """``dynamodb:LeadingKeys`` are the values of the partition key: units."""
    table = resources_of(template, "AWS::DynamoDB::Table")["GroupTags"]["Properties"]
    assert table["KeySchema"] == [{"AttributeName": GROUP_TAGS.partition, "KeyType": "HASH"}]
    assert GROUP_TAGS.partition == "unit"
    assert not table.get("GlobalSecondaryIndexes"), "an index would have leading keys of its own"
    assert {"GroupTagsTable"} <= set(template["Outputs"])
