"""`troop bench watch`: what it shows of a run that goes on, how it ends, and that Ctrl-C ends the watching alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.client.api import Answer
from cli.shared import show
from cli.shared.errors import Exit
from tests.unit.cli.bench_runs import ENDED, ID, ONE, ROW, run_document
from tests.unit.cli.conftest import FakeApi, Run
from tests.unit.cli.web.page_world import CPU, live_answer, live_cell

LIVE = ("GET", f"benchmarks/{ID}/live")
READS = {"per_second": 12_345.6, "errors_per_second": 0.2, "p50_ms": 1.02, "p99_ms": 101.4}
QUIET = {"per_second": 10.0, "errors_per_second": 0.0, "p50_ms": None, "p99_ms": None}
CELL: dict[str, Any] = {
    "label": "n3",
    "phase": "measure",
    "seconds_left": 200.0,
    "operations": [
        {**READS, "role": "drivers", "operation": "read"},
        {**QUIET, "role": "drivers", "operation": "write"},
    ],
    "roles": [{**CPU, "role": "drivers"}, {"role": "servers", "reporting": 2, "expected": None}],
}


def live(second: int = 4, **cell: Any) -> dict[str, Any]:
    """What GET /benchmarks/{run}/live says at so many seconds after the merge."""
    return live_answer(live_cell(**{**CELL, **cell}), seconds=second, run=ID)


OVER = {**live(), "state": "ended", "status": "SUCCEEDED", "message": "the run has ended", "at": None, "cells": []}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between looks, which take no time."""
    seconds: list[float] = []
    monkeypatch.setattr("time.sleep", seconds.append)
    return seconds


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_watch_shows_rates_times_processors_and_time_left_before_the_results(
    run: Run, api: FakeApi, pauses: list[float]
) -> None:
    api.refusals[LIVE] = [Answer(200, live()), Answer(200, OVER)]
    api.refusals[ONE] = [Answer(200, run_document("launch", results=[ROW], **ENDED))]
    result = run("bench", "watch", ID)
    assert result.exit_code == 0, result.output
    lines = words(result.stdout)
    assert lines[:9] == [
        f"{ID} RUNNING: nodes report what they measure; 4 s ago",
        "c001 n3: measure, 3 min 16 s left",
        "role operation per second errors/s p50 p99",
        "drivers read 12,346 0.200 1.02 ms 101 ms",
        "drivers write 10.0 0 - -",
        "all - 20,000 0.200 1.70 ms 9.30 ms",
        "role nodes CPU busiest iowait",
        "drivers 2 of 3 71 % 88 % 3.4 %",
        "servers 2 - - -",
    ]
    assert any("120,000" in line for line in lines)
    assert pauses == [15]


def test_a_merge_is_printed_once_where_lines_stay(run: Run, api: FakeApi, pauses: list[float]) -> None:
    api.refusals[LIVE] = [Answer(200, live()), Answer(200, live(9)), Answer(200, OVER)]
    api.refusals[ONE] = [Answer(200, run_document("launch", results=[ROW], **ENDED))]
    assert run("bench", "watch", ID).stdout.count("c001 n3: measure") == 1


def test_on_a_terminal_it_replaces_the_last_one(
    run: Run, api: FakeApi, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    headings: list[str] = []
    monkeypatch.setattr(show, "is_terminal", lambda: True)
    monkeypatch.setattr(show, "fresh_screen", headings.append)
    api.refusals[LIVE] = [Answer(200, live()), Answer(200, live(19)), Answer(200, OVER)]
    api.refusals[ONE] = [Answer(200, run_document("launch", results=[ROW], **ENDED))]
    result = run("bench", "watch", ID)
    assert len(headings) == 3
    assert "every 15 s" in headings[0]
    assert "3 min 16 s left" in result.stdout
    assert "3 min 1 s left" in result.stdout, "the time passes, too, where the merge is the same"


@pytest.mark.parametrize(
    ("second", "cell", "line"),
    [
        (
            5,
            {"warm_up_seconds_left": 20.0},
            "measure, 3 min 15 s left, of these 15 s of the warm-up, which do not count",
        ),
        (25, {"warm_up_seconds_left": 20.0}, "c001 n3: measure, 2 min 55 s left"),
        (5, {"seconds_left": None, "warm_up_seconds_left": None, "phase": "boot", "label": ""}, "c001: boot"),
        (50, {}, "the figures are old: no newer merge has succeeded"),
        (5, {"point": {"number": 3, "of": 4, "repeat": 1, "parameters": {"t": 8}}}, "c001 n3: measure (of 4: t=8), "),
    ],
)
def test_watch_shows_the_phase_of_a_cell(
    run: Run, api: FakeApi, pauses: list[float], second: int, cell: dict[str, Any], line: str
) -> None:
    api.refusals[LIVE] = [Answer(200, live(second, **cell)), Answer(200, OVER)]
    api.refusals[ONE] = [Answer(200, run_document("launch", results=[ROW], **ENDED))]
    assert line in run("bench", "watch", ID).stdout


def test_programs_get_one_document_per_poll(run: Run, api: FakeApi, pauses: list[float]) -> None:
    api.refusals[LIVE] = [Answer(200, live()), Answer(200, live()), Answer(200, OVER)]
    api.refusals[ONE] = [Answer(200, run_document("launch", results=[ROW], **ENDED))]
    result = run("bench", "watch", ID, "-o", "json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [live(), live(), OVER]
    assert result.exit_code == 0
    api.refusals[LIVE] = [Answer(200, live()), Answer(200, OVER)]
    lines = run("bench", "watch", ID, "-o", "csv").stdout.splitlines()
    assert lines[1].startswith("2026-11-21T15:10:00.000Z,c001,measure,12345.6,")


@pytest.mark.parametrize("words", [(), ("-o", "json")])
def test_watch_fails_as_its_run_does(run: Run, api: FakeApi, pauses: list[float], words: tuple[str, ...]) -> None:
    api.refusals[LIVE] = [Answer(200, OVER)]
    failed = run_document("launch", **{**ENDED, "status": "FAILED", "reason": "i-1 was lost"})
    api.refusals[ONE] = [Answer(200, failed)]
    result = run("bench", "watch", ID, *words)
    assert (result.exit_code, "i-1 was lost" in result.stderr) == (Exit.FAILED, True)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_watching_alone(run: Run, api: FakeApi) -> None:
    api.refusals[LIVE] = [Answer(200, live())]
    result = run("bench", "watch", ID)
    assert result.exit_code == Exit.INTERRUPTED
    assert "only the watching has ended: the run continues" in result.stderr
    assert f"troop bench stop {ID}" in result.stderr.replace("\n", " ")
    assert [method for method, _, _ in api.calls] == ["GET"]


def test_a_run_that_there_is_not(run: Run, api: FakeApi, pauses: list[float]) -> None:
    api.refusals[LIVE] = [Answer(404, {"statusCode": 404, "message": "no", "code": "no-such-run"})]
    api.refusals["GET", f"fleets/{ID}"] = [Answer(404, {"statusCode": 404, "message": "no", "code": "no-such-fleet"})]
    result = run("bench", "watch", ID)
    assert (result.exit_code, "`troop bench list` lists them" in result.stderr) == (Exit.NO_SUCH_UNIT, True)


def test_one_request_that_fails_does_not_end_it(run: Run, api: FakeApi, pauses: list[float]) -> None:
    api.refusals[LIVE] = [Answer(503, None), Answer(200, live()), Answer(200, OVER)]
    api.refusals[ONE] = [Answer(200, run_document("launch", results=[ROW], **ENDED))]
    assert run("bench", "watch", ID).exit_code == 0
