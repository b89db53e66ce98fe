"""Checks the units of the account that the faults of a benchmark hit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from troop.bench.definition.definition import Benchmark
from troop.bench.definition.limits import setting
from troop.bench.definition.plan import Plan
from troop.bench.definition.problems import Place, Problem

_ALLOWED = "a unit that benchmarks may hit"


def units_of(plan: Plan) -> tuple[str, ...]:
    """Returns the units that a run hits, in the order of their names."""
    return tuple(sorted({unit for cell in plan.cells for _, unit in _hits(cell.benchmark)}))


def forbidden_units(benchmark: Benchmark) -> Iterator[Problem]:
    """Yields the faults on units, for a deployment that allows none."""
    for place, unit in _hits(benchmark):
        yield Problem(place, f"is {unit!r}", f"{_ALLOWED}: {setting('under_load', 'false', 'true')}")


def untouchable_units(benchmark: Benchmark, objections: Mapping[str, str]) -> Iterator[Problem]:
    """Yields the faults on units that may not be hit.

    Args:
        objections: sentences, by unit.
    """
    for place, unit in _hits(benchmark):
        if why := objections.get(unit):
            yield Problem(place, f"is {unit!r}", f"{_ALLOWED}: {why}")


def _hits(benchmark: Benchmark) -> Iterator[tuple[Place, str]]:
    for n, phase in enumerate(benchmark.phases):
        for k, fault in enumerate(phase.faults):
            if fault.unit is not None:
                yield ("phases", n, "faults", k, "unit"), fault.unit
