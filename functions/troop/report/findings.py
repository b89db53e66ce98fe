"""Groups findings of reports and warnings of comparisons that differ only in their point, nodes and numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from troop.report.document import Cell, Finding, Report

FEW = 12
"""The most findings to list one by one."""
ALIKE = 4
"""The fewest findings that become a group."""

_NUMBERS = re.compile(r"[^\s,;(]*\d[^\s,;)]*(?:(?:,| and|, and) [^\s,;(]*\d[^\s,;)]*)*")
"""A word with a digit, such as a number or a node, or several of them in a row."""

_SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Group:
    """Findings of the same kind, in their order; mostly one.

    Attributes:
        cells: number of cells that have them.
    """

    findings: Sequence[Finding]
    cells: int

    @property
    def first(self) -> Finding:
        return self.findings[0]


def groups(report: Report) -> list[Group]:
    """Returns the findings of a report by severity, in the order of the first of each group."""
    ordered = sorted(report.findings, key=lambda finding: _SEVERITIES.index(finding.severity))
    titles = {cell.cell: _titles(cell) for cell in report.cells}
    by_kind: dict[tuple[str, ...], list[Finding]] = {}
    for place, finding in enumerate(ordered):
        kind = finding.severity, _kind(finding.text, titles.get(finding.cell or "", []))
        by_kind.setdefault(kind if finding.cell and len(ordered) > FEW else (str(place),), []).append(finding)
    return [
        Group(part, len({one.cell for one in part}))
        for same in by_kind.values()
        for part in ([same] if len(same) >= ALIKE else [[one] for one in same])
    ]


def alike(texts: Sequence[str], names: Sequence[str]) -> list[list[str]]:
    """Returns the warnings of a comparison in groups, in the order of the first of each; mostly one.

    Args:
        names: of rows, with which texts begin.
    """
    by_kind: dict[str, list[str]] = {}
    longest_first = sorted(set(names), key=len, reverse=True)
    for place, text in enumerate(texts):
        by_kind.setdefault(_kind(text, longest_first) if len(texts) > FEW else str(place), []).append(text)
    return [part for same in by_kind.values() for part in ([same] if len(same) >= ALIKE else [[one] for one in same])]


def _titles(cell: Cell) -> list[str]:
    """Returns the titles of a cell's phases and points, the longest first: ``threads=5`` begins ``threads=50``."""
    return sorted({phase.title for phase in cell.phases}, key=len, reverse=True)


def _kind(text: str, titles: Sequence[str]) -> str:
    """Returns a finding's text without its point and numbers."""
    title = next((one for one in titles if text.startswith(one)), "")
    return _NUMBERS.sub("#", text.removeprefix(title))
