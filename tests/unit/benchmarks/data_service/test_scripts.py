"""The program data-service by its own tests, what the scripts make of its output, and the data set in a bucket."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from infra import ROOT
from tests.serving import Quiet, running
from tests.unit.agent.pythons import python39
from tests.unit.benchmarks.scripts import folder, go, scripts
from troop.measure import hdr_live, operations, separate
from troop.measure.operations import RESPONSE
from troop.measure.phase_environment import Measured

FOLDER = folder("data-service")
SCRIPTS = scripts("data-service")
data, drive, measure, serve, stack, prepare = (
    SCRIPTS[name] for name in ("data", "drive", "measure", "serve", "stack", "prepare")
)
AT = 1_790_000_000
ROLES = {"servers": 3, "cache": 2, "service": 2, "drivers": 2}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("program") / "data-service"
    go(FOLDER / "service", "build", "-o", str(target), ".")
    return target


def phase(tmp_path: Path, role: str = "drivers", rank: int = 0, name: str = "capacity", **parameters: Any) -> Any:
    roster = [
        {"role": each, "rank": n, "address": f"10.0.{place}.{n}", "zone": "abc"[n]}
        for place, (each, count) in enumerate(ROLES.items())
        for n in reversed(range(count))
        if parameters.get("has_cache", True) or each != "cache"
    ]
    file = yaml.safe_load((FOLDER / "benchmark.yaml").read_text())["parameters"]
    return stack.Phase(
        name, role, rank, "127.0.0.1", {**file, **parameters}, {"nodes": roster}, *[tmp_path] * 4, AT, 10.0, 5.0
    )


def test_the_program_passes_its_own_tests() -> None:
    go(FOLDER / "service", "vet", "./...")
    go(FOLDER / "service", "test", "-vet=off", "-timeout", "300s", "./...")


def test_a_node_imports_the_scripts_with_the_ring_among_its_artifacts(tmp_path: Path) -> None:
    for path in FOLDER.glob("*.py"):
        shutil.copy(path, tmp_path)
    (tmp_path / "artifacts").mkdir()
    for one in ("cluster", "install", "node", "server", "start"):
        shutil.copy(folder("cassandra-write") / f"{one}.py", tmp_path / "artifacts")
    environment = {
        **os.environ,
        "TROOP_ARTIFACTS": str(tmp_path / "artifacts"),
        "PYTHONPATH": str(ROOT / "functions"),
    }
    for path in sorted(FOLDER.glob("*.py")):
        line = [python39() or sys.executable, "-c", f"import {path.stem}"]
        done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{path.name}: {done.stderr}"


# Load


class _Items(Quiet):
    protocol_version = "HTTP/1.1"
    answers: ClassVar[Counter[str]] = Counter()

    def do_GET(self) -> None:
        key = self.path.rpartition("/")[2]
        self._answer(200, f"{key}.value".encode())

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(503 if sum(self.answers.values()) % 2 else 204, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.answers[f"{self.command} {status}"] += 1
        self.answer(status, body)


@pytest.mark.parametrize("rate", [200.0, 0.0])
def test_recorded_operations_equal_the_answers_of_the_service(tmp_path: Path, program: Path, rate: float) -> None:
    _Items.answers = Counter()
    shutil.copy(program, tmp_path / "data-service")
    at = phase(tmp_path, connections=4, reads=0.5)
    at.keep(stack.DATA_SET, {"rows": 100, "value_bytes": 100, "seed": 1})
    with running(ThreadingHTTPServer(("127.0.0.1", 0), _Items)) as served:
        begin = time.time() + 1
        command = drive.command(at, rate, 0.5, begin, begin, begin + 2)
        command[command.index("-targets") + 1] = f"127.0.0.1:{served.server_address[1]}"
        subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    at = type(at)(**{**at.__dict__, "measured_from": begin, "measured_seconds": 2.0, "warm_up_seconds": 0.0})
    problems: list[str] = []
    summary = json.loads((tmp_path / "drive.json").read_text())
    recorded = drive.operations(at, rate > 0, tmp_path / "drive.hlog", summary, problems)
    assert not problems
    read, write = recorded["read"], recorded["write"]
    underway = 2 * 4  # of each worker, an answer that comes after the end
    assert 0 <= _Items.answers["GET 200"] - read.times.count <= underway
    assert 0 <= _Items.answers["PUT 204"] - write.times.count <= underway
    assert 0 <= _Items.answers["PUT 503"] - write.errors["status-503"] <= underway
    assert sum(read.per_second.count) == read.times.count
    assert sum(write.per_second.errors) == sum(write.errors.values())
    assert write.bytes == 100 * write.times.count
    if rate:
        assert (read.timing, read.service.count) == (RESPONSE, read.times.count)
        done = sum(one.times.count + sum(one.errors.values()) for one in recorded.values())
        assert 0 < done <= 400
    names = {drive.tag(name, rate > 0): name for name in drive.OPERATIONS}
    recent = hdr_live.RunningLog(tmp_path / drive.LOG, names, Measured(begin, 2.0, 0.0)).recent(int(begin) + 4)
    counts = {"read": read.per_second.count, "write": write.per_second.count}
    first = next(n for n, several in enumerate(zip(*counts.values(), strict=True), 1) if any(several))
    rest = {name: sum(several[first:]) for name, several in counts.items()}  # the first second is no whole one
    assert {name: one.count for name, one in recent.operations.items()} == rest
    stored = operations.parse({name: one.document() for name, one in recorded.items()}, "it")
    assert stored["read"].times == read.times


def test_failures_of_the_warm_up_count_only_over_time(tmp_path: Path) -> None:
    at, operation = phase(tmp_path), operations.Operation()
    operation.per_second = operations.PerSecond(AT - 5, [0] * 15, [0] * 15)
    for middle, kind in (
        (AT - 4.5, "timeout"),
        (AT + 0.5, "timeout"),
        (AT + 9.5, "unfinished"),
        (AT + 10.5, "timeout"),
    ):
        drive.add_failures(at, operation, middle, kind, 2)
    assert operation.errors == {"timeout": 2, "unfinished": 2}
    assert [second for second, count in enumerate(operation.per_second.errors) if count] == [0, 5, 14]


def test_no_two_drivers_or_points_send_the_same_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = set()
    for point in ("1", "2"):
        monkeypatch.setenv("TROOP_POINT", point)
        seeds |= {
            drive.seed(phase(tmp_path, rank=rank, name=name)) for rank in (0, 1) for name in ("capacity", "steady")
        }
    assert len(seeds) == 8


def test_counters_of_a_service_are_rows_of_its_node() -> None:
    before = {"count": 10, "errors": 1, "nanoseconds": 5_000_000}
    after = {"count": 30, "errors": 4, "nanoseconds": 45_000_000}
    rows = [
        measure.row("select", before, after, 10.0),
        measure.row("compaction", {"count": 2, "bytes": 0}, {"count": 2, "bytes": 1000}, 10.0),
    ]
    assert rows == [
        {"operation": "select", "count": 20, "per_second": 2.0, "errors": {"failed": 3}, "mean_ms": 2.0},
        {"operation": "compaction", "count": 0, "per_second": 0.0, "bytes_per_second": 100.0},
    ]
    parsed = separate.parse_file({"format": separate.FORMAT, "tool": "data-service", "rows": rows})
    assert [one.count for one in parsed] == [20, 0]


# Serving


def test_the_service_has_the_caches_of_its_stack_or_none(tmp_path: Path) -> None:
    def caches(at: Any) -> str:
        line = serve.command(at)
        return str(line[line.index("-memcached") + 1])

    assert caches(phase(tmp_path, "service")) == "10.0.1.0:11211,10.0.1.1:11211"
    assert caches(phase(tmp_path, "service", has_cache=False)) == ""


# The data set


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as S3, with an AWS CLI that copies and removes files and lists what it does."""
    root = tmp_path / "s3"
    root.mkdir()
    script = f"""#!{sys.executable}
import pathlib, shutil, sys
words = [one for one in sys.argv[2:] if not one.startswith("--")]
with open({str(tmp_path / "calls")!r}, "a") as calls:
    calls.write(" ".join(words) + chr(10))
paths = [pathlib.Path({str(root)!r}, one[5:]) if one.startswith("s3://") else one for one in words[1:]]
if words[0] == "rm":
    paths[0].unlink()
elif paths[1] == "-":
    sys.exit(1) if not paths[0].exists() else sys.stdout.write(paths[0].read_text())
else:
    pathlib.Path(paths[1]).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(*paths)
"""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "aws").write_text(script)
    (tmp_path / "bin" / "aws").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return root


