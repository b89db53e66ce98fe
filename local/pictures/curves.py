"""Computes the lines of a metric widget from points: statistics by period, and searches, as CloudWatch does."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.pictures.points import Point, dimensions_of

_SEARCH = re.compile(r"""SEARCH\('\{(?P<schema>[^}]+)\}(?P<terms>[^']*)', *'(?P<stat>\w+)'\)""")
_FILLED = re.compile(r"FILL\((?P<id>m\d+), 0\)")
_FILL = re.compile(r"FILL\((?P<inner>.*), *(?P<value>-?[\d.]+)\)")
_TERM = re.compile(r'(?P<name>\w+)="(?P<value>[^"]*)"')
_PERCENTILE = re.compile(r"p(?P<percent>\d+(\.\d+)?)")
_PERIOD = 300
"""Seconds; the default of a widget and its metric."""


class NotUnderstoodError(ValueError):
    """An expression or a statistic that this module does not support."""


@dataclass(frozen=True)
class Span:
    """The time range of a dashboard.

    Attributes:
        start, end: seconds since 1970.
        period: seconds, which replace those of the metrics; None to use theirs.
    """

    start: float
    end: float
    period: int | None = None


@dataclass(frozen=True)
class Curve:
    """A line of a graph, or a number of a widget.

    Attributes:
        right: whether it uses the right axis.
        values: (seconds since 1970, value) of each period with a value.
    """

    label: str
    right: bool
    values: tuple[tuple[float, float], ...]


def curves(properties: Mapping[str, Any], points: Sequence[Point], span: Span) -> list[Curve]:
    """Computes all lines of a metric widget.

    Args:
        properties: of the widget, as in a dashboard's body.

    Raises:
        NotUnderstoodError: an expression or a statistic is not supported.
    """
    whole = bool(properties.get("setPeriodToTimeRange"))
    defaults: dict[str, Any] = {"stat": "Average", "period": _PERIOD} | {
        k: properties[k] for k in ("stat", "period") if k in properties
    }
    rows = [
        (tuple(row[:-1]), row[-1]) if isinstance(row[-1], Mapping) else (tuple(row), {})
        for row in properties["metrics"]
    ]
    named = {options.get("id"): (names, options) for names, options in rows if names}
    lines: list[Curve] = []
    for names, options in rows:
        if options.get("visible") is False:
            continue
        filling, chosen = None, options
        if not names and (filled := _FILLED.fullmatch(str(options["expression"]))):
            filling, (names, chosen) = 0.0, named[filled["id"]]
        merged = {**defaults, **chosen}
        periods = _whole(span) if whole else _periods(span, span.period or int(merged["period"]))
        right = options.get("yAxis") == "right"
        if not names:
            lines += _searched(str(options["expression"]), points, periods, right)
            continue
        namespace, metric, *pairs = names
        dimensions = dimensions_of(dict(zip(pairs[::2], pairs[1::2], strict=True)))
        metric_points = [p for p in points if (p.namespace, p.metric, p.dimensions) == (namespace, metric, dimensions)]
        values = periods.values(metric_points, str(merged["stat"]), filling)
        lines.append(Curve(str(options.get("label") or metric), right, values))
    return lines


def statistic(name: str) -> Callable[[Sequence[float]], float]:
    """Returns the function for Sum, Maximum, Minimum, Average, SampleCount, or a percentile such as p99.

    It needs at least one value.

    Raises:
        NotUnderstoodError: the statistic is not supported.
    """
    known: dict[str, Callable[[Sequence[float]], float]] = {
        "Sum": math.fsum,
        "Maximum": max,
        "Minimum": min,
        "Average": lambda values: math.fsum(values) / len(values),
        "SampleCount": len,
    }
    if name in known:
        return known[name]
    if match := _PERCENTILE.fullmatch(name):
        share = float(match["percent"]) / 100
        return lambda values: sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
    raise NotUnderstoodError(f"unknown statistic: {name!r}")


@dataclass(frozen=True)
class _Periods:
    """Periods of equal length. ``first``: seconds since 1970."""

    first: float
    length: float
    count: int

    def values(
        self, points: Iterable[Point], name: str, filling: float | None = None
    ) -> tuple[tuple[float, float], ...]:
        reckon = statistic(name)
        held: dict[int, list[float]] = {}
        for point in points:
            place = math.floor((point.seconds - self.first) / self.length)
            if 0 <= place < self.count:
                held.setdefault(place, []).append(point.value)
        value_by_place = {place: reckon(values) for place, values in held.items()}
        if filling is not None:
            value_by_place = dict.fromkeys(range(self.count), filling) | value_by_place
        return tuple((self.first + place * self.length, value_by_place[place]) for place in sorted(value_by_place))


def _periods(span: Span, length: int) -> _Periods:
    """Returns periods that start at multiples of their length. The one in which ``span`` starts is complete."""
    first = math.floor(span.start / length)
    return _Periods(first * length, length, max(1, math.ceil(span.end / length) - first))


def _whole(span: Span) -> _Periods:
    return _Periods(span.start, span.end - span.start, 1)


def _searched(expression: str, points: Sequence[Point], periods: _Periods, right: bool) -> list[Curve]:
    """Returns a curve for each metric of a search, labelled by the dimensions that differ."""
    filling = None
    if filled := _FILL.fullmatch(expression):
        expression, filling = filled["inner"], float(filled["value"])
    search = _SEARCH.fullmatch(expression)
    if search is None:
        raise NotUnderstoodError(f"unknown expression: {expression!r}")
    namespace, *schema = (part.strip().strip('"') for part in search["schema"].split(","))
    terms = {term["name"]: term["value"] for term in _TERM.finditer(search["terms"])}
    metric = terms.pop("MetricName", None)
    by_name: dict[str, list[Point]] = {}
    for point in points:
        dimensions = dict(point.dimensions)
        if (point.namespace, point.metric, set(dimensions)) != (namespace, metric, set(schema)):
            continue
        if all(dimensions.get(name) == value for name, value in terms.items()):
            label = " ".join(value for name, value in dimensions.items() if name not in terms) or point.metric
            by_name.setdefault(label, []).append(point)
    return [
        Curve(label, right, values)
        for label, metric_points in sorted(by_name.items())
        if (values := periods.values(metric_points, search["stat"], filling))
    ]
