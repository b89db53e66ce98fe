"""Computes the values over time of single nodes, the slowest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from troop.bench.results.steps import SeriesRow, Value
from troop.measure.node_series import AMOUNTS, LEVELS
from troop.measure.operations import TOTAL

_PARTS = {"mean_ms": ("mean_micros", 1000), "p99_ms": ("p99_micros", 1000)}
_PARTS_OF_NODES = {**{name: (name, 10) for name in LEVELS}, **{name: (name, 1) for name in AMOUNTS}}
"""Names of series, the values that they are of, and the divisor to their unit."""


def node_series(
    role: str, document: Mapping[str, Any], zero: int, begin: float | None, until: float | None
) -> Iterator[SeriesRow]:
    """Yields the series of a role's nodes; nothing for results of earlier versions, and for the only node of a role.

    Args:
        document: the role of the results.
        zero: the second since 1970 from which times are counted.
        begin, until: limits of the time in which operations counted, in seconds after zero; None if unknown.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the document is damaged.
    """
    rows = document.get("node_series") or []
    names = [*document["operations"]]
    operation = names[0] if len(names) == 1 else TOTAL
    for row in rows if len(rows) > 1 else []:
        start, step = row["from"] - zero, row["step_seconds"]

        def one(
            owner: str | None, name: str, values: Sequence[Value], row: Any = row, at: Any = (start, step)
        ) -> SeriesRow:
            short = [None if value is None else float(f"{value:.4g}") for value in values]
            return SeriesRow(role, name, at[0], at[1], short, node=row["node"], operation=owner)

        for name, amount in (("per_second", "count"), ("errors_per_second", "errors")):
            if totals := row.get(amount):
                yield one(operation, name, _rates(totals, start, step, begin, until))
        for owner, parts in ((operation, _PARTS), (None, _PARTS_OF_NODES)):
            for name, (key, divisor) in parts.items():
                if values := row.get(key):
                    yield one(owner, name, [None if value is None else value / divisor for value in values])


def _rates(totals: Sequence[int], start: int, step: int, begin: float | None, until: float | None) -> list[Value]:
    """Returns the rate per second in each step. The first and the last step may be shorter than the others."""
    rates: list[Value] = []
    for number, total in enumerate(totals):
        low, high = start + number * step, start + (number + 1) * step
        covered = min(high, high if until is None else until) - max(low, low if begin is None else begin)
        rates.append(total / covered if covered >= step / 2 or covered >= 1 else None)
    return rates
