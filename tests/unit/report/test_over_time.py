"""What a page has over time: bounded, with marks where something happened, of nodes and devices too."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.report import runs
from tests.unit.report.sample_cells import measured
from troop.bench.results.series import series
from troop.measure.operations import TOTAL
from troop.report import over_time
from troop.report.document import Cell, Interruption, Node, Series, Step
from troop.report.series_names import PANELS


def changed(**changes: Any) -> Cell:
    cell = measured("c001", 3, 50, 1)
    return cell.model_copy(update={"phases": [cell.phases[0].model_copy(update=changes)]})


def series_of(number: int, values: int = 10) -> Series:
    return Series(
        role="servers", node=f"i-{number}", name="cpu", start=0, step_seconds=1, values=[float(number)] * values
    )


def test_each_series_that_troop_computes_has_a_panel() -> None:
    phase = runs.results("c001", "n3", 1.0, errors=2)["phases"][0]
    known = {name for panel in PANELS for name in panel.names}
    assert {one.name for one in series(phase)} <= known
    assert {name for panel in PANELS for name in panel.off} <= known


def test_a_series_without_a_panel_gets_one_of_its_own() -> None:
    strange = series_of(1).model_copy(update={"name": "queue_depth"})
    titles = [panel["title"] for panel in over_time.panels([changed(series=[strange])])]
    assert titles == [*(panel.title for panel in PANELS), "queue_depth"]


def test_first_are_those_with_operations_of_the_first_repetition() -> None:
    """A tool that reports only rates has nothing to draw over time except the load of its nodes."""
    cell = measured("c001", 3, 50, 1)
    (phase,) = cell.phases
    loads = phase.model_copy(update={"phase": "disk", "series": [one for one in phase.series if not one.operation]})
    again = phase.model_copy(update={"repeat": 2})
    both = over_time.entries([cell.model_copy(update={"phases": [loads, phase, again]})])
    assert [one["first"] for one in both] == [False, True, False]
    assert [one["first"] for one in over_time.entries([cell.model_copy(update={"phases": [loads]})])] == [True]


def test_series_of_nodes_are_left_out_first_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = series_of(0, 40).model_copy(update={"node": ""})
    long = series_of(9).model_copy(update={"values": [1.0] * (over_time.MOST_POINTS + 1)})
    cell = changed(series=[*(series_of(n) for n in range(1, 9)), whole, long])
    (entry,) = over_time.entries([cell])
    assert (len(entry["series"]), entry["left_out"]) == (9, 1)
    monkeypatch.setattr(over_time, "MOST_OF_ENTRY", 65)
    (entry,) = over_time.entries([cell])
    assert [one.get("node") for one in entry["series"]] == [None, "i-1", "i-2"]
    assert entry["left_out"] == 7


def test_slowest_node_of_each_role_stays_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Series of nodes come in the order of their slowness; a fast node of the first role does not push it out."""
    several = [series_of(n) for n in (7, 2, 5)]
    others = [one.model_copy(update={"role": "drivers", "node": f"{one.node}-d"}) for one in several]
    disk = series_of(1).model_copy(update={"device": "nvme1n1", "name": "disk_reads"})
    cell = changed(series=[disk, *several, *others])
    monkeypatch.setattr(over_time, "MOST_OF_ENTRY", 35)
    (entry,) = over_time.entries([cell])
    assert [one["node"] for one in entry["series"]] == ["i-7", "i-7-d", "i-2"]
    assert entry["left_out"] == 4


def test_every_node_of_stored_results_can_be_chosen() -> None:
    phase = runs.results("c005", "n12", 1.0, errors=2)["phases"][0]
    slowest = phase["roles"]["drivers"]["node_series"][0]
    slowest["mean_micros"] = slowest["p99_micros"] = [1500, None]
    every = series(phase)
    node_lines = [one for one in every if one.node and not one.device]
    for role in ("servers", "drivers"):
        nodes = {one.node for one in node_lines if one.role == role}
        assert nodes == {*phase["roles"][role]["nodes"]} or len(phase["roles"][role]["nodes"]) == 1
    names = {one.name: one.values for one in node_lines if one.role == "drivers"}
    assert names["p99_ms"] == names["mean_ms"] == [1.5, None]
    assert names.keys() >= {"per_second", "mean_ms", "p99_ms", "cpu", "iowait"}
    rates = [one.values[10] for one in node_lines if one.role == "drivers" and one.name == "per_second"]
    whole = next(one for one in every if not one.node and one.role == "drivers" and one.name == "per_second")
    assert sum(value or 0 for value in rates) == pytest.approx(whole.values[20], rel=0.01)
    del phase["roles"]["drivers"]["node_series"], phase["roles"]["servers"]["node_series"]
    assert [one for one in series(phase) if one.node and not one.device] == [], "of an earlier version"


def test_all_cells_have_an_equal_part_of_a_page() -> None:
    cells = [changed(series=[series_of(n) for n in range(8)]) for _ in range(4)]
    entries = over_time.entries(cells, most=120)
    assert [(len(entry["series"]), entry["left_out"]) for entry in entries] == [(3, 5)] * 4


def test_events_are_marks_at_their_moments() -> None:
    cell = measured("c001", 3, 50, 1)
    begin = cell.phases[0].measured_from
    assert begin is not None
    lost = Node(
        node="i-2", role="drivers", rank=0, outcome="lost", count=0, errors=0, ended_at=begin + timedelta(seconds=80)
    )
    fine = lost.model_copy(update={"outcome": "ok", "node": "i-3"})
    phase = cell.phases[0].model_copy(update={"members": [lost, fine]})
    notices = [
        Interruption(node="i-1", role="servers", action="terminate", time=(begin + timedelta(seconds=30)).isoformat()),
        Interruption(node="i-4", action="terminate", time="soon"),
        Interruption(node="i-5", action="stop", time=(begin + timedelta(hours=9)).isoformat()),
    ]
    steps = [Step(phase="measure", at=begin - timedelta(seconds=60)), Step(phase="boot", at=begin - timedelta(hours=1))]
    cell = cell.model_copy(update={"phases": [phase], "interruptions": notices, "steps": steps})
    assert over_time.entries([cell])[0]["marks"] == [
        {"at": -60, "what": "measure", "kind": "phase"},
        {"at": 30, "what": "terminate i-1 (servers)", "kind": "lost"},
        {"at": 80, "what": "lost i-2 (drivers)", "kind": "lost"},
    ]


def test_points_of_a_phase_are_entries_of_their_own() -> None:
    cell = measured("c001", 3, 50, 1)
    points = [
        cell.phases[0].model_copy(update={"point": n, "label": f"threads={threads}", "repeat": repeat})
        for n, threads, repeat in ((1, 10, 1), (2, 20, 1), (3, 10, 2))
    ]
    entries = over_time.entries([cell.model_copy(update={"phases": points, "label": "n3"})], "A: ")
    assert [entry["name"] for entry in entries] == [
        "A: c001 n3, threads=10",
        "A: c001 n3, threads=20",
        "A: c001 n3, threads=10, #2",
    ]
    assert [entry["first"] for entry in entries] == [True, True, False]


def test_choices_list_totals_first() -> None:
    tracks = over_time.tracks(over_time.entries([measured("c001", 3, 50, 1)]))
    assert tracks[0] == ["drivers", TOTAL, "per_second", "role"]
    assert [track[1] for track in tracks if track[2] == "per_second"] == [TOTAL, "write", "read"]
    assert ["servers", None, "disk_reads", "device"] in tracks
    assert ["servers", None, "cpu", "node"] in tracks
