"""The fleet cassandra: how a server takes over the place of a lost one, and what clients count."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from infra import ROOT
from local.ring import picture, summary, table
from tests.unit.agent.pythons import python39
from tests.unit.benchmarks.scripts import folder

FLEET = ROOT / "fleets" / "cassandra"
TOKEN = -3074457345618258603


def _modules() -> dict[str, ModuleType]:
    """Imports the fleet's scripts with those of the ring, and leaves no trace among the interpreter's modules."""
    names = ["cluster", "cql", "clients", "install", "node", "server", "start", "setup"]
    others = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    path = list(sys.path)
    sys.path[:0] = [str(FLEET), str(folder("cassandra-write"))]
    try:
        return {name: importlib.import_module(name) for name in names}
    finally:
        sys.path[:] = path
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(others)


SCRIPTS = _modules()
setup, cql, clients, node, server = (SCRIPTS[name] for name in ("setup", "cql", "clients", "node", "server"))


def phase(tmp_path: Path, rank: int = 1, predecessor: str = "10.0.0.1") -> Any:
    nodes = [
        {"role": "servers", "rank": n, "address": f"10.0.0.{n}", "zone": "abc"[n], "predecessor": ""} for n in range(3)
    ]
    nodes[1] |= {"address": "10.0.0.9", "predecessor": predecessor}
    folders = [tmp_path] * 4
    return node.Phase("setup", "servers", rank, nodes[rank]["address"], {}, {"nodes": nodes}, *folders, 0.0, 0.0)


def test_a_server_replaces_another_one_only_if_the_roster_names_it(tmp_path: Path) -> None:
    assert setup.predecessor(phase(tmp_path)) == "10.0.0.1"
    assert setup.predecessor(phase(tmp_path, rank=0)) == ""


DOWN = ({str(TOKEN): "10.0.0.1"}, {"10.0.0.0", "10.0.0.2"})
UP = ({str(TOKEN): "10.0.0.1"}, {"10.0.0.0", "10.0.0.1", "10.0.0.2"})


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ([DOWN, None, DOWN], "10.0.0.1"),
        ([({str(TOKEN): "10.0.0.7"}, {"10.0.0.0"}), None, None], "10.0.0.7"),  # an earlier replacement never joined
        ([UP, None, UP], "is still up"),
        ([DOWN, None, UP], "is still up"),
        ([DOWN, None, ({str(TOKEN): "10.0.0.8"}, set())], "disagree"),
        ([({}, {"10.0.0.0"}), None, None], "disagree"),
        ([None, None, None], "no other server answers"),
    ],
)
def test_the_owner_of_the_token_is_replaced_once_all_know_that_it_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[Any], outcome: str
) -> None:
    by_address = dict(zip(["10.0.0.0", "10.0.0.9", "10.0.0.2"], answers, strict=True))
    monkeypatch.setattr(setup, "ownership", by_address.get)
    if outcome.startswith("10."):
        assert setup.await_loss(phase(tmp_path), time.monotonic() + 60) == outcome
    else:
        monkeypatch.setattr(setup.time, "sleep", lambda _: None)
        with pytest.raises(SystemExit, match=outcome):
            setup.await_loss(phase(tmp_path), time.monotonic() + 0.1)


def test_the_token_of_a_lost_server_does_not_depend_on_the_present_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = phase(tmp_path)
    nodes = one.roster["nodes"]
    for seat in nodes:
        seat["of"] = 3
    nodes += [{**nodes[0], "rank": n, "address": f"10.0.0.{10 + n}", "of": 6} for n in (3, 4, 5)]
    monkeypatch.setattr(setup, "ownership", lambda _: DOWN)
    assert setup.await_loss(one, time.monotonic() + 60) == "10.0.0.1"


def test_a_replacement_starts_with_the_token_of_the_lost_server_and_other_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []
    monkeypatch.setattr(setup, "await_loss", lambda *_: "10.0.0.1")
    monkeypatch.setattr(setup.start, "launch", lambda *arguments: started.append(arguments))
    monkeypatch.setattr(setup.server, "keep_started", lambda _phase, pid: server.Process(pid, ""))
    monkeypatch.setattr(setup.server, "await_ring", lambda *_: None)
    monkeypatch.setattr(setup, "ownership", lambda _: ({str(TOKEN): "10.0.0.9"}, set()))
    setup.replace(phase(tmp_path), time.monotonic() + 60)
    ((_, changes, java),) = started
    assert java == ["-Dcassandra.replace_address_first_boot=10.0.0.1"]
    assert (changes["initial_token"], changes["auto_bootstrap"]) == (None, True)
    (provider,) = changes["seed_provider"]
    assert provider["parameters"] == [{"seeds": "10.0.0.0,10.0.0.2"}], "a seed would not copy rows"


@pytest.mark.parametrize("other", [None, ({str(TOKEN): "10.0.0.1"}, set()), ({}, set())])
def test_a_replacement_is_ready_only_if_all_servers_name_it_as_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: Any
) -> None:
    mine = ({str(TOKEN): "10.0.0.9"}, {"10.0.0.9"})
    answers = [mine, mine, other, mine, mine, mine]  # of three servers, twice
    monkeypatch.setattr(setup, "ownership", lambda _: answers.pop(0))
    monkeypatch.setattr(setup.time, "sleep", lambda _: None)
    setup.await_token(phase(tmp_path), time.monotonic() + 60)
    assert answers == [], "the first round was not enough"
    monkeypatch.setattr(setup, "ownership", lambda _: other)
    with pytest.raises(SystemExit, match="not all servers name"):
        setup.await_token(phase(tmp_path), time.monotonic() + 0.1)


@pytest.mark.parametrize("document", [FLEET / "fleet.yaml", folder("data-service") / "benchmark.yaml"])
def test_the_modules_of_cassandra_write_are_pinned_as_they_are(document: Path) -> None:
    """They are artifacts: after a change of one, its hash in the document must follow."""
    artifacts = yaml.safe_load(document.read_text())["artifacts"]
    pinned = {one["name"]: one["sha256"] for one in artifacts if one["source"].startswith("../")}
    assert len(pinned) == 5
    actual = {name: hashlib.sha256((folder("cassandra-write") / name).read_bytes()).hexdigest() for name in pinned}
    assert pinned == actual


# Clients


class Store:
    """A server of Cassandra's protocol with one table of bigints.

    Attributes:
        refusals: codes of errors that the next requests get.
        silent: whether it does not answer requests.
    """

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}
        self.refusals: list[int] = []
        self.silent = False
        self.statements: list[tuple[str, int]] = []

    def answer(self, opcode: int, body: bytes) -> tuple[int, bytes]:
        if opcode == 1:
            return 2, b""
        if self.refusals:
            return 0, struct.pack(">iH", self.refusals.pop(0), 4) + b"busy"
        (length,) = struct.unpack_from(">i", body)
        text, at = body[4 : 4 + length].decode(), 4 + length
        consistency, flags, count = struct.unpack_from(">HBH", body, at)
        assert flags == 3, "values, and no metadata"
        values = [struct.unpack_from(">iq", body, at + 5 + 12 * n)[1] for n in range(count)]
        self.statements.append((text.split()[0], consistency))
        if text.startswith("INSERT"):
            self.rows[values[0]] = values[1]
            return 8, struct.pack(">i", 1)
        row = [self.rows[values[0]]] if values[0] in self.rows else []
        rows = b"".join(struct.pack(">iq", 8, one) for one in row)
        return 8, struct.pack(">iiii", 2, 4, 1, len(row)) + rows


@contextmanager
def serve(store: Store) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def one(connection: socket.socket) -> None:
            with connection, connection.makefile("rb") as stream:
                while len(header := stream.read(9)) == 9:
                    _, _, _, opcode, length = struct.unpack(">BBhBi", header)
                    body = stream.read(length)
                    if store.silent and opcode != 1:
                        continue
                    answered, answer = store.answer(opcode, body)
                    connection.sendall(struct.pack(">BBhBi", 0x84, 0, 0, answered, len(answer)) + answer)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=one, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield int(listening.getsockname()[1])


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    store = Store()
    roster = {"nodes": [{"role": "servers", "address": "127.0.0.1"}, {"role": "drivers", "address": "127.0.0.2"}]}
    (tmp_path / "roster.json").write_text(json.dumps(roster))
    monkeypatch.setenv("TROOP_ROSTER", str(tmp_path / "roster.json"))
    monkeypatch.setenv("TROOP_RANK", "1")
    with serve(store) as port:
        monkeypatch.setattr(clients, "PORT", port)
        yield store


def run_until(condition: Callable[[Any], bool], timeout: float = 5) -> tuple[Any, Any]:
    """Returns a client and the counts, once a condition of the client holds."""
    stop, counts = threading.Event(), clients.Counts()
    client = clients.Client(0, 0.001, timeout, counts, stop)
    thread = threading.Thread(target=client.run)
    thread.start()
    until = time.monotonic() + 60
    while not condition(client) and time.monotonic() < until:
        time.sleep(0.01)
    stop.set()
    thread.join()
    return client, counts.document()


def total(counts: Any, key: str) -> int:
    return sum(one.get(key, 0) for one in counts["seconds"].values())


def test_clients_write_at_quorum_and_find_all_of_it_again(store: Store) -> None:
    client, counts = run_until(lambda client: client.acknowledged >= 20)
    assert client.acknowledged == len(store.rows)
    assert store.rows == {key: key ^ clients.MASK for key in store.rows}
    assert {consistency for _, consistency in store.statements} == {cql.QUORUM}
    assert total(counts, "writes") == client.acknowledged
    assert counts["wrong"] == 0
    assert client.verify() == 0
    store.rows.popitem()
    store.rows[next(iter(store.rows))] = 0
    assert client.verify() == 2


def test_each_refused_request_counts_and_is_repeated(store: Store) -> None:
    store.refusals = [0x1000, 0x1100, 0x1100]
    client, counts = run_until(lambda client: client.acknowledged >= 3)
    failed = [one["failed"] for one in counts["seconds"].values()]
    assert {kind: sum(one.get(kind, 0) for one in failed) for one in failed for kind in one} == {
        "unavailable": 1,
        "write-timeout": 2,
    }
    assert client.verify() == 0


def test_a_silent_server_times_out_and_the_client_connects_again(store: Store) -> None:
    store.silent = True
    threading.Timer(0.5, lambda: setattr(store, "silent", False)).start()
    _, counts = run_until(lambda client: client.acknowledged >= 1, timeout=0.2)
    assert sum(one["failed"].get("timeout", 0) for one in counts["seconds"].values()) >= 1
    assert counts["longest_wait_ms"] >= 200


@pytest.mark.skipif(python39() is None, reason="there is no Python 3.9")
def test_nodes_can_run_the_scripts_and_know_a_timeout() -> None:
    """Amazon Linux has Python 3.9, in which a socket's timeout is no TimeoutError."""
    code = "import setup, clients, socket; print(clients.kind_of(socket.timeout()), clients.kind_of(OSError()))"
    path = os.pathsep.join(map(str, (FLEET, folder("cassandra-write"), ROOT / "functions")))
    environment = {"PYTHONPATH": path, "PATH": os.environ["PATH"]}
    done = subprocess.run([str(python39()), "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("timeout connection\n", "")


def test_clients_wait_while_no_server_is_present(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "roster.json").write_text('{"nodes": []}')
    monkeypatch.setenv("TROOP_ROSTER", str(tmp_path / "roster.json"))
    monkeypatch.setenv("TROOP_RANK", "0")
    counts, stop = clients.Counts(), threading.Event()
    client = clients.Client(0, 0.001, 5, counts, stop)
    thread = threading.Thread(target=client.run)
    thread.start()
    time.sleep(0.3)
    assert thread.is_alive()
    stop.set()
    thread.join()
    assert sum(one["failed"]["connection"] for one in counts.document()["seconds"].values()) >= 1


def test_a_stale_row_is_noticed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    written = store.answer

    def stale(opcode: int, body: bytes) -> tuple[int, bytes]:
        answer = written(opcode, body)
        store.rows = dict.fromkeys(store.rows, 5)
        return answer

    monkeypatch.setattr(store, "answer", stale)
    _, counts = run_until(lambda client: client.acknowledged >= 3)
    assert counts["wrong"] > 0


# What make ring prints


SECONDS = {
    "100": {"writes": 10, "reads": 9, "failed": {}, "slowest_ms": 4},
    "101": {"writes": 5, "reads": 5, "failed": {"connection": 2}, "slowest_ms": 12},
    "102": {"writes": 9, "reads": 9, "failed": {}, "slowest_ms": 5},
    "103": {"writes": 3, "reads": 3, "failed": {"timeout": 1}, "slowest_ms": 2100},
    "110": {"writes": 8, "reads": 8, "failed": {}, "slowest_ms": 3},
}


def test_the_table_lists_the_seconds_that_clients_noticed() -> None:
    lines = [line.split() for line in table(SECONDS, 101.4, 105.0).splitlines()[2:]]
    assert lines == [
        ["+0", "s", "5", "5", "12", "ms", "2", "connection"],
        ["+2", "s", "3", "3", "2,100", "ms", "1", "timeout"],
        ["+3", "s", "0", "0", "0", "ms", "none"],
        ["+4", "s", "0", "0", "0", "ms", "none"],
        ["before", "10", "9", "4", "ms", "none"],
        ["meanwhile", "17", "17", "2,100", "ms", "2", "connection,", "1", "timeout"],
        ["after", "8", "8", "3", "ms", "none"],
    ]


def test_the_summary_counts_everything() -> None:
    counts = {"seconds": SECONDS, "wrong": 0, "longest_wait_ms": 2200.0}
    text = summary(counts, {"acknowledged": 35, "missing": 1})
    assert "sent 72 requests. 69 succeeded; 3 failed" in text
    assert "Of 35 acknowledged rows, 1 are missing" in text


def test_the_picture_has_each_second_and_the_moments() -> None:
    drawing = ElementTree.fromstring(picture(SECONDS, {"a server ends": 101.4, "and its place": 105.0}))
    shapes = [(one.tag.rpartition("}")[2], one.attrib, one.text or "") for one in drawing]
    red = [float(shape["height"]) for tag, shape, _ in shapes if tag == "rect" and shape["fill"] == "#d03b3b"]
    assert len(red) == 2
    assert all(height >= 4 for height in red), "a single failure is visible"
    assert sum(tag == "rect" and shape["fill"] == "#2a78d6" for tag, shape, _ in shapes) == 11
    texts = [text for tag, _, text in shapes if tag == "text"]
    assert texts[:2] == ["a server ends (+0 s)", "and its place (+4 s)"]
    assert {"-1 s", "+9 s", "2,100 ms"} <= set(texts)
