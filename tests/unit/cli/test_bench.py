"""`troop bench`: what is wrong with a file before anybody is asked, and a run from its start to its results."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli import bench_files, bench_show, show, watching
from cli.api import Answer
from cli.errors import Exit
from tests.unit.cli.conftest import FakeApi, Run

ID = "20261120-150000-1f0c9b2e"
ONE = ("GET", f"benchmarks/{ID}")
START = ("POST", "benchmarks")
ESTIMATE = ("POST", "benchmarks/estimate")

TEXT = """\
name: reads
expires_after: 2h
fleets:
  drivers:
    count: 2
    instance_type: c7g.large
phases:
  - name: measure
    roles: [drivers]
    script: read.py
    measured: 5m
    timeout: 10m
parameters:
  threads: 32
sizes:
  smoke: {fleets.drivers.count: 1, parameters.threads: 4}
"""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "read.py").write_text("print()\n")
    (tmp_path / "benchmark.yaml").write_text(TEXT)
    return tmp_path / "benchmark.yaml"


def run_out(**more: Any) -> dict[str, Any]:
    return {
        "run": ID,
        "name": "reads",
        "status": "ADMITTED",
        "reason": None,
        "at": "2026-11-20T15:00:00.000Z",
        "expires_at": "2026-11-20T17:00:00.000Z",
        "requested_by": "arn:aws:iam::111122223333:user/ada",
        "nodes": 2,
        "execution": "arn",
        "closed_at": None,
        "ended_at": None,
    } | more


ROW = {
    "phase": "measure",
    "role": "drivers",
    "operation": "read",
    "count": 120_000,
    "per_second": 400.0,
    "errors": {"timeout": 3, "http-503": 2},
    "bytes_per_second": 2_200_000.0,
    "mean_ms": 12.34,
    "p50_ms": 11.0,
    "p90_ms": 20.0,
    "p95_ms": 25.0,
    "p99_ms": 101.5,
    "p99_9_ms": 300.0,
    "max_ms": 1234.0,
}  # fmt: skip


def told(*steps: str, results: Any = None, gone: bool = True, **run: Any) -> dict[str, Any]:
    """What GET /benchmarks/{run} says: a step a minute."""
    at = [{"phase": step, "at": f"2026-11-20T15:{n:02d}:00.000Z"} for n, step in enumerate(steps)]
    cell = {"cell": "c001", "status": "RUNNING", "phase": "", "steps": at, "reason": None, "results": results}
    moment = "2026-11-20T15:00:01.000Z"
    resource = {"cell": "c001", "kind": "instance", "name": "i-1", "planned_at": moment, "created_at": moment}
    return {
        "run": run_out(**run),
        "cells": [cell],
        "resources": [{**resource, "gone_at": "2026-11-20T15:09:00.000Z" if gone else None}],
    }


ENDED = {"status": "SUCCEEDED", "ended_at": "2026-11-20T15:10:00.000Z"}


def going(api: FakeApi, *answers: dict[str, Any], first: int = 202) -> None:
    """What the API answers: to the request, and then to each look."""
    api.refusals[START] = [Answer(first, run_out())]
    api.refusals[ONE] = [Answer(200, answer) for answer in answers]


# The file


def test_a_file_in_order(run: Run, file: Path) -> None:
    result = run("bench", "validate", str(file))
    assert result.exit_code == 0, result.output
    assert "reads: 2 nodes, 1 phase, over within 20m 00s" in result.stdout
    smoke = run("bench", "validate", str(file.parent), "--size", "smoke", "--set", "parameters.threads=8", "--json")
    stored = json.loads(smoke.stdout)["benchmark"]
    assert (stored["size"], stored["fleets"]["drivers"]["count"], stored["parameters"]) == ("smoke", 1, {"threads": 8})
    assert stored["files"] == ["read.py"]


WRONG = [
    ("count: 2", "count: 0", 5, "fleets.drivers.count is 0: must be a whole number from 1 to 10000"),
    ("count: 2", "cuont: 2", 5, "fleets.drivers.cuont is not known: must be spelled count"),
    ("    count: 2\n", "", 4, "fleets.drivers.count is missing: must be given (How many nodes"),
    ("script: read.py", "script: reed.py", 10, "phases.0.script is 'reed.py': must be a file beside the benchmark's"),
    ("roles: [drivers]", "roles: [clients]", 9, "phases.0.roles.0 is 'clients': must be one of drivers"),
    ("timeout: 10m", "timeout: 5m", 12, "phases.0.timeout is 5m: must be longer than 5m"),
    ("timeout: 10m", "timeout: 15:00", 12, "phases.0.timeout is '15:00': must be a duration from 1s to 24h"),
    ("count: 1,", "count: 0,", 16, "sizes.smoke.fleets.drivers.count is 0: must be a whole number"),
    ("name: reads", "title: reads", 1, "title is not known: must be one of name, description"),
]


@pytest.mark.parametrize(("before", "after", "line", "said"), WRONG)
def test_what_is_wrong_is_named_by_file_line_key_and_what_is_allowed(
    run: Run, file: Path, before: str, after: str, line: int, said: str
) -> None:
    assert before in TEXT
    file.write_text(TEXT.replace(before, after, 1))
    result = run("bench", "validate", str(file))
    assert result.exit_code == Exit.USAGE
    assert f"{file}:{line}: {said}" in result.stderr.replace("\n", " ").replace("  ", " ")
    as_json = run("bench", "validate", str(file), "--json")
    assert as_json.exit_code == Exit.USAGE
    assert line in [problem["line"] for problem in json.loads(as_json.stdout)["problems"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--size", "huge"], "--size is 'huge': must be one of smoke"),
        (["--set", "parameters.treads=3"], "--set parameters.treads leads nowhere"),
        (["--set", "fleets.drivers.count=none"], "--set fleets.drivers.count is 'none': must be a whole number"),
        (["--set", "fleets.drivers.count"], "is no assignment: write --set KEY=VALUE"),
        (["--set", "a=1", "--set", "a=2"], "a is given twice"),
    ],
)
def test_what_is_wrong_with_the_options(run: Run, file: Path, words: list[str], said: str) -> None:
    result = run("bench", "validate", str(file), *words)
    assert result.exit_code == Exit.USAGE
    assert said in result.stderr


def test_the_catalogue_is_listed_as_it_can_be_typed(
    run: Run, ok: Callable[..., Any], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_files, "CATALOGUE", file.parent)
    (file.parent / "reads").mkdir()
    for one in (file, file.parent / "read.py"):
        one.rename(file.parent / "reads" / one.name)
    (file.parent / "elsewhere").mkdir()
    monkeypatch.chdir(file.parent / "elsewhere")
    (known,) = ok("bench", "list", "--catalogue")["benchmarks"]
    assert known["file"] == "../reads/benchmark.yaml"
    assert run("bench", "validate", known["file"]).exit_code == 0


@pytest.mark.parametrize(
    ("command", "name", "said"),
    [
        ("bench", "fleet.yaml", "is a standing fleet: `troop fleet --help`"),
        ("fleet", "benchmark.yaml", "is a benchmark: `troop bench --help`"),
    ],
)
def test_a_file_of_the_other_kind(run: Run, tmp_path: Path, command: str, name: str, said: str) -> None:
    (tmp_path / name).write_text("name: x\n")
    for path in (tmp_path, tmp_path / name):
        result = run(command, "validate" if command == "bench" else "up", str(path))
        assert (result.exit_code, f"{path} {said}" in result.stderr) == (Exit.USAGE, True)


def test_artifacts_of_this_machine_are_looked_for(run: Run, file: Path) -> None:
    content = hashlib.sha256(b"tool").hexdigest()
    file.write_text(TEXT + f"artifacts: [{{name: tool, source: build/tool, sha256: {content}}}]\n")
    result = run("bench", "validate", str(file))
    assert (result.exit_code, "in order, but not what it needs" in result.stdout) == (0, True)
    assert f"the artifact tool: {file.parent}/build/tool cannot be read (No such file" in result.stderr
    (file.parent / "build").mkdir()
    (file.parent / "build" / "tool").write_bytes(b"another")
    (warning,) = json.loads(run("bench", "validate", str(file), "--json").stdout)["warnings"]
    assert f"not {content}" in warning
    (file.parent / "build" / "tool").write_bytes(b"tool")
    result = run("bench", "validate", str(file))
    assert (result.stderr, "in order; " in result.stdout) == ("", True)


def test_artifacts_of_this_machine_are_staged_first(run: Run, api: FakeApi, file: Path) -> None:
    """Else archives are fetched for minutes, only for a file to be missing then."""
    far, near = (f"{{name: {name}, source: {source}, sha256: {digit * 64}}}" for name, source, digit in SOURCES)
    file.write_text(TEXT + f"artifacts: [{far}, {near}]\n")
    api.refusals["POST", "benchmarks/artifacts"] = [Answer(200, {"staged": False, "upload_url": None, "headers": {}})]
    result = run("bench", "run", str(file))
    assert (result.exit_code, "the artifact near cannot be had from build/tool" in result.stderr) == (1, True)
    assert "fetching" not in result.stdout


SOURCES = (("far", "https://nowhere.invalid/data", "a"), ("near", "build/tool", "b"))


def test_what_lies_beside_is_bounded_but_for_artifacts(run: Run, file: Path) -> None:
    (file.parent / "data.bin").write_bytes(bytes(1024 * 1024))
    result = run("bench", "validate", str(file))
    assert result.exit_code == Exit.USAGE
    assert "make artifacts of the large ones (data.bin, read.py)" in result.stderr.replace("\n", " ")
    file.write_text(TEXT + f"artifacts: [{{name: d, source: ./data.bin, sha256: {'0f' * 32}}}]\n")
    assert run("bench", "validate", str(file)).exit_code == 0


def test_the_benchmarks_of_this_checkout_are_listed_with_what_is_wrong_with_them(
    run: Run, ok: Callable[..., Any], file: Path, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_files, "CATALOGUE", file.parents[1])
    api.refusals["GET", "benchmarks"] = [Answer(200, {"runs": [run_out()], "cursor": None})]
    found = ok("bench", "list")
    (entry,) = [entry for entry in found["benchmarks"] if entry["file"].endswith(f"{file.parent.name}/benchmark.yaml")]
    assert (entry["name"], entry["nodes"], entry["sizes"]) == ("reads", 2, ["smoke"])
    assert [r["run"] for r in found["runs"]] == [ID]
    file.write_text("name: 3")
    assert "name is 3" in run("bench", "list", "--catalogue").stdout
    assert ok("bench", "list", "--catalogue")["runs"] == []


# A run


def test_from_the_file_to_the_table_of_results(run: Run, api: FakeApi, file: Path) -> None:
    before = ("launch", "boot", "measure")
    going(api, told("launch"), told(*before), told(*before, "collect", "teardown", "over", results=[ROW], **ENDED))
    result = run("bench", "run", str(file), "--size", "smoke", "--set", "parameters.threads=8", "--key", "k1")
    assert result.exit_code == 0, result.output
    asked = {
        "definition": yaml.safe_load(TEXT),
        "size": "smoke",
        "set": {"parameters.threads": 8},
        "files": {"read.py": base64.b64encode(b"print()\n").decode()},
    }
    assert api.calls[:2] == [(*ESTIMATE, asked), (*START, {**asked, "key": "k1"})]
    first, *lines = result.stdout.splitlines()
    assert first == "expected to cost $0.13, at most $1.50"
    assert lines[0].startswith(f"started: {ID}, reads in size smoke: 1 node")
    assert [line.split()[-1] for line in lines[1:6]] == ["launch", "boot", "measure", "collect", "teardown"]
    row = next(line for line in lines if "measure" in line and "drivers" in line)
    for shown in ("120,000", "400.0", "timeout 3, http-503 2", "2.20", "12.3 ms", "11 ms", "102 ms", "1,234 ms"):
        assert shown in row
    assert f"{ID} SUCCEEDED (nothing is left of 1 resources)" in result.stdout
    assert f"its report: troop bench report {ID}" in lines


def test_a_terminal_sees_all_steps_those_to_come_too(
    run: Run, api: FakeApi, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(show, "is_terminal", lambda: True)
    before = ("launch", "boot", "measure")
    going(api, told("launch"), told(*before), told(*before, "collect", "teardown", "over", results=[ROW], **ENDED))
    result = run("bench", "run", str(file))
    assert result.exit_code == 0, result.output
    shown = [line.split()[1:3] for line in result.stdout.splitlines() if line.startswith("✓")]
    assert shown == [[step, "1m"] for step in (*before, "collect", "teardown")]


@pytest.mark.parametrize("status", ["FAILED", "STOPPED", "PARTIAL"])
def test_only_success_succeeds(run: Run, api: FakeApi, file: Path, status: str) -> None:
    going(api, told("launch", **ENDED | {"status": status}, reason="i-1 never booted"))
    result = run("bench", "run", str(file))
    assert result.exit_code == Exit.FAILED
    assert f"{ID} {status}: i-1 never booted" in result.stderr
    assert f"troop bench report {ID}" in result.stdout, "why it failed is in its report, too"


def test_what_is_not_known_to_be_gone_is_said(run: Run, api: FakeApi, file: Path) -> None:
    going(api, told("launch", gone=False, **ENDED))
    assert "1 of 1 resources are not known to be gone" in run("bench", "run", str(file)).stdout


def test_without_waiting_it_ends_with_the_start(run: Run, api: FakeApi, file: Path) -> None:
    going(api, told("launch"))
    result = run("bench", "run", str(file), "--no-wait")
    assert result.exit_code == 0
    assert f"troop bench status {ID}" in result.stdout
    assert [call[:2] for call in api.calls] == [ESTIMATE, START]


def test_programs_get_one_document(api: FakeApi, ok: Callable[..., Any], file: Path) -> None:
    last = told("launch", results=[ROW], **ENDED)
    going(api, told("launch"), last)
    assert ok("bench", "run", str(file)) == last


def test_a_request_that_fails_is_made_again_with_its_key(run: Run, api: FakeApi, file: Path) -> None:
    going(api, told("launch", **ENDED))
    api.refusals[START] = [Answer(503, None), Answer(500, None), Answer(200, run_out())]
    assert run("bench", "run", str(file)).exit_code == 0
    keys = {call[2]["key"] for call in api.calls if call[:2] == START}
    assert len(keys) == 1


def test_with_a_key_what_cannot_be_estimated_may_be_on_record(run: Run, api: FakeApi, file: Path) -> None:
    going(api, told("launch", **ENDED))
    api.refusals["POST", "benchmarks/estimate"] = [Answer(403, {"message": "not allowed"})]
    api.refusals[START] = [Answer(200, run_out())]
    assert run("bench", "run", str(file), "--no-wait").exit_code == Exit.FORBIDDEN
    assert START not in [call[:2] for call in api.calls]
    result = run("bench", "run", str(file), "--no-wait", "--key", "k1")
    assert result.exit_code == 0, result.output
    assert "what it would cost is not known: " in result.stderr
    assert "on record already: " in result.stdout


def test_what_the_deployment_refuses_is_named_by_its_line(run: Run, api: FakeApi, file: Path) -> None:
    problem = {
        "where": "body.definition.fleets.drivers.instance_type",
        "problem": "is 'c7g.large': must be an instance type that this region has",
        "allowed": "an instance type that this region has",
        "loc": ["fleets", "drivers", "instance_type"],
    }
    api.refusals[START] = [Answer(400, {"statusCode": 400, "message": "m", "problems": [problem]})]
    result = run("bench", "run", str(file))
    assert result.exit_code == Exit.REFUSED
    said = f"{file}:6: fleets.drivers.instance_type is 'c7g.large': must be an instance type that this region has"
    assert said in result.stderr


@pytest.mark.parametrize("status", [403, 409])
def test_what_the_deployment_does_not_allow_is_said_in_its_words(
    run: Run, api: FakeApi, file: Path, status: int
) -> None:
    api.refusals[START] = [Answer(status, {"statusCode": status, "message": "may not read payroll"})]
    result = run("bench", "run", str(file))
    assert (result.exit_code, "may not read payroll" in result.stderr) == (Exit.REFUSED, True)


def test_who_may_not_is_told_what_iam_must_allow(run: Run, api: FakeApi, file: Path) -> None:
    api.refusals[START] = [Answer(403, {"Message": "User is not authorized"})]
    result = run("bench", "run", str(file))
    assert (result.exit_code, "execute-api:Invoke" in result.stderr) == (Exit.FORBIDDEN, True)


def test_a_wrong_file_asks_for_nothing(run: Run, api: FakeApi, file: Path) -> None:
    file.write_text(TEXT.replace("count: 2", "count: 0"))
    assert run("bench", "run", str(file)).exit_code == Exit.USAGE
    assert api.calls == []


def test_ctrl_c_says_how_to_stop_it(run: Run, api: FakeApi, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    going(api, told("launch"))

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    result = run("-d", "Blue", "--region", "eu-west-1", "bench", "run", str(file))
    assert result.exit_code == 130
    assert f"troop -d Blue --region eu-west-1 bench stop {ID}" in result.stderr
    assert not [call for call in api.calls if call[0] == "DELETE"]


def test_a_look_that_fails_is_not_the_end(run: Run, api: FakeApi, file: Path) -> None:
    going(api)
    api.refusals[ONE] = [Answer(500, None), Answer(200, told("launch")), Answer(500, None), Answer(200, told(**ENDED))]
    assert run("bench", "run", str(file)).exit_code == 0


def test_looks_that_fail_for_good_end_with_how_to_go_on(
    run: Run, api: FakeApi, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "FAILURES", 3)
    going(api)
    api.refusals[ONE] = [Answer(500, None)]
    result = run("bench", "run", str(file))
    assert result.exit_code == Exit.API_FAILED
    assert f"the run goes on: troop bench status {ID}" in result.stderr


# What is on record


def test_status_tells_steps_and_resources(run: Run, api: FakeApi, ok: Callable[..., Any]) -> None:
    now = told("launch", "boot", gone=False, status="RUNNING")
    api.refusals[ONE] = [Answer(200, now)]
    result = run("bench", "status", ID)
    assert result.exit_code == 0, result.output
    assert f"{ID} RUNNING" in result.stdout
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    assert "1m 00s" in lines["launch"]
    assert lines["boot"].rstrip().endswith("now")
    assert "i-1" in lines["instance"]
    assert ok("bench", "status", ID) == now


def test_status_follows_to_the_end(run: Run, api: FakeApi) -> None:
    api.refusals[ONE] = [Answer(200, told("launch")), Answer(200, told("launch", results=[ROW], **ENDED))]
    result = run("bench", "status", ID, "--follow")
    assert (result.exit_code, "120,000" in result.stdout) == (0, True)


def test_stop_says_what_becomes_of_it(run: Run, api: FakeApi) -> None:
    api.refusals["DELETE", f"benchmarks/{ID}"] = [Answer(503, None), Answer(202, run_out(status="STOPPING"))]
    result = run("bench", "stop", ID)
    assert result.exit_code == 0, result.output
    assert f"troop bench status {ID} --follow" in result.stdout.replace("\n", " ")
    api.refusals["DELETE", f"benchmarks/{ID}"] = [Answer(200, run_out(**ENDED))]
    assert "has ended already: SUCCEEDED" in run("bench", "stop", ID).stdout


def test_results_are_those_of_the_record(run: Run, api: FakeApi, ok: Callable[..., Any]) -> None:
    api.refusals[ONE] = [Answer(200, told("launch", results=[ROW], **ENDED))]
    assert "p99" in run("bench", "results", ID).stdout
    assert ok("bench", "results", ID)["cells"][0]["results"] == [ROW]
    api.refusals[ONE] = [Answer(200, told("launch", **ENDED))]
    result = run("bench", "results", ID)
    assert (result.exit_code, "it has no results" in result.stderr) == (Exit.FAILED, True)


SCRIPT = "measure failed on i-1: its script ended with 3\nlast lines of i-1:\nreading\nTraceback: no such key"


def test_what_a_script_printed_stands_below_what_has_happened(run: Run, api: FakeApi) -> None:
    """Hidden behind many lines of output, nobody found what had become of the run."""
    failed = {**ENDED, "status": "FAILED", "reason": SCRIPT}
    api.refusals[ONE] = [Answer(200, told("launch", **failed))]
    first, _, output = SCRIPT.partition("\n")
    result = run("bench", "results", ID)
    sentence = f"{ID} FAILED: {first} (nothing is left of 1 resources)\n{output}\n"
    assert result.stderr == f"troop: it has no results: {sentence}"
    assert sentence in run("bench", "status", ID).stdout
    api.refusals["GET", "benchmarks"] = [Answer(200, {"runs": [run_out(**failed)], "cursor": None})]
    listed = run("bench", "list").stdout
    assert "measure failed" in listed
    assert "Traceback" not in listed


MISSING = {
    kind: Answer(404, {"statusCode": 404, "message": f"there is no {noun} 'x': GET /{kind} lists the ids there are"})
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
    assert result.stderr == f"troop: there is no {noun} 'x': `{command} list` tells them\n"

    other, name = ("fleets", "a standing fleet") if kind == "benchmarks" else ("benchmarks", "a benchmark's run")
    api.refusals["GET", f"{other}/x"] = [Answer(200, {})]
    result = run(*words.split(), "x")
    there = "fleet" if kind == "benchmarks" else "bench"
    assert (result.exit_code, f"x is {name}, and no {noun}: `troop {there} status x`" in result.stderr) == (7, True)


def test_other_peoples_words_do_not_steer_the_terminal(run: Run, api: FakeApi) -> None:
    row = copy.deepcopy(ROW) | {"operation": "read\x1b[2J", "errors": {"\x1b]0;x": 1}}
    api.refusals[ONE] = [Answer(200, told("launch", results=[row], **ENDED))]
    assert "\x1b" not in run("bench", "results", ID).stdout


# How far a run is


def test_steps_of_a_run_that_goes_on() -> None:
    from datetime import UTC, datetime

    now = datetime(2026, 11, 20, 15, 3, 30, tzinfo=UTC)
    found = bench_show.steps(told("launch", "boot", "prepare"), ["prepare", "measure"], now)
    assert [(step.name, step.seconds, step.over) for step in found] == [
        ("launch", 60, True),
        ("boot", 60, True),
        ("prepare", 90, False),
        ("measure", None, False),
        ("collect", None, False),
        ("teardown", None, False),
    ]


@pytest.mark.parametrize(("seconds", "said"), [(None, ""), (0, "0s"), (65.9, "1m 05s"), (7325, "2h 02m 05s")])
def test_durations(seconds: float | None, said: str) -> None:
    assert bench_show.duration(seconds) == said
