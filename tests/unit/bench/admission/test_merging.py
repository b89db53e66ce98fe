"""What nodes may store, so that a function can merge it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import definition as agents
from tests.unit.bench.build import BENCHMARK, DRIVERS, MEASURE, SERVERS
from troop.bench.admission.merging import (
    FUNCTION_SECONDS,
    LEAST_MIB,
    SECONDS_A_MIB,
    budget,
    for_nodes,
    most_bytes,
    unmergeable,
)
from troop.bench.definition.definition import Benchmark, Point, from_document
from troop.bench.definition.plan import Plan, PlannedCell, Variant
from troop.bench.definition.planned_fault import PlannedFault
from troop.measure.operations import Operation, PerSecond
from troop.measure.summary_size import TARGET_BYTES, weight
from troop.measure.windows import Windows


def benchmark_with(drivers: int, phases: int = 1, points: int = 0) -> Benchmark:
    fleets = (SERVERS, replace(DRIVERS, count=drivers))
    swept = tuple(Point({"threads": n}) for n in range(1, points + 1))
    measured = tuple(replace(MEASURE, name=f"measure-{n}", points=swept) for n in range(phases))
    return replace(BENCHMARK, fleets=fleets, phases=measured)


@given(st.integers(1, 2000), st.integers(1, 8), st.sampled_from([0, 2, 9]))
def test_admitted_benchmark_is_merged_in_half_of_the_time(drivers: int, phases: int, points: int) -> None:
    benchmark = benchmark_with(drivers, phases, points)
    together = drivers * (1 if points else phases)
    if not unmergeable(benchmark):
        assert together * most_bytes(benchmark) / (1 << 20) * SECONDS_A_MIB <= FUNCTION_SECONDS / 2
        assert most_bytes(benchmark) / (1 << 20) >= LEAST_MIB
        assert most_bytes(benchmark) <= TARGET_BYTES


def test_too_many_summaries_are_refused_and_points_are_a_way_out() -> None:
    (problem,) = unmergeable(benchmark_with(400, phases=6))
    assert problem.where == "phases"
    assert problem.message == "with `measured` write 2400 summaries that are merged together"
    assert problem.allowed.startswith("at most 1764: use fewer nodes")
    assert not unmergeable(benchmark_with(400, phases=6, points=2))
    assert not unmergeable(benchmark_with(400, phases=4))
    assert not unmergeable(replace(benchmark_with(1), phases=(replace(MEASURE, measured=0),)))


def test_nodes_can_store_a_phase_with_faults_by_second() -> None:
    def broken(drivers: int) -> Benchmark:
        plain = benchmark_with(drivers)
        return replace(plain, phases=tuple(replace(one, faults=(PlannedFault(60, "stop"),)) for one in plain.phases))

    (problem,) = unmergeable(broken(601))
    assert problem.allowed.startswith("at most 600: ")
    assert not unmergeable(broken(600))
    assert most_bytes(broken(600)) >= 10 * _by_second(1500)


def _by_second(seconds: int) -> int:
    """Returns the weight of one operation with times like those of a busy node."""
    draw, times = random.Random(1), Windows(0, 1)
    for second in range(seconds):
        for _ in range(100):
            times.record(second, int(draw.lognormvariate(8, 0.6)), 10)
    per_second = PerSecond(0, [draw.randrange(1000, 2000) for _ in range(seconds)], [0] * seconds)
    return weight(Operation(over_time=times, per_second=per_second).document(True))


@pytest.mark.parametrize("drivers", [10, 348])
def test_nodes_know_their_limit(drivers: int, tmp_path: Path) -> None:
    benchmark = benchmark_with(drivers)
    document = for_nodes(benchmark)
    path = tmp_path / "definition.json"
    path.write_text(json.dumps(document))
    assert agents.read(path, "drivers").summary_bytes == most_bytes(benchmark)
    assert from_document(document) == benchmark


def test_the_budget_is_that_of_the_largest_cell() -> None:
    cells = [PlannedCell(f"c{n:03}", Variant(), benchmark_with(drivers)) for n, drivers in enumerate((10, 400, 1))]
    assert budget(Plan(tuple(cells[::2]))) == {
        "seconds": ceil(10 * TARGET_BYTES / (1 << 20) * SECONDS_A_MIB),
        "most": 150,
    }
    assert budget(Plan(tuple(cells))) == {"seconds": 150, "most": FUNCTION_SECONDS / 2}
    assert budget(Plan(()))["seconds"] == 0
