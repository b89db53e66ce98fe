"""Drives the load: creates the schema (phase ``schema``, one driver for all), and writes rows of ten columns of ten
bytes, at consistency ONE, in the phases ``load`` and ``measure``. No other driver writes the same keys.

Parameters: ``driver``, latte or cassandra-stress; ``keys`` of each driver; ``threads``, concurrent writes of each
driver; ``rate``, writes per second of each driver, 0 for no limit; ``sampling_ms``; ``write_timeout_ms``;
``load_seconds``.

Recorded as ``write``, from the generator's interval log: the time from the request to the answer. With a ``rate``,
cassandra-stress measures from the moment when a write was due, and both times are recorded. latte cannot: it skips the
writes for which it is late. Times include failures, which the generators do not separate. Errors: ``failed``.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import cluster
from node import LOST, Phase, this_phase

from troop.measure import hdr_log
from troop.measure.hdr_log import Interval
from troop.measure.operations import RESPONSE, SERVICE, Operation

TAGS = {"latte": "requests", "cassandra-stress": "WRITE-st"}
"""Tags of the intervals that contain each request once, from sending it to its answer."""
RESPONSE_TAG = "WRITE-rt"
"""Tag of cassandra-stress's intervals with the times from the moment when a write was due, with a rate."""
SLACK = 2.0
"""Seconds of load after the measured time."""
LATER_MS = 3000
"""Milliseconds that a driver waits for an answer after a server's timeout."""
MOST_PROBLEMS = 5
"""The most damaged lines of a log that a message lists."""
A_THREAD = 64
"""Concurrent writes per thread of latte."""


def main() -> None:
    phase = this_phase()
    if phase.name == "schema":
        if phase.rank == 0:
            run(phase, schema_line(phase))
            print("the schema is ready")
        return
    seconds = float(phase.parameters["load_seconds"])
    if phase.measured_seconds:
        seconds = phase.measured_from + phase.measured_seconds + SLACK - time.time()
    log = Path(f"{phase.name}.hlog").resolve()
    output = run(phase, line(phase, seconds, log))
    if phase.parameters["driver"] == "latte":
        with log.open("wb") as file:
            subprocess.run([str(phase.artifacts / "latte"), "hdr", f"{phase.name}.json"], stdout=file, check=True)
    problems: list[str] = []
    tag = TAGS[phase.parameters["driver"]]
    intervals = list(hdr_log.chosen([log], tag, problems))
    responses = list(hdr_log.chosen([log], RESPONSE_TAG, problems)) if has_responses(phase) else []
    if not intervals:
        sys.exit(damage(problems))
    failures = failed(phase, intervals, output)
    keep_totals(phase, sum(one.count for one in intervals), sum(failures))
    if phase.measured_seconds:
        record(phase, intervals, failures, responses)
    if problems:  # all complete intervals count, but a node with a damaged log has not succeeded
        sys.exit(damage(problems))


def has_responses(phase: Phase) -> bool:
    """Checks whether the generator knows when each write was due."""
    return phase.parameters["driver"] == "cassandra-stress" and bool(phase.parameters["rate"])


