"""What the cells of a run are, and what another attempt at one is."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.unit.account.benches import BENCHMARK
from troop.bench.definition import names
from troop.bench.definition.definition import ON_DEMAND, SPOT, DefinitionError
from troop.bench.definition.plan import Plan, PlannedCell, Variant, from_plan_document, to_plan_document

_ON_SPOT = replace(BENCHMARK, fleets=tuple(replace(f, purchase=SPOT) for f in BENCHMARK.fleets), attempts=3)
_SMALL = replace(BENCHMARK, fleets=BENCHMARK.fleets[:1])
PLAN = Plan(
    (
        PlannedCell("c001", Variant("n2", {"parameters.threads": 4, "parameters.keys": ("a", "b")}, 2), _ON_SPOT),
        PlannedCell("c002", Variant(), _SMALL),
    ),
    parallel=2,
)


def test_plan_is_read_back_as_stored() -> None:
    assert from_plan_document(json.loads(json.dumps(to_plan_document(PLAN)))) == PLAN


@pytest.mark.parametrize("document", [{}, {"format": "troop.plan/2"}, {"format": "troop.plan/1", "parallel": 1}])
def test_document_that_is_no_plan_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(DefinitionError, match="run the benchmark again"):
        from_plan_document(document)


@pytest.mark.parametrize(("cell", "purchase"), [("c001", SPOT), ("c001-2", SPOT), ("c001-3", ON_DEMAND)])
def test_only_the_last_of_several_attempts_is_on_demand(cell: str, purchase: str) -> None:
    assert {fleet.purchase for fleet in PLAN.benchmark_of(cell).fleets} == {purchase}
    assert names.CELL.fullmatch(cell)


def test_a_sole_attempt_is_as_the_file_says() -> None:
    once = Plan((PlannedCell("c001", Variant(), replace(_ON_SPOT, attempts=1)),))
    assert once.benchmark_of("c001").fleets[0].is_spot


def test_there_is_no_other_cell() -> None:
    with pytest.raises(DefinitionError, match="no cell c003"):
        PLAN.benchmark_of("c003")


@pytest.mark.parametrize(("parallel", "nodes"), [(1, 5), (2, 7), (9, 7)])
def test_the_most_nodes_at_a_time_are_those_of_the_largest_cells(parallel: int, nodes: int) -> None:
    assert replace(PLAN, parallel=parallel).nodes == nodes


@pytest.mark.parametrize(
    ("variant", "label"),
    [
        (PLAN.cells[0].variant, "n2, threads=4, keys=a/b, #2"),
        (Variant(), ""),
        (Variant(scale="n48"), "n48"),
    ],
)
def test_label_describes_a_variant_in_a_few_words(variant: Variant, label: str) -> None:
    assert variant.label == label
