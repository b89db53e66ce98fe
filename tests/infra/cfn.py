"""Reads a synthesised template the way a person would: short names for resources, one text for every value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_HASH = re.compile(r"[0-9A-F]{8}$")
_SCOPES = ("Data", "Functions", "BenchmarksData")


def resources_of(template: Mapping[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """The resources of a type by their short name, such as ``Terminate`` for ``FunctionsTerminate1AD9550E``."""
    resources = {key: value for key, value in template["Resources"].items() if value["Type"] == kind}
    by_name = {short(key): value for key, value in resources.items()}
    assert len(by_name) == len(resources), "two resources with one short name"
    return by_name


def short(logical_id: str) -> str:
    """A logical id without its hash, and without the construct where that only holds resources."""
    name = _HASH.sub("", logical_id)
    scope = next((s for s in _SCOPES if name.startswith(s) and name != s), "")
    return name.removeprefix(scope)


def handler_of(function: str) -> str:
    """The name of a function's handler: ``check_recovery`` for ``CheckRecovery``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", function).lower()


def text(value: Any) -> Any:
    """A value with references as ``<Name>`` or ``<Name.Attribute>``, joined and substituted."""
    if isinstance(value, Mapping):
        if "Ref" in value:
            return f"<{short(value['Ref'])}>"
        if "Fn::GetAtt" in value:
            name, attribute = value["Fn::GetAtt"]
            return f"<{short(name)}.{attribute}>"
        if "Fn::Join" in value:
            separator, parts = value["Fn::Join"]
            return separator.join(text(part) for part in parts)
        if "Fn::Sub" in value:
            return re.sub(r"\$\{([\w:]+)\}", r"<\1>", value["Fn::Sub"])
        return {key: text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [text(inner) for inner in value]
    return value


def in_partition(template: Mapping[str, Any], value: Any, partition: str) -> Any:
    """A value as a partition has it: of what is there on a condition, the one or the other, or nothing."""
    if isinstance(value, Mapping):
        if "Fn::If" in value:
            condition, then, otherwise = value["Fn::If"]
            left, right = template["Conditions"][condition]["Fn::Equals"]
            assert left == {"Ref": "AWS::Partition"}, condition
            return in_partition(template, then if right == partition else otherwise, partition)
        entries = {key: in_partition(template, inner, partition) for key, inner in value.items()}
        return {key: inner for key, inner in entries.items() if inner != {"Ref": "AWS::NoValue"}}
    if isinstance(value, list):
        return [in_partition(template, inner, partition) for inner in value]
    return value


def permissions(template: Mapping[str, Any], role: str) -> set[tuple[str, ...]]:
    """All a role's policies say: (effect, action, resource), and a condition as text where there is one."""
    resource = resources_of(template, "AWS::IAM::Role")[role]["Properties"]
    documents = [policy["PolicyDocument"] for policy in resource.get("Policies", [])]
    for policy in resources_of(template, "AWS::IAM::Policy").values():
        if f"<{role}>" in text(policy["Properties"]["Roles"]):
            documents.append(policy["Properties"]["PolicyDocument"])
    return {grant for document in documents for grant in _grants(document)}


def _grants(document: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for statement in document["Statement"]:
        for action in _listed(statement["Action"]):
            for resource in _listed(statement["Resource"]):
                condition = (repr(text(statement["Condition"])),) if "Condition" in statement else ()
                yield (statement["Effect"], action, text(resource), *condition)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
