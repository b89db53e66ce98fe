"""Prepares the data of a report's charts as small JSON: numbers with four digits, every name once."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from troop.measure.operations import TOTAL
from troop.report import open_loop, parameters
from troop.report.document import Cell, Operation, Phase, Report, Scaling
from troop.report.formatting import cell_name, number
from troop.report.totals import rows_of

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def embedded(value: Any) -> Markup:
    """Encodes a value as JSON for a script element, with escapes so that it cannot end the element or begin another."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return Markup(text)


def packed(value: Any) -> str:
    """Encodes a value as JSON, deflated (zlib's format) and in base64: values over time of 200 cells are many and
    similar.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode("utf-8", "replace"))).decode()


def chart_data(report: Report) -> dict[str, Any]:
    """Returns the data of all charts except those over time: {"scaling", "distributions", "parameters"}, see below and
    :mod:`troop.report.parameters`.
    """
    return {
        "scaling": [_scaling(title, members) for title, members in scaling_groups(report)],
        "distributions": _distributions(report.cells, open_loop.is_labelled(report.cells)),
        "parameters": parameters.chart(report),
    }


def scaling_groups(report: Report) -> list[tuple[str, list[Scaling]]]:
    """Collects the lines of each chart: all combinations of the matrix for one operation. Returns them with titles,
    totals before single operations.
    """
    groups: dict[tuple[str, str, str, str], list[Scaling]] = {}
    for one in report.scaling:
        if not one.points:
            continue
        groups.setdefault((one.phase, one.role, one.operation, one.counted), []).append(one)
    titles = _titles([key[:3] for key in groups])
    ordered = sorted(groups.items(), key=lambda group: group[0][2] != TOTAL)
    return [(titles[key[:3]], members) for key, members in ordered]


def ideal(one: Scaling) -> float | None:
    """Returns the operations per second of each node at the smallest step, which define the line of ideal growth."""
    fewest = min((point.nodes for point in one.points), default=0)
    first = [point.per_second for point in one.points if point.nodes == fewest]
    return sum(first) / len(first) / fewest if fewest else None


def _scaling(title: str, members: Sequence[Scaling]) -> dict[str, Any]:
    """Returns {"title", "counted", "operation", "lines": [{"name", "points": [[nodes, per second, cell]], "slope",
    "intercept", "ideal"}]}.
    """
    return {
        "title": title,
        "counted": members[0].counted,
        "operation": members[0].operation,
        "lines": [
            {
                "name": one.label,
                "points": [[point.nodes, number(point.per_second), point.cell] for point in one.points],
                "slope": number(one.slope),
                "intercept": number(one.intercept),
                "ideal": number(ideal(one)),
            }
            for one in members
        ],
    }


def _distributions(cells: Iterable[Cell], labelled: bool) -> list[dict[str, Any]]:
    """Returns [{"title", "lines": [{"name", "first", "count", "points": [[percentile, ms]]}]}]: one entry per
    operation, one line per cell and point. ``first`` is true for the first repetition.

    Args:
        labelled: whether names say what the times are; service times then have a line beside response times.
    """
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for cell in cells:
        for phase, operation in rows(cell):
            each = {open_loop.word(operation.timing): operation.distribution}
            if operation.service:
                each["service"] = operation.service.distribution
            for kind, distribution in each.items():
                points = [[float(f"{p:.8g}"), number(ms)] for p, ms in distribution if math.isfinite(ms)]
                if points:
                    parts = cell_name(cell), phase.setting, f"{kind} times" if labelled else ""
                    line = {
                        "name": ", ".join(part for part in parts if part),
                        "first": cell.repetition == phase.repeat == 1,
                        "count": operation.count,
                        "points": points,
                    }
                    groups.setdefault((phase.phase, operation.role, operation.operation), []).append(line)
    titles = _titles(list(groups))
    return [{"title": titles[key], "lines": lines} for key, lines in groups.items()]


def measured(cell: Cell) -> list[tuple[Phase, Operation]]:
    return [(phase, operation) for phase in cell.phases for operation in phase.operations]


def rows(cell: Cell) -> list[tuple[Phase, Operation]]:
    """Returns the measured operations, and before those of a role their total."""
    return [(phase, operation) for phase in cell.phases for operation in rows_of(phase)]


def _titles(keys: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """Returns titles from each key's last part, and from the other parts that differ between keys."""
    differing = [len({key[place] for key in keys}) > 1 for place in range(2)]
    return {
        key: " · ".join([*(part for part, differs in zip(key, differing, strict=False) if differs), key[2]])
        for key in keys
    }
