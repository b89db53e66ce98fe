"""What is compared with what, what is told of it, and what must be known before."""

from __future__ import annotations

from decimal import Decimal as D
from typing import Any

import pytest

from cli.bench.comparing import compare
from cli.bench.pairing import Chosen, IncomparableError
from cli.bench.pricing import BadPriceError, Pricing, Term
from tests.unit.cli.reports import NOW, cell, operation, repeated, report
from troop.bench.definition.money import Committed
from troop.report.comparison import Comparison
from troop.report.document import Cell, Charge, Report, Times, Version

BEFORE, AFTER = "20261120-150000-1f0c9b2e", "20261121-150000-2a1d8c3f"
EIGHT = {"parameters.threads": 8}


def compared(a: Report, b: Report, *labels: str | None, **more: Any) -> Comparison:
    first, second = labels or (None, None)
    return compare(Chosen("a", a, first), Chosen("b", b, second), now=NOW, version="0.3", **more)


def rounds(a: list[Cell], b: list[Cell], **more: Any) -> Comparison:
    """Compares two variants of one run."""
    cells = [
        one.model_copy(update={"values": {"parameters.side": name}})
        for name, its in (("a", a), ("b", b))
        for one in its
    ]
    return compared(side(cells), side(cells), "side=a", "side=b", **more)


def side(*cells: Any, run: str = BEFORE, **more: Any) -> Report:
    return report([one for some in cells for one in (some if isinstance(some, list) else [some])], run, **more)


def test_repetitions_are_put_side_by_side() -> None:
    comparison = rounds(repeated([100.0, 104.0, 96.0]), repeated([80.0, 83.0, 78.0]), fail_below=0.95)
    (row,) = comparison.rows
    assert (row.label, row.phase, row.role, row.operation) == ("", "measure", "drivers", "read")
    assert (row.a.median, row.a.low, row.a.high, row.a.repetitions) == (100.0, 96.0, 104.0, 3)
    assert row.ratio
    assert row.ratio == pytest.approx((80 * 83 * 78 / (100 * 104 * 96)) ** (1 / 3))
    assert row.a.geometric_mean
    assert row.a.geometric_mean == pytest.approx((100 * 104 * 96) ** (1 / 3))
    assert row.b.geometric_mean == pytest.approx(row.ratio * row.a.geometric_mean)
    assert row.times[0].a is not None
    assert row.times[0].a.geometric_mean is None
    assert row.low is not None
    assert row.high is not None
    assert row.low < row.ratio < row.high < 1
    assert (row.exceeds_noise, row.regression) == (True, True)
    assert comparison.a.fleets == "3 servers (s.large), 1 driver (d.large)"
    assert (comparison.a.run, comparison.b.run, comparison.a.cells) == (BEFORE, BEFORE, 3)
    assert Comparison.model_validate_json(comparison.model_dump_json()) == comparison


@pytest.mark.parametrize(
    ("rates", "below", "regression"),
    [
        ([80.0, 83.0, 78.0], 0.95, True),
        ([80.0, 83.0, 78.0], 0.75, False),
        ([80.0, 83.0, 78.0], None, None),
        ([94.0, 112.0, 75.0], 0.95, False),  # below, but within the noise
        ([80.0], 0.95, False),  # one pair: nobody knows the noise
        ([0.0, 80.0], 0.95, True),
    ],
)
def test_a_regression_is_below_and_not_chance(rates: list[float], below: float | None, regression: bool | None) -> None:
    comparison = rounds(repeated([100.0, 104.0, 96.0]), repeated(rates), fail_below=below)
    assert comparison.rows[0].regression is regression
    assert comparison.undecided == ([] if len(rates) > 1 else ["read of drivers in measure"])


def test_variants_match_by_step_and_values_whatever_their_order() -> None:
    two = {"parameters.threads": 4, "parameters.size": 1}
    a = side(cell(1, 10.0, "n3", values=two), cell(2, 20.0, "n6", values=two), cell(3, 30.0, "n3", values=EIGHT))
    b = side(cell(7, 44.0, "n6", values=dict(reversed(two.items()))), cell(8, 5.0, "n9", values=two), run=AFTER)
    comparison = compared(a, b)
    assert [(row.label, row.ratio) for row in comparison.rows] == [("n6, threads=4, size=1", pytest.approx(2.2))]
    assert comparison.unmatched == [
        "only A has n3, threads=4, size=1",
        "only A has n3, threads=8",
        "only B has n9, threads=4, size=1",
    ]


