"""The benchmark s3-range-read: what its scripts choose, read and record, and what they say when they cannot."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from infra import ROOT
from tests.patience import PATIENCE
from tests.unit.agent.fake_account import FakeAccount
from troop.measure import operations
from troop.measure.operations import Operation, Operations, add_all

FOLDER = ROOT / "benchmarks" / "s3-range-read"
PARAMETERS = {"bucket": "data", "prefix": "", "min_bytes": 100, "max_bytes": 1000, "threads": 4, "timeout_seconds": 300}


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"s3_range_read_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(FOLDER))  # as a script has it
    try:
        spec.loader.exec_module(loaded)
    finally:
        sys.path.remove(str(FOLDER))
    return loaded


class Scripts:
    """Runs the scripts as the agent does."""

    def __init__(self, account: FakeAccount, folder: Path) -> None:
        self.account, self.folder = account, folder
        (folder / "bin").mkdir()
        aws = folder / "bin" / "aws"
        aws.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).parent / "fake_aws.py"} "$@"\n')
        aws.chmod(0o755)

    def run(
        self, script: str, warm_up: float = 1, seconds: float = 1.5, files: int | None = None, **parameters: Any
    ) -> subprocess.CompletedProcess[str]:
        """Runs a script with so many seconds of warm-up and measured ones, and so many open files in a process."""
        (self.folder / "parameters.json").write_text(json.dumps({**PARAMETERS, **parameters}))
        variables = {
            "NODE": "i-1",
            "PARAMETERS": self.folder / "parameters.json",
            "SHARED": self.folder,
            "RESULTS": self.folder,
            "MEASURED_FROM": time.time() + warm_up,
            "MEASURED_SECONDS": seconds,
        }
        environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "functions"),
            "AWS_ENDPOINT_URL": self.account.url,
            **{f"TROOP_{name}": str(value) for name, value in variables.items()},
        }
        line = [sys.executable, str(FOLDER / script)]
        if files is not None:
            line = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *line]
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def measured(
        self, is_enough: Callable[[Operation], bool], **parameters: Any
    ) -> tuple[subprocess.CompletedProcess[str], Operation]:
        """Runs read.py for longer and longer, as a busy machine needs it, until what it has recorded is enough."""
        for longer in (1, 8, 64):
            for path in self.folder.glob("operations*.json"):
                path.unlink()
            done, recorded = self.run("read.py", longer, 1.5 * longer, **parameters), self.read()
            if is_enough(recorded):
                break
        return done, recorded

    def prepared(self, **parameters: Any) -> list[dict[str, Any]]:
        done = self.run("prepare.py", **parameters)
        assert done.returncode == 0, done.stderr
        chosen: list[dict[str, Any]] = json.loads((self.folder / "objects.json").read_text())
        return chosen

    def read(self) -> Operation:
        """All that was recorded, of all processes."""
        total: Operations = {}
        for path in self.folder.glob("operations*.json"):
            add_all(total, operations.parse(json.loads(path.read_text())["operations"]))
        return total.get("read", Operation())


@pytest.fixture
def scripts(account: FakeAccount, tmp_path: Path) -> Scripts:
    for name, size in {"a/1": 5000, "a/2": 999, "a/3": 1000, "b/4": 70_000}.items():
        account.put(f"data/{name}", bytes(size))
    return Scripts(account, tmp_path)


# ------------------------------------------------------------------ prepare


@pytest.mark.parametrize(
    ("parameters", "keys"),
    [
        ({}, ["a/1", "a/3", "b/4"]),
        ({"prefix": "a/"}, ["a/1", "a/3"]),
        ({"objects": 2}, ["a/1", "a/3"]),
        ({"keys": ["b/4"]}, ["b/4"]),
    ],
)
def test_objects_that_are_large_enough_are_chosen(
    scripts: Scripts, parameters: dict[str, Any], keys: list[str]
) -> None:
    chosen = scripts.prepared(**parameters)
    assert [one["key"] for one in chosen] == keys
    assert all(one["size"] == len(scripts.account.objects[f"data/{one['key']}"]) for one in chosen)
    assert all("X-Amz-Signature" in one["url"] for one in chosen)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_bytes": 10**6}, "nothing to read: no object in data has at least max_bytes = 1000000 bytes"),
        ({"prefix": "none/"}, "nothing to read"),
        ({"min_bytes": 2000}, "min_bytes is 2000 and max_bytes is 1000"),
        ({"min_bytes": 0}, "min_bytes is 0"),
        ({"keys": ["missing"]}, "aws s3api head-object failed with exit code 1"),
    ],
)
def test_what_cannot_be_read_ends_the_preparation(scripts: Scripts, parameters: dict[str, Any], message: str) -> None:
    done = scripts.run("prepare.py", **parameters)
    assert done.returncode == 1
    assert message in done.stderr


def test_chosen_objects_are_spread_over_all() -> None:
    spread = module("prepare").spread
    keys = [f"{n:03d}" for n in range(100)]
    assert spread(keys, 4) == ["000", "025", "050", "075"]
    assert spread(keys[:3], 8) == keys[:3]


# ------------------------------------------------------------------ read


def test_ranges_are_read_and_recorded(scripts: Scripts) -> None:
    scripts.prepared()
    done, read = scripts.measured(lambda read: read.times.count > 20 and len(scripts.account.ranges) > read.times.count)
    assert done.returncode == 0, done.stderr
    assert read.times.count > 20
    assert read.errors == {}
    assert 100 <= read.bytes / read.times.count <= 1000
    assert len(scripts.account.ranges) > read.times.count, "the warm-up has read, too"
    lengths = {1 + int(last) - int(first) for first, last in (r[6:].split("-") for r in scripts.account.ranges)}
    assert min(lengths) >= 100
    assert max(lengths) <= 1000
    assert len(lengths) > 10


def test_no_more_is_read_than_the_rate(scripts: Scripts) -> None:
    """Also after a delay, which moves no later read: at most 20 a second in 2.5 s."""
    scripts.prepared()
    done = scripts.run("read.py", 1, 1.5, rate=20)
    assert len(scripts.account.ranges) <= 50, done.stderr


def test_with_a_rate_times_begin_when_a_read_was_due(scripts: Scripts) -> None:
    """A single thread does five reads a second at most, and 20 are due."""
    scripts.prepared()
    scripts.account.slowness = 0.2

    def is_enough(read: Operation) -> bool:
        service = read.service
        return bool(read.times.count > 3 and service and (read.times.min or 0) > 2 * (service.percentile(50) or 0))

    done, read = scripts.measured(is_enough, rate=20, threads=1)
    assert done.returncode == 0, done.stderr
    assert read.timing == "response"
    assert is_enough(read)
    assert read.service is not None
    assert read.service.count == read.times.count


def test_a_read_that_takes_too_long_is_a_time_out(scripts: Scripts) -> None:
    scripts.prepared()
    scripts.account.slowness = 0.5
    done, read = scripts.measured(lambda read: bool(read.errors), timeout_seconds=0.2)
    assert "no read succeeded in the measured time" in done.stderr
    assert done.returncode == 1
    assert read.errors.keys() == {"read-timeout"}


def test_a_connection_that_takes_too_long_is_a_time_out_of_its_own() -> None:
    """The server accepts the connection, and never answers within TLS."""
    read = module("read")
    with socket.create_server(("127.0.0.1", 0)) as server:
        reader = read.Reader(read.trust(), 0.1)
        with pytest.raises(read.ReadError, match=r"^connect-timeout$"):
            reader.read(f"https://127.0.0.1:{server.getsockname()[1]}/object", 0, 1)


def test_errors_are_told_by_their_kind(scripts: Scripts) -> None:
    scripts.prepared()
    scripts.account.refuse = 10**9
    done, read = scripts.measured(lambda read: bool(read.errors))
    assert (done.returncode, set(read.errors)) == (1, {"http-503"})


def test_less_than_was_asked_for_is_an_error(scripts: Scripts) -> None:
    chosen = scripts.prepared()
    for one in chosen:
        one["size"] = 10**6  # they have shrunk since
    (scripts.folder / "objects.json").write_text(json.dumps(chosen))
    _, read = scripts.measured(lambda read: bool(read.errors))
    assert set(read.errors) == {"short"}


def test_nobody_there_is_an_error_of_the_connection(scripts: Scripts) -> None:
    objects = [{"key": "a", "size": 5000, "url": "http://127.0.0.1:9/a?b"}]
    (scripts.folder / "objects.json").write_text(json.dumps(objects))
    done, read = scripts.measured(lambda read: bool(read.errors))
    assert (done.returncode, set(read.errors)) == (1, {"connection"})


def test_too_few_open_files_are_no_fault_of_s3(scripts: Scripts) -> None:
    scripts.prepared()
    threads = 20 * (os.cpu_count() or 1)
    done = scripts.run("read.py", files=24, seconds=200, threads=threads)  # it ends at the first shortage
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"Too many open files: each of the {threads} threads needs one, but the limit per process is 24: use fewer "
        "threads, or more nodes"
    )
    assert "connection" not in scripts.read().errors


def test_one_connection_serves_many_reads(account: FakeAccount) -> None:
    account.put("data/a", bytes(5000))
    account.signatures.add("s")
    reader = module("read").Reader(None, PATIENCE)
    reader.read(f"{account.url}/data/a?X-Amz-Signature=s", 0, 100)
    socket = reader._connection.sock
    assert reader.read(f"{account.url}/data/a?X-Amz-Signature=s", 10, 200) == 200
    assert reader._connection.sock is socket
    reader.close()


@pytest.mark.parametrize(
    ("threads", "processors", "each"), [(1, 8, [1]), (4, 2, [2, 2]), (7, 3, [3, 2, 2]), (400, 2, [200, 200])]
)
def test_threads_are_spread_over_processes(threads: int, processors: int, each: list[int]) -> None:
    assert module("read").shares(threads, processors) == each


# ------------------------------------------------------------------ addresses


class Renewing:
    """What all processes share, and a CLI whose addresses are signed with ``key``."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, base: str = "https://s3/data") -> None:
        self.module, self.base, self.key, self.address_count = module("addresses"), base, "ASIA1", 0
        self.path = folder / "objects.json"
        self.edition = multiprocessing.Value("L", 0, lock=False)
        self.refused, self.refusals = multiprocessing.Pipe(duplex=False)
        monkeypatch.setattr(self.module, "presigned", self.presigned)
        objects = [{"key": key, "size": 5000, "url": self.presigned("data", key, 0)} for key in ("a", "b")]
        self.module.write(self.path, objects)
        self.addresses = self.module.Addresses(self.path, self.edition, self.refusals)

    def presigned(self, bucket: str, key: str, seconds: int, **_: Any) -> str:
        self.address_count += 1
        return f"{self.base}/{key}?X-Amz-Credential={self.key}%2F2026&X-Amz-Signature={self.key}"

    def renewal(self) -> Any:
        return self.module.Renewal(self.path, {"bucket": "data"}, self.edition, self.refused)

    def keys(self) -> set[str]:
        return {one["url"].rpartition("=")[2] for one in self.addresses.objects()}


