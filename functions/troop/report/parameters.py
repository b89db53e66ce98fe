"""Prepares the chart over a parameter: results of all cells and points as rows, each with all that varies.

A row is one operation, or one total, of one phase or point of one cell. Cells that repeat others have rows of their
own; repeats of a point on the same nodes are combined in one, because they are not independent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from troop.bench.definition.plan import shown_value
from troop.bench.records.record import CellStatus
from troop.measure.operations import TOTAL
from troop.report import points
from troop.report.document import Cell, Operation, Phase, Report
from troop.report.formatting import number
from troop.report.totals import rows_of

MOST_ROWS: Final = 6000
"""The most rows of a page, about a megabyte. Totals and the most frequent operations come first."""

SCALE: Final = "scale step"
"""The name of the axis of scale steps."""

_PARAMETER = "parameters."
_COUNT = re.compile(r"fleets\..+\.count")

CONNECT: Final = "connect"
READ: Final = "read"
OTHER: Final = "other"
"""Time-outs whose cause is unknown: of other tools, and of earlier versions."""

_TIMEOUT = re.compile(r"time[-_. ]?d?[-_. ]?out", re.IGNORECASE)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CONNECT = frozenset({"connect", "connection", "connecting"})
_READ = frozenset({"read", "reading", "socket"})

_MEASURES: Final = (
    ("Throughput", "operations/s"),
    ("Mean", "ms"),
    ("p50", "ms"),
    ("p90", "ms"),
    ("p95", "ms"),
    ("p99", "ms"),
    ("p99.9", "ms"),
    ("Max", "ms"),
    ("Errors", "% of all operations"),
    ("Timeouts", "% of all operations"),
    ("Connect timeouts", "% of all operations"),
    ("Read timeouts", "% of all operations"),
    ("Transferred", "MB/s"),
    ("Cost per million", ""),
)
_USUAL: Final = 9
"""Number of the first measures, which are offered even if all their values are 0."""


@dataclass(frozen=True)
class _Row:
    cell: str
    group: tuple[str, str, str]
    settings: Mapping[str, Any]
    operation: Operation


def chart(report: Report) -> dict[str, Any] | None:
    """Returns the data of the chart; None if nothing varies.

    Returns:
        ``{"axes": [name], "measures": [[label, unit]], "groups": [title], "rows": [[group, cell, [value of each axis],
        [value of each measure]]], "left_out": number}``. Groups and axes are in the order in which to offer them.
    """
    rows = list(_rows(report))
    axes = _axes(rows)
    if not axes:
        return None
    groups: dict[tuple[str, str, str], int] = {}
    for row in rows:
        groups[row.group] = groups.get(row.group, 0) + row.operation.count
    order = sorted(groups, key=lambda group: (group[2] != TOTAL, -groups[group]))
    place = {group: n for n, group in enumerate(order)}
    first = sorted(rows, key=lambda row: place[row.group])[:MOST_ROWS]
    values = [_values(row.operation) for row in first]
    offered = [n for n in range(len(_MEASURES)) if _is_offered(n, [each[n] for each in values])]
    currency = report.money.currency
    return {
        "axes": axes,
        "measures": [[_MEASURES[n][0], _MEASURES[n][1] or currency] for n in offered],
        "groups": _titles(order),
        "rows": [
            [place[row.group], row.cell, [row.settings.get(axis) for axis in axes], [number(each[n]) for n in offered]]
            for row, each in zip(first, values, strict=True)
        ],
        "left_out": len(rows) - len(first),
    }


def _rows(report: Report) -> Iterator[_Row]:
    for cell in report.cells:
        if cell.status != CellStatus.SUCCEEDED:
            continue
        by_key = {points.key_of(phase, one): phase for phase in cell.phases for one in rows_of(phase)}
        for key, [(_, one)] in points.by_key([cell]).items():
            yield _Row(cell.cell, (key[0], one.role, one.operation), settings(cell, by_key[key]), one)


def settings(cell: Cell, phase: Phase) -> dict[str, Any]:
    """Returns what a result was measured with: parameters of the cell and its point, nodes of each role, scale step."""
    point = {_PARAMETER + key: value for key, value in phase.parameters.items()}
    known = {_PARAMETER + key: value for key, value in cell.parameters.items()}
    values = {key: value for key, value in cell.values.items() if not _COUNT.fullmatch(key)}
    nodes = {f"nodes of {fleet.role}": fleet.nodes for fleet in cell.fleets}
    step = {SCALE: cell.scale} if cell.scale else {}
    parameters = {**known, **values, **point}
    return {**{key.removeprefix(_PARAMETER): _scalar(value) for key, value in parameters.items()}, **nodes, **step}


def _scalar(value: Any) -> float | str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return value
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else shown_value(value)


def _axes(rows: list[_Row]) -> list[str]:
    """Returns the names of what varies: numbers before words, and of these the one with the most values first."""
    values: dict[str, set[Any]] = {}
    for row in rows:
        for key, value in row.settings.items():
            values.setdefault(key, set()).add(value)
    varying = [key for key, its in values.items() if len(its) > 1]
    return sorted(varying, key=lambda key: (any(isinstance(one, str) for one in values[key]), -len(values[key])))


def _values(one: Operation) -> list[float | None]:
    """Returns the values of a row, in the order of the measures."""
    errors = sum(one.errors.values())
    every = one.count + errors
    by_kind = timeouts(one.errors)

    def share(count: int) -> float | None:
        return 100 * count / every if every else None

    return [
        one.per_second,
        one.mean_ms,
        one.p50_ms,
        one.p90_ms,
        one.p95_ms,
        one.p99_ms,
        one.p99_9_ms,
        one.max_ms,
        share(errors),
        share(sum(by_kind.values())),
        share(by_kind.get(CONNECT, 0)),
        share(by_kind.get(READ, 0)),
        None if one.bytes_per_second is None else one.bytes_per_second / 1e6,
        one.cost_per_million,
    ]


def _is_offered(measure: int, values: list[float | None]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and (measure < _USUAL or any(known))


def _titles(groups: list[tuple[str, str, str]]) -> list[str]:
    several = [len({group[place] for group in groups}) > 1 for place in range(2)]
    return [" · ".join([*(group[n] for n in range(2) if several[n]), group[2]]) for group in groups]


def timeouts(errors: Mapping[str, int]) -> dict[str, int]:
    """Adds up the timeouts of errors by kind: ``connect``, ``read`` or ``other``.

    Java's SocketTimeoutException is a read timeout, because connecting has an exception of its own.
    """
    counts: dict[str, int] = {}
    for kind, count in errors.items():
        if _TIMEOUT.search(kind):
            words = {word.lower() for word in _WORDS.findall(kind)}
            which = CONNECT if words & _CONNECT else READ if words & _READ else OTHER
            counts[which] = counts.get(which, 0) + count
    return counts
