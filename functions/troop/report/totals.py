"""Totals over all operations of a role, because a mixed workload has a row for each kind of operation.

Roles are never added up: servers count the operations that drivers have sent them once more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from troop.measure import histogram
from troop.measure import operations as ops
from troop.measure.merge import row
from troop.measure.operations import TOTAL, Gaps, PerSecond
from troop.measure.windows import Windows, WindowsError
from troop.report.document import Operation, Phase


def total_row(role: str, operations: Mapping[str, Mapping[str, Any]], seconds: float) -> dict[str, Any] | None:
    """Adds up the operations of a role exactly: histograms bucket by bucket, counts and errors by kind.

    Args:
        operations: documents by name, as in the results of a phase.
        seconds: the measured time.

    Returns:
        A row as of :meth:`troop.measure.merge.Merger.table`; None without a total, see
        :func:`troop.measure.operations.total_of`.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the phase is damaged.
    """
    total = ops.total_of([_operation(name, one) for name, one in operations.items()])
    if total is None:
        return None
    more = {"histogram": total.times, "service_histogram": total.service, "tools": sorted(total.tools)}
    return {**row(role, TOTAL, total, seconds), **more}


def _operation(name: str, document: Mapping[str, Any]) -> ops.Operation:
    timing, service = ops.timing_in(document, name)
    return ops.Operation(
        times=histogram.from_document(document["histogram"]),
        errors=dict(document["errors"]),
        bytes=ops.whole(document["bytes"], f"{name}.bytes"),
        rate=ops.rate_in(document, name),
        timing=timing,
        service=service,
        tools=frozenset(document.get("tools", [])),
    )


def total_over_time(operations: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """Adds up the values over time of the operations of a role.

    Returns:
        A document with the parts of an operation over time; None without a total. A part that some operation
        lacks is empty, because the rest would look like the total.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the phase is damaged.
    """
    if len(operations) < 2 or any(one.get("rate") for one in operations.values()):
        return None
    used = [one for one in operations.values() if _ended(one)]
    counts = _counts(used) if all(_is_complete(one) for one in used) else PerSecond()
    try:
        times = _times(used)
    except WindowsError:  # steps of different lengths
        times = None
    highest = max((one["histogram"]["max"] for one in used), default=0)
    return {
        "histogram": {"max": highest},
        "per_second": counts.document(),
        "over_time": times.document() if times and times.steps else None,
    }


def _counts(operations: Sequence[Mapping[str, Any]]) -> PerSecond:
    total = PerSecond()
    for one in operations:
        counts = one["per_second"]
        total.add(PerSecond(counts["from"], counts["count"], counts["errors"]))
    return total


def _times(operations: Sequence[Mapping[str, Any]]) -> Windows | None:
    with_successes = [one for one in operations if one["histogram"]["count"]]
    if not all(one.get("over_time") and not _gaps(one).times for one in with_successes):
        return None
    each = [Windows.from_document(one["over_time"]) for one in with_successes]
    for other in each[1:]:
        each[0].add(other)
    return each[0] if each else None


def _ended(operation: Mapping[str, Any]) -> int:
    count: int = operation["histogram"]["count"] + sum(operation["errors"].values())
    return count


def _is_complete(operation: Mapping[str, Any]) -> bool:
    """Checks whether each operation and error was also counted by second; some tools do not report that."""
    counts = operation["per_second"]
    successes, errors = sum(counts["count"]), sum(counts["errors"])
    if _gaps(operation).successes or _gaps(operation).errors:
        return False
    return bool(successes >= operation["histogram"]["count"] and errors >= sum(operation["errors"].values()))


def _gaps(operation: Mapping[str, Any]) -> Gaps:
    return ops.gaps_in(operation, "operation")


def rows_of(phase: Phase) -> list[Operation]:
    """Returns the rows of a phase by role: the total of a role with several operations, then these."""
    by_role: dict[str, list[Operation]] = {}
    for one in phase.operations:
        by_role.setdefault(one.role, []).append(one)
    rows = []
    for role, operations in by_role.items():
        total = next((one for one in phase.totals if one.role == role), None)
        if total is None and len(operations) > 1 and not any(_has_only_rate(one) for one in operations):
            total = _of_rows(operations)
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


def _of_rows(rows: Sequence[Operation]) -> Operation:
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
