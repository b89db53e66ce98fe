"""The order of a run's cells: every repetition runs all combinations once, in an order of its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.account.benches import BENCHMARK
from troop.bench.definition import names
from troop.bench.definition.baseline import is_baseline, paired
from troop.bench.definition.cell_order import in_start_order
from troop.bench.definition.plan import Plan, PlannedCell, Variant


def plan(combinations: int, repetitions: int, parallel: int = 1) -> Plan:
    """In the order of a file: the repetitions of a combination one after the other."""
    variants = [Variant(f"n{step}", {}, one + 1) for step in range(combinations) for one in range(repetitions)]
    cells = [PlannedCell(names.cell_id(n), variant, BENCHMARK) for n, variant in enumerate(variants, 1)]
    return Plan(tuple(cells), parallel)


_PARAMETER, _TYPE = {"parameters.threads": 8}, {"fleets.servers.instance_type": "c7g.xlarge"}


def point_pairs(combinations: int, repetitions: int, repeat: int) -> Plan:
    """Cells that compare four threads with eight on the same nodes."""
    prepare, measure = BENCHMARK.phases
    phases = prepare, replace(paired(measure, BENCHMARK.parameters, _PARAMETER), repeat=repeat)
    one = replace(BENCHMARK, phases=phases, baseline=_PARAMETER)
    cells = plan(combinations, repetitions).cells
    return Plan(tuple(replace(cell, benchmark=one) for cell in cells))


def cell_pairs(combinations: int, repetitions: int) -> Plan:
    """Pairs of cells that compare two instance types."""
    one, own = replace(BENCHMARK, baseline=_TYPE), {"fleets.servers.instance_type": "c7g.large"}
    variants = [
        replace(cell.variant, values=values)
        for cell in plan(combinations, repetitions).cells
        for values in (own, _TYPE)
    ]
    return Plan(tuple(PlannedCell(names.cell_id(n), variant, one) for n, variant in enumerate(variants, 1)), 2)


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


@given(st.integers(1, 4), st.integers(1, 7), st.integers(1, 4), st.text(min_size=1, max_size=30))
def test_both_points_of_a_pair_begin_equally_often(combinations: int, repetitions: int, repeat: int, run: str) -> None:
    ordered = in_start_order(point_pairs(combinations, repetitions, repeat), run)
    begins: dict[str | None, Counter[bool]] = {}
    for cell in ordered.cells:
        steps = [step for step in cell.benchmark.steps if step.point and not step.is_between]
        sides = [is_baseline(_PARAMETER, step.point.parameters) for step in steps if step.point]
        assert len(sides) == 2 * repeat
        for first, second in zip(sides[::2], sides[1::2], strict=True):
            assert first != second
            begins.setdefault(cell.variant.scale, Counter())[first] += 1
    assert len(begins) == combinations
    assert all(abs(one[True] - one[False]) <= 1 for one in begins.values())


@given(st.integers(1, 4), st.integers(1, 7), st.text(min_size=1, max_size=30))
def test_both_cells_of_a_pair_follow_each_other_and_begin_equally_often(
    combinations: int, repetitions: int, run: str
) -> None:
    planned = cell_pairs(combinations, repetitions)
    ordered = in_start_order(planned, run)
    assert in_start_order(planned, run) == ordered
    assert sorted(one.cell for one in ordered.cells) == [one.cell for one in planned.cells]
    begins: dict[str | None, Counter[bool]] = {}
    for first, second in zip(ordered.cells[::2], ordered.cells[1::2], strict=True):
        its, other = first.variant, second.variant
        assert (its.scale, its.repetition) == (other.scale, other.repetition)
        assert is_baseline(_TYPE, its.values) != is_baseline(_TYPE, other.values)
        begins.setdefault(its.scale, Counter())[is_baseline(_TYPE, its.values)] += 1
    assert all(abs(one[True] - one[False]) <= 1 for one in begins.values())
    rounds = [(number, len(list(cells))) for number, cells in groupby(c.variant.repetition for c in ordered.cells)]
    assert rounds == [(number, 2 * combinations) for number in range(1, repetitions + 1)]


def test_runs_decide_which_side_begins() -> None:
    orders = [in_start_order(point_pairs(1, 1, 1), f"20261120-150000-{n:08x}") for n in range(20)]
    begins = Counter(is_baseline(_PARAMETER, one.cells[0].benchmark.phases[1].points[0].parameters) for one in orders)
    assert 5 <= begins[True] <= 15