def test_two_variants_alone_match_whatever_they_are_called() -> None:
    run = side(cell(1, 100.0, "small"), cell(2, 180.0, "large"))
    comparison = compared(run, run, "small", "large")
    assert [(row.label, row.ratio) for row in comparison.rows] == [("", pytest.approx(1.8))]
    assert comparison.unmatched == []


def test_operations_match_by_phase_role_and_name() -> None:
    a = side(cell(1, [operation(10.0), operation(5.0, "scan")]))
    b = side(cell(1, [operation(20.0), operation(7.0, "write")]), run=AFTER)
    comparison = compared(a, b)
    assert [row.operation for row in comparison.rows] == ["read"]
    assert comparison.unmatched == ["only A has scan of drivers in measure", "only B has write of drivers in measure"]


def test_totals_of_the_same_operations_are_compared() -> None:
    a = side(cell(1, [operation(10.0), operation(5.0, "scan")]))
    b = side(cell(1, [operation(20.0), operation(7.0, "scan")]), run=AFTER)
    rows = {row.operation: row for row in compared(a, b).rows}
    assert [*rows] == ["all operations", "read", "scan"]
    assert rows["all operations"].ratio == pytest.approx(27 / 15)
    assert rows["all operations"].equal is not None


def test_only_succeeded_cells_count_and_others_are_listed() -> None:
    a = [*repeated([100.0, 102.0]), cell(3, 5.0, repetition=3, status="INVALID")]
    comparison = rounds(a, repeated([100.0, 101.0, 50.0]))
    (row,) = comparison.rows
    assert (row.a.repetitions, row.b.repetitions, row.b.low) == (2, 2, 100.0)
    assert comparison.warnings[:2] == [
        "c003 of A is INVALID and does not count",
        "repetition #3 of B has no partner and is left out",
    ]


def test_times_have_median_and_spread() -> None:
    a = [cell(n, [operation(10.0, p99_ms=p99, max_ms=None)]) for n, p99 in enumerate((8.0, 10.0, 9.0))]
    b = cell(1, [operation(10.0, p99_ms=4.5, max_ms=50.0, p50_ms=None)])
    times = {one.name: one for one in compared(side(a), side(b, run=AFTER)).rows[0].times}
    p99 = times["p99_ms"]
    assert p99.a is not None
    assert (p99.a.median, p99.a.low, p99.a.high) == (9.0, 8.0, 10.0)
    assert (p99.ratio, p99.low) == (pytest.approx(4.5 / 720 ** (1 / 3)), None)
    assert (times["max_ms"].a, times["max_ms"].ratio) == (None, None)
    assert times["p50_ms"].b is None
    assert "mean_ms" not in times


def study() -> tuple[Report, Report]:
    """The study of 2012: twelve large nodes do a fifth less than the others. Ten drivers load either system."""
    prices = {"servers": 1.8, "cache": 0.45, "drivers": 1.0}
    old = cell(1, 1000.0, nodes={"servers": 48, "cache": 36, "drivers": 10}, prices=prices)
    new = cell(1, 800.0, nodes={"servers": 12, "drivers": 10}, prices={"servers": 3.1, "drivers": 1.0})
    return side(old), side(new, run=AFTER)


def test_the_study_of_2012_comes_out_with_drivers_neither_counted_nor_scaled() -> None:
    comparison = compared(*study())
    equal = comparison.rows[0].equal
    assert equal is not None
    assert (equal.per_second, equal.a.nodes, equal.a.scaled) == (
        pytest.approx(1000),
        {"servers": 48, "cache": 36},
        "measured",
    )
    assert (equal.b.nodes, equal.b.scaled) == ({"servers": 15}, "extrapolated")
    assert (equal.a.hourly, equal.b.hourly) == (pytest.approx(102.6), pytest.approx(46.5))
    assert (equal.a.monthly, equal.b.monthly) == (pytest.approx(102.6 * 730), pytest.approx(46.5 * 730))
    assert equal.hourly_ratio == pytest.approx(46.5 / 102.6)
    basis = comparison.basis
    assert (basis.roles_a, basis.roles_b) == (["servers", "cache"], ["servers"])
    assert (basis.left_out_a, basis.left_out_b) == (["drivers"], ["drivers"])


def test_side_that_affords_more_nodes_does_more_for_the_dearer_cost() -> None:
    affordable = compared(*study()).rows[0].affordable
    assert affordable is not None
    assert affordable.hourly == pytest.approx(102.6)
    assert (affordable.a.nodes, affordable.a.per_second) == ({"servers": 48, "cache": 36}, pytest.approx(1000))
    assert affordable.b.nodes == {"servers": 33}  # 34 would cost 105.40
    assert affordable.b.per_second == pytest.approx(800 * 33 / 12)
    assert affordable.ratio == pytest.approx(2.2)


