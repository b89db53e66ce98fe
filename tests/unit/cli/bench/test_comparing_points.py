"""Comparisons of runs with points: each cell counts once, because its repeats share nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cli.bench.comparing import compare
from cli.bench.pairing import Chosen, IncomparableError
from cli.bench.pricing import Pricing
from tests.unit.cli.reports import NOW, PAIRS, against_baseline, cell, operation, report
from troop.measure.operations import TOTAL
from troop.report import points
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


def compared(a: Sequence[Cell], b: Sequence[Cell], **more: Any) -> Comparison:
    """Compares two variants of one run."""
    cells = [one.model_copy(update={"values": {"side": name}}) for name, its in (("a", a), ("b", b)) for one in its]
    sides = (Chosen(name.upper(), report(cells), f"side={name}") for name in "ab")
    return compare(*sides, now=NOW, version="0.3", **more)


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
    one = swept(number, points, number)
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
    a = [searched(n, 3000, [500, 8000, 4000, 2000, 3000]) for n in (1, 2)]
    b = [searched(n, largest, [500, 6000, 8000], outcome) for n in (1, 2)]
    comparison = compared(a, b, fail_below=0.95)
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
    higher = [searched(n, 3000, points) for n in range(1, repetitions + 1)]
    lower = [searched(n, 2000, points, "WIDENED", smallest) for n in range(1, repetitions + 1)]
    comparison = compared(higher, lower, fail_below=0.95)
    (row,) = [row for row in comparison.rows if row.role == "search"]
    assert row.ratio == pytest.approx(2 / 3)
    assert row.exceeds_noise is (None if exceeds and repetitions == 1 else exceeds)
    assert row.regression is (exceeds and repetitions > 1)
    assert comparison.undecided == ["the largest rate of measure"] * (row.low is None)
    assert [one.exceeds_noise for one in comparison.rows if one.is_answer] == [row.exceeds_noise]
    interval = "at least 2,000" if smallest is None else f"between 2,000 and {smallest:,.0f}"
    assert any(f"{repetitions} of {repetitions} answers of B are intervals: {interval}" in text
               for text in comparison.warnings)  # fmt: skip


def test_answers_of_two_runs_have_no_interval() -> None:
    a, b = [searched(1, 3000, [500, 3000])], [searched(1, 2000, [500, 2000], "WIDENED", 3500)]
    sides = Chosen("A", report(a, "a")), Chosen("B", report(b, "b"))
    comparison = compare(*sides, now=NOW, version="0.3", fail_below=0.95)
    assert {row.low for row in comparison.rows} == {None}
    assert (comparison.undecided, comparison.verdict) == (["the largest rate of measure"], "UNKNOWN")


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
        ([10000], [8000], "Too few pairs to say which side is cheaper: "),
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
    a, b = (swept(1, {"threads=1": [10.0], "threads=8": [rate]}) for rate in (10.0, 20.0))
    assert cheaper(compared([a], [b])) == []


def test_whole_nodes_make_no_verdict_of_what_shares_its_nodes() -> None:
    """Of one server, 2.4 % less would cost twice as much."""
    comparison = compare(Chosen("RUN", against_baseline()), now=NOW, version="0.3")
    assert comparison.rows[0].equal is not None
    assert cheaper(comparison) == []


def test_a_run_alone_is_its_candidate_against_its_baseline() -> None:
    run = against_baseline(threads=[1, 8])
    comparison = compare(Chosen("RUN", run), now=NOW, version="0.3", fail_below=0.99)
    assert (comparison.source, comparison.baseline, comparison.verdict) == ("cell", "version=1.2", "FAILED")
    assert (comparison.a.name, comparison.b.name) == ("RUN, version=1.2", "RUN, version=1.3")
    assert [row.label for row in comparison.rows] == ["threads=1", "threads=8"]
    row, (expected, _) = comparison.rows[0], run.ratios
    rate, mean, _, p99, cost = expected.figures
    assert (row.ratio, row.low, row.high, row.method) == (rate.ratio, rate.low, rate.high, "signed rank")
    assert (row.a.middle, row.b.middle, row.a.repetitions) == (rate.baseline, rate.candidate, 6)
    times = {one.name: (one.ratio, one.low, one.high) for one in row.times}
    assert times["mean_ms"] == (mean.ratio, mean.low, mean.high)
    assert times["p99_ms"] == (p99.ratio, p99.low, p99.high)
    assert row.cost is not None
    assert (row.cost.ratio, row.cost.low) == (pytest.approx(cost.ratio), pytest.approx(cost.low))
    assert row.equal is not None
    assert row.equal.hourly_low is not None
    assert comparison.unmatched == comparison.undecided == []


def test_two_runs_with_the_same_baseline_are_compared_by_their_ratios_to_it() -> None:
    """On the second day everything does a fifth more, and the candidate does as much less than the baseline."""
    today = against_baseline(PAIRS, "a")
    other_day = against_baseline([(1.2 * new, 1.2 * old) for new, old in reversed(PAIRS)], "b")
    comparison = compare(Chosen("A", today), Chosen("B", other_day), now=NOW, version="0.3", fail_below=0.95)
    (row,) = comparison.rows
    assert (comparison.source, comparison.baseline, comparison.verdict) == ("baseline", "version=1.2", "PASSED")
    assert (row.ratio, row.method, row.exceeds_noise) == (pytest.approx(1), "two ratios", False)
    assert row.b.middle == pytest.approx(1.2 * row.a.middle)
    assert row.equal is not None
    assert row.equal.a.nodes == row.equal.b.nodes  # what the day adds is no difference
    assert [(one.name, one.ratio) for one in row.times] == [
        (name, pytest.approx(1)) for name in ("mean_ms", "p50_ms", "p99_ms")
    ]
    slower = against_baseline([(0.75 * new, old) for new, old in PAIRS], "c")
    comparison = compare(Chosen("A", other_day), Chosen("B", slower), now=NOW, version="0.3", fail_below=0.95)
    (row,) = comparison.rows
    assert (row.ratio, comparison.verdict) == (pytest.approx(0.75), "FAILED")
    assert row.equal is not None
    assert (row.equal.a.nodes, row.equal.b.nodes) == ({"servers": 3}, {"servers": 4})


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (
            against_baseline(PAIRS, "b", baseline="1.1"),
            "A has the baseline version=1.2, and B version=1.1. Compare each run with its own baseline",
        ),
        (report([cell(1, 10.0)], "b"), "B has no baseline. Give the benchmark's file a `baseline:`"),
    ],
)
def test_two_runs_without_a_common_baseline_are_not_decided(other: Report, reason: str) -> None:
    a = against_baseline(PAIRS, "a")
    comparison = compare(Chosen("A", a), Chosen("B", other), now=NOW, version="0.3", fail_below=0.95)
    assert (comparison.source, comparison.verdict, comparison.rows[0].low) == ("runs", "UNKNOWN", None)
    assert comparison.reason.startswith(reason)


def test_pairs_of_cells_need_both_and_their_searches_are_pairs_too() -> None:
    """The baseline on other nodes: cells of the same repetition."""
    key = "fleets.servers.instance_type"
    sides = {"i4i.large": [3000, 3100, 2900], "i4g.large": [3300, 3410, 3190]}
    cells = [
        searched(n, largest, [500, 8000, largest]).model_copy(update={"values": {key: kind}})
        for kind, each in sides.items()
        for n, largest in enumerate(each, 1)
    ]
    run = report(cells[:5]).model_copy(update={"baseline": {key: "i4i.large"}})
    comparison = compare(Chosen("RUN", run), now=NOW, version="0.3", fail_below=0.95)
    answer = next(row for row in comparison.rows if row.role == "search")
    assert (comparison.source, comparison.verdict) == ("round", "PASSED")
    assert (answer.ratio, answer.a.repetitions, answer.exceeds_noise) == (pytest.approx(1.1), 2, True)
    assert "repetition #3 of A has no partner and is left out" in comparison.warnings


TYPE = "fleets.servers.instance_type"


def two_types(*pairs: tuple[float, float], run: str = "20261120-150000-1f0c9b2e") -> Report:
    """Pairs of cells: the candidate on i4g.large, the baseline on i4i.large."""
    cells = [
        with_type(cell(2 * n + place, rate, "n3", values={TYPE: kind}, repetition=n), kind)
        for n, pair in enumerate(pairs, 1)
        for place, (kind, rate) in enumerate(zip(("i4g.large", "i4i.large"), pair, strict=True))
    ]
    return report(cells, run).model_copy(update={"baseline": {TYPE: "i4i.large"}})


def with_type(one: Cell, kind: str) -> Cell:
    servers, drivers = one.fleets
    return one.model_copy(update={"fleets": [servers.model_copy(update={"instance_type": kind}), drivers]})


@pytest.mark.parametrize(
    ("label", "name"),
    [
        (None, "RUN"),
        ("n3", "RUN"),
        ("n3, fleets.servers.instance_type=i4g.large", "20261120-150000-1f0c9b2e:n3"),
        ("n3, fleets.servers.instance_type=i4i.large", "20261120-150000-1f0c9b2e:n3"),
    ],
)
def test_a_variant_is_chosen_with_and_without_what_its_two_sides_differ_in(label: str | None, name: str) -> None:
    run = two_types((950.0, 1000.0), (960.0, 1000.0))
    comparison = compare(Chosen("RUN", run, label), now=NOW, version="0.3")
    assert comparison.rows[0].ratio == pytest.approx((0.95 * 0.96) ** 0.5)
    assert comparison.a.name == f"{name}, fleets.servers.instance_type=i4i.large"


def test_compared_values_are_no_warning_and_other_differences_are() -> None:
    run = two_types((950.0, 1000.0), (951.0, 1000.0))
    assert compare(Chosen("RUN", run), now=NOW, version="0.3").warnings == []
    sides = (Chosen(kind, run, f"n3, {TYPE}={kind}") for kind in ("i4i.large", "i4g.large"))
    assert compare(*sides, now=NOW, version="0.3").warnings == []
    purchases = [{"on-demand": 3}, *[{"spot": 3}] * 3]
    mixed = [
        one.model_copy(update={"fleets": [fleet.model_copy(update={"purchase": purchase}) for fleet in one.fleets]})
        for one, purchase in zip(run.cells, purchases, strict=True)
    ]
    warnings = compare(Chosen("RUN", run.model_copy(update={"cells": mixed})), now=NOW, version="0.3").warnings
    assert warnings[0].startswith("the purchase of servers differs: spot in A, on-demand, spot in B;")
    other = two_types((950.0, 1000.0), (951.0, 1000.0), run="b")
    other = other.model_copy(update={"cells": [with_type(one, "z.large") for one in other.cells]})
    (warning,) = compare(Chosen("A", run), Chosen("B", other), now=NOW, version="0.3").warnings
    assert warning.startswith("the instance type of servers differs")


@pytest.mark.parametrize(("still", "ratio"), [((950.0, 0.0), 0.98), ((0.0, 0.0), 0.98), ((0.0, 1000.0), 0.0)])
def test_a_pair_whose_baseline_did_nothing_is_left_out_with_a_warning(still: tuple[float, float], ratio: float) -> None:
    run = two_types((980.0, 1000.0), (980.0, 1000.0), still)
    comparison = compare(Chosen("RUN", run), now=NOW, version="0.3", fail_below=0.95)
    (row,) = comparison.rows
    assert row.ratio == pytest.approx(ratio)
    assert comparison.verdict == ("PASSED" if ratio else "FAILED")
    text = "read of drivers in measure (n3): A did nothing in 1 repetition; a pair with it is left out"
    assert (text in comparison.warnings) == (still[1] == 0)
    both = compare(Chosen("A", two_types((980.0, 1000.0), run="a")), Chosen("B", run), now=NOW, version="0.3")
    assert (text.replace(": A ", ": the baseline of B ") in both.warnings) == (still[1] == 0)


def test_a_run_alone_is_what_a_run_with_a_baseline_is_compared_as() -> None:
    run = Chosen("RUN", against_baseline())
    with pytest.raises(IncomparableError, match="leave RUN out to compare the run with its baseline"):
        compare(run, run, now=NOW, version="0.3")


def test_a_baseline_that_is_named_as_a_variant_says_how_to_compare_it() -> None:
    run = against_baseline()
    with pytest.raises(IncomparableError, match="`troop bench compare RUN` compares it with its baseline"):
        compare(Chosen("a", run, "version=1.2"), Chosen("b", run, "version=1.3"), now=NOW, version="0.3")


def test_two_sides_that_are_the_baseline_have_no_pairs_of_it() -> None:
    sides = (Chosen(run, two_types((980.0, 1000.0), run=run), f"n3, {TYPE}=i4i.large") for run in ("a", "b"))
    comparison = compare(*sides, now=NOW, version="0.3")
    assert (comparison.source, comparison.rows[0].ratio) == ("runs", 1)
    assert comparison.reason.startswith("A side is the baseline itself. Compare each run")


def test_cells_are_read_as_often_for_many_operations_as_for_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a comparison of a hundred operations takes minutes."""
    reads: list[int] = []
    by_key = points.by_key

    def counted(cells: Any, *more: Any) -> Any:
        reads.append(1)
        return by_key(cells, *more)

    monkeypatch.setattr(points, "by_key", counted)
    counts = []
    for names in (["a"], [f"op{n}" for n in range(9)]):
        reads.clear()
        each = [cell(n, 1.0, repetition=n) for n in (1, 2)]
        each = [
            one.model_copy(update={"phases": [
                phase.model_copy(update={"operations": [operation(10.0, name) for name in names]})
                for phase in one.phases
            ]})
            for one in each
        ]  # fmt: skip
        compare(Chosen("A", report(each, "a")), Chosen("B", report(each, "b")), now=NOW, version="0.3")
        counts.append(len(reads))
    assert counts[0] == counts[1]