def damage(problems: Sequence[str]) -> str:
    """Describes the damaged lines of a log."""
    more = len(problems) - MOST_PROBLEMS
    return "; ".join(problems[:MOST_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")


def schema_line(phase: Phase) -> list[str]:
    """Returns the command that creates the schema."""
    if phase.parameters["driver"] == "latte":
        latte, replicas = str(phase.artifacts / "latte"), f"replicas={phase.parameters['replicas']}"
        return [latte, "schema", "-P", replicas, str(phase.files / "write.rn"), *contacts(phase)]
    return stress(phase, "n=1", (0, 1), Path("schema.hlog"), threads=1)


def line(phase: Phase, seconds: float, log: Path) -> list[str]:
    """Returns the command that writes for ``seconds``."""
    parameters = phase.parameters
    begin, end = cluster.key_range(phase.rank, int(parameters["keys"]))
    if parameters["driver"] == "cassandra-stress":
        return stress(phase, f"duration={round(seconds)}s", (begin, end), log, int(parameters["threads"]))
    threads, each = shares(int(parameters["threads"]), os.cpu_count() or 1)
    rate = ["--rate", str(parameters["rate"])] if parameters["rate"] else []
    return [
        str(phase.artifacts / "latte"),
        "run",
        "--quiet",
        *("--warmup", "0", "--duration", f"{round(seconds * 1000)}ms", "--sampling", f"{parameters['sampling_ms']}ms"),
        *("--threads", str(threads), "--concurrency", str(each), *rate),
        *("--start-cycle", str(begin), "--end-cycle", str(end)),
        *("--consistency", "ONE", "--datacenter", cluster.DATACENTER),
        *("--request-timeout", f"{int(parameters['write_timeout_ms']) + LATER_MS}ms"),
        *("--output", f"{phase.name}.json"),
        str(phase.files / "write.rn"),
        *contacts(phase),
    ]


def stress(phase: Phase, how_long: str, keys: tuple[int, int], log: Path, threads: int) -> list[str]:
    """Returns cassandra-stress's command; its default table is that of ``write.rn``."""
    parameters = phase.parameters
    fixed = [f"fixed={max(1, round(parameters['rate']))}/s"] if parameters["rate"] else []
    return [
        str(phase.home / "tools" / "bin" / "cassandra-stress"),
        *("write", "cl=ONE", "no-warmup", how_long),
        *("-pop", f"seq={keys[0] + 1}..{keys[1]}"),
        *("-col", "n=FIXED(10)", "size=FIXED(10)"),
        *("-schema", f"replication(strategy=NetworkTopologyStrategy,{cluster.DATACENTER}={parameters['replicas']})"),
        *("-rate", f"threads={threads}", *fixed),
        *("-node", ",".join(contacts(phase))),
        *("-log", f"hdrfile={log}", f"interval={parameters['sampling_ms']}ms"),
    ]


def contacts(phase: Phase) -> list[str]:
    """Returns the servers from which drivers learn of all others."""
    return cluster.seeds(phase.servers)


def shares(threads: int, processors: int) -> tuple[int, int]:
    """Returns the number of latte's threads and the concurrent writes of each, together at least ``threads``."""
    count = max(1, min(processors, threads // A_THREAD))
    return count, -(-threads // count)


def run(phase: Phase, command: Sequence[str]) -> str:
    """Runs a command and returns its output. Ends the script if it fails: as lost if a server is gone."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    print(done.stdout[-20_000:])
    if done.returncode == 0:
        return done.stdout
    if phase.measured_seconds and (gone := [one.address for one in phase.servers if not answers(one.address)]):
        print(f"{len(gone)} servers no longer answer: {', '.join(gone[:5])}")
        sys.exit(LOST)
    sys.exit(f"{Path(command[0]).name} failed with exit code {done.returncode}")


def answers(address: str) -> bool:
    try:
        socket.create_connection((address, cluster.NATIVE_PORT), timeout=5).close()
    except OSError:
        return False
    return True


def failed(phase: Phase, intervals: Sequence[Interval], output: str) -> list[int]:
    """Returns failures by interval. cassandra-stress reports only their sum, which is assigned to the last counted
    interval.
    """
    if phase.parameters["driver"] == "cassandra-stress":
        match = re.search(r"^Total errors\s*:\s*([0-9,]+)", output, re.MULTILINE)
        until = phase.measured_from + phase.measured_seconds if phase.measured_seconds else math.inf
        last = max((n for n, one in enumerate(intervals) if one.middle < until), default=0)
        return [int(match[1].replace(",", "")) if match and n == last else 0 for n in range(len(intervals))]
    report: dict[str, Any] = json.loads(Path(f"{phase.name}.json").read_text(encoding="utf-8"))
    return [int(sample["req_error_count"]) for sample in report["result"]["log"]]


def keep_totals(phase: Phase, writes: int, failures: int) -> None:
    """Stores the number of writes of this driver in all phases so far."""
    before = phase.read("writes.json") or {"writes": 0, "failed": 0}
    phase.keep("writes.json", {"writes": before["writes"] + writes, "failed": before["failed"] + failures})


def record(
    phase: Phase, intervals: Sequence[Interval], failures: Sequence[int], responses: Sequence[Interval] = ()
) -> None:
    """Records the writes of the measured time.

    Args:
        intervals: with service times.
        responses: with response times of the same writes; empty if the generator does not know them.
    """
    begin, end = phase.measured_from, phase.measured_from + phase.measured_seconds
    if problem := uncovered(intervals, begin, end):
        sys.exit(problem)
    seconds, warm_up = phase.measured_seconds, phase.warm_up_seconds
    service = hdr_log.operation(intervals, begin, seconds, warm_up_seconds=warm_up)
    operation = hdr_log.operation(responses, begin, seconds, warm_up_seconds=warm_up) if responses else service
    operation.timing, operation.tools = SERVICE, frozenset({phase.parameters["driver"]})
    if responses:
        operation.timing, operation.service = RESPONSE, service.times
    add_failures(operation, intervals, failures, begin, end)
    hdr_log.write({"write": operation}, phase.results)
    print(f"{operation.times.count} writes in the measured time")
    if not operation.times.count:
        sys.exit("no write succeeded in the measured time")


def uncovered(intervals: Sequence[Interval], begin: float, end: float) -> str | None:
    """Returns the problem if the load did not cover the whole measured time."""
    first, last = intervals[0].start, max(one.start + one.seconds for one in intervals)
    if first > begin:
        return f"the load began {first - begin:.1f} s after the start of the measured time: increase warm_up"
    return f"the load ended {end - last:.1f} s before the end of the measured time" if last < end else None


def add_failures(
    operation: Operation, intervals: Iterable[Interval], failures: Iterable[int], begin: float, end: float
) -> None:
    """Adds failures; those of the warm-up only to the values over time."""
    for one, count in zip(intervals, failures):
        if count and operation.per_second.start <= one.middle < end:
            operation.per_second.errors[int(one.middle) - operation.per_second.start] += count
            if one.middle >= begin:
                operation.errors["failed"] = operation.errors.get("failed", 0) + count


if __name__ == "__main__":
    main()
