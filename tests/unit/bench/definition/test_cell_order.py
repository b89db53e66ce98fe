"""The order of a run's cells: every repetition runs all combinations once, in an order of its own."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.account.benches import BENCHMARK
from troop.bench.definition import names
from troop.bench.definition.cell_order import in_start_order
from troop.bench.definition.plan import Plan, PlannedCell, Variant


def plan(combinations: int, repetitions: int, parallel: int = 1) -> Plan:
    """In the order of a file: the repetitions of a combination one after the other."""
    variants = [Variant(f"n{step}", {}, one + 1) for step in range(combinations) for one in range(repetitions)]
    cells = [PlannedCell(names.cell_id(n), variant, BENCHMARK) for n, variant in enumerate(variants, 1)]
    return Plan(tuple(cells), parallel)


@given(st.integers(1, 8), st.integers(2, 6), st.text(min_size=1, max_size=30))
def test_each_repetition_runs_every_combination_before_the_next(combinations: int, repetitions: int, run: str) -> None:
    planned = plan(combinations, repetitions)
    ordered = in_start_order(planned, run)
    assert sorted(one.cell for one in ordered.cells) == [one.cell for one in planned.cells]
    rounds = [ordered.cells[n : n + combinations] for n in range(0, len(ordered.cells), combinations)]
    for number, cells in enumerate(rounds, 1):
        assert {one.variant.repetition for one in cells} == {number}
        assert {one.variant.scale for one in cells} == {f"n{step}" for step in range(combinations)}
    assert in_start_order(planned, run) == ordered


def test_rounds_and_runs_have_orders_of_their_own() -> None:
    ordered = in_start_order(plan(6, 4), "20261120-150000-1f0c9b2e").cells
    rounds = [[one.variant.scale for one in ordered[n : n + 6]] for n in range(0, 24, 6)]
    assert len({*map(tuple, rounds)}) == 4
    assert in_start_order(plan(6, 4), "20261120-150000-000000ff").cells != ordered


def test_without_repetitions_the_order_of_the_file_stays() -> None:
    assert in_start_order(plan(6, 1), "20261120-150000-1f0c9b2e") == plan(6, 1)


@given(st.integers(1, 5), st.integers(2, 5), st.integers(1, 4), st.randoms())
def test_no_order_takes_longer_than_is_planned(
    combinations: int, repetitions: int, parallel: int, dice: Random
) -> None:
    planned = plan(combinations, repetitions, parallel)
    seconds = [10 * (n % combinations + 1) for n in range(len(planned.cells))]
    most = planned.in_waves(seconds)
    dice.shuffle(seconds)
    assert sum(max(seconds[n : n + parallel]) for n in range(0, len(seconds), parallel)) <= most
