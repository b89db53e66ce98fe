"""What documents lead to is there, and the pictures that are taken for them are shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra import ROOT
from troop.chaos.guards import REASONS

DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*/*.md"))]
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(document: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", document.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_lead_somewhere(document: Path) -> None:
    text = FENCED.sub("", document.read_text(encoding="utf-8"))
    for target in re.findall(r"(?:\]\(|src(?:set)?=\")([^)\"]+)", text):
        path, _, anchor = target.partition("#")
        if not re.match(r"\w+:", target):
            there = (document.parent / path) if path else document
            assert there.exists(), target
            assert not anchor or anchor in anchors(there), target


def test_every_picture_is_shown() -> None:
    shown = "".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    taken = [picture.name for picture in (ROOT / "docs" / "pictures").iterdir()]
    assert [name for name in taken if f"pictures/{name}" not in shown] == []


def test_the_table_of_reasons_has_each_in_the_order_of_the_guards() -> None:
    text = (ROOT / "docs" / "guides" / "chaos.md").read_text(encoding="utf-8")
    section = text.partition("## Why Troop skips a unit")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE)) == REASONS


def test_generated_schemas_contain_no_markup_of_docstrings() -> None:
    schemas = [*(ROOT / "docs").glob("*/*.json"), *ROOT.glob("*/*.schema.json")]
    assert [path.name for path in schemas if re.search(r":\w+:`", path.read_text(encoding="utf-8"))] == []
