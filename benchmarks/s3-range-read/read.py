"""Reads random byte ranges of objects, in many threads over kept connections, until the measured time is over.

Parameters: ``min_bytes`` and ``max_bytes`` of a range; ``threads`` of this node, in as many processes as it has
processors; ``timeout_seconds``, which one read may take (default 10); ``address_seconds``, for how long an address
works (default 6 h), and ``renew_seconds``, after how many it is looked whether addresses have to be renewed (240).

Recorded as ``read``: its time from the request to the last byte, with a new connection where one was needed. Errors by
kind: ``timeout``, ``connection``, ``tls``, ``short`` (less than asked for), ``http-503`` and the like. Too many open
files are no fault of S3's: then it ends.
"""

from __future__ import annotations

import errno
import http.client
import json
import multiprocessing
import os
import random
import resource
import socket
import ssl
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from addresses import Addresses, Renewal

from troop.measure.recorder import Recorder

PAUSE_SECONDS = 0.05
"""After an error, so that one that comes at once is not a storm."""


SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of the node itself: there are too many open files."""


class ReadError(Exception):
    """A read that failed, by the kind of its error."""


class Reader:
    """One thread's connection."""

    def __init__(self, trust: ssl.SSLContext, timeout_seconds: float) -> None:
        self._trust, self._timeout = trust, timeout_seconds
        self._host: tuple[str, str] | None = None
        self._connection: http.client.HTTPConnection | None = None

    def read(self, url: str, first: int, count: int) -> int:
        """Reads ``count`` bytes from ``first`` on, and answers how many those were.

        Raises:
            ReadError: it failed, or took too long.
            OSError: there are too many open files.
        """
        try:
            return self._read(url, first, count, time.monotonic() + self._timeout)
        except ReadError:
            self.close()
            raise
        except (socket.timeout, TimeoutError):
            self.close()
            raise ReadError("timeout") from None
        except ssl.SSLError:
            self.close()
            raise ReadError("tls") from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if getattr(error, "errno", None) in SHORTAGES:
                raise
            raise ReadError("connection") from None

    def _read(self, url: str, first: int, count: int, until: float) -> int:
        parts = urlsplit(url)
        connection = self._to(parts.scheme, parts.netloc)
        if connection.sock is None:
            connection.timeout = self._timeout
            connection.connect()
        self._limit(connection, until)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request("GET", path, headers={"Range": f"bytes={first}-{first + count - 1}"})
        response = connection.getresponse()
        if response.status != 206:  # 200 would be the whole object
            raise ReadError(f"http-{response.status}")
        moved = 0
        while True:
            self._limit(connection, until)
            block = response.read1(65536)
            if not block:
                break
            moved += len(block)
        response.read()  # nothing is left; but some versions of Python only now let the connection be used again
        if moved != count:
            raise ReadError("short")
        return moved

    def _limit(self, connection: http.client.HTTPConnection, until: float) -> None:
        """The time-out is the whole read's, not that of each of its packets."""
        left = until - time.monotonic()
        if left <= 0:
            raise ReadError("timeout")
        if connection.sock is not None:  # None: the server has said that this is its last answer
            connection.sock.settimeout(left)

    def _to(self, scheme: str, host: str) -> http.client.HTTPConnection:
        if self._connection is None or self._host != (scheme, host):
            self.close()
            self._host = (scheme, host)
            self._connection = (
                http.client.HTTPSConnection(host, context=self._trust)
                if scheme == "https"
                else http.client.HTTPConnection(host)
            )
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def work(
    recorder: Recorder, reader: Reader, seed: str, addresses: Addresses, parameters: dict[str, Any], shortage: Any
) -> None:
    """One thread: reads until the measured time is over, or somebody has told of a shortage."""
    dice = random.Random(seed)
    least, most = int(parameters["min_bytes"]), int(parameters["max_bytes"])
    while recorder.now() < recorder.measured_until and not shortage.value:
        try:
            one, count = dice.choice(addresses.objects()), dice.randint(least, most)
            first = dice.randint(0, one["size"] - count)
            started = time.perf_counter()
            moved = reader.read(one["url"], first, count)
        except ReadError as error:
            recorder.error("read", str(error))
            addresses.failed(str(error))
            time.sleep(PAUSE_SECONDS)
        except OSError as error:
            if error.errno not in SHORTAGES:
                raise
            shortage.value = error.errno
        else:
            recorder.ok("read", time.perf_counter() - started, moved)
    reader.close()


def process(
    number: int, threads: int, addresses: Addresses, parameters: dict[str, Any], shortage: Any, sender: Any
) -> None:
    """One process with its threads; tells how many reads succeeded and how many did not.

    Args:
        shortage: a number that all processes share: of the error by which one has too many open files, else 0.
    """
    trusted = trust()
    limit = float(parameters.get("timeout_seconds", 10))
    seeds = [f"{os.environ['TROOP_NODE']} {number} {n}" for n in range(threads)]
    with Recorder.of_this_phase() as recorder:
        common = addresses, parameters, shortage
        all_of_them = [
            threading.Thread(target=work, args=(recorder, Reader(trusted, limit), seed, *common)) for seed in seeds
        ]
        for one in all_of_them:
            one.start()
        for one in all_of_them:
            one.join()
    sender.send(recorder.totals("read"))


def trust() -> ssl.SSLContext:
    """The certificates that the AWS CLI trusts."""
    return ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE") or None)


def shares(threads: int, processors: int) -> list[int]:
    """Threads of each process."""
    processes = max(1, min(threads, processors))
    return [threads // processes + (n < threads % processes) for n in range(processes)]


def too_many(number: int, threads: int) -> str:
    """What the error of an open file that could not be had means."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"{os.strerror(number)}: each of the {threads} threads needs one, and a process may have {limit} here: take "
        "fewer threads, or more nodes"
    )


def main() -> None:
    parameters = json.loads(Path(os.environ["TROOP_PARAMETERS"]).read_text(encoding="utf-8"))
    path = Path(os.environ["TROOP_SHARED"]) / "objects.json"
    edition = multiprocessing.Value("L", 0, lock=False)
    shortage = multiprocessing.Value("i", 0, lock=False)
    refused, refusals = multiprocessing.Pipe(duplex=False)
    renewal = Renewal(path, parameters, edition, refused)
    processes, results = [], []
    for number, threads in enumerate(shares(int(parameters["threads"]), os.cpu_count() or 1)):
        result, sender = multiprocessing.Pipe(duplex=False)
        addresses = Addresses(path, edition, refusals)
        one = multiprocessing.Process(target=process, args=(number, threads, addresses, parameters, shortage, sender))
        one.start()
        processes.append(one)
        results.append(result)
    renewal.start()  # not before: a process with two threads is not to be forked
    for one in processes:
        one.join()
    refusals.close()  # the last end of the pipe to write into: that wakes the renewal up, and ends it
    renewal.stop()
    if shortage.value:
        sys.exit(too_many(shortage.value, int(parameters["threads"])))
    if any(one.exitcode for one in processes):
        sys.exit("a process of readers has failed")
    totals = [result.recv() for result in results]
    succeeded, failed = (sum(column) for column in zip(*totals))
    print(f"{succeeded} reads, and {failed} that failed")
    if not succeeded:
        sys.exit("no read succeeded in the measured time")


if __name__ == "__main__":
    main()
