"""Comparisons of runs with points: each cell counts once, because its repeats share nodes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cli.bench.comparing import compare
from cli.bench.pairing import Chosen
from cli.bench.pricing import Pricing
from tests.unit.cli.reports import NOW, cell, operation, report
from troop.measure.operations import TOTAL
from troop.report.comparison import Comparison
from troop.report.document import Cell, Phase, Report, Search
from troop.report.verdicts import cheaper


def search(phase: str, largest: float | None, outcome: str = "BRACKETED", smallest: float | None = None) -> Search:
    answer = {"outcome": outcome, "largest": largest, "smallest": smallest}
    return Search.model_validate({"phase": phase, "parameter": "rate", "points": 6, "most": 9, "text": "t", **answer})


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


def searched(
    number: int,
    largest: float | None,
    values: Sequence[float],
    outcome: str = "BRACKETED",
    smallest: float | None = 9000,
) -> Cell:
    points: dict[str, Sequence[float]] = {f"rate={value:g}": [value if value < 4000 else value / 2] for value in values}
    one = swept(number, points)
    phases = [phase.model_copy(update={"parameters": {"rate": value}})
              for phase, value in zip(one.phases, values, strict=True)]  # fmt: skip
    searches = [search("measure", largest, outcome, smallest)]
    return one.model_copy(update={"phases": phases, "searches": searches})


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


@pytest.mark.parametrize("repetitions", [1, 3])
@pytest.mark.parametrize(
    ("smallest", "exceeds"),
    [(3500.0, False), (2400.0, True), (None, False)],
)
def test_answers_that_are_intervals_differ_only_if_the_intervals_do_not_overlap(
    smallest: float | None, exceeds: bool, repetitions: int
) -> None:
    """A contradiction can move the value that held each time far down, without a slower system."""
    points = [500.0, 2000.0, 3000.0, 8000.0]
    a = Chosen("A", report([searched(n, 3000, points) for n in range(1, repetitions + 1)], "a"))
    lower = [searched(n, 2000, points, "WIDENED", smallest) for n in range(1, repetitions + 1)]
    comparison = compare(a, Chosen("B", report(lower, "b")), now=NOW, version="0.3", fail_below=0.95)
    (row,) = [row for row in comparison.rows if row.role == "search"]
    assert row.ratio == pytest.approx(2 / 3)
    assert row.exceeds_noise is (None if exceeds and repetitions == 1 else exceeds)
    assert row.regression is exceeds
    assert [one.exceeds_noise for one in comparison.rows if one.is_answer] == [row.exceeds_noise]
    interval = "at least 2,000" if smallest is None else f"between 2,000 and {smallest:,.0f}"
    assert any(f"{repetitions} of {repetitions} answers of B are intervals: {interval}" in text
               for text in comparison.warnings)  # fmt: skip


def sized(number: int, largest: float, p99_ms: float, nodes: dict[str, int], prices: dict[str, float]) -> Cell:
    """A cell whose search has the answer ``largest`` for each of 2 drivers, and measured it and 1000 beside it."""
    scale = "ssd" if nodes.get("cache") is None else "disk-cache"
    one = cell(number, 1.0, scale, repetition=number, nodes=nodes, prices=prices)
    phases = [
        Phase(phase="capacity", point=n, label=f"rate={value:g}", parameters={"rate": value}, nodes=4,
              measured_seconds=60, operations=[operation(1.8 * value, p99_ms=p99_ms, mean_ms=p99_ms / 5),
                                               operation(0.2 * value, "write", p99_ms=p99_ms)])
        for n, value in enumerate((1000.0, largest, 32000.0), 1)
    ]  # fmt: skip
    return one.model_copy(update={"phases": phases, "searches": [search("capacity", largest)]})


def two_stacks(disks: Sequence[float], ssds: Sequence[float]) -> Report:
    """The study of 2012 as variants of one run: 48 servers with 36 caches, and 12 that do a fifth less."""
    old = {"servers": 48, "cache": 36, "drivers": 2}, {"servers": 1.8, "cache": 0.45, "drivers": 1.0}
    new = {"servers": 12, "drivers": 2}, {"servers": 3.1, "drivers": 1.0}
    cells = [sized(n, rate, 65.0, *old) for n, rate in enumerate(disks, 1)]
    return report([*cells, *(sized(n, rate, 10.0, *new) for n, rate in enumerate(ssds, 1))], "a")


def test_answers_of_searches_are_compared_at_equal_throughput() -> None:
    """Rates of the answers differ, so no point matches but the one that both searches begin with."""
    both = two_stacks([9900, 10000, 10100], [7920, 8000, 8080])
    a, b = Chosen("A", both, "disk-cache"), Chosen("B", both, "ssd")
    pricing = Pricing(roles=("servers", "cache"), term="3y")
    comparison = compare(a, b, now=NOW, version="0.3", pricing=pricing)
    answers = {row.operation: row for row in comparison.rows if row.is_answer}
    assert {(row.label, row.phase) for row in answers.values()} == {("largest rate", "capacity")}
    assert [*answers] == [TOTAL, "read", "write"]
    whole, read = answers[TOTAL], answers["read"]
    assert whole.ratio == pytest.approx(0.8)
    assert {one.name: (one.a and one.a.median, one.b and one.b.median) for one in read.times}["p99_ms"] == (65.0, 10.0)
    equal = whole.equal
    assert equal is not None
    assert equal.per_second == pytest.approx(20000, rel=0.001)
    assert (equal.a.nodes, equal.b.nodes) == ({"servers": 48, "cache": 36}, {"servers": 15})
    assert (equal.a.hourly, equal.b.hourly) == (pytest.approx(102.6), pytest.approx(46.5))
    assert equal.hourly_low is not None
    assert equal.hourly_high is not None
    assert equal.hourly_low <= 46.5 / 102.6 <= equal.hourly_high
    (sentence,) = cheaper(comparison)
    assert " ".join(sentence.split()) == (
        f"B is cheaper: at {equal.per_second:,.0f} operations a second (largest rate), B costs 55 % less than A "
        f"({equal.hourly_low:.3f} to {equal.hourly_high:.3f} times): B $46.50 an hour, A $102.60; "
        "over 3 years $1,222,020.00, A $2,696,328.00."
    )


@pytest.mark.parametrize(
    ("disks", "ssds", "beginning"),
    [
        ([10000], [8000], "Too few repetitions to say which side is cheaper: "),
        ([10000, 10100], [2000, 7000], "Neither side is cheaper beyond the noise: "),
        ([10000, 10100], [3400, 3430], "A is cheaper: "),
        ([10000, 10100], [10040, 10060], "B is cheaper: "),
    ],
)
def test_the_verdict_follows_from_the_interval_of_the_cost(
    disks: Sequence[float], ssds: Sequence[float], beginning: str
) -> None:
    both = two_stacks(disks, ssds)
    sides = Chosen("A", both, "disk-cache"), Chosen("B", both, "ssd")
    (sentence,) = cheaper(compare(*sides, now=NOW, version="0.3", pricing=Pricing(roles=("servers", "cache"))))
    assert sentence.startswith(beginning)


def test_several_rows_without_a_search_have_no_verdict() -> None:
    a = [cell(1, [operation(10.0)], "n3"), cell(2, [operation(10.0)], "n6")]
    assert cheaper(compared(a, [*a[:1], cell(2, [operation(20.0)], "n6")])) == []
