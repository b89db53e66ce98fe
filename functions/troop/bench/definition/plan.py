"""Defines the plan of a run: its cells, each with a complete benchmark definition, fixed before launch.

Each run stores it once, under :func:`troop.bench.definition.names.plan_key`. Another attempt at a cell is another cell
with another id, but the same entry of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from troop.bench.definition import names
from troop.bench.definition.baseline import on_same_nodes
from troop.bench.definition.definition import (
    ON_DEMAND,
    Benchmark,
    DefinitionError,
    Fleet,
    Parameter,
    from_document,
    to_document,
)
from troop.shared import codec
from troop.shared.codec import DocumentError, stored

FORMAT = "troop.plan/1"


@dataclass(frozen=True)
class Variant:
    """What distinguishes a cell from the others of its run.

    Attributes:
        scale: name of its scale step; None if the file has none.
        values: its combination of the matrix, by key, such as ``parameters.threads``.
        repetition: from 1, within one scale step and combination.
    """

    scale: str | None = None
    values: Mapping[str, Parameter] = field(default_factory=dict)
    repetition: int = 1

    @property
    def label(self) -> str:
        """Short text such as ``n3, threads=4, #2``; "" without scale, matrix and repetition."""
        parts = [self.scale] if self.scale else []
        parts += [f"{key.removeprefix('parameters.')}={shown_value(value)}" for key, value in self.values.items()]
        parts += [f"#{self.repetition}"] if self.repetition > 1 else []
        return ", ".join(parts)


@dataclass(frozen=True)
class PlannedCell:
    """One cell with the benchmark it runs."""

    cell: str
    variant: Variant
    benchmark: Benchmark = field(metadata=stored(encode=to_document, decode=from_document))


@dataclass(frozen=True)
class Plan:
    """All cells of a run, in the order of their start.

    Attributes:
        parallel: number of cells that run at a time.
    """

    cells: tuple[PlannedCell, ...]
    parallel: int = 1

    @property
    def is_interleaved(self) -> bool:
        """Whether cells take turns, because there are repetitions, or candidates and baselines on nodes of their own;
        see :mod:`troop.bench.definition.cell_order`.
        """
        return self.has_pairs or any(one.variant.repetition > 1 for one in self.cells)

    @property
    def baseline(self) -> Mapping[str, Parameter]:
        """What all cells are compared with, as in the file; empty for nothing."""
        return next((one.benchmark.baseline for one in self.cells), {})

    @property
    def has_pairs(self) -> bool:
        """Whether two cells are a pair, of a candidate and its baseline on nodes of their own."""
        return bool(self.baseline) and not on_same_nodes(self.baseline)

    @property
    def nodes(self) -> int:
        """Maximum number of nodes that can exist at a time."""
        return sum(sorted((planned.benchmark.nodes for planned in self.cells), reverse=True)[: self.parallel])

    @property
    def longest(self) -> int:
        """Maximum seconds of all cells, without launch and teardown."""
        return self.in_waves(one.benchmark.longest for one in self.cells)

    def in_waves(self, seconds: Iterable[int]) -> int:
        """Computes the seconds that all cells take, ``parallel`` at a time: at most, in any order, if the run's id will
        decide the order.

        Args:
            seconds: of each cell, in their order.
        """
        each = list(seconds)
        if self.is_interleaved:
            return sum(sorted(each, reverse=True)[: -(-len(each) // self.parallel)])
        return sum(max(each[i : i + self.parallel]) for i in range(0, len(each), self.parallel))

    def benchmark_of(self, cell: str) -> Benchmark:
        """Returns the benchmark of an attempt at a cell. The last of several attempts is on demand.

        Raises:
            DefinitionError: the plan has no such cell.
        """
        first, attempt = names.attempt_of(cell)
        benchmark = next((planned.benchmark for planned in self.cells if planned.cell == first), None)
        if benchmark is None:
            raise DefinitionError(f"the run's plan has no cell {first}: run the benchmark again")
        return on_demand(benchmark) if 1 < benchmark.attempts == attempt else benchmark


def sole(benchmark: Benchmark) -> Plan:
    """Returns the plan of a run with one cell."""
    return Plan((PlannedCell(names.cell_id(1), Variant(), benchmark),))


def on_demand(benchmark: Benchmark) -> Benchmark:
    """Returns the benchmark with all nodes on demand, which AWS does not interrupt."""
    fleets = (
        replace(fleet, purchase=ON_DEMAND, spot_timeout=Fleet.spot_timeout, max_price=None, backup=None)
        for fleet in benchmark.fleets
    )
    return replace(benchmark, fleets=tuple(fleets))


def to_plan_document(plan: Plan) -> dict[str, Any]:
    """Converts to the stored document; the reverse of :func:`from_plan_document`."""
    return {"format": FORMAT, "parallel": plan.parallel, **codec.to_document(plan)}


def from_plan_document(document: Mapping[str, Any]) -> Plan:
    """Reads a stored document.

    Raises:
        DefinitionError: the document has another format or is damaged.
    """
    if (format := document.get("format")) != FORMAT:
        raise DefinitionError(
            f"the run's stored plan has the format {format!r}, not {FORMAT!r}: run the benchmark again"
        )
    try:
        return codec.from_document(Plan, document)
    except DocumentError as error:
        raise DefinitionError(f"the run's stored plan is damaged ({error}): run the benchmark again") from None


def shown_value(value: Any) -> str:
    """Formats a value for a label: ``4``, ``1/8`` for a list, ``read:80/write:20`` for a mapping, by name."""
    if isinstance(value, Mapping):
        return "/".join(f"{name}:{_shown_list(value[name], '+')}" for name in sorted(value))
    return _shown_list(value, "/")


def _shown_list(value: Any, between: str) -> str:
    return between.join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
