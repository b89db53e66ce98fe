"""Finds where a figure of a benchmark changes from run to run, and what else changed there. Pure.

Only the same size, variant, phase, point, role and operation form a series: others measure something else. With a
baseline, it is the ratio to that baseline which counts, because both share their nodes and their day.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from troop.bench.definition.definition import Parameter, is_load
from troop.bench.definition.plan import shown_value
from troop.bench.records import line as lines
from troop.bench.records.line import Figures, Line
from troop.measure.operations import TOTAL
from troop.statistics.change_points import LEAST, change_points, relative_noise, strength_among

LEAST_RUNS = 2 * LEAST
"""The fewest runs in which a change point can be found."""

NEAR = 2
"""Runs before and after a change point in which something else may have changed: its place is seldom known exactly."""

LEAST_SUCCESS = 0.001
"""The least share of successes that change points distinguish."""


class Figure(StrEnum):
    """A figure of the runs."""

    THROUGHPUT = "throughput"
    MEAN = "mean"
    P50 = "p50"
    P99 = "p99"
    COST = "cost"
    ERRORS = "errors"

    @property
    def unit(self) -> str:
        return {
            Figure.THROUGHPUT: "operations per second",
            Figure.COST: "cost of a million operations",
            Figure.ERRORS: "share of operations",
        }.get(self, "milliseconds")

    @property
    def field(self) -> str:
        """The figure's name in a line."""
        return {Figure.THROUGHPUT: "per_second", Figure.COST: "cost_per_million", Figure.ERRORS: "errors"}.get(
            self, f"{self}_ms"
        )

    def is_worse(self, before: float, after: float) -> bool:
        """Checks whether a change is towards worse."""
        return after < before if self is Figure.THROUGHPUT else after > before


@dataclass(frozen=True)
class Value:
    """A figure of one run.

    Attributes:
        own: of the candidate, in the figure's unit.
        ratio: to the baseline; None without one. Shares of errors have none.
    """

    line: Line
    own: float
    ratio: float | None = None

    @property
    def judged(self) -> float:
        """What change points are searched in."""
        return self.own if self.ratio is None else self.ratio


@dataclass(frozen=True)
class Beside:
    """Something else that changed near a change point.

    Attributes:
        name: as in :func:`troop.bench.records.line.changes`.
        before, after: its values; "" for none.
        run: the first one with the new value.
        distance: in runs, from the first run after the change point; negative if it was earlier.
    """

    name: str
    before: str
    after: str
    run: str
    distance: int


@dataclass(frozen=True)
class Change:
    """A change point of a series.

    Attributes:
        index: of the first value after it.
        first: the first run after it.
        last: the last run before it.
        before, after: the levels around it: ratios to the baseline, or without one values.
        is_worse: whether the figure became worse.
        lasts: whether the newest level is still nearer to that after the change point than to that before.
        beside: what else changed, the nearest first.
    """

    index: int
    first: Line
    last: Line
    before: float
    after: float
    is_worse: bool
    lasts: bool
    beside: tuple[Beside, ...]


@dataclass(frozen=True)
class Series:
    """A figure of the same measurement in several runs.

    Attributes:
        size: of the file; None for none.
        key: variant, phase, point, role and operation.
        baseline: what the ratios are to; empty for none.
        values: oldest first.
        changes: its change points, oldest first.
    """

    figure: Figure
    size: str | None
    key: tuple[str, str, str, str, str]
    baseline: Mapping[str, Parameter]
    values: tuple[Value, ...]
    changes: tuple[Change, ...] = ()

    @property
    def measurement(self) -> tuple[str, ...]:
        """Size and key, without empty parts."""
        return tuple(part for part in (self.size, *self.key) if part)

    @property
    def against(self) -> str:
        """The baseline in words: ``version=1.2``; "" for none."""
        return ", ".join(
            f"{key.removeprefix('parameters.')}={shown_value(self.baseline[key])}" for key in self.baseline
        )

    @property
    def name(self) -> str:
        return " · ".join(self.measurement) + (f", against {self.against}" if self.baseline else "")

    @property
    def noise(self) -> float | None:
        """By how much runs differ without a change, as a share; None with few runs, and of errors."""
        return None if self.figure is Figure.ERRORS else relative_noise([one.judged for one in self.values])

    @property
    def regression(self) -> Change | None:
        """The oldest change towards worse that lasts; None without one."""
        return next((one for one in self.changes if one.is_worse and one.lasts), None)


