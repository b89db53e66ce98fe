"""Reads the results of operations: the rows of the table, and the distribution of times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from troop.bench.results.exact_totals import total_row
from troop.measure import histogram
from troop.measure.histogram import Histogram
from troop.measure.operations import TOTAL

LADDER = (
    *(0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 92.5, 95.0, 96.0, 97.0, 98.0, 99.0),
    *(99.25, 99.5, 99.75, 99.9, 99.95, 99.99, 99.995, 99.999, 99.9995, 99.9999, 99.99999, 99.999999),
)
"""Percentiles to report if enough operations lie beyond them."""

_MILLION = 1_000_000


def operations(phase: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the rows of one phase of the results, and the total of each role with several operations, as of
    :class:`troop.report.document.Operation`; without costs.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the phase is damaged.
    """
    totals = {
        role: total
        for role, its in phase["roles"].items()
        if (total := total_row(role, its["operations"], phase["measured_seconds"]))
    }
    operations = []
    for row in phase["table"]:
        if row["operation"] == TOTAL:
            continue
        document = phase["roles"][row["role"]]["operations"][row["operation"]]
        count = totals[row["role"]]["count"] if row["role"] in totals else 0
        share = {"share": row["count"] / count} if count else {}
        more = {**share, "names": document.get("names", []), "tools": document.get("tools", [])}
        service = histogram.from_document(its) if (its := document.get("service")) else None
        operations.append(_operation({**row, **more}, histogram.from_document(document["histogram"]), service))
    return operations, [_operation(row, row.pop("histogram"), row.pop("service_histogram")) for row in totals.values()]


def _operation(row: dict[str, Any], times: Histogram, service: Histogram | None) -> dict[str, Any]:
    row["distribution"] = distribution(times)
    if service is not None and row.get("service"):
        row["service"] = {**row["service"], "distribution": distribution(service)}
    return row


def cost_per_million(hourly: float | None, per_second: float | None) -> float | None:
    """Returns the cost of the system for the duration of a million operations; None if unknown or without
    operations.
    """
    if hourly is None or not per_second:
        return None
    return round(hourly / 3600 / per_second * _MILLION, 9)


def distribution(times: Histogram) -> list[tuple[float, float]]:
    """Returns percentiles and their times in milliseconds, both ascending.

    These are the percentiles of :data:`LADDER` with an operation beyond them, and the maximum; empty without
    operations.
    """
    if not times.count:
        return []
    rungs = [percent for percent in LADDER[1:] if _beyond(times.count, percent) >= 1]
    values = [times.min, *(value or 0 for value in times.percentiles(tuple(rungs))), times.max]
    return [(percent, value / 1000) for percent, value in zip((0.0, *rungs, 100.0), values, strict=True)]


def _beyond(count: int, percent: float) -> float:
    """Returns the number of operations beyond a percentile, slightly increased to compensate for rounding errors."""
    return count * (100 - percent) / 100 + 1e-6
