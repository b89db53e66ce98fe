"""Refuses policies that IAM refuses: actions without the prefix of a service, and trust policies that trust nobody.

As on AWS, an action that does not exist is no error ("IAM JSON policy elements: Action"): such a policy allows nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ministack.core import iam_evaluator
from ministack.services import iam
from ministack.services.cloudformation import provisioners

from ._wrap import wrap

_ACTION = re.compile(r"\*|[\w-]+:[\w*?-]+")
_TYPES = ("AWS::IAM::Role", "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")


def apply() -> None:
    @wrap(iam_evaluator, "validate_policy_document")
    def validate(original: Callable[[Any], str | None], document: Any) -> str | None:
        return original(document) or next(_action_problems(document), None)

    @wrap(iam, "_trust_policy_not_principal_error")
    def trust(original: Callable[[Any], str | None], document: Any) -> str | None:
        return original(document) or next(_trust_problems(document), None)

    for kind in _TYPES:
        handlers = provisioners._RESOURCE_HANDLERS[kind]
        handlers["create"] = _checked(handlers["create"], position=1)
        handlers["update"] = _checked(handlers["update"], position=2)


def _checked(provision: Callable[..., Any], position: int) -> Callable[..., Any]:
    """Wraps a handler. `position`: index of the new properties in its arguments."""

    def provisioned(*args: Any, **kwargs: Any) -> Any:
        properties = args[position]
        documents = [one.get("PolicyDocument") for one in (properties, *properties.get("Policies", ()))]
        problems = [iam_evaluator.validate_policy_document(one) for one in documents if one]
        if trust := properties.get("AssumeRolePolicyDocument"):
            problems.append(iam._trust_policy_not_principal_error(trust))
        if problem := next(filter(None, problems), None):
            raise ValueError(f"MalformedPolicyDocument: {problem}")
        return provision(*args, **kwargs)

    return provisioned


def _action_problems(document: Any) -> Iterator[str]:
    for statement in _statements(document):
        for action in _strings(statement.get("Action", statement.get("NotAction"))):
            if not _ACTION.fullmatch(action):
                yield f"The action {action} must be *, or the prefix of a service, a colon and a name."


def _trust_problems(document: Any) -> Iterator[str]:
    statements = list(_statements(document))
    if not statements:
        yield "The policy has no statement."
    for statement in statements:
        if statement.get("Effect") not in ("Allow", "Deny"):
            yield "A statement has no Effect."
        if not statement.get("Principal"):
            yield "Missing required field Principal."
        if "Resource" in statement or "NotResource" in statement:
            yield "Has prohibited field Resource."
        actions = _strings(statement.get("Action"))
        if not actions or not all(action.lower().startswith("sts:") for action in actions):
            yield "AssumeRole policy may only specify STS AssumeRole actions."


def _statements(document: Any) -> Iterator[Mapping[str, Any]]:
    try:
        policy = json.loads(document) if isinstance(document, str) else document
    except ValueError:
        policy = None
    statements = policy.get("Statement") if isinstance(policy, Mapping) else None
    for statement in statements if isinstance(statements, list) else [statements]:
        if isinstance(statement, Mapping):
            yield statement


def _strings(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())
