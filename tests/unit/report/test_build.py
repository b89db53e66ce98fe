"""Reports made of what is kept: all of it, less of it, and damaged parts of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.report import runs
from tests.unit.report.runs import InMemory
from tests.unit.report.sample_cells import measured
from troop.bench.records.archive import ReportError
from troop.bench.records.record import CellStatus
from troop.report import bills, fleets, overview, trust
from troop.report.build import build
from troop.report.document import Cell, Report, Series
from troop.report.html import report_page


@cache
def complete() -> Report:
    """Returns the report of all that is kept. Other tests need not wait for it when theirs are collected."""
    return build(runs.archive(), runs.AT, "0.3")


def report_of(archive: InMemory, run: str = "") -> Report:
    return build(archive, runs.AT, "0.3", run)


def cell(report: Report, name: str) -> Cell:
    return next(one for one in report.cells if one.cell == name)


def findings_of(report: Report, cell: str | None = None) -> str:
    return "\n".join(f"{one.severity}: {one.text}" for one in report.findings if one.cell == cell)


def test_report_is_the_same_after_json() -> None:
    assert Report.model_validate_json(complete().model_dump_json()) == complete()


def test_report_describes_its_run() -> None:
    run, money = complete().run, complete().money
    assert (run.run, run.name, run.status, run.description) == (runs.RUN, "reads", "PARTIAL", "Reads of a kibibyte")
    assert (money.expected, money.most, money.budget) == (0.2, 1.5, 2.0)
    assert money.actual is not None
    assert money.actual.amount == 0.14
    assert {(one.what, one.version) for one in complete().versions} >= {
        ("Troop", "0.2"),
        ("image", "ami-0abc"),
        ("kernel", "6.1.150-1.amzn2023"),
        ("artifact tool.tar", "https://example.org/tool-1.2.tar, SHA-256 abababababababab"),
    }


def test_last_of_several_attempts_is_the_cell() -> None:
    assert [one.cell for one in complete().cells] == ["c001", "c002", "c003", "c004", "c005-2", "c006"]
    again = cell(complete(), "c005-2")
    assert (again.status, again.attempt, again.label) == ("SUCCEEDED", 2, "n12")
    (before,) = again.earlier
    assert (before.cell, before.status, before.amount) == ("c005", "INVALID", 0.02)
    assert [(one.node, one.action) for one in before.interruptions] == [("i-0021cf", "terminate")]
    assert "The earlier attempt c005 is INVALID: spot took i-0021cf back" in findings_of(complete(), "c005-2")


def test_a_cell_has_its_fleets_and_what_they_cost() -> None:
    one = cell(complete(), "c003")
    servers, drivers = one.fleets
    assert (servers.role, servers.nodes, servers.zones) == ("servers", 6, {"a": 2, "b": 2, "c": 2})
    assert (servers.purchase, drivers.purchase) == ({"spot": 6}, {"on-demand": 2})
    # 2 nodes in each zone at 0.06, 0.07 and 0.08, 2 drivers at 0.08, and 8 nodes with 8 GiB at 0.09 a month of 720 h
    assert one.hourly == pytest.approx(0.42 + 0.16 + 8 * 8 * 0.09 / 720)
    (operation,) = one.phases[0].operations
    assert operation.per_second == 588.0
    system = 0.42 + 6 * 8 * 0.09 / 720
    assert one.system_hourly == pytest.approx(system)
    assert operation.cost_per_million == pytest.approx(system / 3600 / 588 * 1e6, rel=1e-4), "without drivers"
    assert [fleet.load for fleet in one.fleets] == [False, True]
    assert servers.charge is not None
    assert (servers.charge.instances, servers.charge.license) == (pytest.approx(0.42), 0)
    assert servers.charge.storage == pytest.approx(6 * 8 * 0.09 / 720)
    assert (servers.charge.committed, servers.charge_of_file) == ({}, None)
    assert operation.errors == {"timeout": 6}


def test_hourly_cost_is_unknown_without_a_price() -> None:
    def unpriced(record: dict[str, Any]) -> None:
        del record["terms"]["prices"]["on_demand"]["c7g.large"]
        del record["terms"]["prices"]["spot"]["i4i.large"]

    report = report_of(runs.archive().changed("record.json", unpriced))
    one = cell(report, "c001")
    assert (one.hourly, one.system_hourly, one.phases[0].operations[0].cost_per_million) == (None, None, None)
    assert "some nodes or volumes have no price" in findings_of(report, "c001")


def test_fleet_has_prices_of_its_file_of_commitments_and_on_record() -> None:
    def priced(record: dict[str, Any]) -> None:
        terms = record["terms"]
        terms["of_file"] = {**terms["prices"], "spot": {"i4i.large": {"*": 0.5}}}
        terms["prices"] = {**terms["prices"], "committed": {"i4i.large": {"3y": {"upfront": 26280, "hourly": 0.1}}}}

    def licensed(plan: dict[str, Any]) -> None:
        for one in plan["cells"]:
            one["benchmark"]["fleets"]["servers"] |= {"license_fee": 0.25, "load": False}
            one["benchmark"]["traffic"] = {"cross_zone_gb": 40}

    archive = runs.archive().changed("record.json", priced).changed("plan.json", licensed)
    report = report_of(archive)
    servers, drivers = cell(report, "c003").fleets
    assert servers.charge is not None
    assert servers.charge_of_file is not None
    assert servers.charge.committed == {"3y": pytest.approx(6 * 1.1)}
    assert (servers.charge.license, servers.charge_of_file.instances) == (1.5, 3.0)
    assert servers.hourly == pytest.approx(0.42 + 1.5 + 6 * 8 * 0.09 / 720)
    assert drivers.charge is not None
    assert drivers.charge.committed == {}
    bill = next(one for one in bills.bills(report.cells) if one.cell.cell == "c003")
    assert bill.by_term == {"1y": None, "3y": pytest.approx((6 * 1.1 + 1.5 + 0.006) * 26280)}
    crossing = cell(report, "c003").cross_zone
    assert crossing is not None
    # Servers are in three zones, and drivers in the first: of 7 other nodes, 4 (twice 4, twice 6) are elsewhere.
    assert (crossing.stated_gb, crossing.price) == (40, 0.02)
    assert crossing.estimated_gb == pytest.approx(
        (1000 * 6 * (2 * 4 + 4 * 6) / 6 / 7 + 1000 * 2 * 4 / 7) * 60 / 1e9, rel=0.2
    )


def test_percentiles_are_those_of_all_nodes_together() -> None:
    (operation,) = cell(complete(), "c006").phases[0].operations
    percents = [percent for percent, _ in operation.distribution]
    assert percents[0] == 0
    assert percents[-1] == 100
    assert 99.99 in percents
    assert 99.999 not in percents  # of 63,000
    distribution = dict(operation.distribution)
    assert (distribution[50.0], distribution[99.0], distribution[100.0]) == (
        operation.p50_ms,
        operation.p99_ms,
        operation.max_ms,
    )


def test_the_warm_up_is_set_apart() -> None:
    phase = cell(complete(), "c001").phases[0]
    assert phase.warm_up_seconds == 10
    assert phase.measured_from is not None
    assert phase.measured_from.timestamp() == runs.START + 600
    by_name = {(one.role, one.name): one for one in phase.series if not (one.device or one.node)}
    rate, slow = by_name["drivers", "per_second"], by_name["drivers", "p99_ms"]
    assert (rate.start, rate.step_seconds, rate.values) == (-10, 1, [300.0] * 70)
    assert max(value or 0 for value in slow.values[10:]) < min(value or 0 for value in slow.values[:10])
    assert by_name["servers", "cpu"].start == -13
    assert by_name["servers", "cpu"].values == [72.0] * 75
    assert by_name["servers", "disk_reads"].values[0] == 3000  # of three servers together
    use = {one.role: one for one in phase.use}
    assert (use["servers"].cpu, use["servers"].user, use["servers"].disk_reads) == (72.0, 70.0, 3000.0)


def test_scaling_counts_the_first_role_that_grows_and_only_cells_that_succeeded() -> None:
    (scaling,) = complete().scaling
    assert (scaling.counted, scaling.operation) == ("servers", "read")
    assert [(point.cell, point.nodes) for point in scaling.points] == [
        ("c001", 3),
        ("c002", 3),
        ("c003", 6),
        ("c005-2", 12),
        ("c006", 12),
    ]
    assert scaling.points[2].efficiency == pytest.approx(588 / 6 / 102)
    assert scaling.r_squared is not None
    assert 0.99 < scaling.r_squared < 1


def test_ratios_are_those_to_the_baseline_of_the_definition() -> None:
    """The second cell becomes the baseline of the first one, in the same round."""
    key = "fleets.servers.instance_type"

    def vary(plan: Any) -> None:
        for one, kind in zip(plan["cells"], ("i4g.large", "i4i.large"), strict=False):
            one["variant"] |= {"values": {key: kind}, "repetition": 1}

    archive = runs.archive().changed("plan.json", vary)
    report = report_of(archive.changed("definition.json", lambda one: one.update(baseline={key: "i4i.large"})))
    (one,) = report.ratios
    rates = [cell(report, name).phases[0].operations[0].per_second for name in ("c001", "c002")]
    assert report.baseline == {key: "i4i.large"}
    assert (one.label, one.operation, [one.rate.candidate, one.rate.baseline]) == ("n3", "read", pytest.approx(rates))
    assert complete().baseline == {}


def test_growth_is_that_of_the_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cells with 12 servers become the baseline, which does not make the candidate grow."""
    key = "fleets.servers.count"

    def vary(plan: Any) -> None:
        for one in plan["cells"]:
            one["variant"]["values"] = {key: 12 if one["cell"] in ("c005", "c006") else 6}

    monkeypatch.setattr(trust, "GROWN", 0.99)
    archive = runs.archive().changed("plan.json", vary)
    report = report_of(archive.changed("definition.json", lambda one: one.update(baseline={key: 12})))
    (scaling,) = report.scaling
    assert [point.nodes for point in scaling.points] == [3, 3, 6]
    assert [one.label for one in overview.keys(report) if "Efficiency" in one.label] == ["Efficiency at 6 servers"]
    (finding,) = [one for one in report.findings if "of ideal growth" in one.text]
    assert "at 6 servers" in finding.text


