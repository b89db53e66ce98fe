"""Limits in a report: a row for each, the key figure, and the verdict of each cell."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.report import runs
from tests.unit.report.reading import Read
from troop.bench.records.record import CellStatus
from troop.report import limit_rows, overview
from troop.report.build import build
from troop.report.document import Report
from troop.report.html import FAILED_PAGE, report_page

REASON = "p90_ms of read was 312 ms in the 10 s from 0:40; at most 300 ms in every 10 s (1 of 6 missed)"
HELD: dict[str, Any] = {
    "figure": "per_second", "at_most": None, "at_least": 100, "every": None, "role": "drivers", "operation": "read",
    "value": 312.5, "held": True, "reason": None,
}  # fmt: skip
MISSED = HELD | {
    "figure": "p90_ms", "at_most": 300, "at_least": None, "every": 10, "value": 312.0, "held": False, "reason": REASON,
}  # fmt: skip


def judged(*limits: dict[str, Any], cell: str = "c001") -> Report:
    def change(document: Any) -> None:
        document["phases"][0]["limits"] = list(limits)

    return build(runs.archive().changed(f"{cell}/results.json", change), runs.AT, "0.3")


def page(report: Report) -> str:
    return report_page(report, "var echarts = {};")


def test_each_limit_is_a_row_with_what_was_measured() -> None:
    report = judged(HELD, MISSED)
    assert report.cells[0].verdict == "FAILED"
    assert report.cells[1].verdict is None
    read = Read(page(report))
    rows = [row[-3:] for row in read.rows if row[-3:-2] in (["PASSED"], ["FAILED"])]
    assert rows == [
        ["PASSED", "per_second at least 100/s drivers · read", "312.5/s"],
        ["FAILED", f"p90_ms at most 300 ms in every 10 s drivers · read: {REASON}", "312 ms"],
    ]
    assert ("a", {"href": "#limits"}) in read.elements


@pytest.mark.parametrize(("limits", "value"), [((HELD,), "PASSED"), ((HELD, MISSED), "FAILED")])
def test_the_key_figure_and_the_page_have_the_verdict_of_the_run(limits: Any, value: str) -> None:
    report = judged(*limits)
    (figure,) = [one for one in overview.keys(report) if one.label == "Limits"]
    assert (figure.value, report.verdict) == (value, value)
    assert figure.note == ("" if value == "PASSED" else REASON)
    assert (FAILED_PAGE in page(report).encode()) == (value == "FAILED")


def test_without_limits_a_report_says_nothing_of_them() -> None:
    report = build(runs.archive(), runs.AT, "0.3")
    assert (report.verdict, limit_rows.rows(report)) == (None, [])
    assert "limits" not in [attributes.get("id") for _, attributes in Read(page(report)).elements]
    assert not [one for one in overview.keys(report) if one.label == "Limits"]


def test_limits_of_a_cell_that_did_not_succeed_are_shown_and_do_not_count() -> None:
    report = judged(MISSED)
    name = next(one.cell for one in report.cells if one.status == CellStatus.SUCCEEDED)

    def fail(document: Any) -> None:
        next(one for one in document["cells"] if one["cell"] == name)["status"] = "INVALID"

    def change(document: Any) -> None:
        document["phases"][0]["limits"] = [MISSED]

    archive = runs.archive().changed(f"{name}/results.json", change).changed("record.json", fail)
    failed = build(archive, runs.AT, "0.3")
    assert (failed.verdict, len(limit_rows.rows(failed))) == (None, 1)


def test_damaged_verdicts_are_a_finding() -> None:
    report = judged({"figure": "p90_ms"})
    assert any("verdict on its limits" in one.text for one in report.findings)


def test_page_shows_the_failed_ones_of_very_many_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit_rows, "MOST_ROWS", 2)
    ((first, second),), left_out = limit_rows.shown_rows(judged(HELD, HELD | {"operation": "write"}, MISSED))
    assert ([first.limit.held, second.limit.held], left_out) == ([True, False], 1)


SEARCH = {
    "phase": "measure", "parameter": "threads", "outcome": "BRACKETED", "largest": 120, "smallest": 121, "points": 13,
    "most": 13, "text": "the largest threads that holds the limits is 120; 121 does not hold them",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "verdict", "value", "note"),
    [
        ({}, "PASSED", "120", "121 does not hold the limits"),
        ({"outcome": "ALL_HELD", "smallest": None}, "PASSED", "120", "the largest value of the range"),
        (
            {"outcome": "WIDENED", "smallest": 128}, "PASSED", "between 120 and 128",
            "a value both held and failed the limits",
        ),
        (
            {"outcome": "WIDENED", "smallest": None}, "PASSED", "at least 120",
            "a value both held and failed the limits",
        ),
        ({"outcome": "UNSTABLE", "text": "not stable"}, "FAILED", None, None),
    ],
)  # fmt: skip
def test_page_shows_the_outcome_of_a_search(
    change: dict[str, Any], verdict: str, value: str | None, note: str | None
) -> None:
    def searched(document: Any) -> None:
        document["phases"] = [{**document["phases"][0], "limits": [MISSED]}]
        document["searches"] = [SEARCH | change]

    report = build(runs.archive().changed("c001/results.json", searched), runs.AT, "0.3")
    assert (report.verdict, report.cells[0].searches[0].most) == (verdict, 13)
    figures = {one.label: one for one in overview.keys(report)}
    assert figures["Limits"].value == verdict
    assert figures["Limits"].note == ("not stable" if verdict == "FAILED" else "")
    largest = figures.get("Largest threads")
    assert (largest and (largest.value, largest.note)) == (value and (value, note))
    text = " ".join(Read(page(report)).text)
    assert str((SEARCH | change)["text"]) in text


def test_a_baseline_that_misses_its_limits_decides_no_verdict() -> None:
    key = "fleets.servers.image"

    def vary(plan: Any) -> None:
        for one in plan["cells"]:
            one["variant"]["values"] = {key: "old" if one["cell"] == "c001" else "new"}

    def change(document: Any) -> None:
        document["phases"][0] |= {"limits": [MISSED], "is_baseline": True}

    archive = runs.archive().changed("plan.json", vary).changed("c001/results.json", change)
    archive = archive.changed("definition.json", lambda one: one.update(baseline={key: "old"}))
    report = build(
        archive.changed("c002/results.json", lambda one: one["phases"][0].update(limits=[HELD])), runs.AT, "0.3"
    )
    assert [one.verdict for one in report.cells[:2]] == [None, "PASSED"]
    assert report.verdict == "PASSED"
    assert [one.is_baseline for one in limit_rows.rows(report)] == [True, False]
    shown = page(report)
    assert FAILED_PAGE not in shown.encode()
    assert shown.count("baseline, which decides no verdict") == 1
