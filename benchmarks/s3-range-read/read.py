"""Reads random byte ranges of objects over many open connections, until the measured time is over.

Parameters: ``bucket``; ``min_bytes`` and ``max_bytes`` of a range, all of ``max_bytes`` with ``min_bytes: 0``;
``threads``, the connections of this node, in as many processes as it has processors; ``connect_timeout_seconds`` of a
new connection;
``read_timeout_seconds`` from a request to its last byte; ``disjoint``, whether each node has objects of its own.

``rate``, reads per second of this node (default 0: each connection reads without a pause).

Recorded as ``read``: the time from the request to the last byte, including a new connection if needed. With a rate, it
begins when the read was due, and the time from the request is recorded as its service time. Errors by kind:
``connect-timeout`` (no connection in time, with TLS), ``read-timeout``, ``connection``, ``tls``, ``short`` (not the
requested bytes), ``http-503-SlowDown`` and the like. Too many open files are not S3's fault: then the script fails.
It also fails if nothing succeeds for another reason than overload: a point with nothing but timeouts is a result.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import resource
import sys
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fill import FillError, bucket_of, share
from objects import Objects
from prepare import range_bytes
from ranges import SHORTAGES, TICK_SECONDS, Loop, Reader, ReadError, Steps, Upkeep
from s3 import S3Error, region_of

from troop.measure import phase_environment
from troop.measure.collectors import output
from troop.measure.recorder import Recorder
from troop.measure.s3.addresses import address_of, endpoint_of, trust
from troop.measure.s3.credentials import CredentialsError, CredentialStore
from troop.measure.s3.signing import Signer
from troop.measure.schedule import Schedule
from troop.measure.separate import REQUESTS, Separate

PAUSE_SECONDS = 0.05
"""Seconds after an error, so that immediate errors do not become a storm."""
CONNECT_SECONDS, READ_SECONDS = 3.0, 10.0
OVERLOAD = ("connect-timeout", "read-timeout", "http-5")
"""Beginnings of the kinds of errors that too much load causes."""


class Ranges:
    """Chooses random ranges of the objects of this node, uniformly by object.

    Args:
        own: which objects: the number of this node, from 0, and the number of nodes that share them; (0, 1) for all.
    """

    def __init__(self, objects: Objects, own: tuple[int, int], least: int, most: int, seed: str) -> None:
        self._objects, self._least, self._most = objects, least, most
        self._first, self._step = own
        self._count = len(range(self._first, len(objects), self._step))
        self._dice = random.Random(seed)

    def next(self) -> tuple[str, int, int]:
        """Returns the encoded path of an object, and a range: its first byte and its number of bytes."""
        dice = self._dice.random
        path, size = self._objects.at(self._first + self._step * int(dice() * self._count))
        count = self._least + int(dice() * (self._most - self._least + 1))
        return path, int(dice() * (size - count + 1)), count


def share_of(parameters: Mapping[str, Any], objects: int) -> tuple[int, int]:
    """Returns the share of this node: all objects, or every n-th for n nodes of its role.

    Raises:
        ValueError: there are more nodes than objects.
    """
    if not parameters.get("disjoint", False):
        return 0, 1
    rank, nodes = share()
    if nodes > objects:
        raise ValueError(f"{nodes} nodes cannot read disjoint objects: there are only {objects}")
    return rank, nodes


def work(recorder: Recorder, reader: Reader, ranges: Ranges, kinds: set[str], free: deque[Reader] | None) -> Steps:
    """Reads over one connection, without an end.

    Args:
        kinds: receives the kinds of errors, of all readers.
        free: receives the reader when it waits for the moment at which its next read is due, which it is then sent;
            None for a closed loop.
    """
    due = None
    while True:
        if free is not None:
            free.append(reader)
            while (due := (yield)) is None:
                reader.close()  # S3 has closed the idle connection
        try:
            path, first, count = ranges.next()
            request = reader.request(path, first, count)
            started = time.perf_counter()
            moved = yield from reader.read(request, count)
        except ReadError as error:
            recorder.error("read", str(error), due)
            kinds.add(str(error))
            if due is None:  # a schedule limits the rate of errors, too
                yield from reader.pause(PAUSE_SECONDS)
        else:
            recorder.ok("read", time.perf_counter() - started, moved, due)


def run(
    recorder: Recorder, loop: Loop, free: deque[Reader], schedule: Schedule | None, distance: float, shortage: Any
) -> None:
    """Lets the readers read until the measured time is over or a shortage is reported.

    Args:
        schedule: says when reads are due; None for a closed loop.
        distance: seconds between two moments of the schedule.
    """
    now, until = recorder.now, recorder.measured_until
    if schedule is None:
        while now() < until and not shortage.value:
            loop.turn()
        return
    upcoming = 0.0
    while now() < until and not shortage.value:
        while free and upcoming <= now():
            due = next(schedule, until)
            if due < until:
                free.popleft().go_on(due)
            upcoming = due + distance
        loop.turn(upcoming - now() if free else TICK_SECONDS)
    if not shortage.value:
        next(schedule, None)  # notes the reads that were due and have not begun


def process(
    number: int,
    processes: int,
    threads: int,
    parameters: dict[str, Any],
    own: tuple[int, int],
    shortage: Any,
    sender: Any,
) -> None:
    """Runs one process with its connections, and sends the numbers of successful and failed reads, the kinds of errors,
    and the number of all requests.

    Args:
        number: from 0, of the processes, which share the rate evenly.
        shortage: a number shared by all processes: the error number of too many open files, otherwise 0.
    """
    trusted, store, region = trust(), CredentialStore(), region_of(os.environ)
    address = address_of(bucket_of(parameters), region, endpoint_of(os.environ))
    upkeep, objects = Upkeep(address, store), Objects(Path(os.environ["TROOP_SHARED"]))
    signer = Signer(lambda: upkeep.credentials, region)
    connect_seconds = float(parameters.get("connect_timeout_seconds", CONNECT_SECONDS))
    read_seconds = float(parameters.get("read_timeout_seconds", READ_SECONDS))
    rate = float(parameters.get("rate", 0))
    # Points read different objects: what S3 has read before, it may answer faster.
    seed = " ".join(os.environ.get(f"TROOP_{name}", "") for name in ("NODE", "RUN", "CELL", "POINT"))
    with Recorder.of_this_phase() as recorder:
        schedule = recorder.schedule(rate, share=(number, processes)) if rate else None
        loop, kinds, free = Loop(exact=rate > 0), set[str](), deque[Reader]()
        ranges = Ranges(objects, own, *range_bytes(parameters), seed=f"{seed} {number}")
        try:
            for _ in range(threads):
                reader = Reader(address, signer, store, upkeep, loop, trusted, connect_seconds, read_seconds)
                loop.begin(reader, work(recorder, reader, ranges, kinds, free if schedule else None))
            run(recorder, loop, free, schedule, processes / rate if rate else 0.0, shortage)
        except OSError as error:
            if error.errno not in SHORTAGES:
                raise
            shortage.value = error.errno
        loop.close()
    upkeep.close()
    sender.send((*recorder.totals("read"), sorted(kinds), loop.requests))


def shares(threads: int, processors: int) -> list[int]:
    """Returns the number of connections of each process."""
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
    objects = Objects(Path(os.environ["TROOP_SHARED"]))
    _, most = range_bytes(parameters)
    if most > objects.least_bytes:
        sys.exit(f"max_bytes is {most}, and prepare chose objects of at least {objects.least_bytes} bytes")
    own = share_of(parameters, len(objects))
    shortage = multiprocessing.Value("i", 0, lock=False)
    processes, results = [], []
    each = shares(int(parameters["threads"]), os.cpu_count() or 1)
    for number, threads in enumerate(each):
        result, sender = multiprocessing.Pipe(duplex=False)
        common = parameters, own, shortage, sender
        one = multiprocessing.Process(target=process, args=(number, len(each), threads, *common))
        one.start()
        processes.append(one)
        results.append(result)
    for one in processes:
        one.join()
    if shortage.value:
        sys.exit(too_many(shortage.value, int(parameters["threads"])))
    if any(one.exitcode for one in processes):
        sys.exit("a reading process failed")
    totals = [result.recv() for result in results]
    succeeded, failed = (sum(total[n] for total in totals) for n in range(2))
    kinds = sorted({kind for total in totals for kind in total[2]})
    requests = sum(total[3] for total in totals)
    output.write_rows(REQUESTS, [Separate(REQUESTS, "s3_gets", requests)], phase_environment.results())
    print(f"{succeeded} reads succeeded, {failed} failed: {', '.join(kinds) or 'no errors'}")
    if not succeeded and not (failed and all(kind.startswith(OVERLOAD) for kind in kinds)):
        sys.exit(f"no read succeeded in the measured time: {', '.join(kinds) or 'measure longer than a read takes'}")


if __name__ == "__main__":
    try:
        main()
    except (CredentialsError, FillError, S3Error, ValueError) as failure:
        sys.exit(str(failure))
