"""The scripts as processes with a small state: what they record, and what the verifier says about a damaged store."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra import ROOT
from tests.patience import PATIENCE, eventually
from tests.unit.agent.pythons import python39
from tests.unit.benchmarks.scripts import folder, scripts
from troop.measure import operations
from troop.measure.operations import Operations, add_all

stream, store, load = (scripts("event-processor")[name] for name in ("stream", "store", "load"))
KEYS, WORKERS, SIZE = 300, 2, 200
PARAMETERS: dict[str, Any] = {
    **{"state_times_memory": 4, "keys": KEYS, "value_bytes": SIZE, "workers": WORKERS, "batch": 10, "seed": 1},
    **{"new_share": 0.02, "skew": 4, "store": "sqlite", "durable": False, "cache_mib": 1, "checkpoint_pages": 50},
    **{"cold": False, "data": "", "layout": "root", "cache": "none"},
}


class Node:
    """Runs the scripts as the agent does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"

    def start(self, script: str, seconds: float = 1, **parameters: Any) -> subprocess.Popen[str]:
        (self.folder / "parameters.json").write_text(json.dumps({**PARAMETERS, **parameters}))
        variables = {
            "PARAMETERS": self.folder / "parameters.json",
            **dict.fromkeys(("SHARED", "RESULTS", "ARTIFACTS"), self.folder),
            "RANK": 0,
            "MEASURED_FROM": time.time(),
            "MEASURED_SECONDS": seconds,
        }
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TROOP_")},
            "PYTHONPATH": str(ROOT / "functions"),
            **{f"TROOP_{name}": str(value) for name, value in variables.items()},
        }
        line = [python39() or sys.executable, str(folder("event-processor") / f"{script}.py")]
        pipe = subprocess.PIPE
        return subprocess.Popen(line, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True)

    def run(self, script: str, **options: Any) -> tuple[int, str]:
        """Returns the exit code and the output of a script."""
        process = self.start(script, **options)
        output, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, output

    def succeed(self, *scripts: str, **options: Any) -> str:
        """Runs scripts that must succeed, and returns the output of the last one."""
        for script in scripts:
            code, output = self.run(script, **options)
            assert code == 0, output
        return output

    def process(self) -> str:
        """Processes for as many seconds as this machine needs, so that each worker commits events."""
        seconds = 1.0
        while (ended := self.run("process", seconds=seconds))[0]:
            assert "some worker committed nothing" in ended[1], ended[1]
            seconds *= 2
            assert seconds < PATIENCE
        return ended[1]

    def acknowledged(self) -> list[int]:
        paths = [self.folder / f"worker-{number}.acknowledged" for number in range(WORKERS)]
        return [int.from_bytes(path.read_bytes(), "little") for path in paths]

    def recorded(self) -> Operations:
        paths = sorted(self.folder.glob("operations-*.json"))
        totals: Operations = {}
        for path in paths:
            add_all(totals, operations.parse(json.loads(path.read_text())["operations"]))
        return totals

    def sql(self, *statements: str, worker: int = 0) -> None:
        with sqlite3.connect(self.data / f"worker-{worker}") as database:
            for statement in statements:
                database.execute(statement)
        database.close()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.fixture(scope="module")
def processed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    node = Node(tmp_path_factory.mktemp("processed"))
    node.succeed("layout", "load")
    node.process()
    return node.folder


@pytest.fixture
def processed(processed_folder: Path, node: Node) -> Node:
    """A copy of the state that the scripts leave."""
    shutil.copytree(processed_folder, node.folder, dirs_exist_ok=True)
    node.succeed("layout")  # it stores the path of the folder
    return node


def test_all_events_are_recorded_and_all_values_are_verified(node: Node) -> None:
    assert f"filled {KEYS} keys" in node.succeed("layout", "load")
    printed = node.process()
    committed = sum(node.acknowledged())
    assert f"2 workers committed {committed:,} events" in printed
    (name, event), *others = node.recorded().items()
    assert (name, others, event.errors) == ("event", [], {})
    assert 0 < event.times.count <= committed, "the batch that ends after the measured time does not count"
    assert event.bytes == event.times.count * SIZE
    output = node.succeed("verify")
    assert f"as {committed:,} events must have left them" in output
    assert int(output.split()[0].replace(",", "")) >= KEYS


def test_a_second_measurement_continues_where_the_first_one_ended(processed: Node) -> None:
    before = processed.acknowledged()
    processed.process()
    assert all(after > earlier for after, earlier in zip(processed.acknowledged(), before, strict=True))
    processed.succeed("verify")


def test_a_killed_worker_fails_the_phase_and_leaves_no_half_batch(node: Node) -> None:
    node.succeed("layout", "load")
    process = node.start("process", seconds=PATIENCE)
    eventually(lambda: min(node.acknowledged()) > 0)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == WORKERS
    os.kill(int(children[1]), signal.SIGKILL)
    output, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output) == (1, "worker-1 was killed by signal 9\n")
    assert "events must have left them" in node.succeed("verify")


