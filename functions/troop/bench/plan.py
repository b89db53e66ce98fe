"""What a run's cells are: each a benchmark of its own, made of the file's before anything is launched.

Stored once for each run, under :func:`troop.bench.names.plan_key`, beside the definition as it was given. A cell that
is run again is another cell, with an id of its own, of the same entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from troop.bench import names
from troop.bench.definition import (
    ON_DEMAND,
    Benchmark,
    DefinitionError,
    Fleet,
    Parameter,
    from_document,
    to_document,
)

FORMAT = "troop.plan/1"


@dataclass(frozen=True)
class Variant:
    """What sets a cell apart from the others of its run.

    Attributes:
        scale: name of its scale step; None where the file has none.
        values: its combination of the matrix, by key, such as ``parameters.threads``.
        repetition: from 1, of those of one scale step and combination.
    """

    scale: str | None = None
    values: Mapping[str, Parameter] = field(default_factory=dict)
    repetition: int = 1

    @property
    def label(self) -> str:
        """``n3, threads=4, #2``: in few words; "" when there is nothing to be said."""
        parts = [self.scale] if self.scale else []
        parts += [f"{key.removeprefix('parameters.')}={_shown(value)}" for key, value in self.values.items()]
        parts += [f"#{self.repetition}"] if self.repetition > 1 else []
        return ", ".join(parts)


@dataclass(frozen=True)
class PlannedCell:
    """One cell, as it is to be done."""

    cell: str
    variant: Variant
    benchmark: Benchmark


@dataclass(frozen=True)
class Plan:
    """All cells of a run, in the order in which they begin.

    Attributes:
        parallel: how many are under way at a time.
    """

    cells: tuple[PlannedCell, ...]
    parallel: int = 1

    @property
    def nodes(self) -> int:
        """Most nodes that can be there at a time."""
        return sum(sorted((planned.benchmark.nodes for planned in self.cells), reverse=True)[: self.parallel])

    @property
    def longest(self) -> int:
        """Seconds after which all cells are over at the latest, but for launching and taking down."""
        return self.in_waves(one.benchmark.longest for one in self.cells)

    def in_waves(self, seconds: Iterable[int]) -> int:
        """How long all cells take, so many at a time.

        Args:
            seconds: that each takes, in their order.
        """
        each = list(seconds)
        return sum(max(each[i : i + self.parallel]) for i in range(0, len(each), self.parallel))

    def of(self, cell: str) -> Benchmark:
        """The benchmark of a cell, or of another attempt at it: the last one of several is made on demand.

        Raises:
            DefinitionError: there is no such cell.
        """
        first, attempt = names.attempt_of(cell)
        benchmark = next((planned.benchmark for planned in self.cells if planned.cell == first), None)
        if benchmark is None:
            raise DefinitionError(f"the run's plan has no cell {first}: run the benchmark again")
        return on_demand(benchmark) if 1 < benchmark.attempts == attempt else benchmark


def sole(benchmark: Benchmark) -> Plan:
    """The plan of a run that has one cell."""
    return Plan((PlannedCell(names.cell_id(1), Variant(), benchmark),))


def on_demand(benchmark: Benchmark) -> Benchmark:
    """The same, with no node that can be interrupted."""
    fleets = (replace(fleet, purchase=ON_DEMAND, spot_timeout=Fleet.spot_timeout) for fleet in benchmark.fleets)
    return replace(benchmark, fleets=tuple(fleets))


def to_plan_document(plan: Plan) -> dict[str, Any]:
    """As it is stored; the reverse of :func:`from_plan_document`."""
    cells = [
        {"cell": one.cell, "variant": variant_document(one.variant), "benchmark": to_document(one.benchmark)}
        for one in plan.cells
    ]
    return {"format": FORMAT, "parallel": plan.parallel, "cells": cells}


def from_plan_document(document: Mapping[str, Any]) -> Plan:
    """The plan of a stored document.

    Raises:
        DefinitionError: it is no such document.
    """
    if (format := document.get("format")) != FORMAT:
        raise DefinitionError(f"the run's stored plan has the format {format!r}, not {FORMAT!r}: run it again")
    try:
        cells = tuple(
            PlannedCell(one["cell"], variant_of(one["variant"]), from_document(one["benchmark"]))
            for one in document["cells"]
        )
        return Plan(cells, int(document["parallel"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise DefinitionError(f"the run's stored plan is damaged ({error!r}): run it again") from None


def variant_document(variant: Variant) -> dict[str, Any]:
    """As JSON-like values; the reverse of :func:`variant_of`."""
    return asdict(variant)


def variant_of(document: Mapping[str, Any]) -> Variant:
    values = {key: tuple(v) if isinstance(v, list) else v for key, v in document["values"].items()}
    return Variant(document["scale"], values, int(document["repetition"]))


def _shown(value: Parameter) -> str:
    return "/".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)
