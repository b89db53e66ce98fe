"""Reads random byte ranges of objects with many threads over open connections, until the measured time is over.

Parameters: ``min_bytes`` and ``max_bytes`` of a range; ``threads`` of this node, in as many processes as it has
processors; ``timeout_seconds`` of one read (default 10); ``address_seconds``, the lifetime of a URL (default 6 h);
``renew_seconds``, the time between two checks whether URLs need a renewal (default 240).

``rate``, reads per second of this node (default 0: each thread reads without a pause).

Recorded as ``read``: the time from the request to the last byte, including a new connection if needed. With a rate, it
begins when the read was due, and the time from the request is recorded as its service time. Errors by kind:
``connect-timeout`` (no connection in time, with TLS), ``read-timeout``, ``connection``, ``tls``, ``short`` (fewer
bytes than requested), ``http-503`` and the like. Too many open files are not S3's fault: then the script fails.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from addresses import Addresses, Renewal

from troop.measure.recorder import Recorder
from troop.measure.schedule import Schedule

PAUSE_SECONDS = 0.05
"""Seconds after an error, so that immediate errors do not become a storm."""


SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of the node itself: too many open files."""


class ReadError(Exception):
    """A read failed; the message is the kind of error."""


class Reader:
    """One thread's connection."""

    def __init__(self, trust: ssl.SSLContext, timeout_seconds: float) -> None:
        self._trust, self._timeout = trust, timeout_seconds
        self._host: tuple[str, str] | None = None
        self._connection: http.client.HTTPConnection | None = None

    def read(self, url: str, first: int, count: int) -> int:
        """Reads ``count`` bytes from ``first``, and returns the number of bytes read.

        Raises:
            ReadError: the read failed or took too long.
            OSError: there are too many open files.
        """
        try:
            return self._read(url, first, count, time.monotonic() + self._timeout)
        except ReadError:
            self.close()
            raise
        except (socket.timeout, TimeoutError):
            self.close()
            raise ReadError("read-timeout") from None
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
            try:
                connection.connect()
            except (socket.timeout, TimeoutError):
                raise ReadError("connect-timeout") from None
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
        response.read()  # nothing is left, but some versions of Python release the connection only now
        if moved != count:
            raise ReadError("short")
        return moved

    def _limit(self, connection: http.client.HTTPConnection, until: float) -> None:
        """Applies the timeout to the whole read, not to each packet."""
        left = until - time.monotonic()
        if left <= 0:
            raise ReadError("read-timeout")
        if connection.sock is not None:  # None: the server announced its last answer
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


def without_pause(recorder: Recorder) -> Iterator[None]:
    """Yields whenever asked, until the measured time is over: a closed loop."""
    while recorder.now() < recorder.measured_until:
        yield None


def work(
    recorder: Recorder,
    reader: Reader,
    seed: str,
    addresses: Addresses,
    parameters: dict[str, Any],
    shortage: Any,
    schedule: Schedule | None = None,
) -> None:
    """Reads until the measured time is over or a shortage is reported; runs in each thread.

    Args:
        schedule: says when reads are due, for all threads together; None for a closed loop.
    """
    dice = random.Random(seed)
    least, most = int(parameters["min_bytes"]), int(parameters["max_bytes"])
    for due in schedule or without_pause(recorder):
        if shortage.value:
            break
        try:
            one, count = dice.choice(addresses.objects()), dice.randint(least, most)
            first = dice.randint(0, one["size"] - count)
            started = time.perf_counter()
            moved = reader.read(one["url"], first, count)
        except ReadError as error:
            recorder.error("read", str(error))
            addresses.failed(str(error))
            if due is None:  # a schedule limits the rate of errors, too
                time.sleep(PAUSE_SECONDS)
        except OSError as error:
            if error.errno not in SHORTAGES:
                raise
            shortage.value = error.errno
        else:
            recorder.ok("read", time.perf_counter() - started, moved, due=due)
    reader.close()


def process(
    number: int,
    processes: int,
    threads: int,
    addresses: Addresses,
    parameters: dict[str, Any],
    shortage: Any,
    sender: Any,
) -> None:
    """Runs one process with its threads, and sends the number of successful and failed reads.

    Args:
        number: from 0, of the processes, which share the rate evenly.
        shortage: a number shared by all processes: the error number of too many open files, otherwise 0.
    """
    trusted = trust()
    limit = float(parameters.get("timeout_seconds", 10))
    seeds = [f"{os.environ['TROOP_NODE']} {number} {n}" for n in range(threads)]
    rate = float(parameters.get("rate", 0))
    with Recorder.of_this_phase() as recorder:
        schedule = recorder.schedule(rate, share=(number, processes)) if rate else None
        common = addresses, parameters, shortage, schedule
        all_of_them = [
            threading.Thread(target=work, args=(recorder, Reader(trusted, limit), seed, *common)) for seed in seeds
        ]
        for one in all_of_them:
            one.start()
        for one in all_of_them:
            one.join()
    sender.send(recorder.totals("read"))


def trust() -> ssl.SSLContext:
    """Returns a context with the certificates that the AWS CLI trusts."""
    return ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE") or None)


def shares(threads: int, processors: int) -> list[int]:
    """Returns the number of threads of each process."""
    processes = max(1, min(threads, processors))
    return [threads // processes + (n < threads % processes) for n in range(processes)]


def too_many(number: int, threads: int) -> str:
    """Explains the error of too many open files."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"{os.strerror(number)}: each of the {threads} threads needs one, but the limit per process is {limit}: use "
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
    each = shares(int(parameters["threads"]), os.cpu_count() or 1)
    for number, threads in enumerate(each):
        result, sender = multiprocessing.Pipe(duplex=False)
        addresses = Addresses(path, edition, refusals)
        common = addresses, parameters, shortage, sender
        one = multiprocessing.Process(target=process, args=(number, len(each), threads, *common))
        one.start()
        processes.append(one)
        results.append(result)
    renewal.start()  # not before: a process with two threads must not fork
    for one in processes:
        one.join()
    refusals.close()  # closing the pipe's last write end wakes the renewal and ends it
    renewal.stop()
    if shortage.value:
        sys.exit(too_many(shortage.value, int(parameters["threads"])))
    if any(one.exitcode for one in processes):
        sys.exit("a reading process failed")
    totals = [result.recv() for result in results]
    succeeded, failed = (sum(column) for column in zip(*totals))
    print(f"{succeeded} reads succeeded, {failed} failed")
    if not succeeded:
        sys.exit("no read succeeded in the measured time")


if __name__ == "__main__":
    main()