def histories(every: Iterable[Line], figure: Figure, looks: int = 1) -> list[Series]:
    """Collects a figure's series from the lines of a benchmark's runs, and finds their change points.

    Args:
        every: lines in any order.
        looks: how often somebody looks for changes. All looks together have as few false alarms as one alone.

    Returns:
        Sorted by name.
    """
    collected: dict[tuple[object, ...], list[Value]] = {}
    named: dict[tuple[object, ...], Series] = {}
    for line in sorted(every, key=lambda one: (one.at, one.run)):
        for figures in line.figures:
            if (value := _value(line, figures, figure)) is None:
                continue
            baseline = {} if value.ratio is None else line.baseline
            key = (line.size, figures.key, tuple(sorted((name, str(one)) for name, one in baseline.items())))
            named.setdefault(key, Series(figure, line.size, figures.key, baseline, ()))
            collected.setdefault(key, []).append(value)
    strength = strength_among(looks * sum(len(values) >= LEAST_RUNS for values in collected.values()))
    every_series = [replace(one, values=tuple(collected[key])) for key, one in named.items()]
    judged = [replace(one, changes=tuple(_changes(one, strength))) for one in every_series]
    return sorted(judged, key=lambda one: one.name)


def main(every: Iterable[Series]) -> Series | None:
    """Returns the series that tells most about a benchmark: of nodes that generate load, as others count operations
    several times; of all their operations; over the most runs; with the largest last value. None without any.
    """
    return max(
        every,
        key=lambda one: (
            is_load(one.key[3], None),
            one.key[4] == TOTAL,
            len(one.values),
            one.values[-1].own,
        ),
        default=None,
    )


def _value(line: Line, figures: Figures, figure: Figure) -> Value | None:
    if figure is Figure.ERRORS:
        shares = [one.errors for one in figures.values if one.errors is not None]
        return Value(line, _rounded(_mean(shares))) if shares else None
    own = replace(figures, baseline=()).level(figure.field)
    if own is None:
        return None
    ratio = figures.level(figure.field) if figures.baseline else None
    return Value(line, _rounded(own), None if ratio is None else _rounded(ratio))


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")  # as precise as the figures of lines, without the noise of arithmetic


def _changes(series: Series, strength: float) -> Iterable[Change]:
    figure, values = series.figure, series.values
    judged = [one.judged for one in values]
    if figure is Figure.ERRORS:  # of shares that may be 0, what remains of 1 has a logarithm
        points = change_points([max(1 - one, LEAST_SUCCESS) for one in judged], strength)
    else:
        points = change_points(judged, strength)
    edges = [0, *(point.index for point in points), len(values)]
    for n, point in enumerate(points):
        before, after = point.before, point.after
        if figure is Figure.ERRORS:
            before, after = (_mean(judged[begin:end]) for begin, end in pairwise(edges[n : n + 3]))
        yield Change(
            point.index,
            values[point.index].line,
            values[point.index - 1].line,
            before,
            after,
            figure.is_worse(before, after),
            abs(math.log(points[-1].after / point.after)) < abs(math.log(points[-1].after / point.before)),
            tuple(_beside([one.line for one in values], point.index)),
        )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _beside(runs: Sequence[Line], index: int) -> list[Beside]:
    """Returns what else changed near a place, each by its nearest change."""
    nearest: dict[str, Beside] = {}
    for at in sorted(range(max(1, index - NEAR), min(len(runs), index + NEAR + 1)), key=lambda at: abs(at - index)):
        for name, (before, after) in lines.changes(runs[at - 1], runs[at]).items():
            nearest.setdefault(name, Beside(name, before, after, runs[at].run, at - index))
    return list(nearest.values())
