"""The guide to risks follows from the table of rules."""

from __future__ import annotations

from infra import risks_doc
from troop.risks.rules import RULES


def test_the_guide_of_risks_is_current() -> None:
    document = risks_doc.PATH.read_text(encoding="utf-8")
    assert risks_doc.text(document) == document, "run: make openapi"


def test_the_guide_names_every_rule_once() -> None:
    lines = risks_doc.PATH.read_text(encoding="utf-8").splitlines()
    assert {sum(line.startswith(f"| `{rule.name}`") for line in lines) for rule in RULES} == {1}
