"""Planned faults: their verdicts in the output of `troop bench`, and as exit codes of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.bench import report_source
from cli.client.api import Answer
from cli.shared.errors import Exit
from cli.shared.show import NOTHING
from tests.unit.cli.bench.test_limits import judged
from tests.unit.cli.bench_runs import ENDED, ID, ONE, ROW, going, run_document
from tests.unit.cli.commands.test_bench_report import DOCUMENT, WHERE, report_answer
from tests.unit.cli.conftest import FakeApi, Run
from troop.report.html import FAULT_PAGES

SENTENCE = "1 of 6 servers stopped at 1:00: the rate was back after 24.7 s; 548 operations failed."
CODES = [("HELD", Exit.OK), (None, Exit.OK), ("BROKEN", Exit.BROKEN), ("UNKNOWN", Exit.UNKNOWN)]


def fault(verdict: str | None, **more: Any) -> dict[str, Any]:
    place = {"phase": "measure", "point": None, "repeat": 1, "setting": ""}
    return {**place, "number": 1, "what": "stop 1 of servers", "verdict": verdict, "sentence": SENTENCE, **more}


def faulty(*verdicts: str | None, status: str = "SUCCEEDED", **run: Any) -> dict[str, Any]:
    document = run_document("launch", "measure", results=[ROW], **ENDED | run)
    document["cells"][0] |= {"status": status, "faults": [fault(verdict) for verdict in verdicts]}
    return document


def flat(output: str) -> str:
    return " ".join(output.split())


@pytest.mark.parametrize(("verdict", "code"), CODES)
@pytest.mark.parametrize("words", [("run", "FILE"), ("results", ID), ("status", ID, "--follow")])
def test_verdicts_are_shown_and_are_exit_codes(
    run: Run, api: FakeApi, file: Path, words: tuple[str, ...], verdict: str | None, code: Exit
) -> None:
    going(api, faulty(verdict))
    result = run("bench", *(str(file) if word == "FILE" else word for word in words))
    assert result.exit_code == code, result.output
    for word in (verdict or NOTHING, "548 operations"):
        assert word in flat(result.stdout)
    assert (f"c001 measure: {SENTENCE}" in flat(result.stderr)) is bool(code)


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (faulty("UNKNOWN", "BROKEN", "HELD"), Exit.BROKEN),
        (
            judged("FAILED") | {"cells": [judged("FAILED")["cells"][0] | {"faults": [fault("BROKEN")]}]},
            Exit.LIMITS_MISSED,
        ),
        (faulty("BROKEN", status="FAILED") | {"run": run_document(**ENDED | {"status": "FAILED"})["run"]}, Exit.FAILED),
        (faulty("BROKEN", status="INVALID"), Exit.OK),
    ],
)
def test_the_worst_decides(run: Run, api: FakeApi, file: Path, document: dict[str, Any], code: Exit) -> None:
    going(api, document)
    assert run("bench", "run", str(file)).exit_code == code


def test_points_of_a_search_may_break(run: Run, api: FakeApi) -> None:
    document = faulty("BROKEN", "UNKNOWN")
    document["cells"][0]["searches"] = [{"phase": "measure", "outcome": "BRACKETED", "text": "the largest is 200"}]
    api.refusals[ONE] = [Answer(200, document)]
    result = run("bench", "results", ID)
    assert (result.exit_code, "BROKEN" in result.stdout) == (Exit.OK, True), result.output


@pytest.mark.parametrize(("outcome", "code"), [("BRACKETED", Exit.OK), ("NONE_HELD", Exit.LIMITS_MISSED)])
def test_points_of_a_search_hold_expectations_and_not_limits(run: Run, api: FakeApi, outcome: str, code: Exit) -> None:
    document = faulty("BROKEN")
    held = {key: fault("BROKEN")[key] for key in ("phase", "point", "repeat", "setting")} | {"held": False}
    document["cells"][0] |= {
        "verdict": "PASSED" if code == Exit.OK else "FAILED",
        "limits": [held | {"reason": SENTENCE}],
        "searches": [{"phase": "measure", "outcome": outcome, "text": "the answer"}],
    }
    api.refusals[ONE] = [Answer(200, document)]
    result = run("bench", "results", ID)
    assert result.exit_code == code
    assert ("expectations" in result.stdout, "limits" in result.output) == (True, False)
    assert (f"{ID} does not hold the expectations: c001 measure: the answer" in flat(result.stderr)) is bool(code)


def test_status_shows_the_faults_of_a_run_that_goes_on(run: Run, api: FakeApi) -> None:
    api.refusals[ONE] = [Answer(200, faulty("BROKEN", status="RUNNING", ended_at=None))]
    result = run("bench", "status", ID)
    assert (result.exit_code, "BROKEN" in result.stdout) == (Exit.OK, True), result.output


def test_an_older_deployment_states_no_faults(run: Run, api: FakeApi) -> None:
    document = faulty()
    document["cells"][0]["faults"] = None
    api.refusals[ONE] = [Answer(200, document)]
    result = run("bench", "results", ID)
    assert (result.exit_code, "fault" in result.stdout) == (Exit.OK, False), result.output


def test_programs_get_the_faults(run: Run, api: FakeApi) -> None:
    api.refusals[ONE] = [Answer(200, faulty("BROKEN"))]
    result = run("bench", "results", ID, "--json")
    assert result.exit_code == Exit.BROKEN
    assert json.loads(result.stdout)["cells"][0]["faults"] == [fault("BROKEN")]


@pytest.mark.parametrize(("verdict", "code"), [one for one in CODES if one[0]])
@pytest.mark.parametrize("is_json", [False, True])
def test_a_report_says_it_to_its_command(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verdict: str, code: Exit, is_json: bool
) -> None:
    cells = [{"fault_verdict": None}, {"fault_verdict": verdict}, {"fault_verdict": "HELD"}]
    body = json.dumps({**DOCUMENT, "cells": cells}).encode() if is_json else b"<!doctype html>" + FAULT_PAGES[verdict]  # type: ignore[index]
    api.refusals["GET", WHERE] = [report_answer()]
    monkeypatch.setattr(report_source, "download", lambda _: body)
    result = run("bench", "report", ID, "-o", str(tmp_path / "report"), *(["--json"] if is_json else []))
    assert result.exit_code == code, result.output
    assert (tmp_path / "report").read_bytes() == body