def test_the_roles_that_cost_can_be_chosen() -> None:
    equal = compared(*study(), pricing=Pricing(roles=("servers", "drivers"))).rows[0].equal
    assert equal is not None
    assert (equal.a.nodes, equal.b.nodes) == ({"servers": 48, "drivers": 10}, {"servers": 15, "drivers": 13})
    assert (equal.a.hourly, equal.b.hourly) == (pytest.approx(96.4), pytest.approx(59.5))


def test_where_all_nodes_generate_load_all_of_them_cost() -> None:
    alone = [cell(1, rate, nodes={"drivers": 2}, prices={"drivers": 0.5}) for rate in (100.0, 150.0)]
    equal = compared(side(alone[0]), side(alone[1], run=AFTER)).rows[0].equal
    assert equal is not None
    assert (equal.a.nodes, equal.a.hourly) == ({"drivers": 3}, pytest.approx(1.5))


def test_a_file_decides_which_nodes_generate_load() -> None:
    def stated(one: Report) -> Report:
        fleets = [f.model_copy(update={"load": f.role == "cache"}) for f in one.cells[0].fleets]
        return one.model_copy(update={"cells": [one.cells[0].model_copy(update={"fleets": fleets})]})

    a, b = study()
    assert compared(stated(a), b).basis.roles_a == ["servers", "drivers"]


def charged(committed: dict[Term, float], file_price: float | None = None, nodes: int = 15) -> Report:
    """Servers at $3.10 with $0.10 of storage and a license fee of $0.05, and drivers without a price."""
    one = cell(1, 1000.0, nodes={"servers": nodes, "drivers": 1}, prices={"servers": 3.25, "drivers": None})
    charge = Charge(instances=3.1 * nodes, storage=0.1 * nodes, license=0.05 * nodes, committed=committed)
    own = None if file_price is None else charge.model_copy(update={"instances": file_price * nodes})
    servers = one.fleets[0].model_copy(update={"charge": charge, "charge_of_file": own})
    return side(one.model_copy(update={"fleets": [servers, one.fleets[1]]}), run=AFTER)


HOURS_3Y = 3 * 8760


@pytest.mark.parametrize(
    ("pricing", "hourly", "total"),
    [
        (Pricing(), 3.25, None),
        (Pricing(term="3y"), 1.4, 1.4 * 15 * HOURS_3Y),  # 1.25 + storage and license
        (Pricing(term="1y"), 3.25, 3.25 * 15 * 8760),  # no price for a year: as bought
        (Pricing(source="file"), 2.15, None),
        (Pricing(types={"s.large": Committed(D("1.85"))}), 2.0, None),
        (Pricing(term="3y", types={"s.large": Committed(D("0.85"), upfront=D(26280))}), 2.0, 2.0 * 15 * HOURS_3Y),
    ],
)
def test_prices_are_those_that_the_user_chooses(pricing: Pricing, hourly: float, total: float | None) -> None:
    equal = compared(side(cell(1, 1000.0)), charged({"3y": 1.25 * 15}, file_price=2.0), pricing=pricing).rows[0].equal
    assert equal is not None
    assert equal.b.hourly == pytest.approx(15 * hourly)
    assert equal.b.total == (None if total is None else pytest.approx(total))


def test_missing_price_for_the_term_is_a_warning() -> None:
    comparison = compared(side(cell(1, 1000.0)), charged({"3y": 1.25}), pricing=Pricing(source="file", term="1y"))
    text = "; ".join(comparison.warnings)
    assert "servers of B: no price for 1y is known, so their nodes cost as they were bought" in text
    assert "servers of B: its file has no prices, so AWS's prices count" in text
    assert "drivers" not in text


def test_cost_of_roles_that_one_side_lacks_is_refused() -> None:
    with pytest.raises(BadPriceError, match="--cost-of cache: B has none of these roles, only servers, drivers"):
        compared(*study(), pricing=Pricing(roles=("cache",)))


def test_where_b_does_more_it_is_a_that_needs_more() -> None:
    equal = compared(side(cell(1, 100.0)), side(cell(1, 200.0), run=AFTER)).rows[0].equal
    assert equal is not None
    assert equal.per_second == pytest.approx(200)
    assert (equal.a.nodes, equal.b.nodes) == ({"servers": 6}, {"servers": 3})
    assert equal.hourly_ratio == pytest.approx(0.5)


