"""A run's candidate against its baseline, in pairs that share nodes or a round."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from statistics import stdev

import pytest

from tests.unit.cli.reports import PAIRS, against, against_baseline, cell, operation, report
from troop.report.baseline import FIGURES
from troop.report.document import Cell, Phase, Report, Search
from troop.statistics.pairs import paired


def test_points_of_a_cell_are_a_pair() -> None:
    (one,) = against_baseline().ratios
    assert (one.label, one.phase, one.role, one.operation) == ("", "measure", "drivers", "read")
    assert [figure.figure for figure in one.figures] == list(FIGURES)
    expected = paired([old for _, old in PAIRS], [new for new, _ in PAIRS])
    rate, mean, p50, p99, cost = one.figures
    assert one.rate is rate
    assert (rate.ratio, rate.low, rate.high, rate.method) == (
        expected.ratio, expected.low, expected.high, "signed rank"
    )  # fmt: skip
    assert rate.exceeds_noise is True
    assert rate.pairs == [new / old for new, old in PAIRS]
    assert rate.noise is not None
    assert rate.noise == pytest.approx(stdev(rate.pairs), rel=0.05)
    assert 900 < rate.candidate < rate.baseline < 1010
    for slower in (mean, p50, cost):
        assert slower.ratio == pytest.approx(1 / expected.ratio)
        assert (slower.low, slower.high) == (
            pytest.approx(1 / (expected.high or 1)),
            pytest.approx(1 / (expected.low or 1)),
        )
    assert (p99.ratio, p99.exceeds_noise) == (1, False)


def test_other_points_keep_their_label() -> None:
    every = against_baseline(threads=[1, 8]).ratios
    assert [(one.label, len(one.rate.pairs)) for one in every] == [("threads=1", 6), ("threads=8", 6)]


def by_round(*statuses: str) -> Report:
    """Pairs of cells: the candidate on c7g.large, the baseline on c7i.large, which has these statuses."""
    key = "fleets.servers.instance_type"
    cells = []
    for number, status in enumerate(statuses, 1):
        cells.append(cell(2 * number, 1100.0 + number, "n3", values={key: "c7g.large"}, repetition=number))
        theirs = cell(2 * number - 1, 1000.0, "n3", values={key: "c7i.large"}, repetition=number, status=status)
        cells.append(theirs)
    return against(report(cells), {key: "c7i.large"})


def test_cells_of_a_round_are_a_pair_and_one_alone_is_left_out() -> None:
    (one,) = by_round("SUCCEEDED", "INVALID", "SUCCEEDED").ratios
    assert (one.label, one.rate.pairs) == ("n3", [1.101, 1.103])
    assert (one.rate.method, one.rate.exceeds_noise) == ("paired t", True)


def test_one_pair_has_no_interval_and_no_noise() -> None:
    (one,) = by_round("SUCCEEDED").ratios
    assert (one.rate.ratio, one.rate.low, one.rate.exceeds_noise, one.rate.noise) == (1.101, None, None, None)


def test_candidate_that_does_nothing_is_no_noise() -> None:
    lost = cell(1, 0.0).phases[0].operations
    one = against_baseline(PAIRS[:2])
    phases = [
        phase.model_copy(update={"operations": lost}) if phase.label == "version=1.3" else phase
        for phase in one.cells[0].phases
    ]
    cells = [one.cells[0].model_copy(update={"phases": phases}), *one.cells[1:]]
    (rate,) = [each.rate for each in against(report(cells), one.baseline).ratios]
    assert (rate.ratio, rate.candidate, rate.exceeds_noise, rate.noise) == (0, 0, None, None)


def test_nothing_is_compared_without_a_baseline_or_a_pair() -> None:
    assert against(report([cell(1, 10.0)]), {}).ratios == []
    assert by_round("FAILED").ratios == []


def test_totals_of_different_operations_have_no_ratio() -> None:
    one = against_baseline(PAIRS[:2])
    more = {"version=1.3": ["read", "scan"], "version=1.2": ["read", "write"]}
    cells = [
        each.model_copy(
            update={
                "phases": [
                    phase.model_copy(update={"operations": [operation(10.0, name) for name in more[phase.label]]})
                    for phase in each.phases
                ]
            }
        )
        for each in one.cells
    ]
    assert [each.operation for each in against(report(cells), one.baseline).ratios] == ["read"]


def searched(number: int, repetition: int, kind: str, largest: int, outcome: str) -> Cell:
    """A cell that did what it was asked for, up to the answer of its search."""
    one = cell(number, 1.0, values={"fleets.servers.instance_type": kind}, repetition=repetition)
    phases = [
        Phase(phase="measure", label=f"rate={rate}", parameters={"rate": rate}, nodes=4, measured_seconds=60,
              operations=[operation(rate + repetition)])
        for rate in (100, largest)
    ]  # fmt: skip
    search = Search(phase="measure", parameter="rate", outcome=outcome, largest=largest, points=2, most=9, text="")
    return one.model_copy(update={"phases": phases, "searches": [search]})


def test_searches_are_compared_by_their_answers_and_not_by_the_points_that_both_tried() -> None:
    cells = [
        searched(2 * n + side, n, kind, largest, outcome if (n, side) == (3, 1) else "BRACKETED")
        for n in (1, 2, 3)
        for side, (kind, largest) in enumerate((("c7i.large", 500), ("c7g.large", 800)))
        for outcome in ["WIDENED"]
    ]
    (one,) = against(report(cells), {"fleets.servers.instance_type": "c7i.large"}).ratios
    assert (one.label, one.rate.pairs) == ("largest rate", [801 / 501, 802 / 502])


@pytest.mark.parametrize("order", list(permutations(("version", "mode", "threads"))))
def test_labels_have_their_values_in_any_order(order: Sequence[str]) -> None:
    values = {
        "1.3": {"version": "1.3", "mode": "fast", "threads": 8},
        "1.2": {"version": "1.2", "mode": "", "threads": 8},
    }
    cells = [
        one.model_copy(
            update={
                "phases": [
                    phase.model_copy(
                        update={
                            "parameters": its,
                            "label": ", ".join(f"{name}={its[name]}" for name in order),
                        }
                    )
                    for phase in one.phases
                    for its in [values[str(phase.parameters["version"])]]
                ]
            }
        )
        for one in against_baseline().cells
    ]
    (one,) = against(report(cells), {"parameters.mode": "", "parameters.version": "1.2"}).ratios
    assert (one.label, len(one.rate.pairs)) == ("threads=8", 6)
