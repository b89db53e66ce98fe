"""What `troop bench` tells of runs on record: how far they are, how they ended, and that there is none."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from cli.bench import show as bench_show
from cli.client.api import Answer
from cli.shared import show
from cli.shared.errors import Exit
from tests.unit.cli.bench_runs import ENDED, ID, ONE, ROW, run_document, run_out
from tests.unit.cli.conftest import FakeApi, Run


def test_status_tells_steps_and_resources(run: Run, api: FakeApi, ok: Callable[..., Any]) -> None:
    now = run_document("launch", "boot", gone=False, status="RUNNING")
    api.refusals[ONE] = [Answer(200, now)]
    result = run("bench", "status", ID)
    assert result.exit_code == 0, result.output
    assert f"{ID} RUNNING" in result.stdout
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert "60 s" in lines["launch"]
    assert lines["boot"].rstrip().endswith("now")
    assert "i-1" in lines["instance"]
    assert ok("bench", "status", ID) == now


POINT = {"number": 3, "of": 12, "repeat": 2, "parameters": {"threads": 8, "sizes": [1, 2]}}


def test_status_tells_which_point_goes_on(run: Run, api: FakeApi) -> None:
    now = run_document("launch", "boot", "measure.1", "measure.2", "measure.3", gone=False, status="RUNNING")
    now["cells"][0] |= {"phase": "measure.3", "point": POINT}
    api.refusals[ONE] = [Answer(200, now)]
    lines = [" ".join(line.split()) for line in run("bench", "status", ID).stdout.splitlines()]
    (line,) = [line for line in lines if line.startswith("measure.3")]
    assert line.startswith("measure.3 (of 12: threads=8, sizes=1/2, #2) ")
    assert line.endswith("now")
    now["cells"] = [now["cells"][0], {**now["cells"][0], "cell": "c002", "phase": "boot", "point": None}]
    text = " ".join(run("bench", "status", ID).stdout.split())
    assert "measure.3 (of 12: threads=8, sizes=1/2, #2)" in text


def test_results_name_the_point_of_a_row(run: Run, api: FakeApi) -> None:
    row = {**ROW, "point": 3, "repeat": 2, "parameters": {"threads": 8}}
    api.refusals[ONE] = [Answer(200, run_document("launch", results=[ROW, row], **ENDED))]
    lines = [" ".join(line.split()) for line in run("bench", "results", ID).stdout.splitlines()]
    assert [line.partition(" drivers")[0] for line in lines if "drivers" in line] == [
        "measure",
        "measure, threads=8, #2",
    ]


def test_status_follows_to_the_end(run: Run, api: FakeApi) -> None:
    api.refusals[ONE] = [
        Answer(200, run_document("launch")),
        Answer(200, run_document("launch", results=[ROW], **ENDED)),
    ]
    result = run("bench", "status", ID, "--follow")
    assert (result.exit_code, "120,000" in result.stdout) == (0, True)


def test_stop_says_what_becomes_of_it(run: Run, api: FakeApi) -> None:
    api.refusals["DELETE", f"benchmarks/{ID}"] = [Answer(503, None), Answer(202, run_out(status="STOPPING"))]
    result = run("bench", "stop", ID)
    assert result.exit_code == 0, result.output
    assert f"troop bench status {ID} --follow" in result.stdout.replace("\n", " ")
    api.refusals["DELETE", f"benchmarks/{ID}"] = [Answer(200, run_out(**ENDED))]
    assert "has already ended: SUCCEEDED" in run("bench", "stop", ID).stdout


def test_results_are_those_of_the_record(run: Run, api: FakeApi, ok: Callable[..., Any]) -> None:
    api.refusals[ONE] = [Answer(200, run_document("launch", results=[ROW], **ENDED))]
    assert "p99" in run("bench", "results", ID).stdout
    assert ok("bench", "results", ID)["cells"][0]["results"] == [ROW]
    api.refusals[ONE] = [Answer(200, run_document("launch", **ENDED))]
    result = run("bench", "results", ID)
    assert (result.exit_code, "no results" in result.stderr) == (Exit.FAILED, True)


SCRIPT = "measure failed on i-1: its script ended with 3\nlast lines of i-1:\nreading\nTraceback: no such key"


def test_output_of_a_script_is_below_the_outcome(run: Run, api: FakeApi) -> None:
    """Hidden behind many lines of output, nobody found what had become of the run."""
    failed = {**ENDED, "status": "FAILED", "reason": SCRIPT}
    api.refusals[ONE] = [Answer(200, run_document("launch", **failed))]
    first, _, output = SCRIPT.partition("\n")
    result = run("bench", "results", ID)
    sentence = f"{ID} FAILED: {first} (nothing is left of 1 resource)\n{output}\n"
    assert result.stderr == f"troop: no results: {sentence}"
    assert sentence in run("bench", "status", ID).stdout
    api.refusals["GET", "benchmarks"] = [Answer(200, {"runs": [run_out(**failed)], "cursor": None})]
    listed = run("bench", "list").stdout
    assert "measure failed" in listed
    assert "Traceback" not in listed


MISSING = {
    kind: Answer(404, {"statusCode": 404, "message": f"no {noun} x", "code": f"no-such-{noun}"})
    for kind, noun in (("benchmarks", "run"), ("fleets", "fleet"))
}


@pytest.mark.parametrize(
    ("words", "kind", "noun"),
    [
        ("bench status", "benchmarks", "run"),
        ("bench status --follow", "benchmarks", "run"),
        ("bench stop", "benchmarks", "run"),
        ("bench results", "benchmarks", "run"),
        ("fleet status", "fleets", "fleet"),
        ("fleet scale --count 3", "fleets", "fleet"),
        ("fleet down", "fleets", "fleet"),
    ],
)
def test_an_id_that_there_is_not(run: Run, api: FakeApi, words: str, kind: str, noun: str) -> None:
    for method in ("GET", "DELETE", "PATCH"):
        for each, missing in MISSING.items():
            api.refusals[method, f"{each}/x"] = [missing]
    result = run(*words.split(), "x")
    command = f"troop {words.split()[0]}"
    assert result.exit_code == Exit.NO_SUCH_UNIT
    assert result.stderr == f"troop: there is no {noun} 'x': `{command} list` lists them\n"

    other, name = ("fleets", "a standing fleet") if kind == "benchmarks" else ("benchmarks", "a benchmark run")
    api.refusals["GET", f"{other}/x"] = [Answer(200, {})]
    result = run(*words.split(), "x")
    there = "fleet" if kind == "benchmarks" else "bench"
    assert (result.exit_code, f"x is {name}, not a {noun}: use `troop {there} status x`" in result.stderr) == (7, True)


def test_other_peoples_words_do_not_steer_the_terminal(run: Run, api: FakeApi) -> None:
    row = copy.deepcopy(ROW) | {"operation": "read\x1b[2J", "errors": {"\x1b]0;x": 1}}
    api.refusals[ONE] = [Answer(200, run_document("launch", results=[row], **ENDED))]
    assert "\x1b" not in run("bench", "results", ID).stdout


# How far a run is


def test_steps_of_a_run_that_goes_on() -> None:
    from datetime import UTC, datetime

    now = datetime(2026, 11, 20, 15, 3, 30, tzinfo=UTC)
    steps = bench_show.steps(run_document("launch", "boot", "prepare"), ["prepare", "measure"], now)
    assert [(step.name, step.seconds, step.over) for step in steps] == [
        ("launch", 60, True),
        ("boot", 60, True),
        ("prepare", 90, False),
        ("measure", None, False),
        ("collect", None, False),
        ("teardown", None, False),
    ]


def test_status_names_what_troop_does_not_remove(run: Run, api: FakeApi) -> None:
    left = [{"kind": "instance", "name": f"i-{n}", "reason": "carries troop:protected"} for n in range(5)]
    api.refusals[ONE] = [Answer(200, run_document("launch", gone=False, **ENDED, left_behind=left))]
    output = run("bench", "status", ID).stdout
    assert "Troop does not remove: instance i-0 (carries troop:protected), instance i-1" in output
    assert "and 2 more" in output
    assert "nothing is left" not in output
    api.refusals[ONE] = [Answer(200, run_document("launch", gone=False, left_behind=left[:1]))]
    assert "Troop does not remove: instance i-0" in run("bench", "status", ID).stdout


def test_the_nodes_that_were_replaced_are_shown_with_the_reason(run: Run, api: FakeApi) -> None:
    document = run_document("launch", "boot", **ENDED)
    assert "replaced" not in _shown(run, api, document)
    at = "2026-11-20T15:02:00.000Z"
    document["cells"][0]["replaced_nodes"] = [
        {"id": "i-9", "role": "drivers", "reason": "cannot fetch data.tar.gz\ncurl: (28)", "at": at}
    ]
    shown = " ".join(_shown(run, api, document).split())
    assert f"c001 i-9 drivers {show.moment(at)} cannot fetch data.tar.gz" in shown


def _shown(run: Run, api: FakeApi, document: dict[str, Any]) -> str:
    api.refusals[ONE] = [Answer(200, document)]
    result = run("bench", "status", document["run"]["run"])
    assert result.exit_code == 0, result.output
    return result.stdout
