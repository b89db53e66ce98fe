"""Generates the rules in docs/guides/risks.md: ``python -m infra.risks_doc`` writes them."""

from __future__ import annotations

from collections.abc import Iterable

from infra import ROOT
from infra.generated import filled, table
from troop.risks.rule import Rule
from troop.risks.rules import RULES

PATH = ROOT / "docs" / "guides" / "risks.md"


def text(document: str) -> str:
    """Returns docs/guides/risks.md with current rules."""
    recoveries, leftovers = ([rule for rule in RULES if rule.is_cost is is_cost] for is_cost in (False, True))
    return filled(filled(document, "rules", _table(recoveries)), "leftovers", _table(leftovers))


def _table(rules: Iterable[Rule]) -> str:
    head = ["rule", "severity", "risk", "why", "what to do", "confirmed by"]
    return table(head, [(f"`{one.name}`", one.severity, *_words(one)) for one in rules])


def _words(rule: Rule) -> tuple[str, str, str, str]:
    signs = "; ".join(sorted(rule.confirmed_by)) or "nothing"
    return f"{rule.title}.", rule.reason, rule.remedy, signs


if __name__ == "__main__":
    PATH.write_text(text(PATH.read_text(encoding="utf-8")), encoding="utf-8")