@pytest.mark.parametrize("junk", [None, 5, {}, "x", []])
def test_damaged_baseline_is_none(junk: Any) -> None:
    report = report_of(runs.archive().changed("definition.json", lambda one: one.update(baseline=junk)))
    assert (report.baseline, report.ratios) == ({}, [])


def test_findings_begin_with_errors() -> None:
    why = "error: It is FAILED and does not count for scaling or comparisons: read.py failed: did you mean read?"
    assert why in findings_of(complete(), "c004")
    assert f"{why}." not in findings_of(complete(), "c004")
    assert "last lines of" not in findings_of(complete(), "c004")
    assert "warning: measure, read of drivers: 6 of 35,286 operations" in findings_of(complete(), "c003")
    severities = [one.severity for one in complete().findings]
    assert severities == sorted(severities)  # error before warning


def test_growth_that_is_less_than_it_should_be_is_a_finding_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "of ideal growth" not in str(complete().findings)
    monkeypatch.setattr(trust, "GROWN", 0.99)
    (finding,) = [one for one in report_of(runs.archive()).findings if "of ideal growth" in one.text]
    assert (finding.cell, finding.severity) == (None, "warning")
    assert finding.text.startswith("measure, read of drivers: at 12 servers ")


def test_an_older_run_has_less_and_its_report_says_so() -> None:
    """No record, no latencies over time, and nobody knows when it began to measure."""

    def older(document: dict[str, Any]) -> None:
        for phase in document["phases"]:
            for key in ("measured_from", "warm_up_seconds", "separate"):
                del phase[key]
            for role in phase["roles"].values():
                for operation in role["operations"].values():
                    operation.pop("over_time", None)

    archive = runs.archive().without("record.json")
    for name in runs.GOOD:
        archive = archive.changed(f"{name}/results.json", older)
    report = report_of(archive, "20261120-150000-1f0c9b2e")
    assert (report.run.run, report.run.status, report.money.actual) == (runs.RUN, "PARTIAL", None)
    assert "record.json is missing" in findings_of(report)
    assert [one.status for one in report.cells] == ["SUCCEEDED"] * 3 + ["UNKNOWN"] + ["SUCCEEDED"] * 2
    again = cell(report, "c005-2")
    assert ([one.cell for one in again.earlier], again.cost, again.hourly) == (["c005"], None, None)
    phase = again.phases[0]
    assert phase.measured_from is None
    assert {one.name for one in phase.series} >= {"per_second", "cpu"}
    assert not {one.name for one in phase.series} & {"p50_ms", "p99_ms"}
    assert all(one.start >= 0 for one in phase.series)
    assert phase.use[0].cpu is not None


