"""Reports of runs with a few cells, for tests of comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from troop.report.document import Cell, Fleet, Money, Operation, Phase, Report, Run

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

PRICES = {"servers": 0.2, "drivers": 0.1}


def operation(per_second: float | None, name: str = "read", **more: Any) -> Operation:
    count = round((per_second or 0) * 60)
    fields = {"p50_ms": 1.0, "p99_ms": 8.0, **more}
    return Operation(role="drivers", operation=name, **{"count": count, "per_second": per_second, **fields})


def cell(
    number: int,
    per_second: float | Sequence[Operation] | None,
    scale: str | None = None,
    *,
    values: Mapping[str, Any] | None = None,
    repetition: int = 1,
    nodes: Mapping[str, int] | None = None,
    prices: Mapping[str, float | None] = PRICES,
    status: str = "SUCCEEDED",
    seconds: float = 60.0,
) -> Cell:
    """A cell of servers and drivers that has measured reads."""
    fleets = [
        Fleet(
            role=role,
            nodes=count,
            instance_type=f"{role[0]}.large",
            zones={},
            purchase={},
            hourly=None if prices[role] is None else (prices[role] or 0) * count,
        )
        for role, count in (nodes or {"servers": 3, "drivers": 1}).items()
    ]
    measured = per_second if isinstance(per_second, Sequence) else [operation(per_second)]
    return Cell(
        cell=f"c{number:03d}",
        label="",
        scale=scale,
        values=dict(values or {}),
        repetition=repetition,
        status=status,
        fleets=fleets,
        hourly=None,
        phases=[Phase(phase="measure", nodes=4, measured_seconds=seconds, operations=list(measured))],
    )


def repeated(rates: Sequence[float], scale: str | None = None, **more: Any) -> list[Cell]:
    return [cell(n, rate, scale, repetition=n, **more) for n, rate in enumerate(rates, 1)]


def report(cells: Sequence[Cell], run: str = "20261120-150000-1f0c9b2e", **more: Any) -> Report:
    about = {"run": run, "name": "reads", "status": "SUCCEEDED", **more}
    return Report(
        created_at=NOW,
        created_by="0.2",
        run=Run(**about),
        money=Money(most=None),
        definition={},
        cells=list(cells),
    )
