"""Compares READMEs and sizes of the catalogue with the numbers of the studies that they repeat."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from cli.bench.files import CATALOGUE, Source, load
from troop.bench.definition.definition import to_document

STUDIES = yaml.safe_load((CATALOGUE / "studies.yaml").read_text(encoding="utf-8"))
EVERY = [pytest.param(study, id=study["study"]) for study in STUDIES]
SECTION = re.compile(r"^## What the [^\n]*stud[^\n]*$(.*?)^## ", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.-])(?!20\d\d\b)\d+(?:,\d{3})*(?:\.\d+)?(?![\w-])")
"""Without years."""
loaded: Any = cache(load)


def section(benchmark: str) -> str:
    """What a README says about its studies, in one line."""
    text = (CATALOGUE / benchmark / "README.md").read_text(encoding="utf-8") + "\n## "
    return " ".join(part for body in SECTION.findall(text) for part in body.split())


def quotes(fact: dict[str, Any]) -> str:
    return str(fact["quoted"].format(fact["value"]))


def set_values(benchmark: str, setting: str) -> Iterator[Any]:
    """The values of a setting in the cells of a size, or in those of one of its steps."""
    size, step, key = setting.split(":")
    source: Source = loaded(CATALOGUE / benchmark, size or None)
    for cell in source.plan.cells:
        if step in ("", cell.variant.scale):
            yield from value_of(to_document(cell.benchmark), key)


def value_of(document: Any, key: str) -> Iterator[Any]:
    kind, _, name = key.partition(".")
    (measured,) = [phase for phase in document["phases"] if phase["name"] == "measure"] or [None]
    if kind == "points":
        yield max(point[name] for point in measured["points"])
    elif kind == "limits":
        yield next(limit["at_most"] for limit in measured["limits"] if limit["figure"] == name)
    else:
        for part in key.split("."):
            by_name = {one["name"]: one for one in document} if kind == "phases" and isinstance(document, list) else {}
            document = by_name.get(part) or document[int(part) if isinstance(document, list) else part]
        yield document


@pytest.mark.parametrize("study", EVERY)
def test_readmes_quote_each_number_with_its_meaning(study: dict[str, Any]) -> None:
    for benchmark in study["benchmarks"]:
        text = section(benchmark)
        assert [fact["meaning"] for fact in study["facts"] if quotes(fact) not in text] == [], benchmark


@pytest.mark.parametrize("study", EVERY)
def test_sizes_have_the_numbers_of_the_study(study: dict[str, Any]) -> None:
    benchmark = study["benchmarks"][0]
    for fact in study["facts"]:
        for setting in fact.get("settings", []):
            values = list(set_values(benchmark, setting))
            assert values, setting
            assert set(values) == {fact.get("is", fact["value"])}, f"{benchmark} {setting}: {fact['meaning']}"


@pytest.mark.parametrize("benchmark", sorted({name for study in STUDIES for name in study["benchmarks"]}))
def test_readmes_state_no_other_number_of_a_study(benchmark: str) -> None:
    facts = [fact for study in STUDIES if benchmark in study["benchmarks"] for fact in study["facts"]]
    known = {number for fact in facts for number in NUMBER.findall(quotes(fact))}
    assert [number for number in NUMBER.findall(section(benchmark)) if number not in known] == []
