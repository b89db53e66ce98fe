"""The benchmark s3-range-read: what its scripts choose, read and record, and what they say when they cannot."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import ROOT
from tests.patience import PATIENCE
from tests.unit.agent.fake_account import REGION, FakeAccount
from tests.unit.agent.pythons import python39
from tests.unit.agent.s3_scripts import FOLDER, module
from troop.measure import operations
from troop.measure.operations import Operation, Operations, add_all

PARAMETERS = {
    "bucket": "data",
    "prefix": "",
    "min_bytes": 100,
    "max_bytes": 1000,
    "threads": 4,
    "connect_timeout_seconds": 300,
    "read_timeout_seconds": 300,
}


class Scripts:
    """Runs the scripts as the agent does."""

    def __init__(self, account: FakeAccount, folder: Path) -> None:
        self.account, self.folder = account, folder
        self.endpoint, self.data = account.url, "s3://results/data/run/c001/"
        self.rank, nodes = 0, [{"role": "drivers", "rank": rank} for rank in range(3)]
        (folder / "roster.json").write_text(json.dumps({"nodes": nodes}))

    def run(
        self, script: str, warm_up: float = 1, seconds: float = 1.5, files: int | None = None, **parameters: Any
    ) -> subprocess.CompletedProcess[str]:
        """Runs a script with so many seconds of warm-up and measured ones, and so many open files in a process."""
        (self.folder / "parameters.json").write_text(json.dumps({**PARAMETERS, **parameters}))
        variables = {
            "NODE": "i-1",
            "ROLE": "drivers",
            "RANK": self.rank,
            "ROSTER": self.folder / "roster.json",
            "FILES": self.folder,
            "ARTIFACTS": self.folder,
            "DATA": self.data,
            "PARAMETERS": self.folder / "parameters.json",
            "SHARED": self.folder,
            "RESULTS": self.folder,
            "MEASURED_FROM": time.time() + warm_up,
            "MEASURED_SECONDS": seconds,
        }
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "functions"),
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.account.metadata_of("i-1"),
            **{f"TROOP_{name}": str(value) for name, value in variables.items()},
        }
        line = [python39() or sys.executable, str(FOLDER / script)]
        if files is not None:
            line = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *line]
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def measured(
        self, is_enough: Callable[[Operation], bool], seconds_at_least: float = 1.5, **parameters: Any
    ) -> tuple[subprocess.CompletedProcess[str], Operation]:
        """Runs read.py for longer and longer, as a busy machine needs it, until what it has recorded is enough."""
        for longer in (1, 8, 64):
            for path in self.folder.glob("operations*.json"):
                path.unlink()
            done, recorded = self.run("read.py", longer, seconds_at_least * longer, **parameters), self.read()
            if is_enough(recorded):
                break
        return done, recorded

    def prepared(self, **parameters: Any) -> list[tuple[str, int]]:
        """The paths and sizes of the objects that prepare.py has chosen."""
        done = self.run("prepare.py", **parameters)
        assert done.returncode == 0, done.stderr
        self.account.ranges.clear()  # of the first byte of an object, to see whether it may be read
        return stored(self.folder)

    def read(self) -> Operation:
        """All that was recorded, of all processes."""
        total: Operations = {}
        for path in self.folder.glob("operations*.json"):
            add_all(total, operations.parse(json.loads(path.read_text())["operations"]))
        return total.get("read", Operation())


def stored(folder: Path) -> list[tuple[str, int]]:
    chosen = module("objects").Objects(folder)
    return [chosen.at(n) for n in range(len(chosen))]


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
        ({"min_bytes": 0, "max_bytes": 5000}, ["a/1", "b/4"]),
    ],
)
def test_objects_that_are_large_enough_are_chosen(
    scripts: Scripts, parameters: dict[str, Any], keys: list[str]
) -> None:
    chosen = scripts.prepared(**parameters)
    assert [path for path, _ in chosen] == keys
    assert all(size == len(scripts.account.objects[f"data/{path}"]) for path, size in chosen)


def test_a_listing_ends_when_there_are_enough_objects(scripts: Scripts) -> None:
    scripts.account.page = 1
    scripts.prepared(objects=1)
    assert scripts.account.requests["GET", "list"] == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_bytes": 10**6}, "nothing to read: no object in data has at least max_bytes = 1000000 bytes"),
        ({"prefix": "none/"}, "nothing to read"),
        ({"min_bytes": 2000}, "min_bytes is 2000 and max_bytes is 1000"),
        ({"min_bytes": -1}, "min_bytes is -1"),
        ({"objects": 0}, "objects is 0: must be at least 1"),
        ({"keys_file": "missing.csv"}, "there is no file or artifact missing.csv"),
        ({"keys_file": "a", "inventory": "b"}, "inventory and keys_file are both set"),
        ({"inventory": "inventory/manifest.json"}, "must be s3://BUCKET/.../manifest.json"),
        ({"inventory": "s3://data/x/manifest.json"}, "data: S3 answered 404 NoSuchKey"),
    ],
)
def test_what_cannot_be_read_ends_the_preparation(scripts: Scripts, parameters: dict[str, Any], message: str) -> None:
    done = scripts.run("prepare.py", **parameters)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def packed(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return gzip.compress(text.getvalue().encode())


def inventory(account: FakeAccount, parts: list[list[list[str]]], **changes: str) -> str:
    """Writes an S3 Inventory; returns the URL of its manifest."""
    manifest = {
        "sourceBucket": "data",
        "fileFormat": "CSV",
        "fileSchema": "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size",
        "files": [{"key": f"daily/data/{n}.csv.gz", "size": 1} for n in range(len(parts))],
    }
    account.put("lists/daily/manifest.json", {**manifest, **changes})
    for n, rows in enumerate(parts):
        account.put(f"lists/daily/data/{n}.csv.gz", packed(rows))
    return "s3://lists/daily/manifest.json"


def test_an_inventory_names_the_objects(scripts: Scripts) -> None:
    scripts.account.put("data/a/with blank+%", bytes(1500))
    parts = [
        [
            ["data", "a/with+blank%2B%25", "v1", "true", "false", "1500"],
            ["data", "old", "v1", "false", "false", "9999"],
        ],
        [["data", "gone", "v2", "true", "true", ""], ["data", "small", "v1", "true", "false", "12"]],
    ]
    chosen = scripts.prepared(inventory=inventory(scripts.account, parts))
    assert chosen == [("a/with%20blank%2B%25", 1500)]
    assert scripts.account.requests["GET", "list"] == 0


@pytest.mark.parametrize(
    ("parts", "changes", "message"),
    [
        ([], {"sourceBucket": "other"}, "the inventory describes other, and the bucket to read is data"),
        ([], {"fileFormat": "Parquet"}, "the inventory is Parquet of Bucket, Key"),
        ([], {"fileSchema": "Bucket, Key"}, "must be CSV with Key and Size"),
        ([[["data", "a"]]], {}, "s3://lists/daily/data/0.csv.gz has a line of 2 values"),
        ([[["data", "a", "v", "true", "false", "x"]]], {}, "the size of an object is 'x'"),
    ],
)
def test_an_inventory_of_something_else_is_refused(
    scripts: Scripts, parts: list[list[list[str]]], changes: dict[str, str], message: str
) -> None:
    done = scripts.run("prepare.py", inventory=inventory(scripts.account, parts, **changes))
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_objects_that_nodes_may_not_read_end_the_preparation(scripts: Scripts) -> None:
    (scripts.folder / "keys.csv").write_text("missing,5000")
    done = scripts.run("prepare.py", keys_file="keys.csv")
    assert (done.returncode, done.stderr) == (1, "data: S3 answered 404 NoSuchKey to GET 'missing'\n")


@pytest.mark.parametrize("name", ["keys.csv", "keys.csv.gz"])
def test_a_file_names_the_objects(scripts: Scripts, name: str) -> None:
    text = b'a/1,5000\n"b,c",2000\n\xc3\xa4,1000\nd,10\n'
    (scripts.folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert scripts.prepared(keys_file=name) == [("a/1", 5000), ("b%2Cc", 2000), ("%C3%A4", 1000)]


@pytest.mark.parametrize(
    ("text", "message"), [("a", "keys.csv:1: the line must be key,size"), ("a,1\nb,-1", "keys.csv:2: the size")]
)
def test_a_damaged_file_is_refused_with_its_line(scripts: Scripts, text: str, message: str) -> None:
    (scripts.folder / "keys.csv").write_text(text)
    done = scripts.run("prepare.py", keys_file="keys.csv")
    assert (done.returncode, message in done.stderr) == (1, True), done.stderr


FILLED: dict[str, Any] = {"bucket": "", "fill_objects": 40, "fill_kib": 2, "objects": 30}


def created(account: FakeAccount) -> dict[str, int]:
    """Sizes of the objects below the cell's prefix, by the rest of their keys."""
    begin = "results/data/run/c001/"
    return {key.removeprefix(begin): len(body) for key, body in account.objects.items() if key.startswith(begin)}


