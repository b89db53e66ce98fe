"""Limits that results do not hold: in the output of `troop bench`, and as an exit code of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.bench import report_source
from cli.bench.show import now_at
from cli.client.api import Answer
from cli.shared.errors import Exit
from tests.unit.cli.bench_runs import ENDED, ID, ONE, ROW, going, run_document
from tests.unit.cli.commands.test_bench_report import DOCUMENT, WHERE, report_answer
from tests.unit.cli.conftest import FakeApi, Run
from troop.report.html import FAILED_PAGE

REASON = "p90_ms of read was 312 ms in the 10 s from 0:40; at most 300 ms in every 10 s (1 of 30 missed)"


def judged(verdict: str, status: str = "SUCCEEDED", **run: Any) -> dict[str, Any]:
    document = run_document("launch", "measure", results=[ROW], **ENDED | run)
    held = verdict == "PASSED"
    place = {"phase": "measure", "point": 1, "repeat": 1, "setting": "threads=8"}
    document["cells"][0] |= {
        "status": status,
        "verdict": verdict,
        "limits": [{**place, "held": True, "reason": None}, {**place, "point": 2, "setting": "threads=9", "held": held,
                   "reason": None if held else REASON}],
    }  # fmt: skip
    return document


@pytest.mark.parametrize(("verdict", "code"), [("PASSED", Exit.OK), ("FAILED", Exit.LIMITS_MISSED)])
@pytest.mark.parametrize("words", [("run", "FILE"), ("results", ID), ("status", ID, "--follow")])
def test_whether_results_hold_the_limits_is_an_exit_code(
    run: Run, api: FakeApi, file: Path, words: tuple[str, ...], verdict: str, code: Exit
) -> None:
    going(api, judged(verdict))
    result = run("bench", *(str(file) if word == "FILE" else word for word in words))
    assert result.exit_code == code, result.output
    assert "PASSED" in result.stdout
    if code:
        assert "threads=9" in result.stdout
        assert f"{ID} does not hold the limits: c001 measure, threads=9: {REASON}" in " ".join(result.stderr.split())


def test_the_baseline_is_shown_and_decides_nothing(run: Run, api: FakeApi) -> None:
    document = judged("FAILED")
    document["cells"][0]["verdict"] = "PASSED"
    document["cells"][0]["limits"][1]["is_baseline"] = True
    api.refusals[ONE] = [Answer(200, document)]
    result = run("bench", "results", ID)
    assert result.exit_code == 0, result.output
    assert "FAILED (baseline)" in result.stdout


def test_status_shows_the_verdicts_and_succeeds(run: Run, api: FakeApi) -> None:
    api.refusals[ONE] = [Answer(200, judged("FAILED", status="RUNNING", ended_at=None))]
    result = run("bench", "status", ID)
    assert result.exit_code == 0, result.output
    assert "FAILED" in result.stdout


@pytest.mark.parametrize("status", ["FAILED", "INVALID"])
def test_limits_of_a_cell_that_did_not_succeed_do_not_count(run: Run, api: FakeApi, file: Path, status: str) -> None:
    going(api, judged("FAILED", status=status) | {"run": run_document("launch", **ENDED | {"status": "FAILED"})["run"]})
    assert run("bench", "run", str(file)).exit_code == Exit.FAILED
    going(api, judged("FAILED", status=status))
    assert run("bench", "results", ID).exit_code == 0


def test_programs_get_the_verdict(run: Run, api: FakeApi) -> None:
    api.refusals[ONE] = [Answer(200, judged("FAILED"))]
    result = run("bench", "results", ID, "--json")
    assert result.exit_code == Exit.LIMITS_MISSED
    (cell,) = json.loads(result.stdout)["cells"]
    assert (cell["verdict"], cell["limits"][1]["reason"]) == ("FAILED", REASON)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<!doctype html>" + FAILED_PAGE, ()),
        (json.dumps({**DOCUMENT, "cells": [{"verdict": None}, {"verdict": "FAILED"}]}).encode(), ("--json",)),
    ],
)
def test_a_report_is_written_before_the_command_fails(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: bytes, words: tuple[str, ...]
) -> None:
    api.refusals["GET", WHERE] = [report_answer()]
    monkeypatch.setattr(report_source, "download", lambda _: body)
    result = run("bench", "report", ID, "-o", str(tmp_path / "report"), *words)
    assert result.exit_code == Exit.LIMITS_MISSED
    assert (tmp_path / "report").read_bytes() == body


ANSWER = "the largest threads that holds the limits is 8; 9 does not hold them (both measured twice)"
INTERVAL = "the largest threads that holds the limits is between 6 and 9: 6 held them each time"
UNSTABLE = "not stable: no threads held the limits each time, 1 did both"


@pytest.mark.parametrize(
    ("outcome", "text", "verdict", "code"),
    [
        ("BRACKETED", ANSWER, "PASSED", Exit.OK),
        ("WIDENED", INTERVAL, "PASSED", Exit.OK),
        ("UNSTABLE", UNSTABLE, "FAILED", Exit.LIMITS_MISSED),
    ],
)
def test_a_search_prints_its_answer(run: Run, api: FakeApi, outcome: str, text: str, verdict: str, code: Exit) -> None:
    document = judged("FAILED")
    search = {"phase": "measure", "parameter": "threads", "outcome": outcome, "text": text}
    document["cells"][0] |= {"verdict": verdict, "searches": [search]}
    api.refusals[ONE] = [Answer(200, document)]
    result = run("bench", "results", ID)
    assert result.exit_code == code
    assert f"c001 measure: {text}" in " ".join(result.stdout.split())
    assert (f"does not hold the limits: c001 measure: {text}" in " ".join(result.stderr.split())) is bool(code)


def test_validate_names_the_worst_case_of_a_search(run: Run, file: Path) -> None:
    search = "    limits: [{figure: p90_ms, at_most: 300}]\n    search: {parameter: threads, from: 1, to: 400}\n"
    text = file.read_text().replace("    measured: 5m\n", f"    measured: 5m\n{search}").replace("2h", "9h")
    file.write_text(text.replace(", parameters.threads: 4", ""))  # which a search leaves without effect
    result = run("bench", "validate", str(file))
    assert result.exit_code == 0, result.output
    assert "1 phase with at most 13 points" in " ".join(result.stdout.split())


def test_the_present_step_of_a_search_is_one_of_at_most_so_many() -> None:
    point = {"number": 3, "of": 13, "repeat": 1, "parameters": {"threads": 200}}
    cell = {"phase": "measure.3", "point": point, "searches": [{"phase": "measure"}]}
    assert now_at(cell) == "measure.3 (of at most 13: threads=200)"
    assert now_at(cell | {"searches": []}) == "measure.3 (of 13: threads=200)"
