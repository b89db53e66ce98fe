"""Drives the load: creates the schema (phase ``schema``, one driver for all), writes rows of ten columns of ten bytes
in the phase ``load``, and writes or reads rows in ``measure``. No other driver uses the same keys.

Parameters: ``driver``, latte or cassandra-stress; ``pattern``, what ``measure`` does: write, read or mixed;
``clients``, the drivers that send requests in ``measure``, 0 for all; ``reads_per_write``, for mixed; ``order`` of the
keys, sequential or random; ``consistency``; ``keys`` of each driver;
``threads``, concurrent requests of each driver; ``rate``, requests per second of each driver, 0 for no limit;
``sampling_ms``; ``write_timeout_ms``; ``load_seconds``. Reads only visit rows that ``load`` has written.

Recorded as ``write`` and ``read``, from the generator's interval log: the time from the request to the answer. With a
``rate``, cassandra-stress measures from the moment when a request was due, and both times are recorded. latte cannot:
it skips the requests for which it is late. Times include failures, which the generators do not separate. Errors:
``failed``.
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
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cluster
from cluster import MIXED, READ, WRITE
from node import LOST, Phase, this_phase

from troop.measure import hdr_live, hdr_log
from troop.measure.hdr_log import Interval
from troop.measure.operations import RESPONSE, SERVICE, Operation
from troop.measure.phase_environment import Measured

SERVICE_SUFFIX, RESPONSE_SUFFIX = "-st", "-rt"
"""Suffixes of cassandra-stress's tags: times from sending a request, and from the moment when it was due."""
LATTE_TAG = "requests"
"""Tag of latte's intervals that contain each request once, from sending it to its answer."""
SURELY_WRITTEN = 0.9
"""The part of the keys below the last one that the load has certainly written: threads are not equally fast."""
CYCLES = 1 << 40
"""The numbers of a driver's requests, from which latte draws random keys."""
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
    if problem := cluster.conflict(phase.parameters):
        sys.exit(problem)
    if phase.name == "schema":
        if phase.rank == 0:
            run(phase, schema_line(phase))
            if phase.parameters["driver"] == "cassandra-stress":
                keep_totals(phase, 1, 0)  # it creates the schema only with a write
            print("the schema is ready")
        return
    clients = int(phase.parameters.get("clients", 0))
    if phase.measured_seconds and clients and phase.rank >= clients:
        print(f"only {clients} of {len(phase.drivers)} drivers send requests now")
        return
    seconds = float(phase.parameters["load_seconds"])
    if phase.measured_seconds:
        seconds = phase.measured_from + phase.measured_seconds + SLACK - time.time()
    log = Path(f"{phase.name}.hlog").resolve()
    kinds = cluster.kinds(phase.parameters) if phase.measured_seconds else (WRITE,)
    suffix = RESPONSE_SUFFIX if has_responses(phase) else SERVICE_SUFFIX
    names = {tag(phase, kind, suffix): kind for kind in kinds}
    measured = Measured(phase.measured_from, phase.measured_seconds, phase.warm_up_seconds)
    with hdr_live.while_writing(phase.results, log, names, measured):
        output = run(phase, line(phase, seconds, log))
    if phase.parameters["driver"] == "latte":
        with log.open("wb") as file:
            subprocess.run([str(phase.artifacts / "latte"), "hdr", f"{phase.name}.json"], stdout=file, check=True)
    problems: list[str] = []
    operations: dict[str, Operation] = {}
    for kind in kinds:
        intervals = list(hdr_log.chosen([log], tag(phase, kind, SERVICE_SUFFIX), problems))
        if not intervals:
            sys.exit(damage(problems) or f"the generator's log has no interval of {kind}s")
        responses: list[Interval] = []
        if has_responses(phase):
            responses = list(hdr_log.chosen([log], tag(phase, kind, RESPONSE_SUFFIX), problems))
        failures = failed(phase, intervals, output, kind)
        if kind == WRITE:
            count = sum(one.count for one in intervals)
            keep_totals(phase, count, sum(failures))
            if not phase.measured_seconds:
                phase.keep("loaded.json", count)
        if phase.measured_seconds:
            operations[kind] = recorded(phase, intervals, failures, responses, kind)
    if phase.measured_seconds:
        hdr_log.write(operations, phase.results)
    if problems:  # all complete intervals count, but a node with a damaged log has not succeeded
        sys.exit(damage(problems))


def tag(phase: Phase, kind: str, suffix: str) -> str:
    """Returns the tag of the intervals of writes or reads."""
    return LATTE_TAG if phase.parameters["driver"] == "latte" else kind.upper() + suffix


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
    return stress(phase, "n=1", "seq=1..1", Path("schema.hlog"), threads=1)


