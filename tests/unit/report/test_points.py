"""Points of a cell in its report: a row of each, marked as of the same nodes, and never counted as repetitions."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.unit.cli.reports import cell as measured_cell
from tests.unit.cli.reports import operation
from tests.unit.cli.reports import report as report_of
from tests.unit.report import runs
from tests.unit.report.reading import Read
from troop.report import html, overview, points, trust
from troop.report.build import build
from troop.report.document import Cell, Fleet, Limit, Phase, Report, Search
from troop.report.points import combined
from troop.report.scaling import scaling

SCRIPT = "var echarts = {};"


def swept(archive: runs.InMemory, cell: str, *settings: tuple[int, int], complete: bool = True) -> runs.InMemory:
    """An archive in which a cell has measured points: so many threads, and the repeat."""

    def change(document: Any) -> None:
        (phase,) = document["phases"]
        document["phases"] = [
            {**copy.deepcopy(phase), "point": n, "repeat": repeat, "parameters": {"threads": threads}}
            for n, (threads, repeat) in enumerate(settings, 1)
        ]
        if not complete:
            document["complete"] = False

    return archive.changed(f"{cell}/results.json", change)


@pytest.fixture(scope="module")
def built() -> Report:
    archive = swept(runs.archive(), "c001", (1, 1), (8, 1), (1, 2), (8, 2))
    return build(archive, runs.AT, "0.3")


def test_each_point_is_a_row_with_the_parameters_of_cell_and_point(built: Report) -> None:
    rows = [(one.phase, one.point, one.repeat, one.label, one.parameters) for one in built.cells[0].phases]
    assert rows == [
        ("measure", 1, 1, "threads=1", {"threads": 1}),
        ("measure", 2, 1, "threads=8", {"threads": 8}),
        ("measure", 3, 2, "threads=1", {"threads": 1}),
        ("measure", 4, 2, "threads=8", {"threads": 8}),
    ]
    assert [one.title for one in built.cells[0].phases][2:] == ["measure, threads=1, #2", "measure, threads=8, #2"]
    assert {(one.point, one.repeat, one.title) for cell in built.cells[1:] for one in cell.phases} == {
        (None, 1, "measure")
    }
    assert Report.model_validate_json(built.model_dump_json()) == built


def test_values_of_the_matrix_are_parameters_of_a_row_too() -> None:
    def change(document: Any) -> None:
        document["cells"][0]["variant"]["values"] = {"parameters.keys": ["a"], "fleets.drivers.count": 2}

    archive = swept(runs.archive(), "c001", (1, 1)).changed("plan.json", change)
    (phase,) = build(archive, runs.AT, "0.3").cells[0].phases
    assert phase.parameters == {"keys": ["a"], "fleets.drivers.count": 2, "threads": 1}


def test_a_report_of_an_earlier_version_has_one_point() -> None:
    document = json.loads(build(runs.archive(), runs.AT, "0.3").model_dump_json())
    for cell in document["cells"]:
        for phase in cell["phases"]:
            for key in ("point", "repeat", "label", "parameters"):
                del phase[key]
    read = Report.model_validate(document)
    assert {(one.point, one.setting) for cell in read.cells for one in cell.phases} == {(None, "")}


def test_the_page_marks_points_that_share_nodes_and_shows_their_spread(built: Report) -> None:
    page = Read(html.report_page(built, SCRIPT))
    text = " ".join(" ".join(page.text).split())
    assert page.row("n3 c001 all points on the same nodes")[1] == "threads=1"
    assert page.row("threads=8, #2")
    assert "Spread within nodes" in text
    (rate,) = {one.per_second for phase in built.cells[0].phases for one in phase.operations if one.role == "drivers"}
    spread = page.row("c001 n3", "threads=8", "read", "2")
    assert spread[4:] == [f"{rate:.0f}", f"{rate:.0f}", f"{rate:.0f}", "0 %"]
    assert "They are not independent repetitions" in text
    names = [one["name"] for one in page.over_time()]
    assert names[:3] == ["c001 n3, threads=1", "c001 n3, threads=8", "c001 n3, threads=1, #2"]
    plain = " ".join(" ".join(Read(html.report_page(build(runs.archive(), runs.AT, "0.3"), SCRIPT)).text).split())
    assert "same nodes" not in plain


def test_points_of_a_cell_that_failed_are_shown_and_do_not_count() -> None:
    archive = swept(runs.archive(), "c001", (1, 1), (8, 1), complete=False)

    def invalid(document: Any) -> None:
        document["cells"][0] |= {"status": "INVALID", "reason": "i-1 was lost during the phase measure.3"}

    report = build(archive.changed("record.json", invalid), runs.AT, "0.3")
    cell = report.cells[0]
    assert (cell.status, len(cell.phases)) == ("INVALID", 2)
    texts = [one.text for one in report.findings if one.cell == "c001"]
    assert "The cell did not end. What it had measured is shown (2 whole), but does not count." in texts
    assert "c001" not in {point.cell for one in report.scaling for point in one.points}
    without_record = build(archive.without("record.json"), runs.AT, "0.3")
    assert without_record.cells[0].status == "UNKNOWN"


def test_a_partial_measurement_is_marked_and_gets_no_advice() -> None:
    archive = swept(runs.archive(), "c001", (1, 1), (8, 1), complete=False)

    def cut(document: Any) -> None:
        document["phases"][1] |= {"partial": True}
        for role in document["phases"][1]["roles"].values():
            for line in role["nodes"].values():
                line["outcome"] = "partial"

    report = build(archive.changed("c001/results.json", cut), runs.AT, "0.3")
    assert [(one.partial, one.title) for one in report.cells[0].phases] == [
        (False, "measure, threads=1"), (True, "measure, threads=8, partial"),
    ]  # fmt: skip
    texts = [one.text for one in report.findings if one.cell == "c001"]
    assert "The cell did not end. What it had measured is shown (1 whole and 1 partial), but does not count." in texts
    assert not [text for text in texts if "threads=8" in text]
    assert Read(html.report_page(report, SCRIPT)).row("threads=8, partial")


def cell(name: str, *rates: float, servers: int = 3, repetition: int = 1) -> Cell:
    """A cell that has measured one point again and again."""
    phases = [
        Phase(phase="measure", point=n, repeat=n, label="threads=8", nodes=1, measured_seconds=60,
              operations=[operation(rate)])
        for n, rate in enumerate(rates, 1)
    ]  # fmt: skip
    fleet = Fleet(role="servers", nodes=servers, instance_type="s.large")
    return Cell(
        cell=name, status="SUCCEEDED", phases=phases, fleets=[fleet], scale=f"n{servers}", repetition=repetition
    )


def test_a_cell_is_one_point_of_scaling_however_often_it_has_repeated() -> None:
    (one,) = scaling([cell("c001", 100.0, 400.0), cell("c002", 300.0, 300.0, servers=6)], ["servers"])
    assert (one.label, [(point.cell, point.nodes, round(point.per_second, 6)) for point in one.points]) == (
        "threads=8",
        [("c001", 3, 200.0), ("c002", 6, 300.0)],
    )


def test_key_figures_take_the_middle_of_cells_and_not_of_their_repeats() -> None:
    cells = [cell("c001", 100.0, 100.0, 100.0), cell("c002", 400.0, repetition=2)]
    (best,) = [key for key in overview.keys(report_of(cells)) if key.label == "Highest throughput"]
    assert (best.value, best.note) == ("200/s", "read, n3, threads=8")


def test_repeats_combine_mean_rates_median_times_and_summed_counts() -> None:
    each = [operation(100.0, p99_ms=1.0, errors={"timeout": 1}), operation(400.0, p99_ms=3.0, errors={"timeout": 2})]
    both = points.combined(each)
    assert (both.per_second, both.p99_ms, both.errors) == (pytest.approx(200.0), 2.0, {"timeout": 3})
    assert both.count == sum(one.count for one in each)
    assert points.combined(each[:1]) is each[0]
    assert points.combined([operation(0.0), operation(5.0)]).per_second == 0


def test_the_share_of_repeats_is_that_of_their_counts() -> None:
    """10 of 100 operations, and 90 of 100."""
    repeats = [
        operation(1.0).model_copy(update={"count": count, "share": share}) for count, share in ((10, 0.1), (90, 0.9))
    ]
    assert combined(repeats).share == 0.5
    assert combined([*repeats, operation(1.0)]).share is None


def test_points_beyond_the_limits_of_a_search_give_notes_and_no_key_figures() -> None:
    def point(rate: float, held: bool) -> Phase:
        limit = Limit(figure="p90_ms", at_most=9, role="drivers", operation="read", value=9, held=held, reason=None)
        done = operation(rate, errors={} if held else {"timeout": 9000})
        return Phase(
            phase="m", point=1, label=f"rate={rate:g}", nodes=1, measured_seconds=60, operations=[done], limits=[limit],
            targets={"drivers": rate if held else 2 * rate},
        )  # fmt: skip

    search = Search(phase="m", parameter="rate", outcome="BRACKETED", largest=500, points=2, most=2, text="500")
    phases = [point(500.0, True), point(3000.0, False)]
    its = measured_cell(1, 1.0).model_copy(update={"phases": phases, "searches": [search]})
    texts = {one.text: one.severity for one in trust.findings(its) if "rate=3000" in one.text}
    assert [severity for text, severity in texts.items() if "timeout" in text or "rate of" in text] == ["note", "note"]
    figures = {key.label: key.value for key in overview.keys(report_of([its]))}
    assert (figures["Highest throughput"], figures["Errors"]) == ("500/s", "none")
