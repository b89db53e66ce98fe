"""Makes the line of a run of its report: see :mod:`troop.bench.records.line`."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping

from troop.bench.definition.definition import parameter_of
from troop.bench.definition.plan import shown_value
from troop.bench.records.line import Figures, Line, Values, fitted
from troop.bench.records.record import CellStatus, Run
from troop.report import baseline, points
from troop.report.document import Cell, Operation, Report

MOST_VERSIONS = 50
LONGEST_VALUE = 200
"""The limits of what a line states beside its figures."""

_SCHEDULED = re.compile(r" \(schedule ([^()]+)\)$")
"""The end of the caller of a run that a schedule has started: see :mod:`troop.bench.flows.scheduled_runs`."""

_BESIDE = frozenset(
    ("name", "description", "version", "size", "files", "parameters", "artifacts", "baseline", "budget", "prices")
)
"""The keys of a definition that change no measurement, or that a line states itself."""


def line_of(run: Run, report: Report) -> Line:
    """Returns the line of an ended run, with as many measurements as fit.

    Args:
        run: its record.
        report: of the same run.
    """
    scheduled = _SCHEDULED.search(run.requested_by)
    version = report.definition.get("version")
    line = Line(
        run=run.run,
        name=run.name,
        at=run.at,
        size=report.run.size,
        status=run.status.value,
        troop=report.created_by,
        version=version[:LONGEST_VALUE] if isinstance(version, str) else "",
        schedule=scheduled[1] if scheduled else "",
        versions=dict(list(_versions(report))[:MOST_VERSIONS]),
        baseline={key: parameter_of(value) for key, value in report.baseline.items()},
        cost=None if run.cost is None else run.cost.amount,
        figures=tuple(_figures(points.within_limits(report))),
    )
    return fitted(line)


def _figures(report: Report) -> Iterator[Figures]:
    """Yields the measurements, of operations with a rate."""
    if report.baseline:
        for pair in baseline.pairs(report.cells, report.baseline):
            known = [(ours, theirs) for one in pair.each if (ours := _values(one[0])) and (theirs := _values(one[1]))]
            if known:
                yield Figures(pair.variant, *pair.key, *(tuple(side) for side in zip(*known, strict=True)))
        return
    by_variant: dict[str, list[Cell]] = {}
    for cell in report.cells:
        if cell.status == CellStatus.SUCCEEDED:
            by_variant.setdefault(baseline.label_of(cell), []).append(cell)
    for variant, cells in by_variant.items():
        for key, each in points.by_key(cells).items():
            if values := tuple(value for _, one in each if (value := _values(one))):
                yield Figures(variant, *key, values)


def _values(one: Operation) -> Values | None:
    """Returns the figures of an operation in a cell; None without a rate."""
    rate, failed = _finite(one.per_second), sum(one.errors.values())
    if rate is None:
        return None
    return Values(
        rate,
        _finite(one.mean_ms),
        _finite(one.p50_ms),
        _finite(one.p99_ms),
        _finite(one.cost_per_million),
        failed / (failed + one.count) if failed + one.count else None,
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _versions(report: Report) -> Iterator[tuple[str, str]]:
    """Yields what can change from run to run beside what is measured."""
    types: dict[str, dict[str, None]] = {}
    for fleet in (fleet for cell in report.cells for fleet in cell.fleets):
        types.setdefault(fleet.role, {}).update(dict.fromkeys(fleet.instance_type.split(", ")))
    for role, names in types.items():
        yield f"type {role}", _joined(names)
    named: dict[str, dict[str, None]] = {}
    for one in report.versions:
        named.setdefault(one.what, {})[one.version] = None
    for name, every in named.items():
        if name != "Troop":  # the line states that itself
            yield name, _joined(every)
    parameters = report.definition.get("parameters")
    for name, value in sorted(parameters.items()) if isinstance(parameters, Mapping) else ():
        yield f"parameters.{name}", shown_value(value)[:LONGEST_VALUE]
    rest = {key: value for key, value in report.definition.items() if key not in _BESIDE}
    yield "file", hashlib.sha256(json.dumps(rest, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _joined(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))[:LONGEST_VALUE]
