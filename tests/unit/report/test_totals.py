"""Totals of a mixed workload: exact, of one role, and readable in reports that have none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.reports import cell, operation, report
from tests.unit.measure.build import START, histogram_of, latencies, summary
from troop.bench.results.operations import operations
from troop.bench.results.series import series
from troop.measure.merge import Merger
from troop.measure.operations import TOTAL, Operation, PerSecond, parse
from troop.measure.windows import Windows
from troop.report import document, overview, trust
from troop.report.document import Phase, Use
from troop.report.html import report_page
from troop.report.scaling import scaling
from troop.report.totals import leading, rate_of, rows_of

TIMES = st.lists(st.integers(0, 10**7), max_size=40)


def over_time(values: list[int]) -> Windows:
    windows = Windows(START, 1)
    for place, micros in enumerate(values):
        windows.record(START + place % 10, micros)
    return windows


def mixed(parts: dict[str, list[int]], **more: Any) -> dict[str, Any]:
    """A phase of ten seconds on two drivers, which have done half of each kind of operation each."""
    merger = Merger()
    for number in (0, 1):
        kinds = {}
        for name, values in parts.items():
            mine = values[number::2]
            counts = PerSecond(START, [len(mine[n::10]) for n in range(10)], [number, *[0] * 9])
            kinds[name] = Operation(
                histogram_of(mine), {"timeout": number}, counts, 8 * len(mine), over_time(mine), **more
            )
        merger.add(summary(number, operations=kinds))
    return merger.document()


def parsed(phase: dict[str, Any]) -> tuple[list[document.Operation], ...]:
    return tuple([document.Operation.model_validate(row) for row in rows] for rows in operations(phase))


@given(TIMES, TIMES, TIMES)
def test_a_total_is_that_of_all_operations_as_one(get: list[int], put: list[int], scan: list[int]) -> None:
    kinds = {"get": get, "put": put, "scan": scan}
    rows, (total,) = parsed(mixed(kinds))
    (as_one,), none = parsed(mixed({"any": [micros for values in kinds.values() for micros in values]}))
    assert none == []
    same = {"operation", "errors", "names", "share"}
    assert total.model_dump(exclude=same) == as_one.model_dump(exclude=same)
    assert (total.operation, total.errors) == (TOTAL, {"timeout": 3})
    assert [one.operation for one in rows] == ["get", "put", "scan"]
    if total.count:
        assert [one.share for one in rows] == [len(values) / total.count for values in kinds.values()]


def test_a_single_operation_is_its_own_total() -> None:
    phase = mixed({"get": [1, 2, 3]})
    assert [one["operation"] for one in phase["table"]] == ["get"]
    assert {one.operation for one in series(phase)} == {"get"}


def test_the_total_over_time_is_that_of_all_operations_as_one() -> None:
    get, put = latencies(400), [micros * 9 for micros in latencies(300)]
    total = {
        one.name: one for one in series(mixed({"get": get, "put": put})) if one.operation == TOTAL and not one.node
    }
    phase = mixed({"get": get, "put": put})
    assert sum(value or 0 for value in total["per_second"].values) == 700
    assert set(total) == {"per_second", "errors_per_second", "mean_ms", "p50_ms", "p90_ms", "p99_ms", "max_ms"}
    slowest = max(one["max_ms"] for one in phase["table"])
    assert max(value or 0 for value in total["max_ms"].values) == pytest.approx(slowest, rel=1e-4)
    part = {one.name: one for one in series(phase) if one.operation == "put" and not one.node}
    assert total["max_ms"].values == part["max_ms"].values
    assert total["p50_ms"].values < part["p50_ms"].values


@pytest.mark.parametrize("lacking", ["per_second", "over_time"])
def test_a_total_over_time_that_lacks_an_operation_is_not_drawn(lacking: str) -> None:
    phase = mixed({"get": [5] * 30, "put": [5] * 40})
    put = phase["roles"]["drivers"]["operations"]["put"]
    put[lacking] = {"from": START, "count": [], "errors": []} if lacking == "per_second" else None
    names = {one.name for one in series(phase) if one.operation == TOTAL and not one.node}
    assert bool(names & {"per_second", "errors_per_second"}) == (lacking != "per_second")
    assert bool(names & {"p50_ms", "mean_ms"}) == (lacking != "over_time")


@pytest.mark.parametrize("lacking", ["per_second", "over_time"])
def test_a_total_over_time_that_lacks_a_node_is_not_drawn(lacking: str) -> None:
    merger = Merger()
    for number in (0, 1):
        kinds = mixed({"get": [5] * 30, "put": [5] * 40})["roles"]["drivers"]["operations"]
        each = parse(kinds)
        if number:  # the warm-up of the other node makes up for the counts
            setattr(each["put"], lacking, PerSecond() if lacking == "per_second" else None)
        else:
            each["put"].per_second = PerSecond(START, [90] * 10, [2] * 10)
        merger.add(summary(number, operations=each))
    names = {one.name for one in series(merger.document()) if one.operation == TOTAL and not one.node}
    assert bool(names & {"per_second", "errors_per_second"}) == (lacking != "per_second")
    assert bool(names & {"p50_ms", "mean_ms"}) == (lacking != "over_time")


def test_a_report_of_an_earlier_version_has_totals_without_percentiles() -> None:
    old = [
        operation(100.0, mean_ms=2.0, max_ms=9.0, errors={"reset": 1}),
        operation(300.0, "scan", mean_ms=4.0, max_ms=7.0, errors={"reset": 2, "tls": 1}),
    ]
    total, read, scan = rows_of(Phase(phase="m", nodes=1, measured_seconds=60, operations=old))
    assert (total.operation, total.count, total.per_second, total.mean_ms, total.max_ms) == (TOTAL, 24000, 400, 3.5, 9)
    assert (total.p50_ms, total.p99_ms, total.errors) == (None, None, {"reset": 3, "tls": 1})
    assert (read.share, scan.share) == (0.25, 0.75)


def test_the_headline_scaling_and_cost_are_of_the_total() -> None:
    cells = [
        cell(n, [operation(60.0 * n, cost_per_million=5.0), operation(50.0 * n, "scan")], f"n{n}", nodes={"servers": n})
        for n in (1, 2)
    ]
    figures = {key.label: key for key in overview.keys(report(cells))}
    assert (figures["Highest throughput"].value, figures["Highest throughput"].note) == ("220/s", f"{TOTAL}, n2")
    growths = {one.operation: one for one in scaling(cells, ["servers"])}
    assert [point.per_second for point in growths[TOTAL].points] == [110, 220]
    assert figures["Lowest cost per million"].value == "$2.73"


def test_the_headline_is_of_those_who_generate_the_load() -> None:
    """Each of three servers counts each write once more."""
    applied = operation(300.0, "apply").model_copy(update={"role": "servers"})
    one = cell(1, [operation(100.0, "write"), applied])
    assert [each.operation for each in leading(one.phases[0])] == ["write", "apply"]
    figures = {key.label: key for key in overview.keys(report([one]))}
    assert figures["Highest throughput"].value == "100/s"


def test_the_rate_of_a_role_is_that_of_its_total() -> None:
    kinds = [operation(100.0), operation(300.0, "scan")]
    phase = Phase(phase="m", nodes=1, measured_seconds=60, operations=kinds)
    assert rate_of(phase, "drivers") == 400
    assert rate_of(phase.model_copy(update={"operations": kinds[:1]}), "drivers") == 100
    assert rate_of(phase, "servers") is None


def test_rates_of_consecutive_tests_are_not_added_on_the_page() -> None:
    """No node reached 7,000 operations a second: iozone read, and then wrote."""
    rates = [operation(4000.0, mean_ms=1.0, mean_derived=True), operation(3000.0, "write", mean_ms=1.0)]
    phase = Phase(phase="m", nodes=1, measured_seconds=60, operations=rates, use=[Use(role="drivers", nodes=1)])
    assert rate_of(phase, "drivers") is None
    tested = report([cell(1, [], "a").model_copy(update={"phases": [phase]})])
    activity = report_page(tested, "").partition("Average activity per node")[2].partition("</table>")[0]
    assert "<td>drivers</td>" in activity
    assert "7,000" not in activity


def test_operations_beyond_the_limit_of_names_are_named() -> None:
    names = frozenset(f"page-{n:03d}" for n in range(70))
    rows, _ = parsed(mixed({"other": [1] * 20, "get": [2] * 20}, names=names))
    named = next(one for one in rows if one.operation == "other")
    assert named.names == sorted(names)
    findings = trust.findings(cell(1, rows))
    assert any("other of drivers contains 70 kinds of operations" in one.text for one in findings)
    assert any("page-000" in one.text for one in findings)
