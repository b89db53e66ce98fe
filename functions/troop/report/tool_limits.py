"""States what a tool's times leave out or round: a reader of a report does not see how they were measured."""

from __future__ import annotations

from collections.abc import Iterable

from troop.bench.measuring.verdicts import name_some
from troop.report.document import Cell

LIMITS = {
    "JMeter": "Times of {names} are whole milliseconds, because JMeter logs no fractions. Differences of a millisecond "
    "mean nothing.",
    "k6": "Times of {names} leave out name resolution, connecting and TLS: k6 measures from sending a request to the "
    "last byte of its answer.",
}
"""Sentences by the name of the tool."""


def tool_limits(cells: Iterable[Cell]) -> list[str]:
    """Returns a sentence for each tool that measured operations with times."""
    names: dict[str, dict[str, None]] = {}
    for one in (one for cell in cells for phase in cell.phases for one in phase.operations):
        for tool in one.tools if one.max_ms is not None else ():
            names.setdefault(tool, {})[one.operation] = None
    return [LIMITS[tool].format(names=name_some(list(each))) for tool, each in names.items() if tool in LIMITS]
