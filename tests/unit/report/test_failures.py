"""What pages say about planned faults: verdicts, figures, repetitions, and the picture."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import pytest

from tests.unit.bench.measuring.request_log import BEGIN, recorded, steady
from tests.unit.report import runs
from tests.unit.report import sample_failures as samples
from tests.unit.report.reading import Read
from tests.unit.report.sample_failures import AT, EXPECT, START, cell, phase, report, simulated, stopped, with_faults
from troop.bench.measuring.failure import Happened
from troop.report import failures, html
from troop.report.build import build
from troop.report.document import Failure, Report

SPACE = "\N{NO-BREAK SPACE}"


def fault_of(one: Report) -> Failure:
    return one.cells[0].phases[0].faults[0]


def page_of(one: Report) -> Read:
    return Read(html.report_page(one, "var echarts = {};"))


def words(read: Read) -> str:
    return " ".join(" ".join(read.text).split()).replace(SPACE, " ")


def lines_of(fault: Failure) -> dict[str, tuple[str, str, str | None]]:
    return {
        one.figure.replace(SPACE, " "): (one.value.replace(SPACE, " "), one.expected.replace(SPACE, " "), one.verdict)
        for one in failures.figures(fault)
    }


def expecting(happened: Happened, **changes: Any) -> Happened:
    return replace(happened, fault=replace(happened.fault, expect=replace(EXPECT, **changes)))


# ---------------------------------------------------------------- figures


def test_each_figure_stands_beside_what_was_expected() -> None:
    fault = fault_of(samples.held())
    during, rate, p99 = fault.rate_during, fault.back.rate_s, fault.back.p99_s
    assert during
    assert fault.failed
    assert fault.fewer
    assert rate
    assert p99
    assert lines_of(fault) == {
        "Rate during": (
            f"{during:.0f}/s, {during / 1.8:.0f} % of before",
            "at least 70 %",
            "HELD",
        ),
        "Rate is back at 95 % of before": (f"after {rate:.1f} s", "within 20.0 s", "HELD"),
        "p99 is back": (f"after {p99:.1f} s", "within 30.0 s", "HELD"),
        "Operations that failed": (str(fault.failed), "at most 500", "HELD"),
        "Operations fewer than at the set rate": (str(fault.fewer), "", None),
    }


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"rate": 0.95}, "Rate during"),
        ({"rate_back_within": 9}, "Rate is back at 95 % of before"),
        ({"p99_back_within": 10}, "p99 is back"),
        ({"failed_at_most": 100}, "Operations that failed"),
    ],
)
def test_lines_agree_with_the_verdict(changes: dict[str, float], broken: str) -> None:
    fault = fault_of(report(cell(phase(with_faults(simulated(), expecting(stopped(), **changes))))))
    verdicts = {figure: verdict for figure, (_, _, verdict) in lines_of(fault).items() if verdict}
    assert fault.verdict == "BROKEN"
    assert verdicts.pop(broken) == "BROKEN"
    assert set(verdicts.values()) == {"HELD"}


@pytest.mark.parametrize(("chance", "verdict"), [(None, "HELD"), (20, "HELD"), (21, "UNKNOWN")])
def test_a_time_that_chance_may_have_shortened_agrees_with_the_verdict(chance: float | None, verdict: str) -> None:
    document = with_faults(simulated(), expecting(stopped()))
    document["faults"][0]["back"] |= {"rate_s": 0, "rate_chance_s": chance}
    value, _, outcome = lines_of(Failure.model_validate(document["faults"][0]))["Rate is back at 95 % of before"]
    assert outcome == verdict
    assert value == (f"after 0.0 to {chance:.1f} s, by chance" if chance else "did not fall")


@pytest.mark.parametrize(("within", "verdict"), [(20, "BROKEN"), (79, "BROKEN"), (80, "UNKNOWN")])
def test_a_figure_that_is_not_back_is_broken_after_enough_time(within: int, verdict: str) -> None:
    document = with_faults(simulated((AT, 1000)), expecting(stopped(), rate_back_within=within, p99_back_within=None))
    document["faults"][0]["expect"].pop("failed_at_most")
    value, _, outcome = lines_of(Failure.model_validate(document["faults"][0]))["Rate is back at 95 % of before"]
    assert (value, outcome) == ("not until the end", verdict)


def test_figures_that_never_were_away_have_no_mark_and_no_time() -> None:
    document = with_faults(simulated((1000, 0)), expecting(stopped()))
    fault = Failure.model_validate(document["faults"][0])
    assert (fault.back.rate_s, fault.back.p99_s) == (0, 0)
    lines = lines_of(fault)
    assert lines["Rate is back at 95 % of before"][0] == "did not fall"
    assert lines["p99 is back"][0] == "did not rise"
    pictures = failures.pictures(failures.rows([cell(phase(document))]))
    assert pictures
    assert [mark["what"] for mark in pictures["views"][0]["marks"]] == ["stop 1 of servers"]


def test_failures_that_are_not_counted_are_unknown() -> None:
    document = simulated()
    for operation in document["roles"]["drivers"]["operations"].values():
        operation |= {"counts_failures": False}
    cells = [cell(phase(with_faults(document)), repetition=n) for n in (1, 2)]
    fault = fault_of(report(cells[0]))
    assert lines_of(fault)["Operations that failed"] == ("unknown", "at most 500", "UNKNOWN")
    assert {one.failed for _, one in failures.windows(fault)} == {None}
    curve = cells[0].phases[0].curve
    assert curve
    assert set(curve.failed) == {None}
    (repeated,) = failures.repeated(failures.rows(cells))
    assert repeated.means[-1] == "unknown"
    text = words(page_of(report(*cells)))
    assert "failures are not counted by this tool (expected at most 500)" in text
    assert "unknown not counted" in text, "the table of windows"
    assert "no operation failed" not in text


def test_without_figures_only_expectations_are_listed() -> None:
    fault = fault_of(samples.unknown())
    assert {line[0] for line in lines_of(fault).values()} == {"\N{EN DASH}"}
    assert {line[2] for line in lines_of(fault).values()} == {"UNKNOWN"}
    assert failures.windows(fault) == []


def test_the_recovery_of_the_group_stands_beside_that_of_its_clients() -> None:
    lines = lines_of(fault_of(samples.unit()))
    assert lines["Rate is back at 95 % of before"][0].startswith("after 9.")
    assert lines["The group's own recovery, by event 20261120T150600Z-web"][0] == "48.2 s, HELD"


# ---------------------------------------------------------------- verdicts


@pytest.mark.parametrize(
    ("sample", "verdict"),
    [
        (samples.held, "HELD"),
        (samples.broken, "BROKEN"),
        (samples.unknown, "UNKNOWN"),
        (samples.refused, "UNKNOWN"),
        (samples.tiers, "BROKEN"),
        (samples.repeated, "UNKNOWN"),
    ],
)
def test_the_page_begins_with_the_verdict_in_a_sentence(sample: Callable[[], Report], verdict: str | None) -> None:
    one = sample()
    assert one.fault_verdict == verdict
    read = page_of(one)
    sentence = failures.deciding(one)[0].fault.sentence
    assert words(read).index(sentence) < words(read).index("Key figures")
    marks = [attributes["content"] for _, attributes in read.elements if attributes.get("name") == "troop-faults"]
    assert marks == ([verdict] if verdict else [])


def test_several_verdicts_are_counted_first() -> None:
    assert "5 planned faults: 1 UNKNOWN, 4 HELD." in words(page_of(samples.repeated()))
    assert failures.tally(failures.rows(samples.tiers().cells)) == "3 planned faults: 1 BROKEN, 2 HELD."
    assert failures.tally(failures.rows(samples.held().cells)) == ""


def test_points_of_a_search_may_break() -> None:
    one = samples.searched()
    assert [its.verdict for point in one.cells[0].phases for its in point.faults] == ["HELD", "HELD", "BROKEN"]
    assert (one.fault_verdict, failures.deciding(one)) == (None, [])
    begin = words(page_of(one)).split("Failure under load")[0]
    assert "PASSED" in begin
    assert "operations failed" not in begin, "the answer of the search decides"


def test_a_page_prints_no_figure_of_an_unsteady_load() -> None:
    text = words(page_of(samples.unknown()))
    assert "unknown, because the rate before was" in text
    assert "Before, during and after" not in text
    assert "95 % of the rate before" not in page_of(samples.unknown()).page


def test_windows_have_errors_by_kind_and_each_operation_once() -> None:
    one = samples.held()
    fault, read = fault_of(one), page_of(one)
    during = fault.windows.during
    assert during
    assert during.errors
    row = read.row("during")
    assert row[1:4] == [f"{during.seconds:.1f}", f"{during.per_second:.0f}", str(fault.failed)]
    assert row[4].split() == ["refused", str(during.errors["refused"]), "timeout", str(during.errors["timeout"])]
    assert read.row("before")[3:5] == ["0", "none"]


def test_a_report_without_faults_says_nothing_about_them() -> None:
    one = report(cell(phase({**simulated(), "faults": []})))
    read = page_of(one)
    assert "Failure under load" not in words(read)
    assert read.data()["failures"] is None


def test_a_report_of_stored_results_has_faults_curve_and_verdict() -> None:
    document = with_faults(simulated())
    results = json.dumps({"format": "troop.results/1", "phases": [document]}).encode()
    archive = runs.archive().put({"c001/results.json": results})
    one = build(archive, runs.AT, "0.3").cells[0]
    (its,) = one.phases
    assert its.faults[0].sentence == document["faults"][0]["sentence"]
    assert (its.faults[0].verdict, one.fault_verdict) == ("HELD", "HELD")
    assert its.curve
    assert sum(number or 0 for number in its.curve.failed) == its.faults[0].failed
    again = Report.model_validate_json(build(archive, runs.AT, "0.3").model_dump_json())
    assert again.cells[0].phases[0].faults == its.faults, "windows are read as they are written"


def test_a_rare_operation_that_hangs_is_warned_of_beside_the_windows() -> None:
    document = simulated((AT, 0))
    assert "The rate of all operations" not in words(page_of(report(cell(phase(with_faults(document))))))
    since = START - BEGIN
    hung = recorded(
        (one._replace(ended=one.ended + since) for one in steady(AT, 5)), document["measured_seconds"], START
    )
    document["roles"]["drivers"]["operations"]["write"] = hung.document()
    results = json.dumps({"format": "troop.results/1", "phases": [with_faults(document)]}).encode()
    built = build(runs.archive().put({"c001/results.json": results}), runs.AT, "0.3")
    (row,) = failures.rows(built.cells)
    assert row.fault.back.rate_s == 0
    text = words(page_of(built))
    assert "did not fall, but the own rate of write of drivers fell below the share of the rate before." in text
    assert "write of drivers 5.00 0.500 0 0" in text


def test_damaged_faults_are_left_out_with_their_phase() -> None:
    document = with_faults(simulated())
    document["faults"][0]["number"] = "one"
    results = json.dumps({"format": "troop.results/1", "phases": [document]}).encode()
    built = build(runs.archive().put({"c001/results.json": results}), runs.AT, "0.3")
    assert built.cells[0].phases == []
    assert any("The results of phase measure are damaged" in one.text for one in built.findings)


# ---------------------------------------------------------------- repetitions


def test_repetitions_have_a_row_each_and_the_mean_with_its_interval() -> None:
    one = samples.repeated()
    known = [its.back.rate_s for cell in one.cells for its in cell.phases[0].faults if its.back.rate_s]
    assert len(known) == 4
    mean, half = fmean(known), 3.182 * stdev(known) / math.sqrt(4)
    (group,) = failures.repeated(failures.rows(one.cells))
    assert group.means[0].replace(SPACE, " ") == f"{mean:.1f} s ({mean - half:.1f} to {mean + half:.1f} s)"
    read = page_of(one)
    assert read.row("Mean", "")[2].replace(SPACE, " ") == group.means[0].replace(SPACE, " ")
    unsteady = next(row for row in read.rows if row[:2] == ["c003 repetition 3", "UNKNOWN"] and len(row) == 5)
    assert unsteady[2:] == ["\N{EN DASH}"] * 3


def test_a_mean_hides_no_repetition_that_is_not_back() -> None:
    cells = [
        cell(phase(with_faults(simulated((AT, lasts), seed=n))), number=n, repetition=n)
        for n, lasts in enumerate((10, 1000, 12), 1)
    ]
    (group,) = failures.repeated(failures.rows(cells))
    assert group.means[0] == "not back in 1 of 3"
    assert "to" in group.means[2]


def test_different_faults_and_points_are_no_repetitions() -> None:
    assert failures.repeated(failures.rows(samples.tiers().cells)) == []
    assert failures.repeated(failures.rows(samples.searched().cells)) == []


# ---------------------------------------------------------------- the picture


def test_the_picture_has_windows_marks_and_the_level_to_return_to() -> None:
    one = samples.held()
    back = fault_of(one).back
    assert back.rate_s
    assert back.p99_s
    pictures = failures.pictures(failures.rows(one.cells))
    assert pictures
    (view,) = pictures["views"]
    assert (view["from"], view["to"]) == (0, 150)
    assert [name for *_, name in view["windows"]] == ["before", "during", "after"]
    (_, first, _), (begin, end, _), (after, last, _) = view["windows"]
    assert (first, end, last) == (begin, after, 150)
    assert begin == pytest.approx(AT, abs=1)
    assert [mark["what"].replace(SPACE, " ") for mark in view["marks"]] == [
        "stop 1 of servers",
        f"rate is back (+{back.rate_s:.1f} s)",
        f"p99 is back (+{back.p99_s:.1f} s)",
    ]
    moments = [AT + 0.02, AT + 0.02 + back.rate_s, AT + 0.02 + back.p99_s]
    assert [mark["at"] for mark in view["marks"]] == pytest.approx(moments, abs=0.001)
    assert view["level"]["value"] == pytest.approx(0.95 * 180, rel=0.01)
    assert pictures["curves"][0]["start"] == 0.75


def test_stages_of_the_group_are_marked_beside_the_clients() -> None:
    pictures = failures.pictures(failures.rows(samples.unit().cells))
    assert pictures
    marks = {mark["what"].replace(SPACE, " ").split(" (")[0]: mark for mark in pictures["views"][0]["marks"]}
    assert marks["group: noticed"]["at"] == pytest.approx(AT + 3.8)
    assert marks["group: recovered"]["at"] == pytest.approx(AT + 0.7 + 48.2)
    assert marks["group: recovered"]["dash"] == "dashed"


def test_a_phase_with_several_faults_is_drawn_whole_and_around_each() -> None:
    pictures = failures.pictures(failures.rows(samples.tiers().cells))
    assert pictures
    whole, first, second, third = pictures["views"]
    assert whole["title"] == "all 3 faults"
    assert (whole["from"], whole["to"]) == (0, 360)
    assert second["title"] == "stop 1 of servers at 2:30"
    assert (second["from"], second["to"]) == (pytest.approx(90, abs=0.1), pytest.approx(150 + 27 + 60, abs=2))
    assert [view["curve"] for view in (whole, first, third)] == [0, 0, 0]
    assert len(pictures["curves"]) == 1
    assert "fault ends" in " ".join(mark["what"] for mark in second["marks"])


def test_a_fault_that_was_refused_is_drawn_where_it_was_planned() -> None:
    pictures = failures.pictures(failures.rows(samples.refused().cells))
    assert pictures
    assert pictures["views"][0]["marks"] == [{"at": AT, "what": "hit an instance of web"}]
    assert (pictures["views"][0]["level"], pictures["views"][0]["windows"]) == (None, [])


# ---------------------------------------------------------------- two runs


def test_two_runs_are_laid_over_one_another_at_the_fault() -> None:
    (view,) = failures.overlaid(*samples.sides())
    assert [side["start"] for side in view["sides"]] == pytest.approx([0.75 - AT - 0.02, 0.75 - 50 - 0.02])
    for side in view["sides"]:
        at = math.ceil(-side["start"])
        assert max(side["p99"][at - 10 : at - 2]) < 50 < 300 < max(side["p99"][at : at + 10])
    assert view["from"] == pytest.approx(-50, abs=0.1)
    assert [mark["what"].split(" (")[0] for mark in view["marks"]] == [
        "fault",
        "A: rate is back",
        "A: p99 is back",
        "B: rate is back",
        "B: p99 is back",
    ]


def test_both_sides_have_their_means_and_what_is_unknown() -> None:
    a, b = samples.sides()
    (pair,) = failures.compared(a, b)
    assert (pair.a.repetitions, pair.a.known, pair.a.verdict) == (3, 2, "UNKNOWN")
    assert (pair.b.repetitions, pair.b.known, pair.b.verdict) == (1, 1, "BROKEN")
    known = [its.cells[0].phases[0].faults[0].back.rate_s for its in (report(one) for one in a[:2])]
    assert pair.a.rate_back_s == pytest.approx(fmean(one for one in known if one), abs=0.001)
    other = report(cell(phase(with_faults(simulated()), label="rate=200")))
    assert failures.compared(a, other.cells) == []


def test_a_moment_is_that_of_the_measured_time() -> None:
    (row,) = failures.rows(samples.held().cells)
    assert row.began == pytest.approx(AT + 0.02)
    assert row.fault.began_at == START + AT + 0.02
