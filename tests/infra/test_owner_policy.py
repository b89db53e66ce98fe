"""The policy for an owner in docs/reference/security.md: what it lets an owner do, on the ARNs of this stack."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.infra.cfn import resources_of
from tests.infra.documented_policies import evaluate, policy_below
from tests.infra.test_api import routes
from troop.chaos.units import unit_to_url
from troop.shared.tables import GROUP_TAGS

HEADING = "### A policy for an owner"
ARN = "arn:aws:execute-api:REGION:ACCOUNT:API/v1/"
TABLE = "arn:aws:dynamodb:REGION:ACCOUNT:table/"

MAY = """
from ministack.core.iam_evaluator import EvalContext, evaluate, parse_policy_document
def may(policy, action, resource, keys):
    return evaluate(EvalContext(
        "arn:aws:iam::111122223333:user/owner", "User", "111122223333", action, resource, "REGION",
        service_context={} if keys is None else {"dynamodb:leadingkeys": keys},
    ), [parse_policy_document(policy)]).decision == "Allow"
"""

Call = tuple[str, str, list[str] | None]
"""Action, resource, and keys of the items that it is about."""


@pytest.fixture(scope="module")
def policy() -> dict[str, Any]:
    return policy_below("reference/security.md", HEADING)


def allowed(policy: Mapping[str, Any], calls: list[Call]) -> list[Call]:
    return [call for call, may in zip(calls, evaluate(MAY, policy, calls), strict=True) if may]


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