def rename(document: dict[str, Any]) -> None:
    document["format"] = "troop.results/9"


def uncounted(document: dict[str, Any]) -> None:
    document["phases"][0]["roles"]["drivers"]["operations"]["read"]["histogram"]["count"] += 1


def unlisted(document: dict[str, Any]) -> None:
    document["phases"] = [3]


def unsampled(document: dict[str, Any]) -> None:
    document["phases"][0]["roles"]["servers"]["samples"]["cpu_user"].pop()


def unrouted(document: dict[str, Any]) -> None:
    del document["phases"][0]["table"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (rename, "troop.results/9"),
        (unlisted, "list of phases"),
        (uncounted, "phase measure are damaged"),
        (unsampled, "phase measure are damaged"),
        (unrouted, "phase measure are damaged"),
    ],
)
def test_damaged_cell_is_a_finding_and_other_cells_stay(change: Callable[[Any], None], why: str) -> None:
    report = report_of(runs.archive().changed("c001/results.json", change))
    assert why in findings_of(report, "c001")
    assert cell(report, "c001").phases == []
    assert cell(report, "c001").fleets
    assert [one.model_copy(update={"efficiency": None}) for one in report.scaling[0].points] == [
        one.model_copy(update={"efficiency": None}) for one in complete().scaling[0].points[1:]
    ]


