"""The tables of roles in docs/reference/security.md are those of the templates, and leave nothing out."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from infra import roles_doc
from tests.infra.cfn import permissions, resources_of
from tests.infra.statements import Template

DOCUMENT = roles_doc.PATH.read_text(encoding="utf-8")

Templates = tuple[Template, Template, Template]

ALL = (roles_doc.CHAOS, roles_doc.BENCHMARKS, roles_doc.INSIDE, roles_doc.UNDER_LOAD)
LOG_ACTIONS = frozenset({"logs:CreateLogStream", "logs:PutLogEvents"})
COMMON_ACTIONS = frozenset(
    {
        *("xray:PutTelemetryRecords", "xray:PutTraceSegments", "xray:GetSamplingRules", "xray:GetSamplingTargets"),
        *("logs:CreateLogDelivery", "logs:DeleteLogDelivery", "logs:GetLogDelivery", "logs:UpdateLogDelivery"),
        *("logs:DescribeLogGroups", "logs:DescribeResourcePolicies", "logs:ListLogDeliveries"),
        "logs:PutResourcePolicy",
    }
)
"""Logs and traces, which the text before the tables names."""


@pytest.fixture
def templates(template: Template, synthesised: Callable[..., Template]) -> Templates:
    return synthesised(**roles_doc.WITHOUT_BENCHMARKS), template, synthesised(**roles_doc.WITH_MORE)


def test_they_are_current(templates: Templates) -> None:
    assert roles_doc.text(DOCUMENT, *templates) == DOCUMENT, "run: make openapi"


def test_every_role_has_a_row(whole: Template) -> None:
    roles = {name.removesuffix("Role") for name in resources_of(whole, "AWS::IAM::Role")}
    assert roles == {role for named in ALL for role in named}


def test_every_action_of_a_role_is_in_its_rows(templates: Templates) -> None:
    """Besides those that the text before the tables names."""
    for template in templates:
        for resource in resources_of(template, "AWS::IAM::Role"):
            role = resource.removesuffix("Role")
            names = {named[role][0] for named in ALL if role in named}
            names |= {name.removesuffix(", in addition") for name in names}
            rows = "".join(line for line in DOCUMENT.splitlines() if line.startswith(tuple(f"| {n} |" for n in names)))
            for effect, action, on, *_ in permissions(template, resource):
                common = action in (LOG_ACTIONS if on == f"<{role}Logs.Arn>" else COMMON_ACTIONS if on == "*" else ())
                if effect == "Allow" and not common:
                    assert re.search(rf"`({action}|{action.partition(':')[2]})`", rows), (role, action, on)


def test_a_new_permission_changes_them(templates: Templates) -> None:
    without, default, more = templates
    name = next(name for name in default["Resources"] if name.startswith("FunctionsWidgetsRole"))
    role = default["Resources"][name]
    extra = {"Effect": "Allow", "Action": "dynamodb:DeleteItem", "Resource": "*"}
    policies = [
        {**policy, "PolicyDocument": {"Statement": [*policy["PolicyDocument"]["Statement"], extra]}}
        for policy in role["Properties"]["Policies"]
    ]
    changed = {**role, "Properties": {**role["Properties"], "Policies": policies}}
    wider = {**default, "Resources": {**default["Resources"], name: changed}}
    assert "`dynamodb:DeleteItem` on `*`" in roles_doc.text(DOCUMENT, without, wider, more)
