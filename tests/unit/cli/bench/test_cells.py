"""Runs of many cells at the command line: what a file comes to, how each of them goes, and all of their results."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.bench import cells as bench_cells
from cli.client.api import Answer
from cli.shared.errors import Exit
from tests.unit.account.bench import FILES  # what may lie beside a file
from tests.unit.cli.bench_runs import ENDED, ID, ONE, ROW, TEXT, going, run_out
from tests.unit.cli.conftest import FakeApi, Run

MATRIX = """\
expires_after: 168h
scale:
  n1: {fleets.drivers.count: 1}
  n3: {fleets.drivers.count: 3}
matrix: {parameters.threads: [50, 200]}
parallel: 2
"""
LABELS = {"c001": "n1, threads=50", "c002": "n1, threads=200", "c003": "n3, threads=50"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "read.py").write_bytes(FILES["read.py"])
    text = TEXT.replace("expires_after: 2h\n", "").partition("sizes:")[0] + MATRIX
    (tmp_path / "benchmark.yaml").write_text(text)
    return tmp_path / "benchmark.yaml"


def cell(name: str, *steps: str, status: str = "RUNNING", start: int = 0, **more: Any) -> dict[str, Any]:
    """A cell that begins a step a minute; the first one ``start`` minutes into the run."""
    at = [{"phase": step, "at": f"2026-11-20T15:{n:02d}:00.000Z"} for n, step in enumerate(steps, start)]
    fields = {"cell": name, "label": LABELS.get(name.partition("-")[0], ""), "status": status, "steps": at}
    phase = steps[-1] if steps else "launch"
    return {**fields, "attempt": 1, "phase": phase, "reason": None, "results": None} | more


def run_document(*cells: dict[str, Any], **run: Any) -> dict[str, Any]:
    return {"run": run_out(cells=len(cells), **run), "cells": list(cells), "resources": [], "resources_created": 7} | {
        "resources_left": 0
    }


DONE = ("launch", "boot", "measure", "collect", "teardown", "over")
LAST = run_document(
    cell("c001", *DONE, status="SUCCEEDED", results=[ROW]),
    cell("c002", *DONE, status="FAILED", reason="i-1 went wrong\nlast lines of i-1:\nboom"),
    cell("c003", *DONE, status="INVALID", start=10, reason="i-9 was lost"),
    cell("c003-2", *DONE, status="SUCCEEDED", start=20, results=[ROW | {"count": 77}], attempt=2),
    **ENDED | {"status": "PARTIAL", "reason": "2 of 3 cells succeeded"},
)


def test_a_file_tells_what_cells_it_comes_to(run: Run, file: Path) -> None:
    result = run("bench", "validate", str(file))
    assert result.exit_code == 0, result.output
    assert "reads: 4 cells, 2 at a time, at most 6 nodes at once; 1 phase each, ends within 40 min" in result.stdout
    rows = [line.split() for line in result.stdout.splitlines()[2:]]
    assert rows[2] == ["c003", "n3,", "threads=50", "3", "drivers", "3"]
    (first, *_, last) = json.loads(run("bench", "validate", str(file), "--json").stdout)["cells"]
    assert (first["cell"], first["label"], first["nodes"]) == ("c001", "n1, threads=50", {"drivers": 1})
    assert last["variant"] == {"scale": "n3", "values": {"parameters.threads": 200}, "repetition": 1}


def test_problem_of_a_cell_is_reported_with_its_line(run: Run, file: Path) -> None:
    file.write_text(file.read_text().replace("drivers.count: 3", "drivers.count: 0"))
    result = run("bench", "validate", str(file))
    assert result.exit_code == Exit.USAGE
    line = file.read_text().splitlines().index("  n3: {fleets.drivers.count: 0}") + 1
    assert f"{file}:{line}: scale.n3.fleets.drivers.count is 0: must be" in result.stderr


def test_each_change_of_a_cell_is_a_line_before_the_table_of_results(run: Run, api: FakeApi, file: Path) -> None:
    going(
        api,
        run_document(cell("c001", "launch"), cell("c002"), cell("c003")),
        run_document(cell("c001", "launch", "boot"), cell("c002", "launch"), cell("c003")),
        LAST,
    )
    result = run("bench", "run", str(file))
    assert result.exit_code == Exit.FAILED
    lines = [line.partition("  ")[2] for line in result.stdout.splitlines() if line.startswith("2026-")]
    assert lines[:3] == [
        "c001 n1, threads=50: launch",
        "c002 n1, threads=200: launch",
        "c001 n1, threads=50: boot",
    ]
    assert len(lines) == len(set(lines)) == 4 * 6
    assert "c002 n1, threads=200: FAILED: i-1 went wrong" in lines
    assert lines[-1] == "c003-2 n3, threads=50: SUCCEEDED"
    table = [line.split() for line in result.stdout.splitlines() if "120,000" in line or " 77 " in line]
    assert [row[:5] for row in table] == [
        ["c001", "n1,", "threads=50", "measure", "drivers"],
        ["c003-2", "n3,", "threads=50", "measure", "drivers"],
    ]
    assert "c002 n1, threads=200 FAILED: i-1 went wrong\n" in result.stdout
    assert "i-9 was lost" not in result.stdout.partition("c002 n1, threads=200 FAILED: i-1 went wrong\n")[2]
    assert f"{ID} PARTIAL: 2 of 3 cells succeeded (nothing is left of 7 resources)" in result.stderr
    looks = [query for method, path, query in api.calls if (method, path) == ONE]
    assert looks == [{"resources": "false"}] * 3 + [{}]


def test_cells_that_were_never_launched_are_not_taken_down_either() -> None:
    stopped = run_document(
        cell("c001", "teardown", "over", status="STOPPED", reason="by hand"), cell("c002", *DONE), **ENDED
    )
    history: set[tuple[str, str]] = set()
    lines = [change.text for change in bench_cells.changes(stopped, history)]
    assert [text for text in lines if "c001" in text] == ["c001 n1, threads=50: STOPPED: by hand"]
    assert bench_cells.changes(stopped, history) == []


def test_a_terminal_sees_what_is_under_way_and_how_much_is_over() -> None:
    now = datetime(2026, 11, 20, 15, 5, 30, tzinfo=UTC)
    cells = [cell(f"c{n:03d}", *DONE, status="SUCCEEDED") for n in range(1, 151)]
    cells += [
        cell("c151", *DONE, status="FAILED", reason="boom"),
        cell("c152", "launch", "boot"),
        cell("c153", status="PENDING"),
    ]
    console = Console(width=100, record=True)
    console.print(bench_cells.progress(run_document(*cells), now))
    shown = console.export_text().splitlines()
    assert shown[0].strip() == "151 of 153 cells finished: 1 FAILED, 150 SUCCEEDED; 1 running"
    assert len(shown) == 1 + 5 + 1
    assert shown[-1].split() == ["▸", "c152", "boot", "4", "min", "30", "s"]


def test_status_tells_how_all_cells_do(run: Run, api: FakeApi) -> None:
    api.refusals[ONE] = [Answer(200, LAST)]
    lines = [line.split() for line in run("bench", "status", ID).stdout.splitlines()]
    shown = [line for line in lines if line and line[0].startswith("c00")]
    assert [line[0] for line in shown] == ["c001", "c002", "c003", "c003-2"]
    assert shown[2][1:4] == ["n3,", "threads=50", "INVALID"]


def test_results_that_an_answer_had_no_room_for_are_fetched(run: Run, api: FakeApi, ok: Callable[..., Any]) -> None:
    short = run_document(
        cell("c001", *DONE, status="SUCCEEDED", results=[ROW], results_left_out=False),
        cell("c002", *DONE, status="SUCCEEDED", results_left_out=True),
        **ENDED,
    )
    whole = run_document(cell("c002", *DONE, status="SUCCEEDED", results=[ROW | {"count": 5}], results_left_out=False))
    api.refusals[ONE] = [Answer(200, short), Answer(200, whole)]
    document = ok("bench", "results", ID)
    assert [c["results"][0]["count"] for c in document["cells"]] == [120_000, 5]
    assert document["cells"][1]["label"] == "n1, threads=200"
    assert api.calls[-1] == (*ONE, {"resources": "false", "cell": "c002"})


def test_last_of_several_attempts_counts(api: FakeApi, ok: Callable[..., Any]) -> None:
    api.refusals[ONE] = [Answer(200, LAST)]
    assert [c["cell"] for c in ok("bench", "results", ID)["cells"]] == ["c001", "c003-2"]