def unmeasured(document: dict[str, Any]) -> None:
    document["phases"][0]["table"] = []
    for role in document["phases"][0]["roles"].values():
        role["operations"] = {}


def test_a_measured_phase_without_operations_is_an_error() -> None:
    report = report_of(runs.archive().changed("c001/results.json", unmeasured))
    sentence = "error: measure: no operation ended in the measured time, so nothing was measured"
    assert sentence in findings_of(report, "c001")
    assert sentence not in findings_of(report, "c002")


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ([0, 0, 5000, 5000, 5000, 5000], "had no operation in the first 10 s of the measured time"),
        ([1, 0, 5000, 5000, 5000, 5000], ""),
    ],
    ids=["late", "at once"],
)
@pytest.mark.parametrize("start", [0, -15], ids=["alone", "after a warm-up"])
def test_load_that_begins_after_the_measured_time_is_a_finding(
    counts: list[float], sentence: str, start: float
) -> None:
    cell = measured("c001", 3, 50, 1)
    values: list[float | None] = [*[5000.0 if sentence == "" else 0.0] * (-int(start) // 5), *counts, *[5000.0] * 114]
    series = Series(role="drivers", operation="write", name="per_second", start=start, step_seconds=5, values=values)
    cell = cell.model_copy(update={"phases": [cell.phases[0].model_copy(update={"series": [series]})]})
    texts = [one.text for one in trust.findings(cell) if one.cause == "The load began late"]
    assert [sentence in text for text in texts] == ([True] if sentence else [])


def places(document: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of all values of a document, of lists the first and the last one's."""
    yield at
    if isinstance(document, dict):
        for key, value in document.items():
            yield from places(value, (*at, key))
    elif isinstance(document, list) and document:
        for index in {0, len(document) - 1}:
            yield from places(document[index], (*at, index))


JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, -1, 0, 0.5, 10**20, 1e300, "x", "", [], {}, [[]], [None], {"a": 1}, True]
)


def _places_of_results() -> st.SearchStrategy[tuple[Any, ...]]:
    return st.sampled_from(list(places(json.loads(runs.archive().files["c001/results.json"])))[1:])


@settings(max_examples=15, deadline=None)
@given(st.deferred(_places_of_results), JUNK)
def test_whatever_is_damaged_there_is_a_report_of_the_rest(at: tuple[Any, ...], junk: Any) -> None:
    document = json.loads(runs.archive().files["c001/results.json"])
    inner = document
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = junk
    few = runs.archive().without("c002", "c003", "c004", "c005", "c006", "plan.json", "record.json")
    report = report_of(few.put({"c001/results.json": json.dumps(document).encode()}))
    assert Report.model_validate_json(report.model_dump_json()) == report
    assert [(one.cell, len(one.fleets)) for one in report.cells] == [("c001", 2)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"format": "troop.results/1", "phases": [NaN]}',
        b"[]",
        b'{"format": "troop.results/1"}',
        b"\xff\xfe",
    ],
)
def test_bytes_that_are_no_results_are_a_finding(body: bytes) -> None:
    report = report_of(runs.archive().put({"c002/results.json": body}))
    assert "error: " in findings_of(report, "c002")
    assert cell(report, "c001") == cell(complete(), "c001")


