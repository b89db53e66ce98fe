"""Totals over all operations of a role, because a mixed workload has a row for each kind of operation.

Roles are never added up: servers count the operations that drivers have sent them once more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from troop.measure.operations import TOTAL
from troop.report.document import Operation, Phase


def rows_of(phase: Phase) -> list[Operation]:
    """Returns the rows of a phase by role: the total of a role with several operations, then these."""
    by_role: dict[str, list[Operation]] = {}
    for one in phase.operations:
        by_role.setdefault(one.role, []).append(one)
    rows = []
    for role, operations in by_role.items():
        total = next((one for one in phase.totals if one.role == role), None)
        if total is None and len(operations) > 1 and not any(_has_only_rate(one) for one in operations):
            total = _total_without_histograms(operations)
            operations = [_with_share(one, total.count) for one in operations]
        if total is not None:
            rows.append(total)
        rows += operations
    return rows


def leading(phase: Phase) -> list[Operation]:
    """Returns one row for each role: its total, or its only operation."""
    first: dict[str, Operation] = {}
    for one in rows_of(phase):
        first.setdefault(one.role, one)
    return list(first.values())


def rate_of(phase: Phase, role: str) -> float | None:
    """Returns the operations per second of a role: those of its total, or of its only operation. None without any, and
    if tests of a tool ran one after another: then no rate was reached all the time.
    """
    rows = [one for one in rows_of(phase) if one.role == role]
    return rows[0].per_second if rows and (len(rows) == 1 or rows[0].operation == TOTAL) else None


def _has_only_rate(one: Operation) -> bool:
    return one.mean_derived or bool(one.per_second and one.mean_ms is one.p50_ms is one.max_ms is None)


def _with_share(one: Operation, count: int) -> Operation:
    return one.model_copy(update={"share": one.count / count if count else None})


def _total_without_histograms(rows: Sequence[Operation]) -> Operation:
    """Returns a total of a report of an earlier version, which has no histograms: without percentiles."""
    errors: dict[str, int] = {}
    for one in rows:
        for kind, number in one.errors.items():
            errors[kind] = errors.get(kind, 0) + number
    count = sum(one.count for one in rows)
    means = [one.mean_ms * one.count for one in rows if one.mean_ms is not None]
    slowest = [one.max_ms for one in rows if one.max_ms is not None]
    costs = [one.cost_per_million * one.per_second for one in rows if one.cost_per_million and one.per_second]
    per_second = _sum([one.per_second for one in rows])
    return Operation(
        role=rows[0].role,
        operation=TOTAL,
        count=count,
        per_second=per_second,
        bytes_per_second=_sum([one.bytes_per_second for one in rows]),
        errors=errors,
        mean_ms=math.fsum(means) / count if means and count else None,
        max_ms=max(slowest, default=None),
        cost_per_million=max(costs) / per_second if costs and per_second else None,
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None
