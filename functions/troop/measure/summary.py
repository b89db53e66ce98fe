"""Defines one node's summary of one phase: a small document, however many operations it counts.

Times are seconds since 1970 as floats. Everything that a merge adds up is a whole number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from troop.measure import device_samples, histogram, separate
from troop.measure import operations as ops
from troop.measure.device_samples import DeviceSamples, DeviceSamplesError
from troop.measure.operations import Operation, whole
from troop.measure.redaction import redacted
from troop.measure.separate import Separate

FORMAT, BEFORE = "troop.summary/2", "troop.summary/1"
"""Formats of summaries. BEFORE has no columns, and its head is not at the beginning. It is read as well, for nodes that
began before an upgrade.
"""
HEAD_BYTES = 16 << 10
"""The beginning of a stored summary that contains its head."""
_BODY = b',"operations":'

OK, FAILED, TIMED_OUT, LOST = "ok", "failed", "timed-out", "lost"
OUTCOMES = (OK, FAILED, TIMED_OUT, LOST)
"""Outcomes of a node. LOST: the agent was ended or could not continue."""

CPU = ("cpu_user", "cpu_system", "cpu_iowait", "cpu_steal")
"""Names of processor times, in thousandths of all processors of the node."""
BUSY = ("cpu_user", "cpu_system", "cpu_steal")
"""The parts in which processors work, or would if the host let them. In iowait they wait for a disk, and are free."""
BUSIEST = "cpu_busiest"
"""Thousandths of the processor that worked most in the interval, without iowait: one thread can keep it busy."""
LEVELS = (*CPU, "memory_used", BUSIEST)
"""Names of levels, whose mean is that of several nodes. Memory is in bytes."""
TCP = ("tcp_sent_segments", "tcp_retransmits")
NETWORK_EXCEEDED = (
    "network_in_exceeded",
    "network_out_exceeded",
    "packet_rate_exceeded",
    "conntrack_exceeded",
    "linklocal_exceeded",
)
"""Packets that EC2 queued or dropped because the instance exceeded an allowance of its network."""
EBS_EXCEEDED = (
    "volume_iops_exceeded",
    "volume_throughput_exceeded",
    "instance_iops_exceeded",
    "instance_throughput_exceeded",
)
"""Microseconds, summed over volumes, in which the demand exceeded what the EBS volume or the instance provides."""
COUNTERS = (*TCP, *NETWORK_EXCEEDED, *EBS_EXCEEDED)
"""Amounts of which the sum over the measured time matters, because single events count."""
AMOUNTS = (
    "disk_read_bytes",
    "disk_write_bytes",
    "disk_reads",
    "disk_writes",
    "network_received_bytes",
    "network_sent_bytes",
    *COUNTERS,
)
"""Names of amounts per interval. Several nodes are added up."""
SERIES = (*LEVELS, *AMOUNTS)
OPTIONAL = frozenset({BUSIEST, *COUNTERS})
"""Names that documents leave out where no value is known: not every node has them, and earlier versions did not sample
them.
"""
MOST_SAMPLES = 20_000
LONGEST_INTERVAL = 24 * 3600
"""The longest interval of a sample in seconds."""

LATEST = 253_402_300_800
"""The end of the year 9999 in seconds since 1970; the limit of every time and duration."""
SHORTEST = 0.001
"""The shortest measured time in seconds: a shorter one could make rates infinite."""

MOST_BYTES = 16 << 20
"""The largest summary that is read, as JSON."""


def busy(cpu: Mapping[str, float | None]) -> float | None:
    """Returns the part of the time in which processors were busy, in the unit of ``cpu``; None if a part is unknown."""
    known = [value for name in BUSY if (value := cpu.get(name)) is not None]
    return sum(known) if len(known) == len(BUSY) else None


class SummaryError(ValueError):
    """A document is not a summary, or summaries do not belong together; the message says why."""


@dataclass(frozen=True)
class Clock:
    """A clock's offset: positive if it is ahead of S3's. Both values are in seconds."""

    offset_seconds: float
    uncertainty_seconds: float

    @property
    def ahead(self) -> float:
        """The offset if the clock is certainly wrong, otherwise 0: time synchronization is more exact than this
        estimate.
        """
        return self.offset_seconds if abs(self.offset_seconds) > self.uncertainty_seconds else 0.0


@dataclass(frozen=True)
class Samples:
    """A node's metrics in equal intervals.

    Attributes:
        start: of the first interval, seconds since 1970; a multiple of the interval.
        series: one list for each name of :data:`SERIES`, all of the same length; None where a value is unknown.
        devices: of each block device; None if there are none.
    """

    start: int
    interval_seconds: int
    series: Mapping[str, list[int | None]]
    devices: DeviceSamples | None = None

    def earlier(self, seconds: float) -> Samples:
        """Returns these samples moved back by about ``seconds``: by whole intervals, and not before 1970."""
        moved = round(seconds / self.interval_seconds) * self.interval_seconds
        devices = self.devices and self.devices.earlier(seconds)
        return replace(self, start=max(0, self.start - moved), devices=devices)


@dataclass(frozen=True)
class Summary:
    """The outcome of a phase on a node.

    Attributes:
        rank: among the nodes of its role, from 0.
        reason: a sentence that says why the outcome is not ``ok``; otherwise None.
        exit_code: of the phase's script; None if it did not run or did not end.
        clock: None if the offset is unknown.
        measured_from: None if the phase is not measured.
        measured_seconds: 0 if the phase is not measured.
        warm_up_seconds: before the measured time; 0 if the phase is not measured.
        separate: values that cannot be combined with those of other nodes.
        interruption: EC2's spot interruption notice, ``{"action", "time"}`` as EC2 states them; otherwise None.
        rebalance_recommended_at: time of EC2's rebalance recommendation, as EC2 states it; otherwise None.
    """

    node: str
    role: str
    rank: int
    phase: str
    outcome: str
    started_at: float
    ended_at: float
    reason: str | None = None
    exit_code: int | None = None
    clock: Clock | None = None
    measured_from: float | None = None
    measured_seconds: float = 0.0
    operations: Mapping[str, Operation] = field(default_factory=dict)
    samples: Samples | None = None
    interruption: Mapping[str, str] | None = None
    rebalance_recommended_at: str | None = None
    warm_up_seconds: float = 0.0
    separate: tuple[Separate, ...] = ()

    def by_the_common_clock(self) -> Summary:
        """Returns the summary with its measurements moved to the common clock, if the node's clock is certainly wrong.

        Values by second, step or interval move by whole ones. Start and end of the phase do not change.
        """
        ahead = self.clock.ahead if self.clock else 0.0
        if not ahead:
            return self
        return replace(
            self,
            measured_from=None if self.measured_from is None else max(0.0, self.measured_from - ahead),
            operations={name: operation.earlier(ahead) for name, operation in self.operations.items()},
            samples=self.samples and self.samples.earlier(ahead),
        )

    def document(self) -> dict[str, Any]:
        """Returns the document that is stored on S3."""
        clock = self.clock and {
            "offset_seconds": self.clock.offset_seconds,
            "uncertainty_seconds": self.clock.uncertainty_seconds,
        }
        return {
            "format": FORMAT,
            "node": self.node,
            "role": self.role,
            "rank": self.rank,
            "phase": self.phase,
            "outcome": self.outcome,
            "reason": self.reason,
            "exit_code": self.exit_code,
            "clock": clock,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "measured_from": self.measured_from,
            "measured_seconds": self.measured_seconds,
            "warm_up_seconds": self.warm_up_seconds,
            "interruption": self.interruption and dict(self.interruption),
            "rebalance_recommended_at": self.rebalance_recommended_at,
            "operations": ops.document_of(self.operations, packed=True),
            "separate": [row.document() for row in self.separate],
            "samples": self.samples and samples_document(self.samples),
        }


def samples_document(samples: Samples) -> dict[str, Any]:
    """Returns ``{"from", "interval_seconds", "cpu_user": [...], ..., "devices"}``."""
    series = {
        name: list(values)
        for name in SERIES
        if not is_left_out(name, values := samples.series.get(name) or [None] * len(samples.series[SERIES[0]]))
    }
    devices = {"devices": samples.devices.document()} if samples.devices else {}
    return {"from": samples.start, "interval_seconds": samples.interval_seconds, **series, **devices}


def is_left_out(name: str, values: Sequence[int | None]) -> bool:
    """Checks whether a document of samples does not list a series: an optional one without any value."""
    return name in OPTIONAL and all(value is None for value in values)


def parse_samples(document: Any) -> Samples | None:
    """Reads a document of :func:`samples_document`; returns None for None.

    Raises:
        SummaryError, OperationsError: a value is missing or of the wrong type.
    """
    return _samples(document)


def parse(document: Any) -> Summary:
    """Reads a document of :meth:`Summary.document`.

    Raises:
        SummaryError: a value is missing or of the wrong type.
    """
    if not isinstance(document, Mapping) or document.get("format") not in (FORMAT, BEFORE):
        raise SummaryError(f"a summary must be an object with format {FORMAT}")
    try:
        return _parse(document)
    except ops.OperationsError as error:
        raise SummaryError(str(error)) from None


def head_of(beginning: bytes) -> Summary | None:
    """Returns a summary without its measurements from the first bytes of its JSON; None if they do not contain it."""
    head, body, _ = beginning.partition(_BODY)  # within a text, its quotes would be escaped
    try:
        document = json.loads(head + b"}") if body else {}
    except (ValueError, RecursionError):
        return None
    return parse({**document, "operations": {}}) if document.get("format") == FORMAT else None


def _parse(document: Mapping[str, Any]) -> Summary:
    exit_code = document.get("exit_code")
    if exit_code is not None and (type(exit_code) is not int or abs(exit_code) > histogram.MOST):
        raise SummaryError("exit_code must be a whole number below 2^63, or null")
    if document.get("outcome") not in OUTCOMES:
        raise SummaryError(f"outcome must be one of {', '.join(OUTCOMES)}")
    reason, recommended = document.get("reason"), "rebalance_recommended_at"
    return Summary(
        node=_text(document, "node"),
        role=_text(document, "role"),
        rank=whole(document.get("rank"), "rank"),
        phase=_text(document, "phase"),
        outcome=_text(document, "outcome"),
        started_at=_seconds(document, "started_at"),
        ended_at=_seconds(document, "ended_at"),
        reason=None if reason is None else redacted(_text(document, "reason")),
        exit_code=exit_code,
        clock=_clock(document.get("clock")),
        measured_from=None if document.get("measured_from") is None else _seconds(document, "measured_from"),
        measured_seconds=_measured_seconds(document),
        warm_up_seconds=_seconds({"warm_up_seconds": 0, **document}, "warm_up_seconds"),  # missing in older summaries
        operations=ops.parse(document.get("operations")),
        separate=separate.parse(document.get("separate", []), "separate"),
        samples=_samples(document.get("samples")),
        interruption=_interruption(document.get("interruption")),
        rebalance_recommended_at=_text(document, recommended) if document.get(recommended) is not None else None,
    )


def _interruption(document: Any) -> Mapping[str, str] | None:
    if document is None:
        return None
    if not isinstance(document, Mapping):
        raise SummaryError("interruption must be an object or null")
    return {key: _text(document, key) for key in ("action", "time")}


def _clock(document: Any) -> Clock | None:
    if document is None:
        return None
    if not isinstance(document, Mapping):
        raise SummaryError("clock must be an object or null")
    return Clock(
        _seconds(document, "offset_seconds", "clock.", lowest=-LATEST),
        _seconds(document, "uncertainty_seconds", "clock."),
    )


def _samples(document: Any) -> Samples | None:
    if document is None:
        return None
    if not isinstance(document, Mapping):
        raise SummaryError("samples must be an object or null")
    start, interval = (whole(document.get(key), f"samples.{key}") for key in ("from", "interval_seconds"))
    if not 1 <= interval <= LONGEST_INTERVAL or start % interval:
        raise SummaryError(
            f"samples.from must be a multiple of samples.interval_seconds, which is from 1 to {LONGEST_INTERVAL}"
        )
    listed = [name for name in SERIES if name not in OPTIONAL or document.get(name) is not None]
    try:
        series = {
            name: device_samples.values_of(document.get(name), f"samples.{name}", MOST_SAMPLES) for name in listed
        }
        devices = device_samples.parse(document.get("devices"))
    except DeviceSamplesError as error:
        raise SummaryError(str(error)) from None
    lengths = {len(values) for values in series.values()}
    if len(lengths) > 1:
        raise SummaryError("all lists of samples must have the same length")
    length = max(lengths)
    return Samples(start, interval, {name: series.get(name, [None] * length) for name in SERIES}, devices)


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str) or not value:
        raise SummaryError(f"{key} must be text")
    return value


def _seconds(document: Mapping[str, Any], key: str, prefix: str = "", lowest: float = 0) -> float:
    value: Any = document.get(key)
    if type(value) not in (int, float) or not lowest <= value < LATEST:  # excludes True and NaN
        raise SummaryError(f"{prefix}{key} must be a number from {lowest}, below {LATEST}")
    return float(value)


def _measured_seconds(document: Mapping[str, Any]) -> float:
    seconds = _seconds(document, "measured_seconds")
    if 0 < seconds < SHORTEST:
        raise SummaryError(f"measured_seconds must be 0, or a number from {SHORTEST}")
    return seconds
