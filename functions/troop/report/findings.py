"""Groups findings of reports and warnings of comparisons by their cause."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from troop.report.document import Cell, Finding, Report

SHORT = 240
"""The most characters of a finding that is read without being unfolded."""

_NUMBERS = re.compile(r"[^\s,;(]*\d[^\s,;)]*(?:(?:,| and|, and) [^\s,;(]*\d[^\s,;)]*)*")
"""A word with a digit, such as a number or a node, or several of them in a row."""

_SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class FindingGroup:
    """Findings with the same cause, in their order; often one.

    Attributes:
        cause: what they have in common; empty if only their words are alike.
        cells: the cells that have them.
    """

    findings: Sequence[Finding]
    cause: str
    cells: Sequence[str]

    @property
    def first(self) -> Finding:
        return self.findings[0]

    @property
    def is_folded(self) -> bool:
        return len(self.findings) > 1 or bool(self.cause and len(self.first.text) > SHORT)


def group_findings(report: Report) -> list[FindingGroup]:
    """Returns the findings of a report by severity, in the order of the first of each group."""
    ordered = sorted(report.findings, key=lambda finding: _SEVERITIES.index(finding.severity))
    titles = {cell.cell: _titles(cell) for cell in report.cells}
    by_cause: dict[tuple[str, str, str], list[Finding]] = {}
    for place, one in enumerate(ordered):
        kind = _kind(one.text, titles.get(one.cell or "", [])) if one.cell else str(place)
        by_cause.setdefault((one.severity, one.cause, "" if one.cause else kind), []).append(one)
    return [
        FindingGroup(same, cause, list(dict.fromkeys(one.cell for one in same if one.cell)))
        for (_, cause, _), same in by_cause.items()
    ]


def alike(texts: Sequence[str], names: Sequence[str]) -> list[list[str]]:
    """Returns the warnings of a comparison in groups that differ only in numbers, in the order of the first of each.

    Args:
        names: of rows, with which texts begin.
    """
    by_kind: dict[str, list[str]] = {}
    longest_first = sorted(set(names), key=len, reverse=True)
    for text in texts:
        by_kind.setdefault(_kind(text, longest_first), []).append(text)
    return list(by_kind.values())


def _titles(cell: Cell) -> list[str]:
    """Returns the titles of a cell's phases and points, the longest first: ``threads=5`` begins ``threads=50``."""
    return sorted({phase.title for phase in cell.phases}, key=len, reverse=True)


def _kind(text: str, titles: Sequence[str]) -> str:
    """Returns a finding's text without its point and numbers."""
    title = next((one for one in titles if text.startswith(one)), "")
    return _NUMBERS.sub("#", text.removeprefix(title))