def test_errors_count_all_repetitions_and_many_are_a_warning() -> None:
    bad = [cell(1, [operation(10.0, errors={"timeout": 30})]), cell(2, [operation(10.0)], repetition=2)]
    comparison = rounds(repeated([10.0, 10.1]), bad)
    assert (comparison.rows[0].errors_a, comparison.rows[0].errors_b) == (0, 30 / 1200)
    assert comparison.warnings[:1] == [
        "read of drivers in measure: B has 0.025 errors per success; rates count only successes"
    ]


def test_differences_between_two_runs_are_warnings() -> None:
    a = side(cell(1, 10.0))
    b = side(cell(1, 10.0, seconds=600.0), run=AFTER, name="writes", size="smoke")
    text = "; ".join(compared(a, b).warnings)
    assert "of the benchmark reads, and B of writes" in text
    assert "in the size of the file, and B in the size smoke" in text
    assert "measured for different lengths of time (60 s and 600 s)" in text


@pytest.mark.parametrize(
    ("a", "b", "labels", "why"),
    [
        (side(cell(1, 1.0)), side(cell(1, 2.0)), (None, None), "are the same"),
        (side(cell(1, 1.0, "n3")), side(cell(1, 2.0, "n3")), ("n3", None), "such as .*:'n3'"),
        (side(cell(1, 1.0), run=""), side(cell(1, 1.0), run=""), (None, None), "are the same"),
        (side(cell(1, 1.0, "n3")), side(cell(1, 1.0), run=AFTER), ("n4", None), "no variant 'n4': it has 'n3'"),
        (side(cell(1, 1.0)), side(cell(1, 1.0), run=AFTER), ("n4", None), "it has only one"),
        (
            side(cell(1, 1.0, status="FAILED")),
            side(cell(1, 1.0), run=AFTER),
            (None, None),
            "no cell of a has SUCCEEDED",
        ),
        (side(cell(1, 0.0)), side(cell(1, 1.0), run=AFTER), (None, None), "a repetition of A did nothing"),
        (side(cell(1, None)), side(cell(1, 1.0), run=AFTER), (None, None), "no rate was measured on A"),
        (
            side(cell(1, [operation(1.0, "get")])),
            side(cell(1, 1.0), run=AFTER),
            (None, None),
            "only A has get of drivers in measure; only B has read",
        ),
        (
            side(cell(1, 1.0, "n3"), cell(2, 1.0, "n6")),
            side(cell(1, 1.0, "n9"), run=AFTER),
            (None, None),
            "only A has n3; only A has n6; only B has n9",
        ),
    ],
)
def test_incomparable_reports_have_a_reason(a: Report, b: Report, labels: tuple[str | None, ...], why: str) -> None:
    with pytest.raises(IncomparableError, match=why):
        compared(a, b, *labels)


def test_money_of_two_currencies_is_not_set_off() -> None:
    other = side(cell(1, 10.0), run=AFTER)
    other = other.model_copy(update={"money": other.money.model_copy(update={"currency": "CNY"})})
    comparison = compared(side(cell(1, 10.0)), other)
    assert comparison.rows[0].equal is not None
    assert comparison.rows[0].equal.hourly_ratio is None
    assert "in USD and B's in CNY" in comparison.warnings[0]


def test_repetitions_without_a_rate_are_a_warning() -> None:
    comparison = rounds(
        repeated([100.0, 104.0, 90.0]), [*repeated([80.0]), cell(2, None, repetition=2), cell(3, 70.0, repetition=3)]
    )
    assert (comparison.rows[0].a.repetitions, comparison.rows[0].a.low) == (2, 90.0)
    assert "read of drivers in measure: 1 of 3 repetitions of B measured no rate" in comparison.warnings


def test_an_operation_that_b_has_lost_fails() -> None:
    both = [operation(100.0), operation(50.0, "scan"), operation(20.0, "write")]
    less = [operation(100.0), operation(None, "write"), operation(7.0, "new")]
    comparison = compared(side(cell(1, both)), side(cell(1, less), run=AFTER), fail_below=0.5)
    assert comparison.lost == ["scan of drivers in measure", "write of drivers in measure"]
    assert not any(row.regression for row in comparison.rows)


def test_within_a_narrow_noise_both_sides_need_what_they_have() -> None:
    comparison = rounds(repeated([100.0, 102.0, 99.0]), repeated([101.0, 101.0, 97.0]))
    (row,) = comparison.rows
    assert row.exceeds_noise is False
    assert row.equal is not None
    assert row.equal.a.nodes == row.equal.b.nodes == {"servers": 3}
    assert (row.equal.a.scaled, row.equal.b.scaled, row.equal.hourly_ratio) == ("alike", "alike", 1)
    assert (row.equal.a.per_second, row.equal.b.per_second) == (
        pytest.approx(100.3, abs=0.1),
        pytest.approx(99.6, abs=0.1),
    )
    assert row.equal.doubt(row) == ""
    assert not [warning for warning in comparison.warnings if "may be chance" in warning]