def test_each_node_creates_its_part_of_the_objects_and_reads_all(scripts: Scripts) -> None:
    before = dict(scripts.account.objects)
    for scripts.rank in (2, 0, 1):  # the owner of the first object is not the first to be ready
        assert len(scripts.prepared(**FILLED)) == 30
    assert created(scripts.account) == {f"{n:07d}": 2048 for n in range(40)}
    done, read = scripts.measured(lambda read: read.times.count > 5, **FILLED)
    assert done.returncode == 0, done.stderr
    assert read.errors == {}
    scripts.rank = 1
    assert scripts.run("fill.py", **FILLED).returncode == 0
    assert set(created(scripts.account)) == {f"{n:07d}" for n in range(40) if n % 3 != 1}
    for scripts.rank in range(3):
        assert scripts.run("fill.py", **FILLED).returncode == 0
    assert scripts.account.objects == before


def test_objects_that_could_not_all_be_created_are_deleted(scripts: Scripts) -> None:
    scripts.account.forbidden = "results/data/run/c001/0000024"
    done = scripts.run("prepare.py", **FILLED)
    assert (done.returncode, "S3 answered 403 AccessDenied" in done.stderr) == (1, True), done.stderr
    assert created(scripts.account) == {}
    assert scripts.account.requests["PUT", "object"] > 2


