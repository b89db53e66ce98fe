"""`troop bench validate`, `list`, and what is wrong with a file before anybody is asked."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.bench import files as bench_files
from cli.client.api import Answer
from cli.shared.errors import Exit
from tests.unit.cli.bench_runs import ID, TEXT, run_out
from tests.unit.cli.conftest import FakeApi, Run
from troop.report.html import TEMPLATES


def test_a_file_in_order(run: Run, file: Path) -> None:
    result = run("bench", "validate", str(file))
    assert result.exit_code == 0, result.output
    assert "reads: 2 nodes, 1 phase, ends at most 20 min after launch" in result.stdout
    assert re.search(r"largest cell: at most \d+ of 150 s of processor time", result.stdout)
    smoke = run("bench", "validate", str(file.parent), "--size", "smoke", "--set", "parameters.threads=8", "--json")
    stored = json.loads(smoke.stdout)["benchmark"]
    assert (stored["size"], stored["fleets"]["drivers"]["count"], stored["parameters"]) == ("smoke", 1, {"threads": 8})
    assert stored["files"] == ["read.py"]


def test_limits_of_the_checkouts_settings_are_warned_of_without_aws(run: Run, file: Path) -> None:
    result = run("bench", "validate", str(file), "--set", "fleets.drivers.count=800")
    assert result.exit_code == 0, result.output
    output = result.stderr.replace("\n", " ")
    assert "this checkout's cdk.json would refuse it: fleets have 800 nodes: must be at most 600 in all" in output
    as_json = run("bench", "validate", str(file), "--set", "fleets.drivers.count=800", "--json")
    one_run, all_runs = json.loads(as_json.stdout)["warnings"]
    assert "troop:max_nodes is 600" in one_run
    assert "max_nodes_total" in all_runs
    assert json.loads(run("bench", "validate", str(file), "--json").stdout)["warnings"] == []


def test_validate_states_the_design_of_a_comparison(run: Run, file: Path) -> None:
    words = ("--set", "baseline.parameters.threads=8", "--set", "repetitions=3", "--set", "version=0012")
    result = run("bench", "validate", str(file), *words)
    sentence = "3 pairs of points on the same nodes, in balanced order; compared with threads=8"
    warning = "nothing restores the state before each point of the phase measure: set its between"
    output = result.stderr.replace("\n", " ")
    assert sentence in output
    assert warning in output
    document = json.loads(run("bench", "validate", str(file), *words, "--json").stdout)
    assert (document["design"], document["warnings"]) == (sentence, [warning])
    assert (document["benchmark"]["baseline"], document["benchmark"]["version"]) == ({"parameters.threads": 8}, "0012")
    assert "pair" not in run("bench", "validate", str(file)).output


@pytest.mark.parametrize("text", ["1.10", "0123456", "true", "9f3c2ab", "12e4"])
def test_version_is_as_it_is_written(text: str) -> None:
    assert bench_files.assignments([f"version={text}"]) == {"version": text}


def test_reports_beside_a_benchmark_go_to_no_node(run: Run, file: Path) -> None:
    head = (TEMPLATES / "layout.html").read_text(encoding="utf-8").split("</title>")[0]
    for name in ("troop-report-20261126-120000-0badcafe.html", "compared.html"):
        (file.parent / name).write_text(head + "x" * 2**20, encoding="utf-8")
    (file.parent / "page.html").write_text("<!doctype html>", encoding="utf-8")
    result = run("bench", "validate", str(file), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["benchmark"]["files"] == ["page.html", "read.py"], "a page that a script may need"


WRONG = [
    ("count: 2", "count: 0", 5, "fleets.drivers.count is 0: must be a whole number from 1 to 10000"),
    ("count: 2", "cuont: 2", 5, "fleets.drivers.cuont is not known: must be spelled count"),
    ("    count: 2\n", "", 4, "fleets.drivers.count is missing: must be set (Number of nodes"),
    (
        "script: read.py",
        "script: reed.py",
        10,
        "phases.0.script is 'reed.py': must be a file in the benchmark's folder",
    ),
    ("roles: [drivers]", "roles: [clients]", 9, "phases.0.roles.0 is 'clients': must be one of drivers"),
    ("timeout: 10m", "timeout: 5m", 12, "phases.0.timeout is 5m: must be longer than 5m"),
    ("timeout: 10m", "timeout: 15:00", 12, "phases.0.timeout is '15:00': must be a duration from 1s to 24h"),
    ("count: 1,", "count: 0,", 16, "sizes.smoke.fleets.drivers.count is 0: must be a whole number"),
    ("count: 2", "count: 2026-01-01", 5, "fleets.drivers.count is '2026-01-01': must be a whole number"),
    (
        "threads: 32",
        "threads: 32\n  software: {v: [3.10]}",
        15,
        'parameters.software.v.0 is 3.10, which is the number 3.1: must be 3.1, or "3.10" in quotes',
    ),
    (
        "threads: 4}",
        "threads: 1234567e8}",
        16,
        "sizes.smoke.parameters.threads is 1234567e8, which is the number 123456700000000",
    ),
    ("name: reads", "title: reads", 1, "title is not known: must be one of name, description"),
]


@pytest.mark.parametrize(("before", "after", "line", "message"), WRONG)
def test_mistake_is_reported_with_file_line_key_and_allowed_values(
    run: Run, file: Path, before: str, after: str, line: int, message: str
) -> None:
    assert before in TEXT
    file.write_text(TEXT.replace(before, after, 1))
    result = run("bench", "validate", str(file))
    assert result.exit_code == Exit.USAGE
    assert f"{file}:{line}: {message}" in result.stderr.replace("\n", " ").replace("  ", " ")
    as_json = run("bench", "validate", str(file), "--json")
    assert as_json.exit_code == Exit.USAGE
    assert line in [problem["line"] for problem in json.loads(as_json.stdout)["problems"]]


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("!!binary Mg==", "the tag !!binary is not supported: write the value without it"),
        ("!!timestamp 2026-01-01", "the tag !!timestamp is not supported: write the value without it"),
        ("!!set {one, two}", "the tag !!set is not supported: write the value without it"),
        ("!mine 2", "the tag !mine is not supported: write the value without it"),
        ("!!bool maybe", "'maybe' is not of type bool"),
        ("!!int ''", "'' is not of type int"),
        ("!!float 1_0", "'1_0' is not of type float"),
    ],
)
def test_tags_of_what_no_file_can_have_are_named_by_line(run: Run, file: Path, after: str, message: str) -> None:
    file.write_text(f"{TEXT}scale:\n  n1: {{fleets.drivers.count: {after}}}\n")
    result = run("bench", "validate", str(file))
    assert result.exit_code == Exit.USAGE
    assert f"{file} is not YAML: {message}" in result.stderr
    line = len(TEXT.splitlines()) + 2
    assert f"line {line}, column" in result.stderr
    result = run("bench", "validate", str(file), "--json")
    assert result.exit_code == Exit.USAGE
    document = json.loads(result.stdout)
    (problem,) = document["problems"]
    assert (document["valid"], problem["line"], problem["where"], problem["allowed"]) == (False, line, "", "")
    assert f"is not YAML: {message}" in problem["message"]


@pytest.mark.parametrize("command", ["validate", "estimate"])
def test_whatever_is_wrong_is_one_document_to_a_program(run: Run, api: FakeApi, file: Path, command: str) -> None:
    result = run("bench", command, str(file.parent / "none"), "--json")
    assert result.exit_code == Exit.USAGE
    (problem,) = json.loads(result.stdout)["problems"]
    assert (problem["line"], "cannot be read" in problem["message"]) == (None, True)
    assert "cannot be read" in result.stderr
    if command == "estimate":
        unknown = {"loc": ["fleets", "drivers", "instance_type"], "problem": "is not known", "allowed": "a type"}
        body = {"statusCode": 400, "message": "wrong", "problems": [unknown]}
        api.refusals["POST", "benchmarks/estimate"] = [Answer(400, body)]
        result = run("bench", command, str(file), "--json")
        assert result.exit_code == Exit.REFUSED
        assert json.loads(result.stdout) == {
            "valid": False,
            "problems": [
                {
                    "line": 6,
                    "where": "fleets.drivers.instance_type",
                    "message": "is not known",
                    "allowed": "a type",
                }
            ],
        }


def test_tags_of_what_a_file_can_have_are_taken(run: Run, file: Path) -> None:
    file.write_text(
        TEXT.replace("count: 2", "count: !!int 2").replace("reads", "!!str reads", 1).replace("32", "!!float 32")
    )
    result = run("bench", "validate", str(file))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--size", "huge"], "--size is 'huge': must be one of smoke"),
        (["--size", "smoke", "--size", "huge"], "--size is 'huge': must be one of smoke"),
        (["--set", "parameters.treads=3"], "--set parameters.treads leads nowhere"),
        (["--set", "fleets.drivers.count=none"], "--set fleets.drivers.count is 'none': must be a whole number"),
        (["--set", "fleets.drivers.count"], "is not an assignment: write --set KEY=VALUE"),
        (["--set", "a=1", "--set", "a=2"], "a is set twice"),
        (
            ["--set", "parameters.threads=3.10"],
            "--set parameters.threads is 3.10, which is the number 3.1: must be 3.1",
        ),
    ],
)
def test_bad_option_is_reported(run: Run, file: Path, words: list[str], message: str) -> None:
    result = run("bench", "validate", str(file), *words)
    assert result.exit_code == Exit.USAGE
    assert message in result.stderr


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
    assert known["file"] == "reads"
    assert run("bench", "validate", known["file"]).exit_code == 0
    for word, hint in (("readz", "did you mean reads?"), ("nothing", "the catalogue has reads")):
        unknown = run("bench", "validate", word)
        assert (unknown.exit_code, hint in unknown.stderr.replace("\n", " ")) == (Exit.USAGE, True), unknown.stderr
    monkeypatch.chdir(file.parent)
    (known,) = ok("bench", "list", "--catalogue")["benchmarks"]
    assert known["file"] == "reads"
    assert run("bench", "validate", known["file"]).exit_code == 0


@pytest.mark.parametrize(
    ("command", "name", "message"),
    [
        ("bench", "fleet.yaml", "is a standing fleet: use `troop fleet` instead, see `troop fleet --help`"),
        ("fleet", "benchmark.yaml", "is a benchmark: use `troop bench` instead, see `troop bench --help`"),
    ],
)
def test_a_file_of_the_other_kind(run: Run, tmp_path: Path, command: str, name: str, message: str) -> None:
    (tmp_path / name).write_text("name: x\n")
    for path in (tmp_path, tmp_path / name):
        result = run(command, "validate" if command == "bench" else "up", str(path))
        assert (result.exit_code, f"{path} {message}" in result.stderr) == (Exit.USAGE, True)


def test_artifacts_of_this_machine_are_looked_for(run: Run, file: Path) -> None:
    content = hashlib.sha256(b"tool").hexdigest()
    file.write_text(TEXT + f"artifacts: [{{name: tool, source: build/tool, sha256: {content}}}]\n")
    result = run("bench", "validate", str(file))
    assert (result.exit_code, "valid, but artifacts are missing or differ" in result.stdout) == (0, True)
    assert f"the artifact tool: {file.parent}/build/tool cannot be read (No such file" in result.stderr
    (file.parent / "build").mkdir()
    (file.parent / "build" / "tool").write_bytes(b"another")
    (warning,) = json.loads(run("bench", "validate", str(file), "--json").stdout)["warnings"]
    assert f"does not have the sha256 {content}" in warning
    (file.parent / "build" / "tool").write_bytes(b"tool")
    result = run("bench", "validate", str(file))
    assert (result.stderr, "valid; " in result.stdout) == ("", True)


def test_artifacts_of_this_machine_are_staged_first(run: Run, api: FakeApi, file: Path) -> None:
    """Else archives are fetched for minutes, only for a file to be missing then."""
    far, near = (f"{{name: {name}, source: {source}, sha256: {digit * 64}}}" for name, source, digit in SOURCES)
    file.write_text(TEXT + f"artifacts: [{far}, {near}]\n")
    api.refusals["POST", "benchmarks/artifacts"] = [Answer(200, {"staged": False, "upload_url": None, "headers": {}})]
    result = run("bench", "run", str(file))
    assert (result.exit_code, "the artifact near cannot be read from build/tool" in result.stderr) == (1, True)
    assert "fetching" not in result.stdout


SOURCES = (("far", "https://nowhere.invalid/data", "a"), ("near", "build/tool", "b"))


def test_size_of_the_folder_is_limited_except_for_artifacts(run: Run, file: Path) -> None:
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
    listing = ok("bench", "list")
    (entry,) = [entry for entry in listing["benchmarks"] if entry["file"] == file.parent.name]
    assert (entry["name"], entry["nodes"], entry["sizes"]) == ("reads", 2, ["smoke"])
    assert [r["run"] for r in listing["runs"]] == [ID]
    file.write_text("name: 3")
    assert "name is 3" in run("bench", "list", "--catalogue").stdout
    assert ok("bench", "list", "--catalogue")["runs"] == []