def created(program: Path, **more: Any) -> None:
    options = {"rows": 25, "rows-per-part": 10, "value-bytes": 64, "program": program, **more}
    words = [text for key, value in options.items() for text in (f"--{key}", str(value))]
    SCRIPTS["dataset"].main(["create", "s3://data/it", *words])


def test_a_data_set_is_created_once_and_deleted_as_a_whole(tmp_path: Path, program: Path, bucket: Path) -> None:
    created(program)
    manifest = json.loads((bucket / "data/it/manifest.json").read_text())
    whole = subprocess.run(
        [program, "dataset", "-first", "0", "-end", "25", "-value-bytes", "64"],
        capture_output=True,
        text=True,
        check=True,
    )
    parts = sorted((bucket / "data/it").glob("*.tsv"))
    assert "".join(part.read_text() for part in parts) == whole.stdout
    assert {"rows": manifest["rows"], "digest": manifest["digest"]} == json.loads(whole.stderr)
    assert prepare.description(phase(tmp_path, data_set="s3://data/it/")) == {
        "address": "s3://data/it",
        **{name: manifest[name] for name in ("rows", "value_bytes", "rows_per_part", "parts", "digest")},
    }

    parts[1].with_name("part-00001.tsv.json").unlink()
    (bucket / "data/it/manifest.json").unlink()
    (tmp_path / "calls").unlink()
    created(program)  # continues
    sent = [line for line in (tmp_path / "calls").read_text().splitlines() if line.endswith(".tsv")]
    assert [Path(line).name for line in sent] == ["part-00001.tsv"]
    assert json.loads((bucket / "data/it/manifest.json").read_text()) == manifest

    SCRIPTS["dataset"].main(["delete", "s3://data/it"])
    assert not list((bucket / "data/it").iterdir())


