"""Every permission of every role: the action exists, and supports the resources and condition keys it is used with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pytest

from tests.aws_facts.sources import authorization, kinds_of, text_of
from tests.infra.cfn import short
from tests.infra.conftest import blue, two_stacks

__all__ = ["blue", "two_stacks"]

GLOBAL_KEYS = {"aws:sourceaccount", "aws:sourcearn", "aws:sourcevpc", "aws:securetransport", "aws:principalarn"}
"""AWS global condition context keys - AWS Identity and Access Management: keys that all actions support."""
ONE_SUFFICES = {
    "dynamodb:Query": "dynamodb QueryInput.IndexName",
    "states:ListExecutions": "stepfunctions ListExecutions",
}
"""Actions that need only one of the types that the reference marks as needed; the place of a model that says so."""
_ARNS = {
    ("AWS::DynamoDB::Table", "Arn"): "dynamodb:REGION:ACCOUNT:table/NAME",
    ("AWS::DynamoDB::Table", "StreamArn"): "dynamodb:REGION:ACCOUNT:table/NAME/stream/NAME",
    ("AWS::Events::EventBus", "Arn"): "events:REGION:ACCOUNT:event-bus/NAME",
    ("AWS::IAM::InstanceProfile", "Arn"): "iam::ACCOUNT:instance-profile/NAME",
    ("AWS::IAM::Role", "Arn"): "iam::ACCOUNT:role/NAME",
    ("AWS::Lambda::Function", "Arn"): "lambda:REGION:ACCOUNT:function:NAME",
    ("AWS::Logs::LogGroup", "Arn"): "logs:REGION:ACCOUNT:log-group:NAME:*",
    ("AWS::S3::Bucket", "Arn"): "s3:::NAME",
    ("AWS::SecretsManager::Secret", "Ref"): "secretsmanager:REGION:ACCOUNT:secret:NAME",
    ("AWS::SNS::Topic", "Ref"): "sns:REGION:ACCOUNT:NAME",
    ("AWS::SQS::Queue", "Arn"): "sqs:REGION:ACCOUNT:NAME",
    ("AWS::StepFunctions::StateMachine", "Ref"): "states:REGION:ACCOUNT:stateMachine:NAME",
}
_PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "REGION",
    "AWS::AccountId": "ACCOUNT",
    "AWS::URLSuffix": "amazonaws.com",
}


@dataclass(frozen=True)
class Statement:
    """A statement of a role's policies, with ARNs in place of references."""

    role: str
    effect: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    keys: frozenset[str]

    def __str__(self) -> str:
        return f"{self.role} {self.effect} {self.actions} on {self.resources} if {sorted(self.keys)}"


def statements(template: Mapping[str, Any]) -> Iterator[Statement]:
    for key, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::IAM::Role":
            named, documents = [short(key)], [one["PolicyDocument"] for one in properties.get("Policies", [])]
        elif resource["Type"] == "AWS::IAM::Policy":
            named, documents = [short(one["Ref"]) for one in properties["Roles"]], [properties["PolicyDocument"]]
        else:
            continue
        for role in named:
            yield from (_statement(template, role, one) for document in documents for one in document["Statement"])


def _statement(template: Mapping[str, Any], role: str, raw: Mapping[str, Any]) -> Statement:
    keys = {key.lower() for operator in raw.get("Condition", {}).values() for key in operator}
    resources = tuple(_text(template, one) for one in _listed(raw["Resource"]))
    return Statement(role, raw["Effect"], tuple(_listed(raw["Action"])), resources, frozenset(keys))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(template: Mapping[str, Any], value: Any) -> str:
    match value:
        case str():
            return value
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(_text(template, part) for part in parts)
        case {"Ref": name} if name in _PSEUDO:
            return _PSEUDO[name]
        case {"Ref": name} if name in template["Resources"]:
            arn = _ARNS.get((template["Resources"][name]["Type"], "Ref"))
        case {"Fn::GetAtt": [name, attribute]}:
            arn = _ARNS.get((template["Resources"][name]["Type"], attribute))
        case {"Fn::If": [_, first, _]}:
            return _text(template, first)
        case _:
            arn = None
    return f"arn:aws:{arn}" if arn else "NAME"


