"""The table of service-linked roles has each that the stack makes AWS create, and the documents name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from infra import ROOT
from tests.infra.cfn import resources_of
from tests.infra.registry import permissions
from troop.shared.service_roles import API_GATEWAY, AUTO_SCALING, SERVICE_ROLES, SPOT

Template = Mapping[str, Any]

TABLES_WITH_ROLES = (
    *("ContributorInsightsSpecification", "ImportSourceSpecification", "KinesisStreamSpecification"),
    *("OnDemandThroughput", "ProvisionedThroughput", "Replicas"),
)
"""Properties of a table with which DynamoDB may use a role of a service: for replicas, streams of Kinesis, insights, or
capacity that is scaled.
"""


def test_no_other_type_of_resource_makes_cloudformation_create_a_role(template: Template) -> None:
    kinds = {one["Type"] for one in template["Resources"].values() if one["Type"].startswith("AWS::")}
    creating = {kind for kind in kinds if "iam:CreateServiceLinkedRole" in permissions(kind)}
    assert creating == {"AWS::DynamoDB::Table"}
    used = {key for table in resources_of(template, "AWS::DynamoDB::Table").values() for key in table["Properties"]}
    assert not used & set(TABLES_WITH_ROLES)


def test_the_role_of_api_gateway_is_listed_because_its_stage_is_traced(template: Template) -> None:
    (stage,) = resources_of(template, "AWS::ApiGateway::Stage").values()
    assert stage["Properties"]["TracingEnabled"] is True
    assert [role for role in SERVICE_ROLES if not role.at_launch] == [API_GATEWAY]


def test_a_launch_creates_the_others_and_may_create_no_more(template: Template) -> None:
    statements = [
        statement
        for role in resources_of(template, "AWS::IAM::Role").values()
        for policy in role["Properties"].get("Policies", [])
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "iam:CreateServiceLinkedRole"
    ]
    services = [one["Condition"]["StringEquals"]["iam:AWSServiceName"] for one in statements]
    assert services == [AUTO_SCALING.service, SPOT.service]
    assert [role.service for role in SERVICE_ROLES if role.at_launch] == services


def test_the_document_has_the_table() -> None:
    document = (ROOT / "docs" / "guides" / "network-and-quotas.md").read_text(encoding="utf-8")
    rows = re.findall(r"^  \| `(AWSServiceRole\w+)` \| (.*?) \|", document, re.MULTILINE)
    assert [(name, needed.startswith("the first launch")) for name, needed in rows] == [
        (role.name, role.at_launch) for role in SERVICE_ROLES
    ]


def test_local_aws_knows_each_role_by_its_name() -> None:
    source = (ROOT / "local" / "account" / "patches" / "service_linked_roles.py").read_text(encoding="utf-8")
    assert dict(re.findall(r'"([\w.]+\.amazonaws\.com)": "(\w+)"', source)) == {
        role.service: role.name for role in SERVICE_ROLES
    }
