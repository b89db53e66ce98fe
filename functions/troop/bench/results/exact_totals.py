"""Adds up the operations of a role from merged results: histograms, counts and values over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from troop.measure import histogram
from troop.measure import operations as ops
from troop.measure.merge import row
from troop.measure.operations import TOTAL, Gaps, PerSecond
from troop.measure.windows import Windows, WindowsError


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