def older_value(node: Node) -> None:
    """Undoes the last update of the key with most events."""
    expected = stream.replay(stream.Workload(1, 0, KEYS // 2, 0.02, 4, SIZE), node.acknowledged()[0])
    key = expected.counts.index(max(expected.counts))
    value = stream.encode(key, expected.counts[key] - 1, 5, SIZE)
    node.sql(f"UPDATE state SET value = X'{value.hex()}' WHERE key = {key}")


def one_update_twice(node: Node) -> None:
    expected = stream.replay(stream.Workload(1, 0, KEYS // 2, 0.02, 4, SIZE), node.acknowledged()[0])
    value = stream.encode(7, expected.counts[7] + 1, stream.next_digest(expected.digests[7], 0), SIZE)
    node.sql(f"UPDATE state SET value = X'{value.hex()}' WHERE key = 7")


def half_a_value(node: Node) -> None:
    node.sql(f"UPDATE state SET value = CAST(substr(value, 1, {SIZE // 2}) || zeroblob({SIZE // 2}) AS BLOB)")


def lost_commits(node: Node) -> None:
    """Leaves the store as it was before, as a disk does that acknowledges what it then loses."""
    saved = node.folder / "saved"
    shutil.copy(node.data / "worker-0", saved)
    node.process()
    for path in node.data.glob("worker-0*"):
        path.unlink()
    shutil.copy(saved, node.data / "worker-0")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (older_value, "the state is damaged: 1 lost"),
        (one_update_twice, "the state is damaged: 1 doubled"),
        (half_a_value, " torn"),
        (lambda node: node.sql("DELETE FROM state WHERE key = 3"), "the state is damaged: 1 missing"),
        (lambda node: node.sql("INSERT INTO state VALUES (999999, X'00')"), "the state is damaged: 1 unknown"),
        (lost_commits, "the state is damaged: 1 undone"),
        (lambda node: node.sql("UPDATE progress SET events = events + 1000"), "the state is damaged: 1 unacknowledged"),
        (lambda node: (node.data / "worker-1").unlink(), "worker-1 does not exist: run load.py first"),
        (lambda node: (node.data / "worker-1").write_bytes(b"no database" * 999), "worker-1: file is not a database"),
    ],
)
def test_a_damaged_store_fails_the_cell(processed: Node, damage: Callable[[Node], object], message: str) -> None:
    damage(processed)
    code, output = processed.run("verify")
    assert (code, message in output) == (1, True), output


def test_a_worker_does_not_build_upon_a_damaged_value(node: Node) -> None:
    node.succeed("layout", "load")
    node.sql("UPDATE state SET value = zeroblob(200)", worker=1)
    code, output = node.run("process", seconds=PATIENCE)
    assert (code, "is torn: its checksum does not match" in output) == (1, True), output
    assert "worker-1 failed with exit code 1" in output


@pytest.mark.parametrize(
    ("script", "changes", "message"),
    [
        ("load", {"keys": 10**12}, "use a larger volume, or a smaller state_times_memory"),
        ("load", {"keys": 1}, "keys is 0: must be at least 1 for each worker"),
        ("load", {"keys": 0, "state_times_memory": 0}, "one of them must be above 0"),
        ("load", {"workers": 0}, "workers is 0: must be from 1 to 256"),
        ("load", {"batch": 0}, "batch is 0: must be at least 1 event"),
        ("load", {"store": "bdb"}, "store is 'bdb': must be sqlite or rocksdb"),
        ("load", {"store": "rocksdb"}, "there is no artifact with that name: use --size rocksdb"),
        ("process", {}, "the stores are not filled: run load.py first"),
        ("verify", {}, "the stores are not filled: run load.py first"),
    ],
)
def test_bad_parameters_are_refused_with_a_remedy(
    node: Node, script: str, changes: dict[str, Any], message: str
) -> None:
    node.succeed("layout")
    code, output = node.run(script, **changes)
    assert (code, message in output) == (1, True), output


def test_without_a_layout_nothing_is_filled(node: Node) -> None:
    code, output = node.run("load")
    assert (code, output) == (1, "there is no folder for the stores: run layout.py first\n")


def test_an_artifact_for_another_python_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "rocksdb", "w") as wheel:
        wheel.writestr("rocksdict/__init__.py", "from .rocksdict import Rdict")
    before = [*sys.path]
    try:
        with pytest.raises(store.StoreError, match=r"the artifact rocksdb is no wheel for Python 3\.\d+ on \w+: "):
            store.install("rocksdb", tmp_path, tmp_path)
    finally:
        sys.path[:] = before
        sys.modules.pop("rocksdict", None)


@pytest.mark.parametrize(("keys", "times", "count"), [(0, 4, 40_000), (0, 0.5, 5_000), (7, 4, 7)])
def test_the_state_is_as_many_times_the_memory_as_the_parameter_says(keys: int, times: float, count: int) -> None:
    parameters = {"keys": keys, "state_times_memory": times, "value_bytes": 1000}
    assert load.key_count(parameters, 10_000_000) == count


HAS_ROCKSDB = importlib.util.find_spec("rocksdict") is not None


@pytest.mark.parametrize(
    "kind", ["sqlite", pytest.param("rocksdb", marks=pytest.mark.skipif(not HAS_ROCKSDB, reason="needs rocksdict"))]
)
def test_stores_hold_the_last_values_in_order(kind: str, tmp_path: Path) -> None:
    def opened(is_new: bool = False) -> Any:
        return store.open_store(kind, tmp_path / "worker-1", PARAMETERS, is_new)

    with pytest.raises(store.StoreError):
        opened()
    for content in (b"old", b"new"):
        one = opened(is_new=True)
        assert [*one.load((key, content) for key in range(2500))][-1] == 2500
        one.close()
    one = opened()
    assert (one.read(7), one.read(2500), one.events()) == (b"new", None, 0)
    one.commit({2500: b"later", 7: b"updated"}, 30)
    one.close()
    one = opened()
    assert (one.read(7), one.events()) == (b"updated", 30)
    rows = [*one.rows()]
    assert [key for key, _ in rows] == [*range(2501)]
    assert (rows[-1], {value for _, value in rows}) == ((2500, b"later"), {b"new", b"updated", b"later"})
    one.close()