@pytest.mark.parametrize(
    ("name", "where", "why"),
    [
        ("c001/results.json", "c001", "missing although the cell SUCCEEDED"),
        ("plan.json", None, ""),
        ("record.json", None, "record.json is missing"),
    ],
)
def test_missing_file_is_a_finding(name: str, where: str | None, why: str) -> None:
    report = report_of(runs.archive().without(name))
    assert why in findings_of(report, where)
    assert [one.cell for one in report.cells] == [one.cell for one in complete().cells]


@pytest.mark.parametrize("name", ["plan.json", "record.json", "c003/roster.json"])
@pytest.mark.parametrize("body", [b"{", b"{}", b'{"format": "troop.plan/1"}', b"[1]"])
def test_damaged_file_is_a_finding(name: str, body: bytes) -> None:
    report = report_of(runs.archive().put({name: body}))
    new = next(one for one in report.findings if one not in complete().findings)
    assert name.rpartition("/")[2].removesuffix(".json") in new.text
    (before,), (after,) = (cell(one, "c003").phases[0].operations for one in (complete(), report))
    assert after.distribution == before.distribution


@pytest.mark.parametrize(
    ("estimate", "expected", "why"),
    [
        ({}, None, "estimate.json has the format None"),
        (None, None, "estimate.json is missing"),
        ({"format": "troop.estimate/1", "expected": 0.5, "most": 2, "budget": None, "currency": "CNY"}, 0.5, ""),
    ],
)
def test_without_a_record_the_estimate_tells_what_it_was_to_cost(
    estimate: Any, expected: float | None, why: str
) -> None:
    archive = runs.archive().without("record.json", "estimate.json")
    report = report_of(archive if estimate is None else archive.put({"estimate.json": json.dumps(estimate).encode()}))
    assert report.money.expected == expected
    assert report.money.currency == ("CNY" if expected else "USD")
    assert why in findings_of(report)


@pytest.mark.parametrize(("body", "why"), [(None, "definition.json is missing"), (b"[]", "must be a JSON object")])
def test_without_a_definition_there_is_no_report(body: bytes | None, why: str) -> None:
    archive = runs.archive().without("definition.json")
    with pytest.raises(ReportError, match=why):
        report_of(archive if body is None else archive.put({"definition.json": body}))


def test_leftover_of_a_run_is_an_error() -> None:
    def leave(record: dict[str, Any]) -> None:
        record["left"] = [{"cell": "c001", "kind": "volume", "name": "vol-1"}]

    report = report_of(runs.archive().changed("record.json", leave))
    assert "error: Resources of the run still existed" in findings_of(report)
    assert "vol-1" in findings_of(report)


def test_objects_that_a_failed_cell_may_have_left_are_named() -> None:
    def ask(definition: dict[str, Any]) -> None:
        definition["own_data"] = True

    archive = runs.archive()
    assert "data/" not in findings_of(report_of(archive))
    left = findings_of(report_of(archive.changed("definition.json", ask)))
    failed = [one.cell for one in runs.recorded() if one.status is not CellStatus.SUCCEEDED and one.phases]
    assert failed
    assert "Objects that scripts created may still exist in the results bucket below" in left
    assert all(f"data/{runs.RUN}/{cell}/" in left for cell in failed)
    assert "The bucket deletes them 2 days after their creation." in left

    def delete(record: dict[str, Any]) -> None:
        for cell in record["cells"]:
            cell["data_gone_at"] = "2026-11-20T12:00:00.000Z"

    deleted = archive.changed("definition.json", ask).changed("record.json", delete)
    assert "data/" not in findings_of(report_of(deleted))


def test_rows_that_cannot_be_merged_are_listed_by_node() -> None:
    row = {
        "node": "i-1",
        "role": "drivers",
        "rank": 0,
        "tool": "wrk",
        "operation": "get",
        "count": 10,
        "per_second": 1.5,
        "errors": {"timeout": 1},
        "percentiles": {"50": 1.25, "99": 8.0},
    }

    def add(document: dict[str, Any]) -> None:
        document["phases"][0] |= {"separate": [row], "separate_left_out": 7}

    report = report_of(runs.archive().changed("c001/results.json", add))
    (separate,) = cell(report, "c001").phases[0].separate
    assert "measure: 7 more rows of single nodes are left out" in findings_of(report, "c001")
    assert separate.model_dump(exclude_defaults=True) == json.loads(json.dumps(row))