def line(phase: Phase, seconds: float, log: Path) -> list[str]:
    """Returns the command that sends requests for ``seconds``; writes of new rows in the phase ``load``."""
    parameters = phase.parameters
    is_random = bool(phase.measured_seconds) and parameters.get("order") == "random"
    begin, end = key_range(phase)
    if parameters["driver"] == "cassandra-stress":
        pattern = parameters.get("pattern", WRITE) if phase.measured_seconds else WRITE
        keys = f"dist=UNIFORM({begin + 1}..{end})" if is_random else f"seq={begin + 1}..{end}"
        return stress(phase, f"duration={round(seconds)}s", keys, log, int(parameters["threads"]), pattern)
    threads, each = shares(int(parameters["threads"]), os.cpu_count() or 1)
    rate = ["--rate", str(parameters["rate"])] if parameters["rate"] else []
    drawn = ["-P", "random=1", "-P", f"first={begin}", "-P", f"keys={end - begin}"] if is_random else []
    if is_random:
        begin, end = phase.rank * CYCLES, (phase.rank + 1) * CYCLES
    reads = bool(phase.measured_seconds) and READ in cluster.kinds(parameters)
    return [
        str(phase.artifacts / "latte"),
        "run",
        "--quiet",
        *("--warmup", "0", "--duration", f"{round(seconds * 1000)}ms", "--sampling", f"{parameters['sampling_ms']}ms"),
        *("--threads", str(threads), "--concurrency", str(each), *rate),
        *("--start-cycle", str(begin), "--end-cycle", str(end)),
        *("--consistency", consistency(parameters), "--datacenter", cluster.DATACENTER),
        *("--request-timeout", f"{int(parameters['write_timeout_ms']) + LATER_MS}ms"),
        *("--output", f"{phase.name}.json"),
        *(["--functions", "read"] if reads else []),
        *drawn,
        str(phase.files / "write.rn"),
        *contacts(phase),
    ]


def key_range(phase: Phase) -> tuple[int, int]:
    """Returns the keys of this driver: the first, and the end, which is excluded. Reads visit the keys of ``load``."""
    begin, end = cluster.key_range(phase.rank, int(phase.parameters["keys"]))
    if phase.measured_seconds and READ in cluster.kinds(phase.parameters):
        end = min(end, begin + max(1, int(SURELY_WRITTEN * (phase.read("loaded.json") or 0))))
    return begin, end


def consistency(parameters: Mapping[str, Any]) -> str:
    """Returns the number of replicas that must answer, in words of Cassandra."""
    return str(parameters.get("consistency", "ONE"))


def stress(phase: Phase, how_long: str, keys: str, log: Path, threads: int, pattern: str = WRITE) -> list[str]:
    """Returns cassandra-stress's command; its default table is that of ``write.rn``."""
    parameters = phase.parameters
    fixed = [f"fixed={max(1, round(parameters['rate']))}/s"] if parameters["rate"] else []
    ratio = [f"ratio(write=1,read={parameters['reads_per_write']})"] if pattern == MIXED else []
    return [
        str(phase.home / "tools" / "bin" / "cassandra-stress"),
        *(pattern, *ratio, f"cl={consistency(parameters)}", "no-warmup", how_long),
        *("-pop", keys),
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


def failed(phase: Phase, intervals: Sequence[Interval], output: str, kind: str = WRITE) -> list[int]:
    """Returns failures by interval. cassandra-stress reports only their sum, which is assigned to the last counted
    interval.
    """
    if phase.parameters["driver"] == "cassandra-stress":
        total = re.search(r"^Total errors\s*:\s*([0-9,]+)(.*)", output, re.MULTILINE)
        kind_match = re.search(rf"\b{kind.upper()}: *([0-9,]*[0-9])", total[2]) if total else None
        match = kind_match or total
        until = phase.measured_from + phase.measured_seconds if phase.measured_seconds else math.inf
        last = max((n for n, one in enumerate(intervals) if one.middle < until), default=0)
        return [int(match[1].replace(",", "")) if match and n == last else 0 for n in range(len(intervals))]
    report: dict[str, Any] = json.loads(Path(f"{phase.name}.json").read_text(encoding="utf-8"))
    return [int(sample["req_error_count"]) for sample in report["result"]["log"]]


def keep_totals(phase: Phase, writes: int, failures: int) -> None:
    """Stores the number of writes of this driver in all phases so far."""
    before = phase.read("writes.json") or {"writes": 0, "failed": 0}
    phase.keep("writes.json", {"writes": before["writes"] + writes, "failed": before["failed"] + failures})


def recorded(
    phase: Phase,
    intervals: Sequence[Interval],
    failures: Sequence[int],
    responses: Sequence[Interval] = (),
    kind: str = WRITE,
) -> Operation:
    """Returns the writes or reads of the measured time.

    Args:
        intervals: with service times.
        responses: with response times of the same requests; empty if the generator does not know them.
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
    print(f"{operation.times.count} {kind}s in the measured time")
    if not operation.times.count:
        sys.exit(f"no {kind} succeeded in the measured time")
    return operation


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
