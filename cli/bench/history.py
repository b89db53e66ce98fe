"""Compares a benchmark's figures over its recorded runs, also by hour of the day and by weekday. Pure.

Only the same size, variant, phase, point, role and operation form a series: others measure something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from statistics import median
from typing import Any

from cli.bench import cells as bench_cells
from cli.bench import show as bench_show
from troop.bench.definition.definition import is_load
from troop.bench.records.record import CellStatus
from troop.measure.operations import TOTAL
from troop.shared import moments
from troop.shared.formatting import milliseconds, plain, share


class Figure(StrEnum):
    """A column of the results."""

    THROUGHPUT = "throughput"
    MEAN = "mean"
    P50 = "p50"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"
    MAXIMUM = "max"
    ERRORS = "errors"

    @property
    def unit(self) -> str:
        return {Figure.THROUGHPUT: "operations per second", Figure.ERRORS: "share of operations"}.get(
            self, "milliseconds"
        )


class Period(StrEnum):
    """What the moments of runs are grouped by."""

    HOUR = "hour"
    WEEKDAY = "weekday"


WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Value:
    """A figure of one run.

    Attributes:
        at: when its phase began, or the run if that is unknown; in the time zone of the request.
    """

    run: str
    at: datetime
    value: float


@dataclass(frozen=True)
class Series:
    """A figure of the same measurement in several runs.

    Attributes:
        measurement: size, variant, phase with its point, role and operation; without empty parts.
        values: oldest first.
        role: of its nodes.
        is_total: whether it is about all operations of the role.
    """

    measurement: tuple[str, ...]
    values: tuple[Value, ...]
    role: str = ""
    is_total: bool = False

    @property
    def name(self) -> str:
        return " · ".join(self.measurement)


@dataclass(frozen=True)
class Group:
    """The values of a series within the same hour of the day, or on the same weekday.

    Attributes:
        place: the hour, or the weekday from 0 for Monday.
    """

    period: str
    place: int
    runs: int
    median: float
    lowest: float
    highest: float


def series(views: Iterable[Mapping[str, Any]], figure: Figure, zone: tzinfo | None) -> list[Series]:
    """Collects a figure's series from runs. Cells count at their last attempt, if they succeeded.

    Args:
        views: complete answers of GET /benchmarks/{run}.
        zone: of the moments; None is the local one.

    Returns:
        Sorted by measurement.
    """
    every: dict[tuple[str, ...], Series] = {}
    for view in views:
        run = view["run"]
        for cell in bench_cells.latest(view):
            if cell["status"] != CellStatus.SUCCEEDED:
                continue
            begun = {step["phase"]: step["at"] for step in cell["steps"]}
            for row in cell["results"] or ():
                if (value := _value(row, figure)) is None:
                    continue
                at = datetime.fromisoformat(_began(row, begun) or run["at"]).astimezone(zone)
                name = _measurement(run, cell, row)
                one = every.get(name) or Series(name, (), str(row.get("role", "")), row.get("operation") == TOTAL)
                every[name] = replace(one, values=(*one.values, Value(run["run"], at, value)))
    return [
        replace(every[name], values=tuple(sorted(every[name].values, key=lambda one: (one.at, one.run))))
        for name in sorted(every)
    ]


def main(every: Iterable[Series]) -> Series | None:
    """Returns the series that tells most about a benchmark: of nodes that generate load, as others count operations
    several times; of all their operations; over the most runs; with the largest last value. None without any.
    """
    return max(
        every,
        key=lambda one: (is_load(one.role, None), one.is_total, len(one.values), one.values[-1].value),
        default=None,
    )


def _began(row: Mapping[str, Any], begun: Mapping[str, str]) -> str | None:
    phase = str(row.get("phase", ""))
    return begun.get(f"{phase}.{row['point']}" if row.get("point") else phase)


def _measurement(run: Mapping[str, Any], cell: Mapping[str, Any], row: Mapping[str, Any]) -> tuple[str, ...]:
    parts = (run.get("size"), cell.get("label"), bench_show.phase_of(row), row.get("role"), row.get("operation"))
    return tuple(str(part) for part in parts if part)


def _value(row: Mapping[str, Any], figure: Figure) -> float | None:
    if figure is Figure.THROUGHPUT:
        return row.get("per_second")
    if figure is Figure.ERRORS:
        errors = sum((row.get("errors") or {}).values())
        ended = row.get("count", 0) + errors
        return errors / ended if ended else None
    return row.get(f"{figure}_ms")


def groups(one: Series, period: Period) -> list[Group]:
    """Groups the values of a series by the hour or the weekday of their moments, in order."""
    by_place: dict[int, list[float]] = {}
    for value in one.values:
        by_place.setdefault(value.at.hour if period is Period.HOUR else value.at.weekday(), []).append(value.value)
    return [
        Group(_named(number, period), number, len(values), median(values), min(values), max(values))
        for number, values in sorted(by_place.items())
    ]


def _named(number: int, period: Period) -> str:
    return f"{number:02d}:00" if period is Period.HOUR else WEEKDAYS[number]


def document(name: str, figure: Figure, zone: str, every: Sequence[Series]) -> dict[str, Any]:
    """Returns the history as JSON values. Moments are in UTC, hours and weekdays in ``zone``."""
    return {
        "benchmark": name,
        "figure": figure.value,
        "unit": figure.unit,
        "time_zone": zone,
        "series": [
            {
                "measurement": list(one.measurement),
                "values": [
                    {"run": value.run, "at": moments.iso(value.at), "value": value.value} for value in one.values
                ],
                **{
                    f"by_{period}": [
                        {key: value for key, value in vars(group).items() if key != "place"}
                        for group in groups(one, period)
                    ]
                    for period in Period
                },
            }
            for one in every
        ],
    }


def page_values(name: str, figure: Figure, zone: str, every: Sequence[Series]) -> dict[str, Any]:
    """Returns the history as :func:`troop.report.html.history_page` shows it."""
    return {
        "benchmark": name,
        "figure": figure.value,
        "unit": figure.unit,
        "time_zone": zone,
        "runs": len({value.run for one in every for value in one.values}),
        "series": [
            {
                "name": one.name,
                "topic": " · ".join(one.measurement[:-1]),
                "values": [_shown(value, figure) for value in one.values],
                **{f"by_{period}": [_shown_group(group, figure) for group in groups(one, period)] for period in Period},
            }
            for one in every
        ],
    }


def _shown(value: Value, figure: Figure) -> dict[str, Any]:
    wall = value.at.replace(tzinfo=UTC)
    return {
        "run": value.run,
        "at": moment(value.at),
        "text": number(value.value, figure),
        "value": value.value,
        "wall": round(wall.timestamp() * 1000),
        "hour": wall.hour + wall.minute / 60,
        "weekday": wall.weekday(),
    }


def _shown_group(group: Group, figure: Figure) -> dict[str, Any]:
    texts = {key: number(getattr(group, key), figure) for key in ("median", "lowest", "highest")}
    return {"period": group.period, "runs": group.runs, "place": group.place, "number": group.median, **texts}


def moment(at: datetime) -> str:
    """Formats a moment with its zone: ``Tue 2026-11-17 00:30 CET``."""
    return f"{at:%a %Y-%m-%d %H:%M %Z}"


BAR = 24


def bars(values: Sequence[float]) -> list[str]:
    """Returns a bar for each value, from 0; the longest has :data:`BAR` characters."""
    most = max(values, default=0)
    return ["█" * round(BAR * value / most) if most > 0 else "" for value in values]


def number(value: float, figure: Figure) -> str:
    """Formats a value with its unit."""
    if figure is Figure.THROUGHPUT:
        return f"{plain(value)}/s"
    return share(value) if figure is Figure.ERRORS else milliseconds(value)
