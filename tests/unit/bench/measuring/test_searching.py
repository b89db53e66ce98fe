"""Where the searches of a cell stand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.bench.build import BENCHMARK, MEASURE
from troop.bench.definition.planned_fault import Expectation, PlannedFault
from troop.bench.definition.search import Search
from troop.bench.measuring.searching import documents

PAUSE = PlannedFault(60, "pause", "servers", lasts=5, expect=Expectation(0.5))


@pytest.mark.parametrize(("faults", "bounds"), [((), "the limits"), ((PAUSE,), "the expectations")])
def test_a_search_says_of_which_bounds_it_speaks(faults: tuple[PlannedFault, ...], bounds: str) -> None:
    phase = replace(MEASURE, search=Search("rate", (1, 2)), faults=faults)
    entries = [{"phase": "measure", "point": n, "held": n % 2 == 1} for n in range(1, 5)]
    (document,) = documents(replace(BENCHMARK, phases=(phase,)), entries)
    assert document["text"] == f"the largest rate that holds {bounds} is 1; 2 does not hold them (both measured twice)"