@pytest.fixture
def renewing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Renewing:
    return Renewing(tmp_path, monkeypatch)


def test_addresses_are_renewed_when_other_credentials_sign(renewing: Renewing) -> None:
    renewal, before = renewing.renewal(), renewing.address_count
    assert not renewal.renew(refused=False)
    assert renewing.address_count == before + 1, "as long as they are the same, one short command"
    assert renewing.keys() == {"ASIA1"}
    renewing.key = "ASIA2"
    assert renewal.renew(refused=False)
    assert renewing.keys() == {"ASIA2"}
    assert not renewal.renew(refused=False)


def test_addresses_are_renewed_before_their_own_time_is_up(renewing: Renewing) -> None:
    half = time.time() - 3 * 3600 - 60
    os.utime(renewing.path, (half, half))
    renewal = renewing.renewal()
    assert renewal.renew(refused=False)
    assert not renewal.renew(refused=False)


def test_credentials_are_looked_at_more_often_than_they_overlap(renewing: Renewing) -> None:
    assert renewing.module.CHECK_SECONDS < 300
    assert renewing.renewal()._every == renewing.module.CHECK_SECONDS


def test_of_a_refused_edition_is_told_once(renewing: Renewing) -> None:
    renewal = renewing.renewal()
    renewing.addresses.objects()
    renewing.addresses.failed("timeout")
    assert not renewal._is_refused(0)
    for _ in range(5):
        renewing.addresses.failed("http-400")
    assert renewal._is_refused(0)
    assert not renewal._is_refused(0)
    assert renewal.renew(refused=True)
    renewing.addresses.failed("http-403")  # of an address of before, which was still at work
    assert not renewal._is_refused(0)
    renewing.addresses.objects()
    renewing.addresses.failed("http-403")
    assert renewal._is_refused(0)


