"""Defines the running summary of one node: what it did in the last seconds, for people who watch a benchmark, and what
it has measured so far, which is all that is left if the node is lost.

A script's recorder or collector writes one file for each process, from counts that it has anyway. The agent adds them
up and uploads them with the node's use of processors. Results of whole phases never depend on any of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from troop.measure.operations import MOST_NAMES, NAME, OTHER, Operation, PerSecond
from troop.measure.summary import LATEST
from troop.measure.windows import BUCKETS, add_counts, coarse

FORMAT = "troop.live/1"
FILES = "live-*.json"
"""The names of the files in a phase's results."""

INTERVAL_SECONDS = 15
"""Seconds between two running summaries. Each covers at most as many seconds."""

MOST_OPERATIONS = 16
"""The most operations of a running summary: the most frequent ones. The others are added up as ``other``."""

MOST_COUNT = 1 << 53
MOST_BYTES = 1 << 20
"""The largest running summary that is read, as JSON."""


class LiveError(ValueError):
    """A document is not a running summary; the message says why."""


@dataclass
class LiveOperation:
    """One kind of operation in the time of a running summary.

    Attributes:
        times: of successes, by bucket of :mod:`troop.measure.windows`. They are of the last whole steps, which can be
            longer than the time of the counts.
        measured, failed: times by bucket and errors since the measured time began.
    """

    count: int = 0
    errors: int = 0
    times: dict[int, int] = field(default_factory=dict)
    measured: dict[int, int] = field(default_factory=dict)
    failed: int = 0

    def add(self, other: LiveOperation) -> None:
        self.count += other.count
        self.errors += other.errors
        self.failed += other.failed
        add_counts(self.times, other.times)
        add_counts(self.measured, other.measured)

    def past(self) -> LiveOperation:
        """Returns it without what it did in the last seconds."""
        return LiveOperation(measured=self.measured, failed=self.failed)


class Recent(NamedTuple):
    """What operations did in the last ``seconds``; 0 before the first operation."""

    seconds: int
    operations: dict[str, LiveOperation]


@dataclass(frozen=True)
class Live:
    """A running summary.

    Attributes:
        until: the end of the time that it covers, seconds since 1970.
        seconds: the length of this time, from the first operation on; 0 before it.
        cpu, iowait: thousandths of all processors that worked in this time, and that waited for disks; None if unknown.
        operations: by name, at most :data:`MOST_OPERATIONS`.
    """

    node: str
    role: str
    phase: str
    until: int
    seconds: int
    measured_from: float
    measured_seconds: float
    cpu: int | None = None
    iowait: int | None = None
    operations: Mapping[str, LiveOperation] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "node": self.node,
            "role": self.role,
            "phase": self.phase,
            "until": self.until,
            "seconds": self.seconds,
            "measured_from": self.measured_from,
            "measured_seconds": self.measured_seconds,
            "cpu": self.cpu,
            "iowait": self.iowait,
            "operations": operations_document(self.operations),
        }


def recent(
    operations: Mapping[str, Operation],
    until: int,
    seconds: int = INTERVAL_SECONDS,
    measured: Mapping[str, dict[int, int]] | None = None,
) -> Recent:
    """Returns what operations did in at most ``seconds`` to ``until``, in seconds since 1970.

    Takes no time for each operation: it reads counts by second, and times by step.

    Args:
        measured: times by bucket since the measured time began, where they are known; otherwise they are computed.
    """
    begin, end = _covered(operations, until - seconds, until)
    totals: dict[str, LiveOperation] = {}
    for name, operation in operations.items():
        counted, windows = operation.per_second, operation.over_time
        first, last = (max(0, second - counted.start) for second in (begin, end))
        times: dict[int, int] = {}
        if windows is not None:
            step = windows.step_seconds
            whole = until // step * step
            length = math.ceil(seconds / step) * step
            times = windows.buckets_within(whole - length, length)
        totals[name] = LiveOperation(
            sum(counted.count[first:last]),
            sum(counted.errors[first:last]),
            times,
            coarse(operation.times) if measured is None else measured[name],
            sum(operation.errors.values()),
        )
    return Recent(max(0, end - begin), bounded(totals))


