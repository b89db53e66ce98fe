"""Reads metrics of functions from their logs: embedded metric format, and durations that Lambda reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_REPORT = re.compile(r"REPORT RequestId: \S+\s+Duration: (?P<milliseconds>[\d.]+) ms")


@dataclass(frozen=True)
class Point:
    """A measured value.

    Attributes:
        seconds: since 1970.
        dimensions: (name, value), sorted by name.
    """

    seconds: float
    namespace: str
    metric: str
    dimensions: tuple[tuple[str, str], ...]
    value: float


def dimensions_of(dimensions: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Converts dimensions to the form that points have."""
    return tuple(sorted(dimensions.items()))


def points(lines: Iterable[Mapping[str, Any]]) -> list[Point]:
    """Returns every value of every line, once for each of its sets of dimensions."""
    return [point for line in lines for point in _read_points(line)]


def duration(seconds: float, line: str, function: str) -> Point | None:
    """Returns the duration in Lambda's report on one call of a function; None for any other line."""
    match = _REPORT.match(line)
    if match is None:
        return None
    dimensions = dimensions_of({"FunctionName": function})
    return Point(seconds, "AWS/Lambda", "Duration", dimensions, float(match["milliseconds"]))


def _read_points(line: Mapping[str, Any]) -> Iterator[Point]:
    seconds = line["_aws"]["Timestamp"] / 1000
    for directive in line["_aws"]["CloudWatchMetrics"]:
        for names in directive["Dimensions"]:
            dimensions = dimensions_of({name: str(line[name]) for name in names})
            for metric in directive["Metrics"]:
                written = line[metric["Name"]]
                for value in written if isinstance(written, list) else [written]:
                    yield Point(seconds, directive["Namespace"], metric["Name"], dimensions, float(value))
