"""What a metric widget shows of points: statistics by period, and searches, as CloudWatch reckons them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.pictures.points import Point, dimensions_of

_SEARCH = re.compile(r"""SEARCH\('\{(?P<schema>[^}]+)\}(?P<terms>[^']*)', *'(?P<stat>\w+)'\)""")
_FILL = re.compile(r"FILL\((?P<inner>.*), *(?P<value>-?[\d.]+)\)")
_TERM = re.compile(r'(?P<name>\w+)="(?P<value>[^"]*)"')
_PERCENTILE = re.compile(r"p(?P<percent>\d+(\.\d+)?)")
_PERIOD = 300
"""Seconds, where a widget and its metric name none."""


class NotUnderstoodError(ValueError):
    """An expression or a statistic that this module does not know."""


@dataclass(frozen=True)
class Span:
    """How somebody looks at a dashboard.

    Attributes:
        start, end: seconds since 1970.
        period: seconds, instead of the metrics' own; None for theirs.
    """

    start: float
    end: float
    period: int | None = None


@dataclass(frozen=True)
class Curve:
    """A line of a graph, or one of a widget's numbers.

    Attributes:
        right: whether it is drawn against the right axis.
        values: (seconds since 1970, value), one for each period that has one.
    """

    label: str
    right: bool
    values: tuple[tuple[float, float], ...]


def curves(properties: Mapping[str, Any], points: Sequence[Point], span: Span) -> list[Curve]:
    """All that a metric widget shows.

    Args:
        properties: of the widget, as a dashboard's body has them.

    Raises:
        NotUnderstoodError
    """
    whole = bool(properties.get("setPeriodToTimeRange"))
    lines: list[Curve] = []
    for row in properties["metrics"]:
        *names, options = row if isinstance(row[-1], Mapping) else (*row, {})
        merged = {
            "stat": "Average",
            "period": _PERIOD,
            **{k: properties[k] for k in ("stat", "period") if k in properties},
        }
        merged |= options
        if merged.get("visible") is False:
            continue
        periods = _whole(span) if whole else _periods(span, span.period or int(merged["period"]))
        right = merged.get("yAxis") == "right"
        if not names:
            lines += _searched(str(merged["expression"]), points, periods, right)
            continue
        namespace, metric, *pairs = names
        dimensions = dimensions_of(dict(zip(pairs[::2], pairs[1::2], strict=True)))
        of_it = [p for p in points if (p.namespace, p.metric, p.dimensions) == (namespace, metric, dimensions)]
        values = periods.values(of_it, str(merged["stat"]))
        lines.append(Curve(str(merged.get("label") or metric), right, values))
    return lines


def statistic(name: str) -> Callable[[Sequence[float]], float]:
    """Of at least one value: Sum, Maximum, Minimum, Average, SampleCount, or p and a percentage.

    Raises:
        NotUnderstoodError
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
    raise NotUnderstoodError(f"the statistic {name!r} is not known")


@dataclass(frozen=True)
class _Periods:
    """Stretches of time of one length, in seconds since 1970."""

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
    """Periods begin at multiples of their length; the one in which ``span`` starts counts whole."""
    first = math.floor(span.start / length)
    return _Periods(first * length, length, max(1, math.ceil(span.end / length) - first))


def _whole(span: Span) -> _Periods:
    return _Periods(span.start, span.end - span.start, 1)


def _searched(expression: str, points: Sequence[Point], periods: _Periods, right: bool) -> list[Curve]:
    """One curve for each metric that is found, called by what tells them apart."""
    filling = None
    if filled := _FILL.fullmatch(expression):
        expression, filling = filled["inner"], float(filled["value"])
    search = _SEARCH.fullmatch(expression)
    if search is None:
        raise NotUnderstoodError(f"the expression {expression!r} is not known")
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
        for label, of_it in sorted(by_name.items())
        if (values := periods.values(of_it, search["stat"], filling))
    ]
