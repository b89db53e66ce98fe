"""What the tests of local AWS prove: AWS's behaviour, with a source, or only the emulation's machinery."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra import ROOT
from tests.aws_facts.sources import authorization, kinds_of, text_of
from tests.infra.registry import schema

CLASSES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("local.toml").read_text())
_SOURCES = ("model", "page", "actions", "schema")


def _tests() -> Iterator[tuple[str, str]]:
    """Yields the file and the name of each test of local AWS."""
    for path in sorted((ROOT / "tests" / "local").glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield path.name, node.name


def test_every_test_of_local_aws_is_in_one_class() -> None:
    machinery = CLASSES["machinery"]
    lists = [machinery["tests"], CLASSES["unsourced"]["tests"], *(row["tests"] for row in CLASSES["behaviour"])]
    named = Counter(name for some in lists for name in some)
    expected = Counter(name for file, name in _tests() if file not in machinery["files"])
    assert named == expected, "add a new test to a list of local.toml, with the source of what it claims about AWS"


@pytest.mark.parametrize("row", CLASSES["behaviour"], ids=lambda row: row["tests"][0])
def test_a_behaviour_has_a_source(row: dict[str, Any]) -> None:
    assert len([kind for kind in _SOURCES if kind in row]) == 1
    if "model" in row:
        assert row.get("text", "") in text_of(row["model"])
    for action in row.get("actions", ()):
        name, _, key = action.partition(" if ")
        entry = authorization(name)
        assert entry is not None, name
        supported = {one.lower() for one in entry["conditionKeys"]}.union(*(keys for _, _, keys in kinds_of(name)))
        tag = f"{key.partition('/')[0]}/${{tagkey}}".lower()
        assert not key or supported & {key.lower(), tag}, action
    for place in row.get("schema", ()):
        kind, _, name = place.partition(" ")
        assert name in schema(kind)["properties"], place
