"""What recorded runs say about a comparison: from which pairs, what it detects, and at which cost."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from cli.bench.detecting import (
    SPREADS,
    Design,
    Noise,
    Source,
    deciding,
    document,
    figure_of,
    finding,
    last_design,
    noises,
    sentence,
)
from troop.bench.definition.definition import Benchmark, Fleet, Phase
from troop.bench.definition.plan import sole
from troop.bench.definition.planned_fault import PlannedFault
from troop.bench.records.line import Figures, Line, Values
from troop.statistics.power import needed, power

AT = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
SAME, OTHER = {"parameters.version": "1.2"}, {"fleets.servers.instance_type": "m7g.large"}
ALTERNATING = (1.02, 0.98, 1.02, 0.98, 1.02, 0.98)


def line(ratios: Sequence[float] = ALTERNATING, baseline: Any = SAME, **more: Any) -> Line:
    """A run whose candidate does as many times what the baseline does, cell by cell; its p99 scatters twice as much."""
    base = [1000.0 + 100 * cell for cell in range(len(ratios))]
    values = tuple(
        Values(rate * ratio, 1 / ratio, 1 / ratio, 9 * ratio**2) for rate, ratio in zip(base, ratios, strict=True)
    )
    theirs = tuple(Values(rate, 1.0, 1.0, 9.0) for rate in base)
    its = Figures("", "measure", "", more.pop("role", "drivers"), more.pop("operation", "read"), values, theirs)
    its = its if baseline else replace(its, baseline=())
    run = Line("run-1", "reads", AT, None, "SUCCEEDED", "1.2", baseline=baseline, cost=Decimal("1.2"), figures=(its,))
    return replace(run, **more)


def only(lines: Sequence[Line], same_nodes: bool = True) -> Noise:
    (one,) = noises(lines, same_nodes)
    return one


def test_spread_is_of_ratios_within_runs() -> None:
    """A change from run to run is none, and neither is what both sides of a pair share."""
    one = only([line(), line([1.5 * ratio for ratio in ALTERNATING])])
    deviation = math.log(1.02 / 0.98) / 2 * math.sqrt(12 / 10)
    assert one.spreads == pytest.approx(
        dict(zip(SPREADS, (deviation, deviation, deviation, 2 * deviation), strict=True))
    )
    assert (one.source, one.is_bound, one.origin) == (Source.CELL, False, "12 pairs on the same nodes in 2 runs")


def test_pairs_on_the_same_nodes_count_before_all_others() -> None:
    wild = [2.0, 0.5, 2.0, 0.5, 2.0, 0.5]
    every = [line(), line(wild, OTHER), line(wild, {})]
    assert (only(every).source, only(every, same_nodes=False).source) == (Source.CELL, Source.ROUND)
    assert not only(every).is_bound
    assert only(every[1:]).source is Source.ROUND
    assert only(every[1:]).is_bound


def test_cells_without_a_baseline_bound_the_spread_of_pairs() -> None:
    """A pair on different nodes has the noise of two cells."""
    rates = [1000.0, 1020.0, 980.0, 1010.0, 990.0, 1000.0]
    alone = replace(line(baseline={}).figures[0], values=tuple(map(Values, rates)))
    one = only([replace(line(baseline={}), figures=(alone,))])
    logs = [math.log(rate) for rate in rates]
    mean = sum(logs) / 6
    assert one.spread == pytest.approx(math.sqrt(2 * sum((log - mean) ** 2 for log in logs) / 5))
    assert (one.is_bound, one.origin) == (True, "6 cells on different nodes, without a baseline in 1 run")


def test_few_pairs_on_the_same_nodes_give_way_to_a_bound() -> None:
    assert only([line(ALTERNATING[:2]), line(baseline=OTHER)]).source is Source.ROUND
    few = only([line(ALTERNATING[:2]), line(ALTERNATING[:2])])
    assert (few.spread, few.source, few.needed(0.05), deciding([few])) == (None, Source.CELL, None, None)


def test_pairs_on_the_same_nodes_say_nothing_about_different_nodes() -> None:
    assert noises([line()], same_nodes=False) == []


def test_the_noisiest_total_of_nodes_that_generate_load_decides() -> None:
    steady = [1.001, 0.999] * 3
    lines = [
        line(role="servers"),
        line(operation="write"),
        line(steady, operation="read"),
        line(steady, operation="all operations"),
    ]
    assert deciding(noises(lines, True)).key[3:] == ("drivers", "all operations")  # type: ignore[union-attr]
    assert deciding(noises(lines[:3], True)).key[3:] == ("drivers", "write")  # type: ignore[union-attr]
    assert deciding(noises(lines[:1], True)).key[3:] == ("servers", "read")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("spread", "pairs", "change", "finer"),
    [(0.01, 3, 0.05, 0.03), (0.012, 6, 0.02, 0.01), (0.001, 6, 0.01, None), (0.4, 3, None, 0.2), (0.01, 1, None, 0.05)],
)
def test_a_finding_has_the_smallest_change_and_what_a_finer_one_needs(
    spread: float, pairs: int, change: float | None, finer: float | None
) -> None:
    one = finding(spread, pairs)
    assert (one.change, one.finer) == (change, finer)
    if change is not None:
        assert one.share == power(change, pairs, spread) >= 0.8
    if finer is not None:
        assert one.needed == needed(finer, spread)
        assert power(finer, pairs, spread) < 0.8


def noise(spread: float, **more: Any) -> Noise:
    one = Noise(None, ("", "measure", "", "drivers", "read"), Source.CELL, False, 2, 12, {"per_second": spread})
    return replace(one, **more)


DESIGN = Design(3, True, "cell", cost=1.2)
WHERE = "(rate of measure · drivers · read; from 12 pairs on the same nodes in 2 runs)"


@pytest.mark.parametrize(
    ("one", "design", "text"),
    [
        (noise(0.0147), DESIGN, f"3 cells find 5 % in 81 of 100, $1.20; for 3 % use 5, $2.00 {WHERE}"),
        (noise(0.0147, is_bound=True), DESIGN, "3 cells find 5 % in at least 81 of 100, $1.20; for 3 % use at most 5"),
        (noise(0.0147), Design(3, False, "round"), f"3 rounds find 5 % in 81 of 100; for 3 % use 5 {WHERE}"),
        (noise(0.0), DESIGN, f"3 cells find 1 % in 99 of 100, $1.20 {WHERE}"),
        (noise(0.04), Design(20, True, "cell"), "20 cells find 3 % in 87 of 100; for 2 % use 36 "),
        (noise(0.05), Design(20, True, "cell"), "20 cells find 5 % in 98 of 100; for 3 % use 26 "),
        (noise(0.06), Design(50, True, "cell"), "50 cells find 3 % in 92 of 100; for 2 % more than 50 "),
        (noise(0.0147), Design(1, True, "cell", cost=0.4), "1 cell finds nothing: one pair has no interval, $0.40; "),
        (noise(0.9), Design(2, True, "cell"), "2 cells find no change of up to 50 %; for 50 % use 43 "),
        (noise(3.0), Design(2, True, "cell"), "2 cells find no change of up to 50 %; for 50 % more than 50 "),
    ],
)
def test_the_sentence_states_power_in_money(one: Noise, design: Design, text: str) -> None:
    assert sentence(one, design, lambda amount: f"${amount:.2f}").startswith(text)


def test_unknown_noise_has_no_sentence() -> None:
    assert sentence(replace(noise(1), spreads={"per_second": None}), DESIGN, str) == ""


def test_the_newest_run_with_a_baseline_is_the_design_of_a_name() -> None:
    runs = [replace(line(baseline={}), run="plain"), replace(line(), run="new"), replace(line(baseline=OTHER), run="x")]
    assert last_design(runs) == Design(6, True, "cell", cost=1.2, run="new")
    assert last_design([replace(one, figures=()) for one in runs]) is None
    assert last_design(runs[2:]) == Design(6, False, "round", cost=1.2, run="x")


def test_many_runs_show_the_true_spread() -> None:
    dice = random.Random(7)
    runs = [line([math.exp(dice.gauss(0.1, 0.02)) for _ in range(6)], at=AT + timedelta(night)) for night in range(100)]
    assert only(runs).spread == pytest.approx(0.02, rel=0.1)


def test_the_document_has_what_the_tables_have() -> None:
    every = noises([line()], True)
    written = document(every, DESIGN, "USD")
    assert written["design"] == {**vars(DESIGN), "currency": "USD"}
    (one,) = written["measurements"]
    assert (one["source"], one["values"], one["needed"]["5 %"]) == ("cell", 6, every[0].needed(0.05))
    assert written["detects"]["change"] == finding(every[0].spread or 0, 3).change
    assert written["detects"]["cost_of_finer"] == pytest.approx(0.4 * written["detects"]["needed"])
    few = document(noises([line(ALTERNATING[:2])], True), DESIGN, "USD")
    assert few["detects"] is None
    assert few["measurements"][0]["spreads"]["per_second"] is None


def test_a_phase_with_planned_faults_decides_no_figure() -> None:
    """Its rate is set, so that without it the rate of the other phase is what a comparison is about."""
    steady = Phase("steady", ("drivers",), "read.py", 600, measured=60)
    paced = replace(steady, name="paced", rate={"drivers": "rate"})
    loss = replace(paced, faults=(PlannedFault(30, "stop", role="servers"),))

    def chosen(*phases: Phase) -> str:
        return figure_of(sole(Benchmark("reads", "", 600, (Fleet("drivers", 1, "c7g.large"),), phases, {"rate": 5})))

    assert [chosen(paced), chosen(steady, paced), chosen(paced, loss)] == ["p99_ms", "per_second", "p99_ms"]
    assert [chosen(loss), chosen(steady, loss)] == ["per_second", "per_second"]
