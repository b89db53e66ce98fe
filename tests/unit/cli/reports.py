"""Reports of runs with a few cells, for tests of comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from troop.report.baseline import ratios
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


PAIRS = [(970.0, 1000.0), (1080.0, 1100.0), (880.0, 900.0), (1000.0, 1050.0), (940.0, 960.0), (990.0, 1010.0)]
"""Rates of a candidate and its baseline: 2.4 % less."""


def against_baseline(
    pairs: Sequence[tuple[float, float]] = PAIRS,
    run: str = "20261120-150000-1f0c9b2e",
    *,
    baseline: str = "1.2",
    threads: Sequence[int] = (),
    **more: Any,
) -> Report:
    """A report whose cells have measured version 1.3 and its baseline on the same nodes: rates of these two."""
    cells = []
    for number, pair in enumerate(pairs, 1):
        versions = [("1.3", pair[0]), (baseline, pair[1])]
        measured = [
            ({**({"threads": count} if count else {}), "version": version}, rate)
            for count in threads or [0]
            for version, rate in (versions if number % 2 else reversed(versions))
        ]
        phases = [_at(place, *one) for place, one in enumerate(measured, 1)]
        one = cell(number, 1.0, repetition=number)
        cells.append(one.model_copy(update={"phases": phases, "parameters": {"version": "1.3", "threads": 1}}))
    return against(report(cells, run, **more), {"parameters.version": baseline})


def against(one: Report, baseline: Mapping[str, Any]) -> Report:
    return one.model_copy(update={"baseline": baseline, "ratios": ratios(one.cells, baseline)})


def _at(place: int, parameters: Mapping[str, Any], per_second: float) -> Phase:
    """A point with times and cost that follow from its rate."""
    times: dict[str, Any] = {"mean_ms": 1000 / per_second, "p50_ms": 800 / per_second, "p99_ms": 9.0}
    measured = operation(per_second, cost_per_million=600 / per_second, **times)
    return Phase(
        phase="measure",
        point=place,
        label=", ".join(f"{name}={value}" for name, value in parameters.items()),
        parameters=dict(parameters),
        nodes=4,
        measured_seconds=60,
        operations=[measured],
    )
