"""Tests how the benchmark s3-range-read reads and records, and what it says when it cannot."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.patience import PATIENCE
from tests.unit.agent.fake_account import REGION, FakeAccount
from tests.unit.agent.s3_scripts import OneReader, Scripts, module
from tests.unit.tls import certificate
from troop.measure.operations import Operation
from troop.measure.recorder import Recorder
from troop.measure.s3 import addresses, credentials
from troop.measure.separate import REQUESTS, parse_file

NOWHERE = "http://127.0.0.1:9"


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
    billed = [
        row for path in scripts.folder.glob("separate-*.json") for row in parse_file(json.loads(path.read_text()))
    ]
    assert {(row.tool, row.operation) for row in billed} == {(REQUESTS, "s3_gets")}
    assert sum(row.count for row in billed) == len(scripts.account.ranges)
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


def test_errors_have_their_status_and_code(scripts: Scripts) -> None:
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
    scripts.endpoint = NOWHERE
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
    scripts.measured(lambda _: scripts.account.issued > before + processes, seconds_at_least=12, rate=20)
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


class CountedReader(OneReader):
    """A reader of the object ``data/a`` of an account, which counts its connections."""

    def __init__(self, account: FakeAccount, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", account.metadata_of("i-1"))
        account.put("data/a", bytes(5000))
        store = credentials.CredentialStore()
        store.current()  # by a connection of its own
        self.account, self.before = account, account.connections
        super().__init__(addresses.address_of("data", REGION, account.url), store)

    @property
    def connections(self) -> int:
        return self.account.connections - self.before

    def reader_of(
        self, server: socket.socket, *, connect: float = PATIENCE, read: float = PATIENCE, scheme: str = "http"
    ) -> Any:
        """A reader of another server than the account's."""
        url = f"{scheme}://127.0.0.1:{server.getsockname()[1]}"
        return self.with_limits(connect, read, addresses.address_of("data", REGION, url))


@pytest.fixture
def one(account: FakeAccount, monkeypatch: pytest.MonkeyPatch) -> Iterator[CountedReader]:
    one = CountedReader(account, monkeypatch)
    yield one
    one.close()


def test_one_connection_serves_many_reads(one: CountedReader) -> None:
    assert [one.read(first, 200) for first in range(5)] == [200] * 5
    assert one.connections == 1


def test_a_connection_that_s3_has_closed_is_replaced_without_an_error(one: CountedReader) -> None:
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
def test_an_answer_that_is_no_range_is_an_error_of_its_kind(
    one: CountedReader, status: int, code: str, kind: str
) -> None:
    body = f"<Error><Code>{code}</Code></Error>" if code else "what?"
    one.account.answers.append((status, body.encode()))
    with pytest.raises(one.ranges.ReadError) as error:
        one.read()
    assert str(error.value) == kind
    assert one.read() == 10, "the next read has a new connection"


def test_a_wrong_clock_is_corrected_by_the_first_answer(one: CountedReader, capsys: pytest.CaptureFixture[str]) -> None:
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
def test_answers_may_come_in_parts_or_break_off(one: CountedReader, answers: list[bytes], kind: str | None) -> None:
    server, thread = served(*answers)
    reader = one.reader_of(server)
    if kind is None:
        assert one.read(reader=reader) == 10
    else:
        with pytest.raises(one.ranges.ReadError, match=f"^{kind}$"):
            one.read(reader=reader)
    server.close()
    thread.join(PATIENCE)


def test_an_answer_that_breaks_off_is_an_error_on_a_used_connection_too(one: CountedReader) -> None:
    """S3 has answered, so this is no idle connection that it has closed."""
    answer, server = HEAD + b"Content-Length: 10\r\n\r\n0123456789", socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                for part in (answer, answer[:-5]):
                    connection.recv(65536)
                    connection.sendall(part)
                time.sleep(0.1)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # resets
                connection.close()

    threading.Thread(target=serve, daemon=True).start()
    reader = one.reader_of(server)
    assert one.read(reader=reader) == 10
    with pytest.raises(one.ranges.ReadError, match=r"^connection$"):
        one.read(reader=reader)
    server.close()


