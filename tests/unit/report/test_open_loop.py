"""Set rates: whether they were reached, and whether times contain the wait of operations that could not be sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.report import runs
from tests.unit.report.reading import Read
from tests.unit.report.runs import InMemory, archive
from tests.unit.report.test_build import cell, findings_of, report_of
from troop.measure.operations import UNFINISHED
from troop.report.document import Cell, Node, Operation, Phase, Report, Separate
from troop.report.html import report_page
from troop.report.open_loop import explained, findings, is_labelled, timing_sentences

TARGET = 300.0


def operation(count: int = 18_000, timing: Any = "response", **more: Any) -> Operation:
    its: dict[str, Any] = {"role": "drivers", "operation": "read", "per_second": count / 60, "max_ms": 9.0, **more}
    return Operation(count=count, timing=timing, **its)


def row(timing: Any, per_second: float | None = 300.0, **more: Any) -> Separate:
    its = {"node": "i-1", "tool": "wrk", "operation": "home", **more}
    return Separate(role="drivers", rank=0, count=18_000, per_second=per_second, timing=timing, **its)


def phase(
    *operations: Operation, target: float | None = TARGET, separate: tuple[Separate, ...] = (), seconds: int = 60
) -> Phase:
    node = Node(node="i-1", role="drivers", rank=0, outcome="ok", count=1, errors=0)
    return Phase(
        phase="measure",
        nodes=1,
        measured_seconds=seconds,
        targets={"drivers": target} if target else {},
        operations=list(operations),
        members=[node],
        separate=list(separate),
    )


def times_of(*phases: Phase) -> list[str]:
    return timing_sentences([Cell(cell="c001", status="SUCCEEDED", phases=list(phases))])


@pytest.mark.parametrize(
    "its",
    [
        phase(operation()),
        phase(operation(), target=None),
        phase(operation(timing="service"), target=None),
        phase(operation(timing=None), target=None),
        phase(operation(17_900)),  # within a percent
        phase(operation(17_450)),  # within two seconds
        phase(operation(18_550)),
        phase(operation(17_000, errors={"timeout": 1000})),  # failures were sent, too
        phase(operation(9_000), operation(9_000, operation="scan")),
        phase(operation(), operation(1, timing="service", role="servers")),
        phase(separate=(row("response"), row("service", None))),  # wrk2 with -U
        phase(operation(0, max_ms=None, timing=None, per_second=300.0)),  # a tool that reports rates alone
    ],
)
def test_a_rate_that_was_reached_with_response_times_is_no_finding(its: Phase) -> None:
    assert (list(findings(its)), times_of(its)) == ([], [])


@pytest.mark.parametrize(
    ("its", "meaning"),
    [
        (phase(operation(9_000)), "The queue grew, so response times would be longer in a longer measurement."),
        (phase(separate=(row("response", 150.0),)), "The queue grew"),
        (phase(operation(9_000, "service")), "Operations were sent late or not at all"),
        (phase(operation(8_000, errors={"timeout": 1000})), "The queue grew"),
    ],
)
def test_a_rate_that_was_not_reached_is_a_finding(its: Phase, meaning: str) -> None:
    (text, *_) = findings(its)
    assert text.startswith("measure: drivers did 150 operations a second, 50.0% of the rate of 300 that is set. ")
    assert meaning in text


def test_more_than_the_set_rate_is_a_finding_too() -> None:
    """A tool catches up after a slow warm-up."""
    (text,) = findings(phase(operation(21_200)))
    assert text.startswith("measure: drivers did 353 operations a second, 117.8% of the rate of 300 that is set. ")
    assert "Use a longer warm-up" in text


@pytest.mark.parametrize("seconds", [1, 2, 5, 10, 40])
def test_a_short_phase_may_miss_its_rate_by_a_twentieth(seconds: int) -> None:
    due = round(TARGET * seconds)
    for part, number in ((0.96, 0), (1.04, 0), (0.94, 1), (1.06, 1), (0, 1)):
        assert len(list(findings(phase(operation(round(part * due)), seconds=seconds)))) == number, part


def test_operations_that_never_ended_were_not_done() -> None:
    (text,) = findings(phase(operation(17_000, errors={UNFINISHED: 1000})))
    assert text.startswith("measure: drivers did 283")


def test_nothing_done_at_a_set_rate_is_a_finding_too() -> None:
    (text,) = findings(phase())
    assert "drivers did 0 operations a second, 0.0% of the rate of 300" in text


@pytest.mark.parametrize(
    ("its", "why"),
    [
        (phase(operation(timing="service", tools=["JMeter"])), "JMeter cannot report response times"),
        (phase(operation(timing=None, tools=["k6"])), "k6 cannot report response times"),
        (phase(operation(timing="service", tools=["locust-2"])), "Locust cannot report response times"),
        (phase(operation(timing="service", tools=["latte"])), "latte reported no response times"),
        (phase(operation(timing="service")), "its script did not record when operations were due"),
        (phase(operation(timing=None)), "its script did not record when operations were due"),
        (phase(separate=(row("service"),)), "wrk reported no response times"),
        (phase(separate=(row(None, tool="k6"),)), "k6 cannot report response times"),
    ],
)
def test_a_tool_that_only_knows_when_it_sent_is_named(its: Phase, why: str) -> None:
    (text,) = times_of(its)
    assert text.startswith(f"measure: a rate is set for drivers, but {why}")
    assert "are service times: they leave out how long operations waited" in text


def test_operations_of_a_tool_are_in_one_sentence() -> None:
    labels = [operation(6_000, "service", operation=name, tools=["JMeter"]) for name in ("home", "login")]
    (text,) = times_of(phase(*labels, operation(6_000)))
    assert "Times of home, login are service times" in text


def test_times_of_both_kinds_in_one_histogram_are_a_finding() -> None:
    (text,) = times_of(phase(operation(timing="mixed"), target=None))
    assert "response times and service times are in one histogram" in text


# ------------------------------------------------------------------ from stored results to the page


def rated(per_node: float) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for one in document["cells"]:
            one["benchmark"]["parameters"]["rate"] = per_node
            one["benchmark"]["phases"][1]["rate"] = {"drivers": "rate"}

    return change


def with_rate(per_node: float, timing: str | None = "response", tools: tuple[str, ...] = ()) -> InMemory:
    def change(document: Any) -> None:
        (measured,) = document["phases"]
        read = measured["roles"]["drivers"]["operations"]["read"]
        (line,) = [one for one in measured["table"] if one["operation"] == "read"]
        read["tools"] = list(tools)
        if timing:
            read["timing"] = line["timing"] = timing
        if timing == "response":
            read["service"] = {**read["histogram"], "max": read["histogram"]["max"]}
            line["service"] = {"p50_ms": 0.125, "p99_ms": 0.25, "max_ms": 0.5}

    stored = archive().changed("plan.json", rated(per_node))
    for name in [name for name in stored.files if name.endswith("/results.json")]:
        stored = stored.changed(name, change)
    return stored


def measured(report: Report, name: str = "c001") -> Phase:
    return cell(report, name).phases[0]


def shown(report: Report) -> tuple[Read, str]:
    """The page, and its text."""
    page = Read(report_page(report, ""))
    return page, " ".join(" ".join(page.text).split())


def row_with(page: Read, *parts: str) -> str:
    """The first row of a table that contains all of these."""
    rows = (" ".join(" ".join(cells).split()) for cells in page.rows)
    return next(text for text in rows if all(part in text for part in parts))


def test_target_rate_follows_from_the_file_and_the_nodes_that_took_part() -> None:
    report = report_of(with_rate(200))
    assert measured(report).targets == {"drivers": 200.0}
    assert measured(report, "c005-2").targets == {"drivers": 200.0 * runs.STEPS["n12"][1]}
    assert measured(report_of(archive())).targets == {}
    assert measured(report_of(with_rate(0))).targets == {}


def test_a_point_can_set_the_rate() -> None:
    def change(document: Any) -> None:
        document["phases"][0] |= {"point": 1, "parameters": {"rate": 75}}

    report = report_of(with_rate(200).changed("c001/results.json", change))
    assert measured(report).targets == {"drivers": 75.0}


def test_response_times_stand_beside_service_times_and_both_say_so() -> None:
    report = report_of(with_rate(200))
    (read,) = measured(report).operations
    assert (read.timing, read.service and read.service.p50_ms) == ("response", 0.125)
    assert read.service is not None
    assert read.service.distribution == read.distribution
    page, text = shown(report)
    assert "response" in row_with(page, "read", "of 200 set")
    assert row_with(page, "c001", "read", "0.12", "0.25", "0.5")
    assert "A response time begins at the moment when an operation was due" in text
    assert "Latencies are response times of read." in text
    assert "service times of a closed loop" not in text
    lines = {line["name"] for one in page.data()["distributions"] for line in one["lines"]}
    assert {name.rsplit(", ", 1)[1] for name in lines} == {"response times", "service times"}
    assert Report.model_validate_json(report.model_dump_json()) == report


def test_a_closed_loop_says_once_that_it_is_one() -> None:
    report = report_of(archive())
    assert not is_labelled(report.cells)
    assert explained(report.cells) == ""
    _, text = shown(report)
    assert text.count("service times of a closed loop") == 1
    assert "No rate is set" in text
    assert "Latencies are" not in text
    assert "response time" not in text


def test_jmeter_with_a_set_rate_is_labelled_and_a_finding() -> None:
    report = report_of(with_rate(100, "service", ("JMeter",)))
    assert findings_of(report).count("warning: measure: a rate is set for drivers, but JMeter cannot report") == 1
    page, text = shown(report)
    assert "service" in row_with(page, "read", "of 100 set")
    assert "Latencies are service times of read." in text


def test_a_rate_that_a_cell_missed_is_a_finding_of_the_report() -> None:
    assert "% of the rate of 900 that is set. The queue grew" in findings_of(report_of(with_rate(900)), "c001")
