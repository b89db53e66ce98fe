"""Defines the line of a run: its figures and versions in one small item, so that a year of nights is one query."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from statistics import geometric_mean
from typing import Any

from troop.bench.definition.definition import Parameter
from troop.shared import codec
from troop.shared.codec import stored

LARGEST = 100_000
"""Maximum bytes of a line as JSON, which is longer than its form in DynamoDB."""

_DIGITS = 6
"""Significant digits of a stored figure: far finer than the noise of any measurement."""


@dataclass(frozen=True)
class Values:
    """The figures of one cell; None if unknown. A line stores them as a list of numbers, in this order.

    Attributes:
        per_second: operations per second, of successes.
        mean_ms, p50_ms, p99_ms: times of successes in milliseconds.
        cost_per_million: cost of the cell's system for a million operations, in the report's currency.
        errors: their share of all operations, from 0 to 1.
    """

    per_second: float
    mean_ms: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    cost_per_million: float | None = None
    errors: float | None = None


FIGURES = tuple(Values.__dataclass_fields__)
"""The names of a cell's figures, in the order of a stored list."""


def _encode(every: Iterable[Values]) -> list[list[float | None]]:
    return [[None if one is None else float(f"{one:.{_DIGITS}g}") for one in astuple(values)] for values in every]


def _decode(every: Sequence[Sequence[Any]]) -> tuple[Values, ...]:
    known = len(FIGURES)  # a later version may append figures
    return tuple(Values(float(one[0]), *(_number(value) for value in one[1:known])) for one in every)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


@dataclass(frozen=True)
class Figures:
    """One measurement of a run, over the cells that succeeded.

    Attributes:
        variant, point: labels without repetition and without the baseline's values; "" for none.
        values: of the candidate, one for each cell, in the order of pairs.
        baseline: of the baseline, as long as ``values`` and paired with them; empty without a baseline.
    """

    variant: str
    phase: str
    point: str
    role: str
    operation: str
    values: tuple[Values, ...] = field(metadata=stored(encode=_encode, decode=_decode))
    baseline: tuple[Values, ...] = field(default=(), metadata=stored(omit=True, encode=_encode, decode=_decode))

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What identifies the same measurement in other runs."""
        return self.variant, self.phase, self.point, self.role, self.operation

    @property
    def name(self) -> str:
        """The key without its empty parts: ``n3 · measure · threads=50 · drivers · read``."""
        return " · ".join(part for part in self.key if part)

    def level(self, figure: str = FIGURES[0]) -> float | None:
        """Computes the geometric mean of a figure over the cells: of the ratios to the baseline, or without a baseline
        of the values.

        Args:
            figure: one of :data:`FIGURES`.

        Returns:
            None if the figure is nowhere known and positive.
        """
        known = [
            value / base
            for value, base in zip(
                self._each(self.values, figure),
                self._each(self.baseline, figure) or [1.0] * len(self.values),
                strict=True,
            )
            if value and base
        ]
        return geometric_mean(known) if known else None

    @staticmethod
    def _each(every: Iterable[Values], figure: str) -> list[float | None]:
        return [getattr(one, figure) for one in every]


@dataclass(frozen=True)
class Line:
    """One ended run of a benchmark in short. Runs that ended without results have a line without figures.

    Attributes:
        name: of the benchmark.
        at: when the run was admitted.
        size: the chosen size of the file; None for none.
        status: as :class:`troop.bench.records.record.RunStatus`.
        troop: the version of Troop that made the line.
        version: the user's version of what was measured; "" for none.
        schedule: the schedule that started the run; "" for none.
        versions: what can change from run to run, by name: ``type servers``, ``image``, ``kernel``, ``agent``,
            ``artifact NAME`` and so on.
        baseline: what distinguishes the baseline; empty for none.
        cost: of the run; None if unknown.
        figures: the measurements.
        left_out: the number of measurements that did not fit into the line.
    """

    run: str
    name: str
    at: datetime
    size: str | None
    status: str
    troop: str
    version: str = field(default="", metadata=stored(omit=True))
    schedule: str = field(default="", metadata=stored(omit=True))
    versions: Mapping[str, str] = field(default_factory=dict)
    baseline: Mapping[str, Parameter] = field(default_factory=dict, metadata=stored(omit=True))
    cost: Decimal | None = None
    figures: tuple[Figures, ...] = ()
    left_out: int = field(default=0, metadata=stored(omit=True))


def fitted(line: Line) -> Line:
    """Returns the line with as many of its first measurements as fit into :data:`LARGEST`; counts the others."""
    room = LARGEST - _size(replace(line, figures=()))
    for n, one in enumerate(line.figures):
        room -= _size(one)
        if room < 0:
            return replace(line, figures=line.figures[:n], left_out=line.left_out + len(line.figures) - n)
    return line


def changes(before: Line, after: Line) -> dict[str, tuple[str, str]]:
    """Returns what differs between two runs beside their figures: the values before and after by name; "" for none."""
    old, new = _stated(before), _stated(after)
    return {
        name: (old.get(name, ""), new.get(name, ""))
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    }


def _stated(line: Line) -> dict[str, str]:
    own = {"version": line.version, **line.versions, "Troop": line.troop}
    return {name: value for name, value in own.items() if value}


def _size(value: Any) -> int:
    return len(json.dumps(codec.to_document(value), default=str, ensure_ascii=False).encode()) + 2