def test_nothing_is_created_that_could_not_be_deleted(scripts: Scripts) -> None:
    scripts.account.undeletable = True
    done = scripts.run("prepare.py", **FILLED)
    assert (done.returncode, "S3 did not delete 1 objects" in done.stderr) == (1, True), done.stderr
    assert set(created(scripts.account)) == {"probe-0"}
    done = scripts.run("fill.py", **FILLED)
    assert done.returncode == 0, "a failed clean-up would cost the results of the measurement"
    assert "Of s3://results/data/run/c001/, up to 14 objects are left, which expire in two days" in done.stdout


def test_a_bucket_of_the_user_is_never_written_to(scripts: Scripts) -> None:
    before = dict(scripts.account.objects)
    assert scripts.run("fill.py").stdout == "nothing to delete: fill_objects is 0\n"
    scripts.data = ""
    for script in ("prepare.py", "fill.py"):
        done = scripts.run(script, fill_objects=5)
        assert (done.returncode, "fill_objects needs own_data: true in the file" in done.stderr) == (1, True)
    assert scripts.account.objects == before


MANY = 500_000
MOST_MIB = 64
"""Of the smallest nodes' memory. Python alone takes some 12 MiB of it."""


def test_half_a_million_keys_need_little_memory(tmp_path: Path) -> None:
    """The process writes them all, maps them, and reads some at random."""
    script = f"""
import random, resource, sys
from pathlib import Path
sys.path.insert(0, {str(FOLDER)!r})
from objects import Objects, store
from s3 import Listed
folder, base = Path({str(tmp_path)!r}), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
keys = (Listed(f"year-2026/month-11/part-{{n:08d}}-of-a-longer-name.parquet", 10240 + n) for n in range({MANY}))
print(store(folder, keys, 10240, 10**6))
objects = Objects(folder)
assert len(objects) == {MANY}
for n in random.sample(range({MANY}), 20000):
    assert objects.at(n) == (f"year-2026/month-11/part-{{n:08d}}-of-a-longer-name.parquet", 10240 + n)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1024)
"""
    done = subprocess.run([python39() or sys.executable, "-c", script], capture_output=True, text=True, check=True)
    counts, grown = done.stdout.splitlines()
    assert counts == f"({MANY}, {MANY}, {sum(range(10240, 10240 + MANY))})"
    assert float(grown) < MOST_MIB


