"""Parts of a report by themselves: how times are distributed, how throughput grows, and what is not to be trusted."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.reports import cell, operation
from troop.bench.results.operations import cost_per_million, distribution
from troop.measure.histogram import Histogram
from troop.report import trust
from troop.report.document import Attempt, Bill, Cell, Interruption, Node, Phase, Use
from troop.report.scaling import efficiencies, scaling


def histogram(values: list[int]) -> Histogram:
    times = Histogram()
    for value in values:
        times.record(value)
    return times


# How times are distributed


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=300))
def test_percentiles_ascend_from_the_smallest_to_the_largest(values: list[int]) -> None:
    points = distribution(histogram(values))
    percents, times = [percent for percent, _ in points], [time for _, time in points]
    assert percents == sorted(set(percents))
    assert times == sorted(times)
    assert points[0] == (0, min(values) / 1000)
    assert points[-1] == (100, max(values) / 1000)


@pytest.mark.parametrize(
    ("count", "last"), [(1, 0), (9, 85), (10, 90), (99, 98), (100, 99), (999, 99.75), (1000, 99.9), (10_000, 99.99)]
)
def test_percentiles_end_where_no_operation_is_beyond(count: int, last: float) -> None:
    assert distribution(histogram(list(range(count))))[-2][0] == last


def test_without_operations_there_is_no_distribution() -> None:
    assert distribution(Histogram()) == []


@pytest.mark.parametrize(
    ("hourly", "per_second", "cost"), [(3.6, 1000.0, 1.0), (None, 1000.0, None), (3.6, None, None), (3.6, 0.0, None)]
)
def test_a_million_operations_cost_what_the_fleets_do_meanwhile(
    hourly: float | None, per_second: float | None, cost: float | None
) -> None:
    assert cost_per_million(hourly, per_second) == cost


# How throughput grows


def step(number: int, servers: int, rate: float, **more: Any) -> Cell:
    return cell(number, rate, f"n{servers}", nodes={"servers": servers, "drivers": 2}, **more)


def test_linear_growth_has_an_efficiency_of_one() -> None:
    (growth,) = scaling([step(n, n, 100.0 * n) for n in (3, 6, 12)], ["servers", "drivers"])
    assert growth.counted == "servers"
    assert (growth.slope, growth.intercept, growth.r_squared) == pytest.approx((100, 0, 1))
    assert [point.efficiency for point in growth.points] == pytest.approx([1, 1, 1])


def test_two_sizes_always_lie_on_a_line_which_says_nothing() -> None:
    (growth,) = scaling([step(1, 3, 300.0), step(2, 3, 280.0), step(3, 6, 500.0)], ["servers"])
    assert (growth.slope, growth.r_squared) == (pytest.approx(70), None)


@pytest.mark.parametrize(
    "cells",
    [
        [step(1, 3, 300.0), step(2, 3, 310.0)],
        [step(1, 3, 300.0), step(2, 6, 500.0, status="INVALID")],
        [step(1, 3, 300.0, values={"a": 1}), step(2, 6, 500.0, values={"a": 2})],
    ],
)
def test_with_one_size_there_is_no_scaling(cells: list[Cell]) -> None:
    assert scaling(cells, ["servers"]) == []


def test_the_matrix_parts_what_does_not_belong_together_but_its_counts_are_steps() -> None:
    cells = [
        step(10 * n + m, n, 100.0 * n * m, values={"parameters.threads": m, "fleets.servers.count": n})
        for n in (3, 6)
        for m in (1, 2)
    ]
    growths = scaling(cells, ["servers"])
    assert [(one.label, [point.nodes for point in one.points]) for one in growths] == [
        ("threads=1", [3, 6]),
        ("threads=2", [3, 6]),
    ]


@pytest.mark.parametrize("order", [["servers", "drivers"], ["drivers", "servers"]])
@pytest.mark.parametrize("by_scale", [True, False])
def test_only_one_role_is_counted_and_other_numbers_are_combinations(order: list[str], by_scale: bool) -> None:
    """Steps of servers, each with one driver and with four, which can do more."""
    rates = {(3, 1): 1000.0, (3, 4): 2000.0, (6, 1): 1000.0, (6, 4): 4000.0}
    cells = []
    for number, ((servers, drivers), rate) in enumerate(rates.items()):
        values = {"fleets.drivers.count": drivers, **({} if by_scale else {"fleets.servers.count": servers})}
        nodes = {"servers": servers, "drivers": drivers}
        cells.append(cell(number, rate, f"n{servers}" if by_scale else None, values=values, nodes=nodes))
    growths = {one.label: (one.counted, [point.efficiency for point in one.points]) for one in scaling(cells, order)}
    assert growths == {
        "fleets.drivers.count=1": ("servers", [1.0, 0.5]),
        "fleets.drivers.count=4": ("servers", [1.0, 1.0]),
    }


def test_a_system_is_as_large_as_its_roles_and_not_as_its_load() -> None:
    """Eighteen times the nodes do eighteen times as much, with twenty drivers in place of one."""
    prices = dict.fromkeys(("drivers", "web", "cache"), 0.1)
    cells = [
        cell(n, rate, f"x{size}", nodes={"drivers": drivers, "web": size, "cache": size}, prices=prices)
        for n, (size, drivers, rate) in enumerate([(1, 1, 1000.0), (18, 20, 18000.0)])
    ]
    (growth,) = scaling(cells, ["drivers", "web", "cache"])
    assert (growth.counted, [point.efficiency for point in growth.points]) == ("web", [1.0, 1.0])
    alone = [cell(n, 900.0 * n, f"x{n}", nodes={"drivers": n, "web": 4}, prices=prices) for n in (1, 2)]
    assert [one.counted for one in scaling(alone, ["drivers", "web"])] == ["drivers"], "nothing else grows"


def test_a_set_rate_is_no_scaling() -> None:
    cells = [step(n, n, 100.0 * n) for n in (3, 6)]
    assert scaling(cells, ["servers"])
    role = cells[0].phases[0].operations[0].role
    rated = [
        one.model_copy(update={"phases": [phase.model_copy(update={"targets": {role: 300.0}}) for phase in one.phases]})
        for one in cells
    ]
    assert scaling(rated, ["servers"]) == []


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 10**6)), min_size=1, max_size=20))
def test_the_fewest_nodes_are_on_average_as_efficient_as_themselves(points: list[tuple[int, int]]) -> None:
    nodes, rates = [count for count, _ in points], [rate for _, rate in points]
    shares = efficiencies(nodes, rates)
    fewest = [value for value, count in zip(shares, nodes, strict=True) if count == min(nodes)]
    if None in shares:
        assert not any(rate for rate, count in zip(rates, nodes, strict=True) if count == min(nodes))
    else:
        assert sum(fewest) / len(fewest) == pytest.approx(1)  # type: ignore[arg-type]


# What is not to be trusted


def node(number: int, count: int = 1000, role: str = "drivers", **more: Any) -> Node:
    fields = {"outcome": "ok", "errors": 0, "clock_uncertainty_seconds": 0.02, **more}
    return Node(node=f"i-{number}", role=role, rank=number, count=count, **fields)


def findings_of(members: list[Node] | None = None, **more: Any) -> str:
    """What is said of a cell with one phase of a minute, whose nodes are alike but for what is given."""
    phase_values: dict[str, Any] = {
        key: more.pop(key) for key in ("use", "operations", "measured_seconds") if key in more
    }
    phase: dict[str, Any] = {
        "phase": "measure",
        "nodes": 3,
        "measured_seconds": 60.0,
        "operations": [operation(1000.0)],
        "members": [node(n) for n in range(3)] if members is None else members,
    }
    subject = cell(1, 1.0).model_copy(update={"phases": [Phase(**{**phase, **phase_values})], **more})
    return "\n".join(f"{one.severity}: {one.text}" for one in trust.findings(subject))


def test_sound_cell_has_no_findings() -> None:
    assert findings_of() == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": "FAILED", "reason": "no\nlast lines"}, "error: It is FAILED and does not count .*: no."),
        ({"status": "PENDING"}, "error: It never started."),
        ({"status": "UNKNOWN"}, "error: It has no results .*: the reason is unknown."),
        ({"earlier": [Attempt(cell="c001", status="INVALID", reason="i-1 was lost")]}, "INVALID: i-1 was lost. c001"),
        ({"interruptions": [Interruption(node="i-1", action="terminate")]}, "Spot took back i-1"),
        (
            {"interruptions": [Interruption(node="i-1", action="rebalance-recommended")]},
            "warning: EC2 recommended a rebalance for i-1",
        ),
        ({"cost": Bill(amount=1.0, unknown=["drivers, c7g.large, spot"])}, "no price for drivers, c7g.large, spot"),
        ({"cost": Bill(amount=1.0)}, "some nodes or volumes have no price"),
        ({"members": [node(1, outcome="timed-out"), node(2)]}, "error: measure: the phase failed on i-1"),
        (
            {"members": [node(1), node(2), node(3, 790)]},
            r"unequal work on i-3 \(of 3 drivers\): i-3 did 790 operations",
        ),
        ({"members": [node(1), node(2), node(3, 1210)]}, r"unequal work on i-3 \(of 3 drivers\)"),
        ({"members": [node(1), node(2, clock_uncertainty_seconds=0.3)]}, "may be wrong by 0.30 s, 0.5% of"),
        ({"members": [node(1), node(2, clock_uncertainty_seconds=None)]}, "clock offset of i-2 is unknown"),
        (
            {"members": [node(1), node(2, clock_uncertainty_seconds=0.06)], "measured_seconds": 5.0},
            "may be wrong by 0.06 s, 1.2% of",
        ),
        (
            {"members": [node(1), node(2, clock_offset_seconds=-5.04), node(3, clock_offset_seconds=0.7)]},
            r"measure: the clock of i-2, i-3 was wrong by up to 5\.0 s\. .* whole seconds and steps",
        ),
        ({"use": [Use(role="drivers", nodes=1, cpu=86.0)]}, "processors of drivers were busy for 86 %"),
        (
            {"use": [Use(role="servers", nodes=1, steal=5.4)]},
            r"servers waited for the hypervisor for 5 % of the time \(steal\)",
        ),
        ({"use": [Use(role="servers", nodes=1, iowait=9.0)]}, r"waited for disks for 9 % of the time \(iowait\)"),
        (
            {"operations": [operation(1000.0, errors={"a": 5, "b": 600, "c": 1, "d": 1})]},
            r"607 of 60,607 operations \(1.0%\) failed: 600 b, 5 a, 1 c, and 1 more kinds.",
        ),
        (
            {"operations": [operation(1.0, count=0, p50_ms=None, p99_ms=None, errors={"a": 1})]},
            r"error: .*1 of 1 operations \(100.0%\)",
        ),
        (
            {"operations": [operation(20.0, count=999, p99_9_ms=9.0, p90_ms=5.0)]},
            r"too few operations for a reliable p99, p99.9 of drivers read \(999 operations\)",
        ),
    ],
)
def test_doubtful_cell_has_a_finding(change: dict[str, Any], message: str) -> None:

    assert re.search(message, findings_of(**change)), findings_of(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"members": [node(1), node(2), node(3, 810)]},
        {"members": [node(1), node(2, 0, "servers"), node(3, 0, "servers")]},
        {"members": [node(1, clock_uncertainty_seconds=0.3, clock_offset_seconds=9.0)]},  # nobody to differ from
        {"members": [node(1), node(2, clock_offset_seconds=0.4)]},  # nothing was moved
        {"use": [Use(role="drivers", nodes=1, cpu=84.0, steal=4.0, iowait=4.0)]},
        {"use": [Use(role="servers", nodes=1, cpu=99.0)]},  # they are what is measured
        {"operations": [operation(200.0, count=10_000, p99_9_ms=9.0)]},
    ],
)
def test_usual_values_have_no_finding(change: dict[str, Any]) -> None:
    assert findings_of(**change) == ""


def test_where_no_role_is_called_so_those_that_count_operations_bring_the_load() -> None:
    alone = cell(1, [operation(1000.0)], nodes={"servers": 1, "drivers": 1})
    busy = [Use(role="nodes", nodes=1, cpu=99.0)]
    rows = [operation(1000.0).model_copy(update={"role": "nodes"})]
    for others, is_warning in (([], False), (["idle"], True)):
        fleets = [alone.fleets[0].model_copy(update={"role": role}) for role in ["nodes", *others]]
        phase = Phase(phase="m", nodes=1, measured_seconds=60.0, operations=rows, use=busy)
        findings = trust.findings(alone.model_copy(update={"fleets": fleets, "phases": [phase]}))
        assert bool(findings) is is_warning


@pytest.mark.parametrize(
    ("last", "use", "reason"),
    [
        (600.0, {"drivers": 84.0}, None),  # three quarters
        (304.0, {"drivers": 40.0, "servers": 60.0}, "processors were not busy (servers 60 %, drivers 40 %); check"),
        (304.0, {"drivers": 93.0}, "processors were busy: drivers for 93 % of the time."),
        (304.0, {}, "the load of nodes was not measured"),
    ],
)
def test_finding_about_poor_growth_has_its_reason_if_known(
    last: float, use: dict[str, float], reason: str | None
) -> None:
    cells = []
    for number, (rate, drivers) in enumerate([(100.0, 1), (100.0, 1), (last, 8), (last, 8)]):
        rows = [operation(rate), operation(1.0, "beat")]  # as many beats whatever there is: nobody asks why
        entry = cell(number, rows, f"n{drivers}", nodes={"servers": 1, "drivers": drivers})
        uses = [Use(role=role, nodes=1, cpu=use[role]) for role in ("servers", "drivers") if role in use]
        cells.append(entry.model_copy(update={"phases": [entry.phases[0].model_copy(update={"use": uses})]}))
    texts = [one.text for one in trust.growth_findings(scaling(cells, ["drivers"]), cells)]
    if reason is None:
        assert texts == []
    else:
        (text,) = texts
        assert text.startswith("measure, all operations of drivers: at 8 drivers 38 % of ideal growth: ")
        assert reason in text
