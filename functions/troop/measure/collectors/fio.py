"""Reads fio's results, ``--output-format=json+``: times as counts by bucket, which can be added up over jobs and nodes.

Reads, writes and trims are operations, and so are the calls of fsync and fdatasync after writes, as ``sync``.

fio has 64 buckets for every doubling, so a time is exact to a hundredth; the maximum is exact. In client/server mode
every client has its own results. "All clients" would count them twice, and is left out.

There are no values by second. All results count for the measured time, so fio must run for exactly as long
(``--time_based --ramp_time=$TROOP_WARM_UP_SECONDS --runtime=$TROOP_MEASURED_SECONDS``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from troop.measure.collectors.common import CollectorError, Problems, a_name
from troop.measure.collectors.json_elements import elements
from troop.measure.histogram import HIGHEST, Histogram
from troop.measure.operations import Operation, Operations, add_bounded

DIRECTIONS = ("read", "write", "trim")
MIXED = "mixed"
"""All directions together, which fio reports with ``unified_rw_reporting``."""
ALL_CLIENTS = "All clients"
SYNC = "sync"
"""Calls of fsync, fdatasync and sync_file_range. They have neither bytes nor a time in which they ran."""
OLDEST = 3
"""The oldest version of fio that measures in nanoseconds."""
NANOSECONDS = 1000
"""Nanoseconds per microsecond."""


LATE_SECONDS, LATE_SHARE = 1.0, 0.05
"""The accepted difference between a job's runtime and the measured time."""


def read(path: Path, measured: float, problems: Problems) -> Operations:
    """Reads operations by direction, such as ``read``; if jobs have several names, by job too: ``db:read``.

    Args:
        measured: seconds.

    Raises:
        OSError: the file cannot be read.
        CollectorError: the file contains no fio job.
    """
    return operations(path.read_text(encoding="utf-8", errors="surrogateescape"), str(path), measured, problems)


def operations(text: str, name: str, measured: float, problems: Problems) -> Operations:
    """Reads operations from a file's text, as :func:`read` does. fio may write messages before the JSON.

    With ``--status-interval`` there are several results. The last one contains all values; if it is cut off, the one
    before it counts.
    """
    begin = text.rfind(_BEGIN)
    if begin < 0:
        raise CollectorError(f"{name}:1: there is no fio result: run fio with --output-format=json+")
    if (version := _VERSION.match(text, begin)) and int(version[1]) < OLDEST:
        raise CollectorError(f"{name}:{_line(text, begin)}: fio {version[1]} is too old: use version {OLDEST} or later")
    problem_count = problems.count
    jobs = _jobs(text, begin, len(text), name, problems)
    before = text.rfind(_BEGIN, 0, begin)
    if before >= 0 and (problems.count > problem_count or not jobs):
        jobs = _jobs(text, before, begin, name, problems)
        problems.add(f"{name}:{_line(text, begin)}: the last result is cut off or damaged: the result before it counts")
    if not jobs and problems.count == problem_count:
        raise CollectorError(f"{name}:{_line(text, len(text))}: the result has neither jobs nor client_stats")
    several = len({job.get("jobname") for _, job in jobs}) > 1
    operations: Operations = {}
    for line, job in jobs:
        label = str(job.get("jobname"))
        for direction, operation in _job_operations(job, f"{name}:{line}: ", label, measured, problems):
            add_bounded(operations, {a_name(f"{label}:{direction}" if several else direction): operation})
    return operations


_BEGIN = '"fio version"'
_VERSION = re.compile(rf'{_BEGIN}\s*:\s*"fio-([0-9]{{1,3}})')

Job = Mapping[str, Any]