# ------------------------------------------------------------------ read


def is_enough_of(scripts: Scripts) -> Callable[[Operation], bool]:
    return lambda read: read.times.count > 20 and len(scripts.account.ranges) > read.times.count


def test_ranges_are_read_and_recorded(scripts: Scripts) -> None:
    scripts.prepared()
    done, read = scripts.measured(is_enough_of(scripts))
    assert done.returncode == 0, done.stderr
    assert read.times.count > 20
    assert read.errors == {}
    assert 100 <= read.bytes / read.times.count <= 1000
    assert len(scripts.account.ranges) > read.times.count, "the warm-up has read, too"
    lengths = {1 + int(last) - int(first) for first, last in (r[6:].split("-") for r in scripts.account.ranges)}
    assert min(lengths) >= 100
    assert max(lengths) <= 1000
    assert len(lengths) > 10


def test_ranges_have_one_length_without_a_minimum(scripts: Scripts) -> None:
    scripts.prepared()
    done, read = scripts.measured(lambda read: bool(read.times.count), min_bytes=0, max_bytes=700)
    assert done.returncode == 0, done.stderr
    assert read.bytes == 700 * read.times.count


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
    done, read = scripts.measured(lambda read: bool(read.errors), read_timeout_seconds=0.2)
    assert read.errors.keys() == {"read-timeout"}
    assert read.times.count == 0
    assert done.returncode == 0, "nothing but timeouts is a result, and other points follow"


def test_ranges_larger_than_the_chosen_objects_are_refused(scripts: Scripts) -> None:
    scripts.prepared()
    done = scripts.run("read.py", max_bytes=1001)
    assert (done.returncode, done.stderr) == (
        1,
        "max_bytes is 1001, and prepare chose objects of at least 1000 bytes\n",
    )


def test_errors_are_told_by_their_status_and_code(scripts: Scripts) -> None:
    scripts.prepared()
    scripts.account.refuse = 10**9
    done, read = scripts.measured(lambda read: bool(read.errors))
    assert (done.returncode, set(read.errors)) == (0, {"http-503-SlowDown"})


def test_an_object_that_has_shrunk_is_an_error(scripts: Scripts) -> None:
    (scripts.folder / "keys.csv").write_text("b/4,1000000000")
    scripts.prepared(keys_file="keys.csv")
    _, read = scripts.measured(lambda read: bool(read.errors))
    assert set(read.errors) <= {"http-416-InvalidRange", "short"}
    assert read.errors


def test_nobody_there_is_an_error_of_the_connection(scripts: Scripts) -> None:
    scripts.prepared()
    scripts.endpoint = "http://127.0.0.1:9"
    done, read = scripts.measured(lambda read: bool(read.errors))
    assert (done.returncode, set(read.errors)) == (1, {"connection"})
    assert "no read succeeded in the measured time: connection" in done.stderr


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


def test_credentials_that_expire_are_replaced_while_reading(scripts: Scripts) -> None:
    """The service announces that its credentials expire at once, so each process asks again."""
    scripts.prepared()
    scripts.account.lasts = 60
    before, processes = scripts.account.issued, min(4, os.cpu_count() or 1)
    scripts.measured(lambda _: scripts.account.issued > before + processes, seconds_at_least=12)
    assert scripts.account.issued > before + processes
    assert scripts.read().errors == {}