def overlap(one: str, other: str) -> bool:
    """Checks whether a text matches both patterns: ``*`` of the first is any text, ``*`` of the second has no slash."""
    left = tuple("any" if part == "*" else part for part in one)
    right = tuple({"**": "any", "*": "name"}.get(part, part) for part in re.findall(r"\*\*|.", other))

    @lru_cache(None)
    def matches(i: int, j: int) -> bool:
        a, b = left[i] if i < len(left) else None, right[j] if j < len(right) else None
        if a is None and b is None:
            return True
        if a == "any":
            return matches(i + 1, j) or (b is not None and matches(i, j + 1))
        if b in ("any", "name"):
            return matches(i, j + 1) or (a is not None and not (a == "/" and b == "name") and matches(i + 1, j))
        return a is not None and b is not None and (a in (b, "?")) and matches(i + 1, j + 1)

    return matches(0, 0)


def problems(statement: Statement) -> Iterator[str]:
    """Yields what makes a part of a statement useless."""
    used = set()
    for action in statement.actions:
        entry = authorization(action)
        if entry is None:
            yield f"there is no action {action}"
            continue
        kinds = list(kinds_of(action))
        fitting = [
            (resource, keys)
            for pattern, _, keys in kinds
            for resource in statement.resources
            if overlap(resource, pattern)
        ]
        used |= {resource for resource, _ in fitting}
        if "*" not in statement.resources and not fitting:
            yield f"{action} does not support {statement.resources}"
        supported = {key.lower() for key in entry["conditionKeys"]}.union(*(keys for _, keys in fitting))
        prefixes = {key.partition("${")[0] for key in supported if "${" in key}
        for key in statement.keys - supported - GLOBAL_KEYS:
            if not key.startswith(tuple(prefixes)):
                yield f"{action} does not support the key {key}"
    yield from (f"no action supports {resource}" for resource in set(statement.resources) - used - {"*"})


def test_every_statement_has_an_effect(blue: dict[str, Any]) -> None:
    every = list(statements(blue))
    assert len(every) > 100
    wrong = {str(statement): list(problems(statement)) for statement in every}
    assert {statement: some for statement, some in wrong.items() if some} == {}


def test_a_role_may_use_every_resource_that_its_actions_need(blue: dict[str, Any]) -> None:
    allowed: dict[tuple[str, str], set[str]] = {}
    for statement in statements(blue):
        if statement.effect == "Allow":
            for action in statement.actions:
                allowed.setdefault((statement.role, action), set()).update(statement.resources)
    missing = {
        f"{role} {action}": pattern
        for (role, action), resources in allowed.items()
        for pattern, is_needed, _ in kinds_of(action)
        if is_needed and action not in ONE_SUFFICES and not any(overlap(resource, pattern) for resource in resources)
    }
    assert missing == {}


def test_a_request_names_one_of_the_types_where_one_suffices() -> None:
    assert "index can be any local secondary index or global" in text_of(ONE_SUFFICES["dynamodb:Query"])
    assert "executions of a state machine or a Map Run" in text_of(ONE_SUFFICES["states:ListExecutions"])


@pytest.mark.parametrize(
    ("action", "resource", "key", "problem"),
    [
        ("ec2:TerminateInstance", "*", "", "there is no action"),
        ("ec2:TerminateInstances", "arn:aws:ec2:REGION:ACCOUNT:volume/*", "", "does not support"),
        ("ec2:DeleteVolume", "*", "ec2:instanceprofile", "does not support the key"),
        ("s3:ListBucket", "arn:aws:s3:::NAME/runs/*", "", "does not support"),
        ("dynamodb:Query", "arn:aws:dynamodb:REGION:ACCOUNT:table/NAME", "aws:requesttag/troop:run", "the key"),
    ],
)
def test_statement_without_effect_is_detected(action: str, resource: str, key: str, problem: str) -> None:
    statement = Statement("Role", "Allow", (action,), (resource,), frozenset({key} - {""}))
    assert problem in " ".join(problems(statement))
