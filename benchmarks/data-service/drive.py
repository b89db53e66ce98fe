"""Sends reads and writes to the service, with the program data-service. In the phase ``warm``, it only reads, as fast
as it can, so that no measurement begins with an empty cache.

Parameters: ``rate``, operations per second of each driver; ``connections``, the most operations at a time; ``reads``,
the part of the operations that read; ``skew`` of the keys; ``warm_seconds``.

Recorded as ``read`` and ``write``. With a rate, their times begin when an operation was due. Errors by kind:
``timeout``, ``connection``, ``status-503`` and alike, ``wrong-value`` for another key's value, and ``unfinished``.
"""

from __future__ import annotations

import json
import os
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import stack
from stack import Phase, this_phase

from troop.measure import hdr_live, hdr_log
from troop.measure.operations import RESPONSE, SERVICE, Operation
from troop.measure.phase_environment import Measured

LOG, SUMMARY = "drive.hlog", "drive.json"
TOOL = "data-service"
OPERATIONS = ("read", "write")
TIMEOUT_SECONDS = 5


def main() -> None:
    phase = this_phase()
    if not phase.measured_seconds:
        now = time.time()
        stack.run(command(phase, 0, 1, now, now, now + float(phase.parameters["warm_seconds"])))
        return
    rate, begin = float(phase.parameters["rate"]), phase.measured_from
    until = begin + phase.measured_seconds
    names = {tag(name, rate > 0): name for name in OPERATIONS}
    measured = Measured(begin, phase.measured_seconds, phase.warm_up_seconds)
    with hdr_live.while_writing(phase.results, Path(LOG), names, measured):
        stack.run(command(phase, rate, float(phase.parameters["reads"]), begin - phase.warm_up_seconds, begin, until))
    problems: list[str] = []
    recorded = operations(phase, rate > 0, Path(LOG), json.loads(Path(SUMMARY).read_text(encoding="utf-8")), problems)
    hdr_log.write(recorded, phase.results)
    print(json.dumps({name: {"count": one.times.count, "errors": one.errors} for name, one in recorded.items()}))
    if problems:
        sys.exit("; ".join(problems[:5]))


def command(phase: Phase, rate: float, reads: float, begin: float, measured_from: float, until: float) -> list[str]:
    """Returns the command that sends the load.

    Args:
        rate: operations per second; 0 for as many as possible.
        reads: the part of the operations that read.
        begin: of the load; all moments are seconds since 1970.
        measured_from: the start of the time that counts.
        until: its end.
    """
    described, parameters = stack.data_set(phase), phase.parameters
    options = {
        "targets": stack.with_port(stack.addresses(phase, "service"), stack.SERVICE_PORT),
        "rate": rate,
        "workers": parameters["connections"],
        "items": described["rows"],
        "value-bytes": described["value_bytes"],
        "skew": parameters["skew"],
        "reads": reads,
        "seed": seed(phase),
        "timeout": f"{TIMEOUT_SECONDS}s",
        "begin": f"{begin:.6f}",
        "from": f"{measured_from:.6f}",
        "until": f"{until:.6f}",
        "log": LOG,
        "summary": SUMMARY,
    }
    return [
        stack.program(phase),
        "drive",
        *(text for key, value in options.items() for text in (f"-{key}", str(value))),
    ]


def tag(name: str, is_open_loop: bool) -> str:
    """Returns the tag of an operation's intervals: with times since it was due, or since it was sent."""
    return f"{name}-{'rt' if is_open_loop else 'st'}"


def seed(phase: Phase) -> int:
    """Returns a seed of this node and point, so that no two send the same sequence of keys."""
    place = phase.name, os.environ.get("TROOP_POINT", ""), phase.rank, phase.parameters["seed"]
    return zlib.crc32(repr(place).encode())


def operations(
    phase: Phase, is_open_loop: bool, log: Path, summary: dict[str, Any], problems: list[str]
) -> dict[str, Operation]:
    """Returns the operations of the warm-up and the measured time.

    Args:
        log: the interval log of the program.
        summary: its failures and bytes.
        problems: receives sentences about damaged lines.
    """

    def read(tag: str) -> Operation:
        intervals = hdr_log.chosen([log], tag, problems)
        seconds, warm_up = phase.measured_seconds, phase.warm_up_seconds
        return hdr_log.operation(intervals, phase.measured_from, seconds, warm_up_seconds=warm_up)

    recorded = {}
    for name in OPERATIONS:
        service = read(tag(name, False))
        operation = read(tag(name, True)) if is_open_loop else service
        operation.timing, operation.tools = RESPONSE if is_open_loop else SERVICE, frozenset({TOOL})
        operation.service = service.times if is_open_loop else None
        operation.bytes = int(summary["bytes"][name])
        recorded[name] = operation
    for one in summary["failures"]:
        add_failures(phase, recorded[one["operation"]], float(one["middle"]), str(one["kind"]), int(one["count"]))
    return {name: one for name, one in recorded.items() if one.times.count or one.errors or any(one.per_second.count)}


def add_failures(phase: Phase, operation: Operation, middle: float, kind: str, count: int) -> None:
    """Adds the failures of an interval; those of the warm-up only to the values over time."""
    begin, end = phase.measured_from, phase.measured_from + phase.measured_seconds
    second = int(middle) - operation.per_second.start
    if 0 <= second < len(operation.per_second.errors) and middle < end:
        operation.fail(int(middle), kind, count, is_measured=middle >= begin)


if __name__ == "__main__":
    main()