def test_incomplete_throughput_over_time_is_a_finding() -> None:
    def lose(document: dict[str, Any]) -> None:
        counts = document["phases"][0]["roles"]["drivers"]["operations"]["read"]["per_second"]
        counts["count"] = [1] * len(counts["count"])

    sentence = "throughput over time of drivers read is incomplete"
    assert sentence in findings_of(report_of(runs.archive().changed("c001/results.json", lose)), "c001")


ODD = {
    "half a pair": b'{"id": "\\ud800"}',
    "half a pair in a key": b'{"a": {"\\uDFFF": 1}}',
    "half a pair as bytes": b'{"id": "\xed\xa0\x80"}',
    "deep": b'{"id": ' + b"[" * 800 + b"]" * 800 + b"}",
}
"""Documents that Python reads, and that cannot be written as a report's JSON."""


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("c001/interruptions/i-1.json", "c001"),
        ("c001/results.json", "c001"),
        ("c001/roster.json", "c001"),
        ("record.json", None),
        ("plan.json", None),
    ],
)
def test_odd_json_is_damaged(name: str, where: str | None, odd: bytes) -> None:
    report = report_of(runs.archive().put({name: odd}), runs.RUN)
    assert re.search(f"error: {re.escape(name)} is not valid JSON", findings_of(report, where))
    assert Report.model_validate_json(report.model_dump_json().encode()).findings == report.findings
    assert report_page(report, "").encode()


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_malformed_version_is_omitted(odd: bytes) -> None:
    node = cell(complete(), "c001").phases[0].members[0].node
    report = report_of(runs.archive().put({"images/odd.json": odd, f"c001/nodes/{node}.json": odd}))
    assert report.model_dump_json().encode()


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_damaged_definition_has_no_report(odd: bytes) -> None:
    with pytest.raises(ReportError, match=r"definition\.json is not valid JSON"):
        report_of(runs.archive().put({"definition.json": odd}))


def test_whole_pairs_are_text_as_any_other() -> None:
    archive = runs.archive().put({"c001/interruptions/i-1.json": b'{"id": "\\ud83d\\ude00", "action": "\\\\ud800"}'})
    (one,) = cell(report_of(archive), "c001").interruptions
    assert (one.node, one.action) == ("\N{GRINNING FACE}", "\\ud800")


def test_replaced_nodes_are_in_order_and_an_unreadable_one_hides_no_other() -> None:
    failed_node = {"format": "troop.replaced/1", "role": "servers", "reason": "cannot fetch data.tar.gz"}
    files = {
        "c001/replaced/i-2.json": json.dumps({**failed_node, "id": "i-2", "at": "2026-11-20T15:01:00.000Z"}).encode(),
        "c001/replaced/i-1.json": json.dumps({**failed_node, "id": "i-1", "at": "2026-11-20T15:03:00.000Z"}).encode(),
        "c001/replaced/i-3.json": b'{"at": "soon"}',
        "c001/replaced/i-4.json": b"{",
    }
    report = report_of(runs.archive().put(files))
    one, two, three = cell(report, "c001").replaced_nodes
    assert (one.node, one.role, one.reason) == ("i-2", "servers", "cannot fetch data.tar.gz")
    assert one.at == datetime(2026, 11, 20, 15, 1, tzinfo=UTC)
    assert [(other.node, other.at is None) for other in (two, three)] == [("i-1", False), ("i-3", True)]
    assert "c001/replaced/i-4.json is not valid JSON" in findings_of(report, "c001")
    page = report_page(report, "")
    assert "Replaced nodes" in page
    assert "cannot fetch data.tar.gz" in page
    assert "Replaced nodes" not in report_page(report_of(runs.archive()), "")


def test_one_notice_that_cannot_be_read_costs_no_other() -> None:
    good = {f"c001/interruptions/i-{number}.json": b'{"action": "stop"}' for number in (1, 4)}
    bad = {f"c001/interruptions/i-{number}.json": b"{" for number in (2, 3)}
    report = report_of(runs.archive().put({**good, **bad}))
    assert [one.node for one in cell(report, "c001").interruptions] == ["i-1", "i-4"]
    assert "c001/interruptions/i-2.json is not valid JSON" in findings_of(report, "c001")
    assert "left out; 1 more cannot be read either" in findings_of(report, "c001")


def test_notices_are_limited_and_others_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleets, "MOST_NOTICES", 3)
    report = report_of(runs.archive().put({f"c001/interruptions/i-{number}.json": b"{}" for number in range(5)}))
    assert len(cell(report, "c001").interruptions) == 3
    assert "has 5 spot interruption notices: 2 are left out" in findings_of(report, "c001")
