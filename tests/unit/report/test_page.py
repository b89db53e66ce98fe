"""Pages of reports and comparisons: all figures, nothing that runs or is fetched but what is the page's own."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable

import pytest

from tests.unit.report import sample_comparisons as comparisons
from tests.unit.report import sample_failures as failing
from tests.unit.report import sample_reports as samples
from tests.unit.report.reading import Read
from troop.report import bills, html
from troop.report.comparison import Comparison
from troop.report.document import Finding, Node, Report
from troop.report.formatting import mega
from troop.shared import formatting

SCRIPT = "var echarts = {};"
REPORTS: list[Callable[[], Report]] = [
    samples.study,
    samples.single,
    samples.apart,
    samples.against,
    samples.hostile,
    samples.bare,
    samples.empty,
    failing.tiers,
    failing.hostile,
]
COMPARISONS: list[Callable[[], Comparison]] = [
    comparisons.compared,
    lambda: comparisons.compared(repetitions=1),
    comparisons.compared_with_attacks,
    comparisons.nothing_in_common,
]


def spaced(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture(scope="module")
def study() -> Read:
    return Read(html.report_page(samples.study(), SCRIPT))


@pytest.fixture(scope="module")
def compared() -> Read:
    return Read(html.comparison_page(comparisons.compared(), SCRIPT))


PAGES = [
    *(pytest.param(lambda sample=sample: html.report_page(sample(), SCRIPT), id=sample.__name__) for sample in REPORTS),
    *(
        pytest.param(lambda sample=sample: html.comparison_page(sample(), SCRIPT), id=f"compared{n}")
        for n, sample in enumerate(COMPARISONS)
    ),
]


@pytest.mark.parametrize("render", PAGES)
def test_a_page_runs_its_own_scripts_and_fetches_nothing(render: Callable[[], str]) -> None:
    read = Read(render())
    policy = next(one["content"] or "" for tag, one in read.elements if "http-equiv" in one)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    running = [text for attributes, text in read.scripts if not attributes]
    assert running[0] == SCRIPT
    for text in running:
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert len(running) == 2
    for tag, attributes in read.elements:
        assert tag not in ("img", "iframe", "object", "embed", "base", "form")
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "action", "data"):
            assert re.match(r"#|data:,$", attributes.get(name) or "#"), (tag, attributes)
    assert "@import" not in read.page
    assert "url(" not in read.page


def test_words_are_words_whatever_they_say() -> None:
    read = Read(html.report_page(samples.hostile(), SCRIPT))
    shown = samples.HOSTILE.replace("\u202e", "\N{REPLACEMENT CHARACTER}")
    texts = "\n".join(read.text)
    assert texts.count(shown) > 20
    assert read.data()["distributions"][0]["lines"][0]["name"] == f"c001 {samples.HOSTILE}"
    assert read.over_time()[0]["name"] == f"c001 {samples.HOSTILE}, {samples.HOSTILE}"
    assert "\u2028" not in "".join(text for _, text in read.scripts)


def test_a_page_can_be_written_whatever_is_in_it() -> None:
    html.report_page(samples.hostile(), SCRIPT).encode("utf-8")


def test_the_library_cannot_end_its_own_element() -> None:
    read = Read(html.report_page(samples.empty(), "var end = '</script><b>';"))
    assert read.scripts[1][1] == r"var end = '<\/script><b>';"


# ------------------------------------------------------------------ figures


def test_each_operation_of_each_cell_has_its_row(study: Read) -> None:
    report = samples.study()
    cell = report.cells[3]
    phase = cell.phases[0]
    write, read = phase.operations
    total = study.row(f"{cell.label} c004", "all operations")
    assert (total[2], total[3]) == (formatting.plain(phase.totals[0].per_second), "")
    row = study.row("write", formatting.plain(write.per_second))
    figures = [write.mean_ms, write.p50_ms, write.p90_ms, write.p95_ms, write.p99_ms, write.p99_9_ms, write.max_ms]
    assert row[1:11] == [
        formatting.plain(write.per_second),
        "90 %",
        mega(write.bytes_per_second),
        *(formatting.plain(figure) for figure in figures),
    ]
    assert row[11] == "connect-timeout 9 read-timeout 102 unavailable 2 0.0008 %"
    assert total[13].split() == [
        "servers",
        *formatting.percent(phase.use[0].cpu).split(),
        "iowait",
        *formatting.percent(phase.use[0].iowait).split(),
        "drivers",
        *formatting.percent(phase.use[1].cpu).split(),
    ]
    assert total[14:] == ["$1.48 incomplete", formatting.money(phase.totals[0].cost_per_million)]
    assert row[12:] == [formatting.money(write.cost_per_million)]
    assert study.row("read", formatting.plain(read.per_second))[-1] == formatting.money(read.cost_per_million)


def test_the_output_of_a_failed_cell_is_folded_and_keeps_its_lines() -> None:
    report = samples.study()
    output = "last lines of i-1:\nTraceback\n  line 7"
    cells = [*report.cells[:-1], report.cells[-1].model_copy(update={"reason": f"exit code 1\n{output}"})]
    page = html.report_page(report.model_copy(update={"cells": cells}), "")
    assert (
        page.count(f'exit code 1<details><summary>Output</summary><pre tabindex="0" aria-label="Output">{output}</pre>')
        == 1
    )


def test_a_failed_cell_says_why(study: Read) -> None:
    row = study.row("n12, threads=200, repetition 3 c018 FAILED")
    assert "refused the connection" in row[1]


def test_findings_of_the_page_begin_with_errors(study: Read) -> None:
    classes = [one["class"] for tag, one in study.elements if tag == "li" and one.get("class") in ("error", "warning")]
    assert classes == ["error", "warning", "warning"]


def test_a_run_with_nothing_wrong_has_no_heading_for_warnings() -> None:
    report = samples.single()
    assert not report.findings
    page = html.report_page(report, SCRIPT)
    assert 'id="wrong"' not in page
    assert 'href="#wrong"' not in page
    for severity, heading in (("note", "Remarks"), ("warning", "Warnings"), ("error", "Problems and warnings")):
        judged = report.model_copy(update={"findings": [Finding(severity=severity, text="so it is")]})  # type: ignore[arg-type]
        assert f'<h2 id="wrong">{heading}</h2>' in html.report_page(judged, SCRIPT)


def test_efficiency_is_beside_the_points(study: Read) -> None:
    point = next(p for p in samples.study().scaling[0].points if p.cell == "c013")
    row = study.row("c013", "12 servers")
    assert row[2] == formatting.plain(point.per_second)
    assert row[-1] == spaced(formatting.share(point.efficiency))


def test_page_has_bill_fleets_notices_and_versions(study: Read) -> None:
    assert study.row("servers, i4i.xlarge, spot")[3:] == ["$0.1412", "$20.05"]
    assert study.row("traffic between zones")[3:] == [formatting.NOTHING, formatting.NOTHING]
    assert study.row("c001, c002, c003, c004, c005, c006", "servers", "3")[4:] == [
        "1 eu-west-1a, 1 eu-west-1b, 1 eu-west-1c",
        "2 spot, 1 on-demand",
    ]
    assert study.row("c002 n3, threads=50, repetition 2", "i-0a417")[3] == "rebalance-recommended"
    assert study.row("c002 n3, threads=50, repetition 2", "c002", "INVALID")[4] == "$0.41"
    texts = "".join(study.text)
    for text in (
        "apache-cassandra-5.0.6-bin.tar.gz",
        "parameters.threads: [50, 200]",
        "$31.20",
        "$118.75",
        "$16.58 of $50.00",
    ):
        assert text in texts


def test_rows_that_cannot_be_put_together_stay_apart(study: Read) -> None:
    row = study.row("i-0d0", "drivers", "0", "wrk")
    assert row[-2] == "p50 1.20 p75 1.60 p90 2.30 p99 8.04"


def test_a_cell_whose_rows_stand_apart_has_measured_all_the_same() -> None:
    read = Read(html.report_page(samples.apart(), SCRIPT))
    row = read.row("c001")
    assert "see the results by node" in row[1]
    assert row[2].startswith("servers 8")
    assert read.row("i-0d0", "drivers", "0", "wrk")


def test_a_report_of_very_many_nodes_shows_the_lost_and_the_slowest() -> None:
    one = samples.single()
    cell = one.cells[0]
    nodes = [Node(node=f"i-{n}", role="drivers", rank=n, outcome="ok", count=n, errors=0) for n in range(1200)]
    nodes[900] = nodes[900].model_copy(update={"outcome": "lost"})
    phase = cell.phases[0].model_copy(update={"members": nodes})
    read = Read(
        html.report_page(one.model_copy(update={"cells": [cell.model_copy(update={"phases": [phase]})]}), SCRIPT)
    )
    assert read.row("i-900")[3] == "lost"
    assert read.row("i-0")
    assert not [row for row in read.rows if row[:1] == ["i-1199"]]
    assert "200 nodes more" in read.page


def test_value_that_is_no_number_is_a_dash() -> None:
    read = Read(html.report_page(samples.bare(), SCRIPT))
    assert set(read.row("odd")[1:8]) == {formatting.NOTHING}
    assert "nan" not in "".join(read.text)


# ------------------------------------------------------------------ charts' data


def test_charts_have_the_points_of_the_report(study: Read) -> None:
    report, data = samples.study(), study.data()
    write = data["scaling"][0]
    assert [line["name"] for line in write["lines"]] == ["threads=50", "threads=200"]
    assert write["lines"][0]["points"][0] == [
        3,
        pytest.approx(report.scaling[0].points[0].per_second, rel=1e-3),
        "c001",
    ]
    assert [one["title"] for one in data["distributions"]] == ["all operations", "write", "read"]
    assert len(data["distributions"][0]["lines"]) == 17
    assert data["distributions"][0]["lines"][0]["points"][-1][0] == 100
    over_time = study.over_time()
    assert len(over_time) == 17
    assert (over_time[0]["warm_up"], over_time[0]["series"][0]["start"]) == (60, -60)
    cpu = next(one for one in over_time[0]["series"] if one["name"] == "cpu")
    assert cpu["values"][70] is None


def test_part_without_values_has_no_chart() -> None:
    read = Read(html.report_page(samples.bare(), SCRIPT))
    assert (read.data()["scaling"], read.data()["distributions"], read.data()["parameters"]) == ([], [], None)
    assert not read.over_time()
    assert "scaling-chart" not in [one.get("id") for _, one in read.elements]


# ------------------------------------------------------------------ comparisons


def test_a_comparison_says_what_exceeds_the_noise(compared: Read) -> None:
    assert "B does more in 4, B does less in 2, 2 within the noise. 2" in "".join(compared.text)
    assert compared.row("n3, threads=50 · write")[3:6] == ["1.120", "1.090 to 1.150", "12 % more, beyond the noise"]
    assert compared.row("n3, threads=50 · read")[5] == "0.5 % less, within the noise"
    assert compared.row("n3, threads=200 · read")[5] == "9.0 % less, beyond the noise: a regression"


def test_without_repetitions_there_is_no_interval() -> None:
    read = Read(html.comparison_page(comparisons.compared(repetitions=1), SCRIPT))
    assert read.row("n3, threads=50 · write")[4:6] == [
        formatting.NOTHING,
        "12 % more; too few pairs to exclude noise",
    ]
    assert read.data()["rows"][0]["low"] is None


def test_a_comparison_tells_times_nodes_and_cost(compared: Read) -> None:
    row = comparisons.compared().rows[0]
    for name, figure in (("p99", row.times[4]), ("n3, threads=50 · write", row.cost)):
        assert figure is not None
        shown = [f"{figure.ratio:.3f}", f"{figure.low:.3f} to {figure.high:.3f}"]
        assert [one for one in compared.rows if one[0] == name and one[-2:] == shown]
    a = compared.row("n3, threads=50 · write", formatting.plain(row.equal.per_second if row.equal else None))
    assert row.equal is not None
    assert row.affordable is not None
    assert a[2:] == [
        spaced(formatting.short(row.equal.per_second * 86400)),
        "A",
        "7 servers and 3 cache",
        "between two measured steps",
        *("$3.42", "$2,496.60", "$89,877.60", "0.839"),
    ]
    has = compared.row("n3, threads=50 · write", "$3.42")
    rate = row.affordable.a.per_second
    assert has[2:5] == ["A", "7 servers and 3 cache", "measured"]
    assert has[5:] == ["$3.42", formatting.plain(rate), spaced(formatting.short((rate or 0) * 86400)), "1.400"]
    text = "".join(compared.text)
    assert "Cost of servers and cache of A, and of servers of B. The nodes of drivers are neither counted" in text
    assert "Prices of a reservation or savings plan for 3 years, on record." in text
    assert "Your own prices for an hour: i4g.xlarge $0.31." in text
    assert "A alone has n24" in "".join(compared.text)


def test_a_report_has_the_cost_of_each_role_and_of_what_stays(study: Read) -> None:
    cell = samples.study().cells[0]
    servers, drivers = cell.fleets
    assert cell.cost is not None
    first = study.row(f"{cell.cell} {cell.label}", "servers")
    assert first[2:] == [
        formatting.whole(servers.nodes),
        "i4i.xlarge",
        formatting.plain(cell.cost.lines[0].quantity),
        formatting.money(cell.cost.lines[0].amount),
        formatting.money(servers.hourly),
        formatting.money((servers.hourly or 0) * 730),
        *(formatting.money(bills.term_cost(servers.charge, term)) for term in ("1y", "3y")),
    ]
    assert study.row("drivers load", formatting.whole(drivers.nodes))[-2:] == [formatting.NOTHING] * 2
    assert study.row("All; per hour, month and term without load")[2] == formatting.money(cell.system_hourly)
    crossing = cell.cross_zone
    assert crossing is not None
    assert study.row(f"{cell.cell} {cell.label}", "40.0")[2:] == [
        formatting.plain(crossing.estimated_gb),
        formatting.money((crossing.estimated_gb or 0) * 0.02),
    ]
    per_second = sum(one.per_second or 0 for one in cell.phases[0].operations)
    rate = study.row(f"{cell.cell} {cell.label}", "all operations of drivers")
    assert rate[3] == spaced(formatting.short(per_second * 86400))
    assert rate[4] == formatting.money((cell.system_hourly or 0) * 730)


def test_sides_without_anything_in_common_have_a_sentence() -> None:
    read = Read(html.comparison_page(comparisons.nothing_in_common(), SCRIPT))
    assert "Nothing to compare" in "".join(read.text)


@pytest.mark.parametrize(
    ("limit", "lost", "undecided", "slower", "verdict"),
    [
        (None, [], ["read"], True, None),
        (0.95, [], ["read"], True, "FAILED"),
        (0.5, [], [], False, "PASSED"),
        (0.95, [], [], False, "OPEN"),
        (0.95, ["read"], [], False, "FAILED"),
        (0.95, [], ["read"], False, "UNKNOWN"),
    ],
)
def test_a_comparison_begins_with_the_verdict_of_the_command(
    limit: float | None, lost: list[str], undecided: list[str], slower: bool, verdict: str | None
) -> None:
    compared = comparisons.compared()
    rows = [row.model_copy(update={"regression": slower and row.regression}) for row in compared.rows]
    update = {"fail_below": limit, "lost": lost, "undecided": undecided, "rows": rows}
    page = html.comparison_page(compared.model_copy(update=update), SCRIPT)
    header = page.partition("<header>")[2].partition("</header>")[0]
    assert [word for word in ("PASSED", "OPEN", "FAILED", "UNKNOWN") if word in header] == (
        [verdict] if verdict else []
    )
    assert "Paired by round: 3 pairs on different nodes." in header


def test_a_report_begins_with_its_candidate_against_the_baseline() -> None:
    read = Read(html.report_page(samples.against(), SCRIPT))
    text = spaced("".join(read.text))
    assert (
        "Throughput against version=1.2: 2.4 % less, beyond the noise (0.958 to 0.981, 6 pairs). "
        "Highest throughput 975/s" in text
    )
    row = [spaced(one) for one in read.row("read", "1,001")]
    assert row[2:7] == ["975", "0.976 0.958 to 0.981", "2.4 % less, beyond the noise", "6", "1.2 %"]
    assert row[7:] == [*["1.025 1.019 to 1.044"] * 2, "1.000 1.000 to 1.000", "1.025 1.019 to 1.044"]
    (drawn,) = read.data()["baseline"]
    assert (drawn["name"], drawn["mood"], drawn["pairs"][0]) == ("read", "worse", 0.97)
    assert 'id="baseline"' not in html.report_page(samples.study(), SCRIPT)


def test_a_figure_that_nobody_knows_is_none_in_the_ratios() -> None:
    """Without prices there is no cost, and a tool can report rates alone."""
    one = samples.against()
    ratios = [row.model_copy(update={"figures": row.figures[:1]}) for row in one.ratios]
    read = Read(html.report_page(one.model_copy(update={"ratios": ratios}), SCRIPT))
    assert read.row("read", "1,001")[7:] == ["\N{EN DASH}"] * 4
