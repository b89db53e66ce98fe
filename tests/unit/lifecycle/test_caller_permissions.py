"""The rights that the commands need: what the code calls, what a refusal says, and the policy in the documents."""

from __future__ import annotations

import ast
import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import botocore
import pytest
from botocore import xform_name
from botocore.exceptions import ClientError

from cli.shared import aws
from cli.shared.errors import Exit
from infra import ROOT
from lifecycle import console
from lifecycle.caller_permissions import ON_BEHALF, RIGHTS

FREE = {"GetCallerIdentity"}
"""Needs no right."""

DATA = Path(botocore.__file__).parent / "data"


@cache
def operations(service: str) -> dict[str, str]:
    """By the name of the client's method, or of the waiter. Read as text, which takes a tenth of the time."""
    folder = max(file.parent for file in (DATA / service).glob("*/service-2.json*"))
    names = re.findall(r'"name":\s*"(\w+)",\s*"http":', text_of(folder / "service-2.json.gz"))
    assert names, service
    calls = {xform_name(name): name for name in names}
    waiters = json.loads(text_of(folder / "waiters-2.json")).get("waiters", {})
    return calls | {xform_name(name): waiter["operation"] for name, waiter in waiters.items()}


def text_of(file: Path) -> str:
    if file.suffix == ".gz" and file.exists():
        return gzip.decompress(file.read_bytes()).decode()
    plain = file.with_suffix("") if file.suffix == ".gz" else file
    return plain.read_text() if plain.exists() else "{}"


def called(code: str) -> set[str]:
    """The operations that a module calls, of the services that it makes clients of."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    names: set[str] = set()
    services: set[str] = set()
    for call in calls:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        literals = [
            argument.value
            for argument in call.args
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        ]
        if name == "client":
            assert literals, "a client of a service that is not named"
            services.update(literals)
        names.update(literals if name in ("get_paginator", "get_waiter") else [name])
    return {operations(service)[name] for service in services for name in names if name in operations(service)}


def test_the_table_has_every_call_and_no_other() -> None:
    calls = {one for file in (ROOT / "lifecycle").glob("*.py") for one in called(file.read_text())}
    assert calls - FREE == set(RIGHTS)


def test_the_documents_policy_allows_what_is_needed_and_no_more() -> None:
    text = (ROOT / "docs" / "guides" / "organization.md").read_text()
    (policy,) = [
        json.loads(one)
        for one in re.findall(r"```json\n(.*?)```", text, re.DOTALL)
        if '"Statement"' in one and '"Principal"' not in one
    ]
    allowed = [action for statement in policy["Statement"] for action in statement["Action"]]
    assert sorted(allowed) == sorted({a for right in (*RIGHTS.values(), *ON_BEHALF.values()) for a in right.actions})


@pytest.mark.parametrize("operation", sorted(RIGHTS))
def test_a_refusal_names_the_action_and_what_it_is_for(operation: str, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with aws.translated_errors():
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)

    assert console.run(fail) == Exit.FORBIDDEN
    output = capsys.readouterr().err
    right: Any = RIGHTS[operation]
    assert any(f"must allow {action} and" in output for action in right.actions)
    assert f"It is needed {right.why}. " in output


def test_other_failures_are_reported_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with aws.translated_errors():
            raise ClientError({"Error": {"Code": "Throttling", "Message": "slow down"}}, "Scan")

    assert console.run(fail) == Exit.FAILED
    assert capsys.readouterr().err == "dynamodb:Scan failed: Throttling: slow down\n"