@pytest.mark.parametrize("manifest", ["", "{}", '{"format": "other"}', '{"format": "troop.data-service/1"}'])
def test_a_prefix_without_a_data_set_is_refused(tmp_path: Path, bucket: Path, manifest: str) -> None:
    (bucket / "data").mkdir()
    if manifest:
        (bucket / "data" / "manifest.json").write_text(manifest)
    with pytest.raises(SystemExit, match="describes no data set" if manifest else "aws s3 failed"):
        prepare.description(phase(tmp_path, data_set="s3://data"))


@pytest.mark.parametrize(("rows", "parts"), [(25, 3), (30, 3), (1, 1)])
def test_nodes_and_parts_share_all_rows(rows: int, parts: int) -> None:
    described = {"rows": rows, "rows_per_part": 10}
    for bounds in (
        [data.part_rows(described, part) for part in range(parts)],
        [data.share(rows, rank, 4) for rank in range(4)],
    ):
        assert [row for first, end in bounds for row in range(first, end)] == list(range(rows))


@pytest.mark.parametrize("digest", ["00000000000000aa", "00000000000000bb"])
def test_rows_that_differ_from_the_data_set_fail_the_cell(tmp_path: Path, digest: str) -> None:
    (tmp_path / "data-service").write_text(f"""#!/bin/sh\necho '{{"rows": 5, "digest": "{digest}"}}'\n""")
    (tmp_path / "data-service").chmod(0o755)
    at = phase(tmp_path, "service", name="verify")
    at.keep(stack.DATA_SET, {"rows": 5, "digest": "00000000000000aa"})
    if digest.endswith("aa"):
        data.verify(at)
        return
    with pytest.raises(SystemExit, match="has 5 rows with the digest 00000000000000bb"):
        data.verify(at)
