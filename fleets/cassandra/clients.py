"""Writes and reads rows of the ring without end, at QUORUM, and counts exactly what the clients notice.

Parameters: ``threads``, the clients of a driver; ``rate``, requests a second of a driver; ``timeout_seconds`` of a
request, after which the client connects to another server and repeats it.

A client writes the next key until a server acknowledges it, then reads an earlier one. So each failed request counts,
and each acknowledged row must still be there. Servers come from the roster, which changes. The file ``clients.json``
has the counts of each second. Once there is a file ``stop``, the clients end, and read all acknowledged rows again. The
file ``outcome.json`` then has how many are missing.
"""

from __future__ import annotations

import json
import os
import random
import socket
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import cql

SHARED = Path(os.environ.get("TROOP_SHARED", "."))
PORT = 9042
TABLE = "ring.rows"
MASK = 0x5DEECE66D
"""A row's value follows from its key, so a read checks it."""
DRIVER_KEYS, CLIENT_KEYS = 10**15, 10**11
"""The numbers of keys that each driver and each of its clients has for itself."""


class Second:
    """What happened in one second."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.slowest = 0.0

    def document(self) -> dict[str, Any]:
        return {**self.done, "failed": dict(self.failed), "slowest_ms": round(1000 * self.slowest, 1)}


class Counts:
    """The counts of all clients of a driver."""

    def __init__(self) -> None:
        self._seconds: dict[int, Second] = {}
        self._lock = threading.Lock()
        self.wrong = 0
        self.longest = 0.0
        """The longest time that a client waited for a success, in seconds."""

    def count(self, kind: str, error: str, seconds: float) -> None:
        """Counts a request that ended now.

        Args:
            kind: write or read.
            error: empty if it succeeded.
        """
        with self._lock:
            second = self._seconds.setdefault(int(time.time()), Second())
            if error:
                second.failed[error] += 1
            else:
                second.done[f"{kind}s"] += 1
                second.slowest = max(second.slowest, seconds)

    def succeeded_after(self, seconds: float) -> None:
        with self._lock:
            self.longest = max(self.longest, seconds)

    def saw_wrong_row(self) -> None:
        with self._lock:
            self.wrong += 1

    def document(self) -> dict[str, Any]:
        with self._lock:
            seconds = {str(second): one.document() for second, one in sorted(self._seconds.items())}
            return {"seconds": seconds, "wrong": self.wrong, "longest_wait_ms": round(1000 * self.longest, 1)}


class Client:
    """One client with one connection."""

    def __init__(self, number: int, pause: float, timeout: float, counts: Counts, stop: threading.Event) -> None:
        self._first = int(os.environ["TROOP_RANK"]) * DRIVER_KEYS + number * CLIENT_KEYS
        self._pause, self._timeout, self._counts, self._stop = pause, timeout, counts, stop
        self._connection: cql.Connection | None = None
        self._random = random.Random(self._first)
        self.acknowledged = 0

    def run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            key = self._first + self.acknowledged
            if self._until_done("write", f"INSERT INTO {TABLE} (key, value) VALUES (?, ?)", [key, key ^ MASK]):
                self.acknowledged += 1
                earlier = self._first + self._random.randrange(self.acknowledged)
                self._until_done("read", f"SELECT value FROM {TABLE} WHERE key = ?", [earlier])
            due = max(due + 2 * self._pause, time.monotonic() - 1)
            self._stop.wait(max(0.0, due - time.monotonic()))

    def verify(self) -> int:
        """Reads all acknowledged rows, and returns how many are missing or wrong."""
        self._stop = threading.Event()
        missing = 0
        for key in range(self._first, self._first + self.acknowledged):
            rows: list[Any] = []
            self._until_done("read", f"SELECT value FROM {TABLE} WHERE key = ?", [key], rows, is_counted=False)
            missing += rows != [[key ^ MASK]]
        return missing

    def _until_done(
        self, kind: str, statement: str, values: list[int], rows: list[Any] | None = None, is_counted: bool = True
    ) -> bool:
        """Repeats a request until it succeeds. Returns false if the end comes before."""
        began = time.monotonic()
        while not self._stop.is_set():
            sent = time.monotonic()
            error, answer = self._request(statement, values)
            if is_counted:
                self._counts.count(kind, error, time.monotonic() - sent)
            if error:
                continue
            if rows is not None:
                rows += answer
            elif kind == "read" and answer != [[values[0] ^ MASK]]:
                self._counts.saw_wrong_row()
            if is_counted:
                self._counts.succeeded_after(time.monotonic() - began)
            return True
        return False

    def _request(self, statement: str, values: list[int]) -> tuple[str, list[Any]]:
        """Returns the kind of the error, and the rows."""
        try:
            if self._connection is None:
                addresses = servers()
                if not addresses:
                    raise ConnectionError("no server is present")
                self._connection = cql.Connection(self._random.choice(addresses), PORT, self._timeout)
            return "", self._connection.query(statement, values)
        except cql.RefusedError as error:
            self._stop.wait(0.1)  # the server answers at once, and would do so again
            return error.kind, []
        except OSError as error:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            else:
                self._stop.wait(0.1)  # a server that refuses connections does so at once
            return kind_of(error), []


def kind_of(error: OSError) -> str:
    """Returns the kind of a request without an answer. Before Python 3.10, a socket's timeout is no TimeoutError."""
    return "timeout" if isinstance(error, (TimeoutError, socket.timeout)) else "connection"


def servers() -> list[str]:
    """Returns the addresses of the servers that are present."""
    roster = json.loads(Path(os.environ["TROOP_ROSTER"]).read_text(encoding="utf-8"))
    return [one["address"] for one in roster["nodes"] if one["role"] == "servers" and one.get("is_present", True)]


def write(name: str, document: Any) -> None:
    """Writes a file that is never seen half written."""
    new = SHARED / f"{name}.new"
    new.write_text(json.dumps(document), encoding="utf-8")
    new.replace(SHARED / name)


def main() -> None:
    parameters = json.loads(Path(os.environ["TROOP_PARAMETERS"]).read_text(encoding="utf-8"))
    threads, stop, counts = int(parameters["threads"]), threading.Event(), Counts()
    pause, timeout = threads / float(parameters["rate"]), float(parameters["timeout_seconds"])
    clients = [Client(number, pause, timeout, counts, stop) for number in range(threads)]
    running = [threading.Thread(target=client.run) for client in clients]
    for thread in running:
        thread.start()
    while not (SHARED / "stop").exists():
        write("clients.json", counts.document())
        time.sleep(0.5)
    stop.set()
    for thread in running:
        thread.join()
    write("clients.json", counts.document())
    missing = sum(client.verify() for client in clients)
    write("outcome.json", {"acknowledged": sum(client.acknowledged for client in clients), "missing": missing})


if __name__ == "__main__":
    main()
