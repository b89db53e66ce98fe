"""The worker of the folder fleets/worker, as a node runs it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml

from infra import ROOT
from tests.patience import PATIENCE, eventually
from tests.unit.agent.fake_account import REGION
from tests.unit.agent.pythons import python39
from tests.unit.work.processes import Workers
from troop.work.work_folder import LEAVE

FOLDER = ROOT / "fleets" / "worker"


@pytest.fixture(scope="module")
def module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fleet_worker", FOLDER / "worker.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


class Fleet:
    """A node's worker, started and restarted by its script.

    Attributes:
        port: of its health.
    """

    def __init__(self, workers: Workers) -> None:
        self.workers, self.shared = workers, workers.path / "shared"
        self.shared.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        parameters = {"port": self.port, "threads": 3, "most_bytes": 100}
        (workers.path / "parameters.json").write_text(json.dumps(parameters))
        (workers.path / "bin").mkdir()
        (workers.path / "bin/python3").symlink_to(python39() or sys.executable)
        self.environment = {
            **workers.environment,
            "PATH": f"{workers.path / 'bin'}:/usr/bin:/bin",
            "AWS_DEFAULT_REGION": REGION,
            "TROOP_ADDRESS": "127.0.0.1",
            "TROOP_FILES": str(FOLDER),
            "TROOP_SHARED": str(self.shared),
            "TROOP_PARAMETERS": str(workers.path / "parameters.json"),
        }

    def run(self, script: str) -> str:
        line = ["bash", str(FOLDER / script)]
        done = subprocess.run(
            line, env=self.environment, cwd=self.workers.path, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def pid(self) -> int:
        return int((self.shared / "worker.pid").read_text())

    def health(self) -> tuple[int, dict[str, Any]]:
        """The status, and the checks by name; (0, {}) while nothing listens."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/health", timeout=30) as answer:
                status, body = answer.status, answer.read()
        except HTTPError as error:
            status, body = error.code, error.read()
        except OSError:
            return 0, {}
        return status, {check["name"]: check for check in json.loads(body)["checks"]}


@pytest.fixture
def fleet(workers: Workers) -> Iterator[Fleet]:
    fleet = Fleet(workers)
    yield fleet
    if (fleet.shared / "worker.pid").exists():
        subprocess.run(["kill", "-9", str(fleet.pid)], check=False)


def result(fleet: Fleet, task: str) -> Any:
    content = fleet.workers.result(task)
    return None if content is None else json.loads(content)


def request(key: str, operation: str) -> str:
    return json.dumps({"bucket": "archive", "key": key, "operation": operation})


def test_tasks_name_objects_and_operations(fleet: Fleet) -> None:
    account = fleet.workers.account
    account.put("archive/a b.log", b"one\ntwo\nthree")
    account.put("archive/large", bytes(101))
    account.queue.tries = 1
    fleet.workers.account.send(lines=request("a b.log", "lines"), digest=request("a b.log", "sha256"), text="ä")
    fleet.workers.account.send(
        large=request("large", "size"), missing=request("nothing", "size"), wrong=request("a b.log", "x")
    )
    fleet.run("setup.sh")
    eventually(lambda: len(account.queue.dead) == 3 and not account.queue.messages)
    assert result(fleet, "lines") == {"bucket": "archive", "key": "a b.log", "size": 13, "lines": 3}
    assert result(fleet, "digest")["sha256"] == hashlib.sha256(b"one\ntwo\nthree").hexdigest()
    assert result(fleet, "text") == {"size": 2, "sha256": hashlib.sha256("ä".encode()).hexdigest(), "lines": 1}
    assert {one.id for one in account.queue.dead} == {"large", "missing", "wrong"}
    assert eventually(lambda: fleet.health()[0]) == 200
    assert fleet.health()[1]["queue"]["value"] == 3


def test_a_restart_replaces_the_worker(fleet: Fleet) -> None:
    fleet.run("setup.sh")
    before = fleet.pid
    assert eventually(lambda: fleet.health()[0]) == 200
    fleet.run("restart.sh")
    assert fleet.pid != before
    fleet.workers.account.send(one="a")
    eventually(lambda: result(fleet, "one"))
    assert eventually(lambda: fleet.health()[0]) == 200


def test_a_worker_outlives_its_script_and_ends_with_its_node(fleet: Fleet) -> None:
    fleet.run("setup.sh")
    assert os.getsid(fleet.pid) == fleet.pid, "what ends the script's group during a spot notice does not kill it"
    fleet.workers.folder.stop(LEAVE)
    eventually(lambda: fleet.health()[0] == 0)


def test_threads_that_end_and_tasks_that_hang_fail_the_health(module: ModuleType) -> None:
    now = [0.0]
    progress = module.Progress(lambda: now[0])

    class Thread:
        alive = True

        def is_alive(self) -> bool:
            return self.alive

    threads = [Thread(), Thread()]
    progress.watch(threads)
    progress.note("one")
    assert {check["status"] for check in progress.checks()} == {"ok"}
    now[0] = module.HUNG_SECONDS + 1
    threads[1].alive = False
    checks = {check["name"]: check for check in progress.checks()}
    assert (checks["queue"]["status"], checks["queue"]["value"]) == ("fail", 1)
    assert checks["progress"]["status"] == "fail"
    progress.end("one")
    assert progress.checks()[1]["status"] == "ok"


@pytest.mark.parametrize(
    ("blocks", "expected"), [([], 0), ([b"a"], 1), ([b"a\n"], 1), ([b"a", b"\n"], 1), ([b"\n", b"", b"b"], 2)]
)
def test_lines_are_counted_across_blocks(module: ModuleType, blocks: list[bytes], expected: int) -> None:
    assert module.lines(iter(blocks))["lines"] == expected


def test_the_health_is_where_the_file_says(module: ModuleType) -> None:
    document = yaml.safe_load(Path(FOLDER / "fleet.yaml").read_text())
    assert document["fleets"]["workers"]["health"]["port"] == document["parameters"]["port"]