@pytest.mark.parametrize(
    ("threads", "processors", "each"), [(1, 8, [1]), (4, 2, [2, 2]), (7, 3, [3, 2, 2]), (400, 2, [200, 200])]
)
def test_threads_are_spread_over_processes(threads: int, processors: int, each: list[int]) -> None:
    assert module("read").shares(threads, processors) == each


def chosen_by(tmp_path: Path, share: tuple[int, int], seed: str, sizes: tuple[int, int] = (1, 10)) -> list[Any]:
    ranges = module("read").Ranges(module("objects").Objects(tmp_path), share, *sizes, seed=seed)
    return [ranges.next() for _ in range(300)]


def test_nodes_read_equal_or_disjoint_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects, read = module("objects"), module("read")
    objects.store(tmp_path, [module("s3").Listed(f"{n}", 10 + n) for n in range(10)], 10, 100)
    every = {str(n) for n in range(10)}
    assert {path for path, _, _ in chosen_by(tmp_path, (0, 1), "a")} == every
    parts = [{path for path, _, _ in chosen_by(tmp_path, (rank, 3), "a")} for rank in range(3)]
    assert parts == [{"0", "3", "6", "9"}, {"1", "4", "7"}, {"2", "5", "8"}]
    roster = [{"role": "drivers", "rank": rank} for rank in range(3)] + [{"role": "others", "rank": 0}]
    (tmp_path / "roster.json").write_text(json.dumps({"nodes": roster}))
    for name, value in {"ROLE": "drivers", "RANK": "2", "ROSTER": str(tmp_path / "roster.json")}.items():
        monkeypatch.setenv(f"TROOP_{name}", value)
    assert read.share_of({"disjoint": True}, 10) == (2, 3)
    assert read.share_of({"disjoint": False}, 10) == read.share_of({}, 10) == (0, 1)
    with pytest.raises(ValueError, match="3 nodes cannot read disjoint objects: there are only 2"):
        read.share_of({"disjoint": True}, 2)


@given(size=st.integers(10, 30), least=st.integers(1, 10), seed=st.text(max_size=5))
def test_ranges_lie_within_their_objects(
    tmp_path_factory: pytest.TempPathFactory, size: int, least: int, seed: str
) -> None:
    folder = tmp_path_factory.mktemp("objects")
    module("objects").store(folder, [module("s3").Listed("a", size)], 10, 1)
    for _, first, count in chosen_by(folder, (0, 1), seed, (least, 10)):
        assert 0 <= first <= first + count <= size
        assert least <= count <= 10


# ------------------------------------------------------------------ connections


class OneReader:
    """A reader of the object ``data/a``, and its credentials."""

    def __init__(self, account: FakeAccount, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", account.metadata_of("i-1"))
        account.put("data/a", bytes(5000))
        self.account, self.ranges = account, module("ranges")
        self.store = module("credentials").CredentialStore()
        self.address = module("s3").address_of("data", REGION, account.url)
        self.signer = module("signing").Signer(self.store.current, REGION)
        before = account.connections
        self.reader = self.with_limits(PATIENCE, PATIENCE)
        self.before = before

    def with_limits(self, connect: float, read: float, address: Any = None) -> Any:
        trust = module("s3").trust()
        return self.ranges.Reader(address or self.address, self.signer, self.store, trust, connect, read)

    def read(self, first: int = 0, count: int = 10) -> int:
        moved: int = self.reader.read(self.reader.request("a", first, count), count)
        return moved

    @property
    def connections(self) -> int:
        return self.account.connections - self.before


@pytest.fixture
def one(account: FakeAccount, monkeypatch: pytest.MonkeyPatch) -> OneReader:
    return OneReader(account, monkeypatch)


def test_one_connection_serves_many_reads(one: OneReader) -> None:
    assert [one.read(first, 200) for first in range(5)] == [200] * 5
    assert one.connections == 1


def test_a_connection_that_s3_has_closed_is_replaced_without_an_error(one: OneReader) -> None:
    one.account.drop = True
    assert [one.read() for _ in range(3)] == [10] * 3
    assert one.connections == 3


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (301, "PermanentRedirect", "http-301-PermanentRedirect"),
        (307, "TemporaryRedirect", "http-307-TemporaryRedirect"),
        (503, "SlowDown", "http-503-SlowDown"),
        (403, "AccessDenied", "http-403-AccessDenied"),
        (500, "", "http-500"),
        (200, "", "http-200"),
        (206, "", "short"),
    ],
)
def test_an_answer_that_is_no_range_is_an_error_of_its_kind(one: OneReader, status: int, code: str, kind: str) -> None:
    body = f"<Error><Code>{code}</Code></Error>" if code else "what?"
    one.account.answers.append((status, body.encode()))
    with pytest.raises(one.ranges.ReadError) as error:
        one.read()
    assert str(error.value) == kind
    assert one.read() == 10, "the next read has a new connection"


