"""Saved queries: whose they are, that they read the stack's own logs, and that they name only what is logged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from infra.queries import FUNCTIONS, QUERIES, Query
from tests.infra.cfn import handler_of, resources_of, text

Template = Mapping[str, Any]

COMMANDS = ("fields", "filter", "stats", "sort", "limit")


@pytest.fixture
def template(inside: Template) -> Template:
    """The default settings with faults inside instances, which need all functions."""
    return inside


def definitions(template: Template) -> dict[str, dict[str, Any]]:
    queries = [text(one["Properties"]) for one in resources_of(template, "AWS::Logs::QueryDefinition").values()]
    return {str(one["Name"]): one for one in queries}


def test_they_stand_in_a_folder_of_their_deployment(template: Template, green: Template) -> None:
    expected = {f"<AWS::StackName>/{query.title}" for query in QUERIES}
    assert set(definitions(template)) == set(definitions(green)) == expected
    assert all("/" not in query.title for query in QUERIES)


def test_they_read_the_logs_of_the_stacks_functions_alone(template: Template) -> None:
    groups = {f"<{name}>" for name in resources_of(template, "AWS::Logs::LogGroup")}
    for query in QUERIES:
        definition = definitions(template)[f"<AWS::StackName>/{query.title}"]
        assert definition["LogGroupNames"] == [f"<{name.title().replace('_', '')}Logs>" for name in query.functions]
        assert set(definition["LogGroupNames"]) <= groups
        assert definition["QueryString"] == query.text
    functions = {handler_of(name) for name in resources_of(template, "AWS::Lambda::Function")}
    assert set(FUNCTIONS) <= functions


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.title)
def test_queries_consist_of_known_commands(query: Query) -> None:
    assert len(query.text) <= 10_000
    commands = [line for line in query.text.splitlines() if not line.startswith("#")]
    first, *rest = (line.split()[:2] for line in commands)
    assert first[0] in COMMANDS
    assert all(pipe == "|" and command in COMMANDS for pipe, command in rest)
    assert commands[-1].startswith("| limit ")
    assert all(query.text.count(one) == query.text.count(other) for one, other in ("()", "[]"))
    assert query.text.count('"') % 2 == 0
    assert re.fullmatch(r"[\x20-\x7e\n]+", query.text)
