"""Shows a benchmark's history: its figures over recorded runs, also by hour of the day and by weekday. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from statistics import median
from typing import Any

from troop.bench.records.history import Beside, Change, Figure, Series
from troop.bench.records.line import Line, changes
from troop.shared import moments
from troop.shared.formatting import NOTHING, counted, milliseconds, percent, plain, share


class Period(StrEnum):
    """What the moments of runs are grouped by."""

    HOUR = "hour"
    WEEKDAY = "weekday"


DAY = re.compile(r"\d{4}-\d\d-\d\d")

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Group:
    """The values of a series within the same hour of the day, or on the same weekday: those of the candidate alone,
    because a ratio to the baseline hides what both share.

    Attributes:
        place: the hour, or the weekday from 0 for Monday.
    """

    period: str
    place: int
    runs: int
    median: float
    lowest: float
    highest: float


def groups(one: Series, period: Period, zone: tzinfo | None) -> list[Group]:
    """Groups the values of a series by the hour or the weekday when their runs were admitted, in order."""
    by_place: dict[int, list[float]] = {}
    for value in one.values:
        at = value.line.at.astimezone(zone)
        by_place.setdefault(at.hour if period is Period.HOUR else at.weekday(), []).append(value.own)
    return [
        Group(_named(number, period), number, len(values), median(values), min(values), max(values))
        for number, values in sorted(by_place.items())
    ]


def _named(number: int, period: Period) -> str:
    return f"{number:02d}:00" if period is Period.HOUR else WEEKDAYS[number]


def since(one: Series, run: str) -> list[Change]:
    """Returns the changes of a series whose first run is not before a run or a day.

    Args:
        run: the id of a run, which begins with its time, or a day such as 2026-11-20.
    """
    least = run.replace("-", "") if DAY.fullmatch(run) else run
    return [change for change in one.changes if change.first.run >= least]


def first_regression(every: Iterable[Series], run: str) -> tuple[Series, Change] | None:
    """Returns the oldest change towards worse that lasts, and its series; None without one.

    Args:
        run: as of :func:`since`; "" for all changes.
    """
    lasting = ((one, change) for one in every for change in since(one, run) if change.is_worse and change.lasts)
    return min(lasting, key=lambda pair: (pair[1].first.at, pair[0].name), default=None)


def document(
    name: str, figure: Figure, zone: str, where: tzinfo | None, every: Sequence[Series], run: str
) -> dict[str, Any]:
    """Returns the history as JSON values. Moments are in UTC, hours and weekdays in ``zone``.

    Args:
        where: the zone itself; None for that of this machine.
        run: as of :func:`since`.
    """
    return {
        "benchmark": name,
        "figure": figure.value,
        "unit": figure.unit,
        "time_zone": zone,
        "series": [
            {
                "measurement": list(one.measurement),
                "baseline": dict(one.baseline),
                "noise": one.noise,
                "values": [
                    {
                        "run": value.line.run,
                        "at": moments.iso(value.line.at),
                        "value": value.own,
                        "ratio": value.ratio,
                        "version": value.line.version,
                    }
                    for value in one.values
                ],
                "changes": [_change(change) for change in since(one, run)],
                **{
                    f"by_{period}": [
                        {key: value for key, value in vars(group).items() if key != "place"}
                        for group in groups(one, period, where)
                    ]
                    for period in Period
                },
            }
            for one in every
        ],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "run": change.first.run,
        "at": moments.iso(change.first.at),
        "last_before": change.last.run,
        "before": change.before,
        "after": change.after,
        "is_worse": change.is_worse,
        "lasts": change.lasts,
        "beside": [vars(one) for one in change.beside],
    }


def page_values(
    name: str, figure: Figure, zone: str, where: tzinfo | None, every: Sequence[Series], run: str
) -> dict[str, Any]:
    """Returns the history as :func:`troop.report.html.history_page` shows it; arguments as of :func:`document`."""
    lines = {value.line.run: value.line for one in every for value in one.values}
    runs = sorted(lines.values(), key=lambda line: (line.at, line.run))
    places = {line.run: place for place, line in enumerate(runs)}
    return {
        "benchmark": name,
        "figure": figure.value,
        "unit": figure.unit,
        "time_zone": zone,
        "scale": _SCALES.get(figure, 1),
        "suffix": _SUFFIXES[figure],
        "runs": [_shown_run(line, where) for line in runs],
        "versions": list(_versions(runs, places)),
        "series": [_shown(one, places, where, run) for one in every],
    }


_SCALES = {Figure.ERRORS: 100}
_SUFFIXES = {
    Figure.THROUGHPUT: "/s",
    Figure.MEAN: " ms",
    Figure.P50: " ms",
    Figure.P99: " ms",
    Figure.COST: "",
    Figure.ERRORS: " %",
}


def _shown_run(line: Line, where: tzinfo | None) -> dict[str, Any]:
    at = line.at.astimezone(where)
    wall = at.replace(tzinfo=UTC)
    return {
        "run": line.run,
        "at": moment(at),
        "version": line.version,
        "wall": round(wall.timestamp() * 1000),
        "hour": wall.hour + wall.minute / 60,
        "weekday": wall.weekday(),
    }


def _versions(runs: Sequence[Line], places: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Yields what changed from each run to the next one of the same size."""
    last: dict[str | None, Line] = {}
    for line in runs:
        before, last[line.size] = last.get(line.size), line
        if before and (texts := [version(name, *values) for name, values in changes(before, line).items()]):
            yield {"place": places[line.run], "size": line.size, "texts": texts}