def _jobs(text: str, begin: int, end: int, name: str, problems: Problems) -> list[tuple[int, Job]]:
    """Returns the jobs of one result with their line numbers."""
    # Replaces the text before by blank lines, so that line numbers are those of the file.
    text = "\n" * text.count("\n", 0, begin) + text[begin:end]
    jobs = [job for key in ("jobs", "client_stats") for job in elements(text, key, name, problems)]
    return [(line, job) for line, job in jobs if isinstance(job, Mapping) and job.get("jobname") != ALL_CLIENTS]


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _job_operations(
    job: Job, where: str, label: str, measured: float, problems: Problems
) -> Iterator[tuple[str, Operation]]:
    """Yields a job's operations by direction. fio counts errors by job: the first direction gets all of them."""
    unread = f"{where}cannot read job {label}: "
    errors, done, damaged = 0, False, False
    try:
        errors = _count(job.get("total_err") or 0, "total_err")
        directions = [direction for direction in DIRECTIONS if _did(job, direction)]
        if not directions and _did(job, MIXED):
            directions = [MIXED]
    except _DAMAGES as error:
        problems.add(f"{unread}{error!r}")
        return
    for direction in directions:
        try:
            operation, seconds = _direction_operation(job[direction], direction)
        except _DAMAGES as error:
            problems.add(f"{unread}{error!r}")
            damaged = True
            continue
        if errors and not done:
            operation.errors["failed"] = errors
        done = True
        yield direction, operation
        if abs(seconds - measured) > max(LATE_SECONDS, LATE_SHARE * measured):
            problems.add(
                f"{where}job {label} ran for {seconds:g} s instead of the measured {measured:g} s, "
                "which makes rates wrong: run it with --time_based and --runtime"
            )
    yield from _syncs(job, unread, problems)
    if not done and errors:
        yield _pattern(job), Operation(errors={"failed": errors})
        if not damaged:
            problems.add(f"{where}all {errors} operations of job {label} failed")
    elif not done and not damaged and not job.get("error"):
        problems.add(f"{where}job {label} did nothing")
    if job.get("error"):
        problems.add(f"{where}job {label} ended with error {job['error']}")


_DAMAGES = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError)


def _syncs(job: Job, unread: str, problems: Problems) -> Iterator[tuple[str, Operation]]:
    """Yields the calls of fsync and its kin. fio 3.33 has their times, and 0 as their number."""
    try:
        section = job.get(SYNC) or {}
        times = section.get("lat_ns") or {}
        if times.get("bins"):
            yield SYNC, Operation(times=_histogram(times))
        elif section.get("total_ios") or times.get("N"):
            problems.add(f"{unread}the syncs have no bins: run fio with --output-format=json+")
    except _DAMAGES as error:
        problems.add(f"{unread}{error!r}")


def _did(job: Job, direction: str) -> bool:
    section = job.get(direction)
    return bool(section and section["total_ios"])


def _pattern(job: Job) -> str:
    """Returns the direction that a job was configured for: the first of several, or all if fio does not report it."""
    options = job.get("job options")
    pattern = str(options.get("rw", options.get("readwrite", ""))) if isinstance(options, Mapping) else ""
    if pattern.startswith(("rw", "randrw")):
        return "read"
    return next((direction for direction in DIRECTIONS if direction in pattern), MIXED)


def _direction_operation(section: Mapping[str, Any], direction: str) -> tuple[Operation, float]:
    """Returns the operation of a direction, and how many seconds it ran."""
    # Every engine reports completion latency; "lat_ns" includes the submission, but has bins only on request.
    times = next((section[kind] for kind in ("lat_ns", "clat_ns") if section.get(kind, {}).get("bins")), None)
    if times is None:
        raise ValueError(f"the {direction}s have no bins: run fio with --output-format=json+ and without disable_clat")
    seconds = section["runtime"] / 1000
    if not math.isfinite(seconds):
        raise ValueError(f"the {direction}s have an invalid runtime: {section['runtime']}")
    return Operation(times=_histogram(times), bytes=_count(section["io_bytes"], "io_bytes")), seconds


def _count(number: Any, key: str) -> int:
    count = int(number)
    if not 0 <= count <= HIGHEST:
        raise ValueError(f"{key} is {number}: must be from 0 to {HIGHEST}")
    return count


def _histogram(times: Mapping[str, Any]) -> Histogram:
    """Counts the middle of each bucket, except for the maximum, which is exact and belongs to the last bucket."""
    histogram = Histogram()
    counts = sorted((int(nanoseconds), int(count)) for nanoseconds, count in times["bins"].items())
    middle, count = counts.pop()
    for value, more in [*counts, (middle, count - 1), (int(times["max"]), 1)]:
        if more:
            histogram.record(round(value / NANOSECONDS), more)
    return histogram
