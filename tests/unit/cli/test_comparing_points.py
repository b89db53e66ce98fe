"""Comparisons of runs with points: each cell counts once, because its repeats share nodes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from cli.bench.comparing import compare
from cli.bench.pairing import Chosen
from tests.unit.cli.reports import cell, operation, report
from troop.report.comparison import Comparison
from troop.report.document import Cell, Phase, Search

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def swept(number: int, rates: dict[str, Sequence[float]], repetition: int = 1) -> Cell:
    """A cell with points: rates of the repeats, by label."""
    phases = [
        Phase(phase="measure", point=n, repeat=n, label=label, nodes=4, measured_seconds=60,
              operations=[operation(rate)])
        for label, each in rates.items()
        for n, rate in enumerate(each, 1)
    ]  # fmt: skip
    return cell(number, 1.0, repetition=repetition).model_copy(update={"phases": phases})


def compared(a: Sequence[Cell], b: Sequence[Cell]) -> Comparison:
    sides = Chosen("A", report(a, "a")), Chosen("B", report(b, "b"))
    return compare(*sides, now=NOW, version="0.3")


def test_repeats_on_the_same_nodes_are_one_repetition_and_their_noise_is_unknown() -> None:
    """Ten repeats that scatter little would make any difference between two machines look certain."""
    before, after = [100.0 + n / 10 for n in range(10)], [90.0 + n / 10 for n in range(10)]
    comparison = compared([swept(1, {"threads=8": before})], [swept(1, {"threads=8": after})])
    (row,) = comparison.rows
    assert (row.a.repetitions, row.b.repetitions) == (1, 1)
    assert (row.low, row.high, row.exceeds_noise) == (None, None, None)
    assert row.ratio == pytest.approx(0.9, rel=0.01)
    assert [text for text in comparison.warnings if "the noise is unknown" in text]


def test_the_interval_is_that_of_cells() -> None:
    def side(*rates: float) -> list[Cell]:
        return [swept(n, {"threads=8": [rate * 0.5, rate * 2]}, n) for n, rate in enumerate(rates, 1)]

    plain_a, plain_b = ([cell(n, rate, repetition=n) for n, rate in enumerate(rates, 1)] for rates in
                        ((100.0, 104.0, 98.0), (80.0, 82.0, 79.0)))  # fmt: skip
    (row,), (plain,) = compared(side(100, 104, 98), side(80, 82, 79)).rows, compared(plain_a, plain_b).rows
    assert (row.low, row.high) == (pytest.approx(plain.low), pytest.approx(plain.high))
    assert row.a.repetitions == 3


def test_points_match_by_their_parameters() -> None:
    a = [swept(1, {"threads=1": [10.0], "threads=8": [50.0]})]
    b = [swept(1, {"threads=8": [60.0], "threads=16": [90.0]})]
    comparison = compared(a, b)
    assert [(row.label, row.phase, row.ratio) for row in comparison.rows] == [
        ("threads=8", "measure", pytest.approx(1.2))
    ]
    assert comparison.unmatched == [
        "only A has read of drivers in measure (threads=1)",
        "only B has read of drivers in measure (threads=16)",
    ]
    assert comparison.lost == ["read of drivers in measure (threads=1)"]


def test_equal_throughput_is_that_of_the_point() -> None:
    a, b = (
        [swept(1, {"threads=1": [10.0], "threads=8": [50.0]})],
        [swept(1, {"threads=1": [20.0], "threads=8": [50.0]})],
    )
    first, second = compared(a, b).rows
    assert first.equal is not None
    assert second.equal is not None
    assert (first.equal.per_second, second.equal.per_second) == (pytest.approx(20.0), pytest.approx(50.0))


def searched(number: int, largest: float | None, values: Sequence[float], outcome: str = "BRACKETED") -> Cell:
    search = Search(
        phase="measure", parameter="rate", outcome=outcome, largest=largest, smallest=9000, points=6, most=9, text="t"
    )
    points: dict[str, Sequence[float]] = {f"rate={value:g}": [value if value < 4000 else value / 2] for value in values}
    return swept(number, points).model_copy(update={"searches": [search]})


@pytest.mark.parametrize(
    ("largest", "outcome", "regression", "lost"),
    [
        (3500, "BRACKETED", False, []),
        (2000, "BRACKETED", True, []),
        (None, "NONE_HELD", None, ["the largest rate of measure"]),
        (3500, "UNSTABLE", None, ["the largest rate of measure"]),
    ],
)
def test_searches_are_compared_by_their_answers_and_not_by_the_points_that_each_chose(
    largest: float | None, outcome: str, regression: bool | None, lost: list[str]
) -> None:
    a = Chosen("A", report([searched(1, 3000, [500, 8000, 4000, 2000, 3000])], "a"))
    b = Chosen("B", report([searched(1, largest, [500, 6000, 8000], outcome)], "b"))
    comparison = compare(a, b, now=NOW, version="0.3", fail_below=0.95)
    assert comparison.lost == lost
    assert {row.operation: row.regression for row in comparison.rows if row.regression is not None} == (
        {} if regression is None else {"largest rate": regression}
    )
    assert not comparison.unmatched