def _covered(operations: Mapping[str, Operation], since: int, until: int) -> tuple[int, int]:
    """Returns the part of a time in which operations could be counted.

    It begins after the second of the first operation, which is mostly not a whole one, if any operation came later. It
    ends with the phase.
    """
    several = [one.per_second for one in operations.values()]
    first = min((at for one in several if (at := _first(one)) is not None), default=until)
    if first >= until:
        return until, until
    end = min([until, *(one.start + len(one.count) for one in several)])
    if first < since:
        return since, end
    rest = [series[first + 1 - one.start : end - one.start] for one in several for series in (one.count, one.errors)]
    return first + any(map(any, rest)), end


def _first(counted: PerSecond) -> int | None:
    """Returns the first second with an operation; None without one."""
    pairs = enumerate(zip(counted.count, counted.errors), counted.start)
    return next((second for second, pair in pairs if any(pair)), None)


def bounded(operations: Mapping[str, LiveOperation], most: int = MOST_OPERATIONS) -> dict[str, LiveOperation]:
    """Returns the most frequent operations by name, and the others as ``other``."""
    if len(operations) <= most:
        return dict(operations)
    ordered = sorted(operations, key=lambda name: (-operations[name].count - operations[name].errors, name))
    ordered = [name for name in ordered if name != OTHER]
    chosen = {name: operations[name] for name in sorted(ordered[: most - 1])}
    rest = LiveOperation()
    for name in (*ordered[most - 1 :], *(name for name in operations if name == OTHER)):
        rest.add(operations[name])
    return {**chosen, OTHER: rest}


def sum_of(several: Mapping[str, LiveOperation], more: Mapping[str, LiveOperation]) -> dict[str, LiveOperation]:
    """Returns both added up by name, and bounded."""
    totals: dict[str, LiveOperation] = {}
    for operations in (several, more):
        for name, operation in operations.items():
            totals.setdefault(name, LiveOperation()).add(operation)
    return bounded(totals)


def operations_document(operations: Mapping[str, LiveOperation]) -> dict[str, Any]:
    return {
        name: {
            "count": one.count,
            "errors": one.errors,
            "times": sorted(one.times.items()),
            "measured": sorted(one.measured.items()),
            "failed": one.failed,
        }
        for name, one in sorted(operations.items())
    }


def parse(document: Any) -> Live:
    """Reads a document of :meth:`Live.document`.

    Raises:
        LiveError: the document is invalid.
    """
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise LiveError(f"the format must be {FORMAT}")
    node, role, phase = (_text(document, key) for key in ("node", "role", "phase"))
    until, seconds = (_whole(document.get(key), key, LATEST) for key in ("until", "seconds"))
    measured: list[Any] = [document.get(key) for key in ("measured_from", "measured_seconds")]
    if not all(type(one) in (int, float) and 0 <= one <= LATEST for one in measured):  # also excludes NaN
        raise LiveError(f"measured_from and measured_seconds must be from 0 to {LATEST}")
    cpu, iowait = (None if document.get(key) is None else _whole(document[key], key, 1000) for key in ("cpu", "iowait"))
    return Live(
        node,
        role,
        phase,
        until,
        seconds,
        float(measured[0]),
        float(measured[1]),
        cpu,
        iowait,
        parse_operations(document.get("operations")),
    )


def parse_operations(document: Any) -> dict[str, LiveOperation]:
    """Reads a document of :func:`operations_document`.

    Raises:
        LiveError: the document is invalid.
    """
    if not isinstance(document, Mapping) or len(document) > MOST_NAMES:
        raise LiveError(f"operations must be an object with at most {MOST_NAMES} names")
    operations = {}
    for name, one in document.items():
        if not isinstance(name, str) or not NAME.fullmatch(name) or not isinstance(one, Mapping):
            raise LiveError("operations must be an object of objects by name")
        operations[name] = LiveOperation(
            _whole(one.get("count"), "count", MOST_COUNT),
            _whole(one.get("errors"), "errors", MOST_COUNT),
            _buckets(one.get("times"), f"times of {name}"),
            _buckets(one.get("measured", []), f"measured of {name}"),  # missing in those of an earlier version
            _whole(one.get("failed", 0), "failed", MOST_COUNT),
        )
    return operations


def _buckets(pairs: Any, place: str) -> dict[int, int]:
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise LiveError(f"{place} must be pairs of a bucket and a count")
    return {_whole(bucket, "bucket", BUCKETS - 1): _whole(count, "count", MOST_COUNT) for bucket, count in pairs}


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= 128:
        raise LiveError(f"{key} must be a text of at most 128 characters")
    return value


def _whole(value: Any, key: str, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:  # excludes True
        raise LiveError(f"{key} must be a whole number from 0 to {most}")
    return value
