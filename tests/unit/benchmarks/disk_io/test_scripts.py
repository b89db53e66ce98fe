"""The scripts of disk-io as the agent starts them, with programs that stand in for fio and iozone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from infra import ROOT
from tests.unit.benchmarks.scripts import folder
from troop.measure import operations

FIO = """#!{python}
import json, sys
options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:])
jobs = int(options["numjobs"])
open({log!r}, "a").write(" ".join(sys.argv[1:]) + "\\n")
if options["name"] == "fill":
    for number in range(jobs):
        with open(options["directory"] + f"/data.{{number}}", "wb") as file:
            file.truncate(int(options["size"][:-1]) * 1024**2)
else:
    times = {{"min": 2000, "max": 9000, "mean": 4000, "N": 4, "bins": {{"2000": 1, "4000": 2, "9000": 1}}}}
    did = {{"total_ios": 4, "io_bytes": 16384, "runtime": int(options["runtime"]) * 1000, "clat_ns": times}}
    job = {{"jobname": options["name"], "error": 0, "total_err": 0, "read": did, "write": {{"total_ios": 0}}}}
    open(options["output"], "w").write(json.dumps({{"fio version": "fio-3.32", "jobs": [job] * jobs}}))
"""
IOZONE = """#!/bin/sh
echo "$@" >> {log}
cat {recorded}
"""
PARAMETERS = {
    **{"layout": "root", "cache": "none", "file_system": "xfs", "read_ahead_kib": -1, "system": False},
    **{"tool": "fio", "pattern": "random-read", "jobs": 3, "data_mib": 6, "write_block_kib": 64, "read_block_kib": 4},
    **{"read_percent": 70, "zipf": 1.1, "direct": True, "precondition": False, "precondition_seconds": 5},
}
RECORDED = sorted((ROOT / "tests/unit/measure/collectors/data").glob("iozone*"))


class Node:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        for name in ("bin", "artifacts", "shared", "results"):
            (folder / name).mkdir()
        self.program("bin/fio", FIO.format(python=sys.executable, log=str(self.log)))

    def program(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def run(self, script: str, **changes: Any) -> subprocess.CompletedProcess[str]:
        (self.folder / "parameters.json").write_text(json.dumps({**PARAMETERS, **changes}))
        environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "functions"),
            "TROOP_PARAMETERS": str(self.folder / "parameters.json"),
            "TROOP_WARM_UP_SECONDS": "2.0",
            "TROOP_MEASURED_SECONDS": "7.0",
            "TROOP_MEASURED_FROM": str(time.time()),
            **{f"TROOP_{name.upper()}": str(self.folder / name) for name in ("shared", "results", "artifacts")},
        }
        return subprocess.run(
            [sys.executable, str(folder("disk-io") / script)],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
        )

    def operations(self) -> dict[str, Any]:
        operations: dict[str, Any] = {}
        for path in (self.folder / "results").glob("operations-*.json"):
            operations.update(json.loads(path.read_text())["operations"])
        return operations


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_point_records_the_operations_of_all_jobs(node: Node) -> None:
    assert node.run("prepare.py").returncode == 0
    assert node.run("restore.py").returncode == 0
    done = node.run("measure.py")
    assert done.returncode == 0, done.stderr
    read = operations.parse(node.operations())["read"]
    assert read.times.count == 3 * 4
    assert read.bytes == 3 * 16384
    assert "--ramp_time=2 --runtime=7" in node.log.read_text()


@pytest.mark.parametrize("script", ["restore.py", "measure.py"])
def test_a_file_that_is_not_complete_is_named(script: str, node: Node) -> None:
    node.run("prepare.py")
    (node.folder / "shared/data/data.1").write_bytes(b"short")
    done = node.run(script)
    assert done.returncode == 1
    assert "data.1 has 5 bytes instead of 2097152" in done.stderr.splitlines()[-1]


def test_files_that_do_not_fit_are_refused(node: Node) -> None:
    done = node.run("prepare.py", data_mib=2**29)
    assert done.returncode == 1
    assert "use larger volumes, or set data_mib" in done.stderr
    assert not node.log.exists()


def test_a_fio_that_ran_too_short_fails_the_point(node: Node) -> None:
    node.run("prepare.py")
    short = FIO.format(python=sys.executable, log=str(node.log)).replace('["runtime"]) * 1000', '["runtime"]) * 10')
    node.program("bin/fio", short)
    done = node.run("measure.py")
    assert done.returncode == 1
    assert "instead of the measured 7 s" in done.stdout


def test_precondition_without_instance_store_is_refused(node: Node) -> None:
    done = node.run("prepare.py", precondition=True)
    assert "requires parameters.system: true" in done.stderr


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.name)
def test_iozone_is_the_artifact_and_its_rates_count(recorded: Path, node: Node) -> None:
    node.program("artifacts/iozone", IOZONE.format(log=node.log, recorded=recorded))
    assert node.run("prepare.py", tool="iozone").returncode == 0
    done = node.run("measure.py", tool="iozone", pattern="sequential-write")
    assert done.returncode == 0, done.stdout
    assert "-i 0" in node.log.read_text()
    assert any(operation["rate"] for operation in node.operations().values())


def test_a_missing_iozone_is_named(node: Node) -> None:
    done = node.run("measure.py", tool="iozone")
    assert done.returncode == 1
    assert "iozone" in done.stderr
    assert "Traceback" not in done.stderr