def test_a_wrong_clock_is_corrected_by_the_first_answer(one: OneReader, capsys: pytest.CaptureFixture[str]) -> None:
    one.account.clock_ahead = 3600
    with pytest.raises(one.ranges.ReadError, match=r"^http-403-RequestTimeTooSkewed$"):
        one.read()
    assert "The clock of this node is 3," in capsys.readouterr().out
    assert one.read() == 10


def served(*answers: bytes) -> tuple[socket.socket, threading.Thread]:
    """A server that takes one connection, and sends an answer for each part of a request that it receives."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):  # the reader may have had enough
            connection.recv(65536)
            for answer in answers:
                connection.sendall(answer)
                time.sleep(0.05)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return server, thread


HEAD = b"HTTP/1.1 206 Partial Content\r\n"
ERROR = b"HTTP/1.1 503 Slow Down\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ([HEAD + b"content-length: 10\r\n\r\n0123456789"], None),
        ([HEAD[:9], HEAD[9:], b"Content-Length:10\r\n", b"\r\n01234", b"56789"], None),
        ([HEAD + b"Content-Length: 10\r\n\r\n01234"], "short"),
        ([HEAD + b"Content-Length: 9\r\n\r\n012345678"], "short"),
        ([HEAD + b"Transfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n"], "short"),
        ([ERROR, b"29\r\n<Error><Code>SlowDown</Code>", b"</Error>\r\n0\r\n\r\n"], "http-503-SlowDown"),
        ([ERROR], "http-503"),
        ([b"HTTP/1.1 206"], "connection"),
        ([b"x" * 70000], "connection"),
        ([b"SSH-2.0-OpenSSH\r\n\r\n"], "no-http"),
        ([], "connection"),
    ],
)
def test_answers_may_come_in_parts_or_break_off(one: OneReader, answers: list[bytes], kind: str | None) -> None:
    server, thread = served(*answers)
    url = f"http://127.0.0.1:{server.getsockname()[1]}"
    reader = one.with_limits(PATIENCE, PATIENCE, module("s3").address_of("data", REGION, url))
    if kind is None:
        assert reader.read(reader.request("a", 0, 10), 10) == 10
    else:
        with pytest.raises(one.ranges.ReadError, match=f"^{kind}$"):
            reader.read(reader.request("a", 0, 10), 10)
    server.close()
    thread.join(PATIENCE)


def test_a_connection_that_takes_too_long_is_a_time_out_of_its_own(one: OneReader) -> None:
    """The server accepts the connection, and never answers within TLS."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"https://127.0.0.1:{server.getsockname()[1]}"
        reader = one.with_limits(0.1, PATIENCE, module("s3").address_of("data", REGION, url))
        with pytest.raises(one.ranges.ReadError, match=r"^connect-timeout$"):
            reader.read(reader.request("a", 0, 1), 1)


def test_the_limit_is_of_the_whole_read_and_not_of_each_packet(one: OneReader) -> None:
    server, _ = served(HEAD + b"Content-Length: 1000\r\n\r\n", *[b"x"] * 1000)
    url = f"http://127.0.0.1:{server.getsockname()[1]}"
    reader = one.with_limits(PATIENCE, 0.5, module("s3").address_of("data", REGION, url))
    with pytest.raises(one.ranges.ReadError, match=r"^read-timeout$"):
        reader.read(reader.request("a", 0, 1000), 1000)
    server.close()