def test_a_connection_that_takes_too_long_is_a_time_out_of_its_own(one: CountedReader) -> None:
    """The server accepts the connection, and never answers within TLS."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        reader = one.reader_of(server, connect=0.1, scheme="https")
        with pytest.raises(one.ranges.ReadError, match=r"^connect-timeout$"):
            one.read(reader=reader)


def test_a_slow_answer_delays_no_other_read(one: CountedReader) -> None:
    """All are in one thread."""
    with socket.create_server(("127.0.0.1", 0)) as server:  # never accepts, so it never answers
        stuck = one.begin(one.reader_of(server), 0, 10)
        assert [one.read() for _ in range(3)] == [10] * 3
        assert stuck == []


def test_reads_over_many_connections_are_under_way_at_once(one: CountedReader) -> None:
    one.account.slowness = 0.05
    outcomes = [one.begin(one.with_limits(PATIENCE, PATIENCE), number, 100 + number) for number in range(20)]
    one.end(*outcomes)
    assert outcomes == [[100 + number] for number in range(20)]
    assert one.connections == 20


@pytest.mark.parametrize("count", [10, 4_000_000])
def test_ranges_of_any_size_are_read_over_tls(
    one: CountedReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    bundle = certificate(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(bundle)
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with context.wrap_socket(server.accept()[0], server_side=True) as connection:
            for _ in range(3):
                connection.recv(65536)
                connection.sendall(HEAD + f"Content-Length: {count}\r\n\r\n".encode() + bytes(count))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    reader = one.reader_of(server, scheme="https")
    assert [one.read(0, count, reader) for _ in range(3)] == [count] * 3
    server.close()
    thread.join(PATIENCE)


def test_a_connection_that_closes_while_it_waits_for_its_moment_is_replaced(one: CountedReader, tmp_path: Path) -> None:
    read, free = module("read"), deque[Any]()
    recorder, due = Recorder(tmp_path, time.time(), PATIENCE), time.time()
    chosen = SimpleNamespace(next=lambda: ("a", 0, 10))
    one.account.drop = True
    one.loop.begin(one.reader, read.work(recorder, one.reader, chosen, set(), free))
    for number in range(1, 4):
        free.popleft().go_on(due)
        until = time.monotonic() + PATIENCE
        while not free and time.monotonic() < until:
            one.loop.turn()
        one.loop.turn()  # it may learn now that the server has closed the connection
        assert recorder.totals("read") == (number, 0)
    assert one.connections == 3


@pytest.mark.parametrize("is_there", [True, False])
def test_the_limits_of_a_read_end_with_it(one: CountedReader, tmp_path: Path, is_there: bool) -> None:
    """With a low rate, a reader waits longer for its next moment than a read may take."""
    read, free = module("read"), deque[Any]()
    recorder, limit = Recorder(tmp_path, time.time(), PATIENCE), 0.3
    chosen = SimpleNamespace(next=lambda: ("a", 0, 10))
    reader = one.with_limits(limit, limit, None if is_there else addresses.address_of("data", REGION, NOWHERE))
    one.loop.begin(reader, read.work(recorder, reader, chosen, set(), free))
    for number in (1, 2):
        free.popleft().go_on(time.time())
        until = time.monotonic() + limit + 0.2
        while time.monotonic() < until:
            one.loop.turn()
        assert recorder.totals("read") == ((number, 0) if is_there else (0, number))
    assert one.connections == (1 if is_there else 0)


def test_the_limit_is_of_the_whole_read_and_not_of_each_packet(one: CountedReader) -> None:
    server, _ = served(HEAD + b"Content-Length: 1000\r\n\r\n", *[b"x"] * 1000)
    reader = one.reader_of(server, read=0.5)
    with pytest.raises(one.ranges.ReadError, match=r"^read-timeout$"):
        one.read(0, 1000, reader)
    server.close()