@pytest.mark.parametrize("within", ["a pause", "a renewal"])
def test_renewing_ends_before_the_script_does(renewing: Renewing, monkeypatch: pytest.MonkeyPatch, within: str) -> None:
    """Python ends a script with an error when a thread writes meanwhile."""
    loud: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", loud.append)
    begun, ended = threading.Event(), threading.Event()

    def presigned(bucket: str, key: str, seconds: int, **_: Any) -> str:
        begun.set()
        assert ended.wait(PATIENCE)
        return renewing.presigned(bucket, key, seconds)

    renewal = renewing.renewal()
    if within == "a renewal":
        monkeypatch.setattr(renewing.module, "presigned", presigned)
        renewing.addresses.objects()
        renewing.addresses.failed("http-403")
    renewal.start()
    if within == "a renewal":
        assert begun.wait(PATIENCE)
    renewing.refusals.close()

    def go_on() -> None:
        assert renewal._stopped.wait(PATIENCE)
        ended.set()

    threading.Thread(target=go_on).start()
    renewal.stop()
    assert not renewal._thread.is_alive()
    assert loud == []
    assert renewing.edition.value == 0, "nobody reads any more, so the rest is not made"


def test_refused_addresses_are_renewed_while_reading_goes_on(
    account: FakeAccount, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.put("data/a", bytes(5000))
    account.put("data/b", bytes(5000))
    renewing = Renewing(tmp_path, monkeypatch, f"{account.url}/data")
    account.signatures.add("ASIA2")
    outcomes: list[str] = []
    recorder = SimpleNamespace(
        measured_until=1.0,
        now=lambda: 2.0 if "read" in outcomes else 0.0,
        ok=lambda operation, seconds, moved, due: outcomes.append("read"),
        error=lambda operation, kind: outcomes.append(kind),
    )
    renewing.key = "ASIA2"
    renewing.renewal().start()
    read = module("read")
    read.work(recorder, read.Reader(None, PATIENCE), "seed", renewing.addresses, PARAMETERS, SimpleNamespace(value=0))
    assert outcomes[0] == "http-403"
    assert outcomes[-1] == "read"


def test_addresses_that_are_refused_are_asked_for_again(scripts: Scripts) -> None:
    scripts.prepared()
    scripts.account.signatures.clear()
    before = scripts.account.requests["POST", "presign"]
    scripts.measured(lambda _: scripts.account.requests["POST", "presign"] > before)
    assert scripts.account.requests["POST", "presign"] > before