def test_estimate_within_the_noise_is_marked_as_uncertain() -> None:
    """A fifth less in the mean: that nothing is known to differ does not make them cost the same."""
    comparison = rounds(repeated([100.0, 100.0, 100.0]), repeated([64.0, 100.0, 80.0]))
    (row,) = comparison.rows
    assert row.exceeds_noise is False
    assert row.equal is not None
    assert row.equal.b.nodes == {"servers": 4}
    assert (row.equal.a.scaled, row.equal.b.scaled) == ("measured", "extrapolated")
    assert row.equal.b.per_second == row.equal.per_second
    assert row.equal.hourly_ratio == pytest.approx(4 / 3)
    assert row.equal.doubt(row) == "within the noise"
    assert [
        warning for warning in comparison.warnings if "exceeds 0.9 to 1.1" in warning and "may be chance" in warning
    ]


def placed(zone: str, kind: str, image: str, kernel: str | None, run: str) -> Report:
    one = cell(1, 100.0, nodes={"servers": 3})
    fleets = [fleet.model_copy(update={"instance_type": kind, "zones": {zone: 3}}) for fleet in one.fleets]
    known = {"image": image, "kernel": kernel}
    versions = [Version(what=software, version=version) for software, version in known.items() if version]
    cells = [one.model_copy(update={"fleets": fleets})]
    return report(cells, run).model_copy(update={"versions": versions})


def test_other_image_zone_or_type_is_a_warning() -> None:
    a = placed("us-east-1a", "c7g.large", "ami-1", "6.1.1", BEFORE)
    b = placed("us-east-1b", "c7i.large", "ami-2", "6.1.2", AFTER)
    ending = "; a difference of the results may come from it"
    warnings = [one.removesuffix(ending) for one in compared(a, b).warnings if ending in one]
    assert warnings == [
        "the image differs: ami-1 in A, ami-2 in B",
        "the kernel differs: 6.1.1 in A, 6.1.2 in B",
        "the instance type of servers differs: c7g.large in A, c7i.large in B",
        "the zone of servers differs: us-east-1a in A, us-east-1b in B",
    ]


def test_same_or_unknown_version_is_no_warning() -> None:
    a = placed("us-east-1a", "c7g.large", "ami-1", "6.1.1", BEFORE)
    b = placed("us-east-1a", "c7g.large", "ami-1", None, AFTER)
    assert not [one for one in compared(a, b).warnings if "differs" in one]


SERVICE_TIMES = Times(p50_ms=0.5, p99_ms=2.0)
RESPONSES = {"timing": "response", "service": SERVICE_TIMES}


@pytest.mark.parametrize(
    ("mine", "other", "timing", "ratio", "warning"),
    [
        ({}, {"timing": "service"}, "service", 1.0, ""),
        ({"timing": "service", "p99_ms": 4.0}, {}, "service", 2.0, ""),
        (RESPONSES, {**RESPONSES, "p99_ms": 4.0}, "response", 0.5, ""),
        (
            RESPONSES, {"timing": "service", "p99_ms": 4.0}, "service", 2.0,
            "times of A are response times and times of B are service times; service times of both are compared",
        ),
        (
            {"timing": "response"}, {}, None, None,
            "times of A are response times and times of B are service times, which cannot be compared",
        ),
        ({}, {"timing": "mixed"}, None, None, "response and service times are mixed in one histogram, which cannot"),
        ({"timing": "mixed", "service": SERVICE_TIMES}, {}, "service", 4.0, "service times of both are compared"),
    ],
)  # fmt: skip
def test_response_times_are_not_compared_with_service_times(
    mine: dict[str, Any], other: dict[str, Any], timing: str | None, ratio: float | None, warning: str
) -> None:
    """A has 2 ms or 8 ms at p99, B 4 ms or 8 ms."""
    comparison = compared(
        side(cell(1, [operation(100.0, **mine)])), side(cell(1, [operation(100.0, **other)]), run=AFTER)
    )
    (row,) = comparison.rows
    (p99,) = [figure for figure in row.times if figure.name == "p99_ms"]
    assert (row.timing, p99.ratio) == (timing, ratio and pytest.approx(ratio))
    about = [text for text in comparison.warnings if "times of A" in text or "histogram" in text]
    assert len(about) == bool(warning)
    assert all(warning in text and text.startswith("read of drivers in measure: ") for text in about)
    if timing is None:
        assert p99.a is not None
        assert p99.a.median == 8.0