def _shown(one: Series, places: Mapping[str, int], where: tzinfo | None, run: str) -> dict[str, Any]:
    return {
        "name": one.name,
        "topic": " · ".join(one.measurement[:-1]) + (f", against {one.against}" if one.baseline else ""),
        "size": one.size,
        "against": one.against,
        "noise": NOTHING if one.noise is None else share(one.noise),
        "places": [places[value.line.run] for value in one.values],
        "values": [value.own for value in one.values],
        "texts": [number(value.own, one.figure) for value in one.values],
        "ratios": [value.ratio for value in one.values if value.ratio is not None],
        "changes": [
            {
                "place": places[change.first.run],
                "levels": [change.before, change.after],
                "before": level(one, change.before),
                "after": level(one, change.after),
                "text": difference(one, change),
                "is_worse": change.is_worse,
                "lasts": change.lasts,
                "beside": [beside(each) for each in change.beside],
            }
            for change in since(one, run)
        ],
        **{
            f"by_{period}": [_shown_group(group, one.figure) for group in groups(one, period, where)]
            for period in Period
        },
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
    match figure:
        case Figure.THROUGHPUT:
            return f"{plain(value)}/s"
        case Figure.ERRORS:
            return share(value)
        case Figure.COST:
            return plain(value)
        case _:
            return milliseconds(value)


def level(one: Series, value: float) -> str:
    """Formats a level of a series: a ratio to the baseline, or a value with its unit."""
    return f"{value:.3f}" if one.baseline else number(value, one.figure)


def difference(one: Series, change: Change) -> str:
    """Formats how much a change is: ``-4.6 %``; of shares of errors ``+2.3 percentage points``."""
    if one.figure is Figure.ERRORS:
        points = 100 * (change.after - change.before)
        return f"{_sign(points)}{plain(abs(points))} percentage points"
    more = change.after / change.before - 1
    return f"{_sign(more)}{percent(abs(100 * more))}"


def _sign(value: float) -> str:
    return "+" if value > 0 else "\N{MINUS SIGN}"


def beside(one: Beside) -> str:
    """Says what else changed near a change point: ``image ami-1 → ami-2, 1 run later``."""
    text = version(one.name, one.before, one.after)
    if not one.distance:
        return text
    return f"{text}, {counted(abs(one.distance), 'run')} {'later' if one.distance > 0 else 'earlier'}"


def version(name: str, before: str, after: str) -> str:
    """Says how a version changed."""
    if name == "file":  # a digest
        return "the rest of the file"
    return f"{name} {before or 'none'} → {after or 'none'}"
