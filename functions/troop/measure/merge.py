"""Merges the summaries of all nodes of one phase.

Histograms add up bucket by bucket and counts second by second, so percentiles are those of all operations; percentiles
are never averaged. Measurements of a node whose clock is certainly wrong are moved to the common clock by whole
seconds.

All sums are whole numbers, so order and grouping do not change the result. Memory does not depend on the number of
operations, and grows by one line per node. Results that cannot be combined are listed by node.
"""

from __future__ import annotations

import json
import operator
import statistics
from collections import Counter
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Callable

from troop.measure import device_samples
from troop.measure import operations as ops
from troop.measure.histogram import Histogram
from troop.measure.merged_devices import DeviceMerger
from troop.measure.node_series import NodeSeries, order_of
from troop.measure.operations import (
    LONGEST_SECONDS,
    OTHER,
    TOTAL,
    Operation,
    Operations,
    OperationsError,
    Rate,
    aligned_sum,
)
from troop.measure.separate import REQUESTS
from troop.measure.summary import COUNTERS, LEVELS, SERIES, Clock, Samples, Summary, SummaryError, is_left_out

PERCENTILES = {"p50_ms": 50, "p90_ms": 90, "p95_ms": 95, "p99_ms": 99, "p99_9_ms": 99.9}
MOST_KINDS = 16
"""The most kinds of errors in a table row; the rarest others are counted together as ``other``."""

MOST_SEPARATE = 2000
"""The most rows of single nodes of a phase: the first by role and rank."""


@dataclass
class _Series:
    """Sums over nodes, and the number of nodes in each sum, by name of the series.

    Attributes:
        first: number of the first interval, counted from 1970.
        length: of every list, except for empty ones of series without any value.
    """

    interval: int = 0
    first: int = 0
    length: int = 0
    sums: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in SERIES})
    nodes: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in SERIES})

    def add(self, samples: Samples) -> None:
        whole = _Series(self.interval, samples.start // self.interval, len(samples.series[SERIES[0]]))
        ones = [1] * whole.length
        for name, values in samples.series.items():
            if is_left_out(name, values):
                continue
            complete = None not in values
            whole.sums[name] = values if complete else [value or 0 for value in values]  # type: ignore[assignment]
            whole.nodes[name] = ones if complete else [int(value is not None) for value in values]
        self.merge(whole)

    def merge(self, other: _Series) -> None:
        if not other.length:
            return
        mine, more = self.first if self.length else other.first, other.first
        first = min(mine, more)
        length = max(mine + self.length, more + other.length) - first
        if length > LONGEST_SECONDS:
            raise SummaryError(f"samples of two nodes are {length} intervals apart: check their clocks")
        shared: dict[tuple[int, int], list[int]] = {}  # most series have the same list of nodes
        for name in SERIES:
            nodes = self.nodes[name], other.nodes[name]
            if not any(nodes):
                continue
            self.sums[name] = aligned_sum(first, length, (mine, self.sums[name]), (more, other.sums[name]))
            key = id(nodes[0]), id(nodes[1])
            if key not in shared:
                shared[key] = aligned_sum(first, length, (mine, nodes[0]), (more, nodes[1]))
            self.nodes[name] = shared[key]
        self.first, self.length = first, length

    def document(self) -> dict[str, Any] | None:
        if not self.length:
            return None
        series = {
            name: list(map(_number_of_nodes(name), self.sums[name], self.nodes[name]))
            for name in SERIES
            if self.nodes[name]  # optional series that no node has are left out, as in summaries
        }
        return {"from": self.first * self.interval, "interval_seconds": self.interval, **series}


def _number_of_nodes(name: str) -> Callable[[int, int], int | None]:
    if name in LEVELS:
        return lambda total, nodes: _rounded(total, nodes) if nodes else None
    return lambda total, nodes: total if nodes else None


@dataclass
class _Separate:
    """Rows of single nodes.

    Attributes:
        rows: each with its sort key. At times longer than the limit, because sorting takes time.
        left_out: the number of rows that were left out.
        requests: the sums of :data:`troop.measure.separate.REQUESTS`.
    """

    rows: list[tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    left_out: int = 0
    requests: Counter[str] = field(default_factory=Counter)

    def add(self, summary: Summary) -> None:
        for row in summary.separate:
            if row.tool == REQUESTS:
                self.requests[row.operation] += row.count
                continue
            row_document = {"node": summary.node, "role": summary.role, "rank": summary.rank, **row.document()}
            order = (summary.role, summary.rank, summary.node, row.tool, row.operation, json.dumps(row_document))
            self.rows.append((order, row_document))
        self._cut(2 * MOST_SEPARATE)

    def merge(self, other: _Separate) -> None:
        self.rows += other.rows
        self.left_out += other.left_out
        self.requests.update(other.requests)
        self._cut(2 * MOST_SEPARATE)

    def _cut(self, longest: int) -> None:
        if len(self.rows) > longest:
            self.rows.sort(key=operator.itemgetter(0))
            self.left_out += len(self.rows) - MOST_SEPARATE
            del self.rows[MOST_SEPARATE:]

    def document(self) -> dict[str, Any]:
        self._cut(MOST_SEPARATE)
        rows = [row_document for _, row_document in sorted(self.rows, key=operator.itemgetter(0))]
        requests = {"requests": dict(self.requests)} if self.requests else {}
        return {"separate": rows, "separate_left_out": self.left_out, **requests}


@dataclass
class _Role:
    operations: Operations = field(default_factory=dict)
    series: _Series = field(default_factory=_Series)
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    devices: DeviceMerger = field(default_factory=DeviceMerger)
    node_series: NodeSeries = field(default_factory=NodeSeries)


class Merger:
    """Merges summaries of one phase, one at a time, in any order."""

    def __init__(self) -> None:
        self.phase: str | None = None
        self.measured_seconds = 0.0
        self.warm_up_seconds = 0.0
        self._measured_from: list[float] = []
        self._separate = _Separate()
        self._interval = 0
        self._roles: dict[str, _Role] = {}

    def add(self, summary: Summary) -> None:
        """Adds one node's summary.

        Raises:
            SummaryError: the summary has another phase or sample interval, or its node was added before.
        """
        self._check(summary.phase, summary.samples.interval_seconds if summary.samples else 0, {summary.node})
        role, line = self._role(summary.role), _line(summary)
        summary = summary.by_the_common_clock()
        try:
            ops.add_all(role.operations, summary.operations)
        except OperationsError as error:
            raise SummaryError(f"{summary.node}: {error}") from None
        if summary.samples:
            role.series.interval = self._interval
            role.series.add(summary.samples)
            if summary.samples.devices:
                role.devices.add(order_of(summary), summary.samples.devices)
        role.nodes[summary.node] = line
        role.node_series.add(summary)
        self._separate.add(summary)
        self.measured_seconds = max(self.measured_seconds, summary.measured_seconds)
        self.warm_up_seconds = max(self.warm_up_seconds, summary.warm_up_seconds)
        if summary.measured_from is not None:
            self._measured_from.append(summary.measured_from)

    def merge(self, other: Merger) -> None:
        """Adds all summaries of another merger, which must not be used afterwards.

        Raises:
            SummaryError: as :meth:`add`.
        """
        if other.phase is None:
            return
        self._check(other.phase, other._interval, other.nodes)
        for name, more in other._roles.items():
            role = self._role(name)
            try:
                ops.add_all(role.operations, more.operations)
            except OperationsError as error:
                raise SummaryError(str(error)) from None
            role.series.interval = role.series.interval or more.series.interval
            role.series.merge(more.series)
            role.devices.merge(more.devices)
            role.node_series.merge(more.node_series)
            role.nodes.update(more.nodes)
        self._separate.merge(other._separate)
        self.measured_seconds = max(self.measured_seconds, other.measured_seconds)
        self.warm_up_seconds = max(self.warm_up_seconds, other.warm_up_seconds)
        self._measured_from += other._measured_from

    @property
    def measured_from(self) -> float | None:
        """The start of the measured time in seconds since 1970; None if nothing was measured. It is the median of the
        nodes, so that a single wrong clock does not move it.
        """
        return statistics.median_low(self._measured_from) if self._measured_from else None

    @property
    def nodes(self) -> set[str]:
        """The nodes whose summaries were added."""
        return {node for role in self._roles.values() for node in role.nodes}

    @property
    def operations(self) -> dict[str, Operations]:
        """The merged operations of each role; not copies."""
        return {name: role.operations for name, role in self._roles.items()}

    def _check(self, phase: str, interval: int, nodes: set[str]) -> None:
        if self.phase not in (None, phase):
            raise SummaryError(f"cannot merge a summary of phase {phase} with those of phase {self.phase}")
        if self._interval and interval and interval != self._interval:
            raise SummaryError(f"cannot merge samples of {interval} seconds with those of {self._interval} seconds")
        for role in self._roles.values():
            if twice := nodes & role.nodes.keys():
                raise SummaryError(f"{min(twice)} was merged before")
        self.phase = phase
        self._interval = self._interval or interval

    def _role(self, name: str) -> _Role:
        return self._roles.setdefault(name, _Role())

    def document(self) -> dict[str, Any]:
        """Returns a phase of the results.

        Returns:
            ``{"phase", "measured_from", "measured_seconds", "warm_up_seconds", "nodes": number, "roles": {role:
            {"operations", "samples", "devices", "node_series", "nodes"}}, "table", "separate", "separate_left_out"}``.
            Operations are as in a summary. Samples are as in a summary or None: levels as means over all nodes, amounts
            as sums. Devices are those of :meth:`DeviceMerger.document`, series of nodes those of
            :meth:`NodeSeries.document`. Nodes are by id, each with its means over the measured time, and with the sums
            of counters and of its devices. The table is that of :meth:`table`. Separate rows are as in a summary, with
            node, role and rank, sorted by these. ``separate_left_out`` is the number of rows beyond
            :data:`MOST_SEPARATE`.

        Raises:
            SummaryError: nothing was added.
        """
        if self.phase is None:
            raise SummaryError("there is no summary to merge")
        return {
            "phase": self.phase,
            "measured_from": self.measured_from,
            "measured_seconds": self.measured_seconds,
            "warm_up_seconds": self.warm_up_seconds,
            "nodes": len(self.nodes),
            "roles": {name: _role_document(self._roles[name]) for name in sorted(self._roles)},
            "table": self.table(),
            **self._separate.document(),
        }

    def table(self) -> list[dict[str, Any]]:
        """Returns a row for each role and operation, and before several of a role their total.

        Returns:
            ``[{"role", "operation", "count", "per_second", "errors": {kind: count}, "bytes_per_second", "mean_ms",
            "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p99_9_ms", "max_ms", "mean_derived"}]``; unknown rates and times
            are None. Counts and times are of successes. ``mean_derived`` is true if the mean follows from rate and
            threads; a row with a measured mean does not have it. ``timing`` is what the times mean, if that is known,
            and ``service`` has the same times of the service times, if they are known apart. The operation of a total
            is :data:`~troop.measure.operations.TOTAL`.
        """
        rows = []
        for role in sorted(self._roles):
            operations = self._roles[role].operations
            if total := ops.total_of(operations.values()):
                rows.append(row(role, TOTAL, total, self.measured_seconds))
            rows += [row(role, name, operations[name], self.measured_seconds) for name in sorted(operations)]
        return rows


def _role_document(role: _Role) -> dict[str, Any]:
    return {
        "operations": ops.document_of(role.operations),
        "samples": role.series.document(),
        "devices": role.devices.document(),
        "node_series": role.node_series.document(),
        "nodes": dict(sorted(role.nodes.items())),
    }


def _line(summary: Summary) -> dict[str, Any]:
    """Returns the line of a single node."""
    clock: Clock | None = summary.clock
    counts = _measured(summary) if summary.samples else []
    samples = summary.samples
    means = {name: _mean(samples.series[name], counts) for name in SERIES} if samples else {}
    return {
        "rank": summary.rank,
        "outcome": summary.outcome,
        "ended_at": round(summary.ended_at - (clock.ahead if clock else 0), 3),
        "clock_offset_seconds": clock.offset_seconds if clock else None,
        "clock_uncertainty_seconds": clock.uncertainty_seconds if clock else None,
        "count": sum(operation.count for operation in summary.operations.values()),
        "errors": sum(sum(operation.errors.values()) for operation in summary.operations.values()),
        "means": means,
        "interval_seconds": samples.interval_seconds if samples else None,
        "totals": {} if samples is None else _totals(samples, counts),
        "devices": {} if samples is None else _devices(summary, samples),
        "rebalance_recommended_at": summary.rebalance_recommended_at,
    }


def _totals(samples: Samples, counts: list[bool]) -> dict[str, int]:
    """Returns the sums of the known counters over the measured time."""
    known = {name: _known(samples.series[name], counts) for name in COUNTERS}
    return {name: sum(values) for name, values in known.items() if values}


def _devices(summary: Summary, samples: Samples) -> dict[str, dict[str, Any]]:
    """Returns the sums of each device over the measured time."""
    devices = samples.devices
    if devices is None:
        return {}
    counts = _in_measured(summary, devices.start, devices.interval_seconds, devices.length)
    return device_samples.totals(devices, counts)


def _measured(summary: Summary) -> list[bool]:
    """Returns for each sample interval whether its middle is in the measured time; True for all if that is unknown."""
    samples = summary.samples
    if samples is None:
        return []
    return _in_measured(summary, samples.start, samples.interval_seconds, len(samples.series[SERIES[0]]))


def _in_measured(summary: Summary, start: int, interval: int, length: int) -> list[bool]:
    begin = summary.measured_from
    if begin is None:
        return [True] * length
    middle, end = start + interval / 2, begin + summary.measured_seconds
    return [begin <= middle + number * interval < end for number in range(length)]


def _mean(values: list[int | None], counts: list[bool]) -> int | None:
    known = _known(values, counts)
    return _rounded(sum(known), len(known)) if known else None


def _known(values: list[int | None], counts: list[bool]) -> list[int]:
    """Returns the values of the intervals that count, without those that are missing."""
    counted = list(compress(values, counts))
    return [value for value in counted if value is not None] if None in counted else counted  # type: ignore[return-value]


def _rounded(total: int, count: int) -> int:
    """Returns the rounded quotient, exact for numbers that no float can hold."""
    return (2 * total + count) // (2 * count)


def row(role: str, name: str, operation: Operation, seconds: float) -> dict[str, Any]:
    """Returns a row of :meth:`Merger.table`."""
    times, rate = operation.times, operation.rate
    if rate is not None and not times.count:
        return _row_of_rate(role, name, operation, rate)
    timing = {"timing": operation.timing} if operation.timing else {}
    service = {"service": _times(operation.service)} if operation.service and operation.service.count else {}
    return {
        "role": role,
        "operation": name,
        "count": times.count,
        "per_second": round(times.count / seconds, 3) if seconds else None,
        "errors": _commonest(operation.errors),
        "bytes_per_second": round(operation.bytes / seconds, 3) if seconds else None,
        **_times(times),
        **timing,
        **service,
    }


def _times(times: Histogram) -> dict[str, float | None]:
    """Returns mean, percentiles and maximum of a row."""
    percentiles = times.percentiles(tuple(PERCENTILES.values()))
    mean = times.mean()
    return {
        "mean_ms": None if mean is None else round(mean / 1000, 3),
        **{key: _milliseconds(value) for key, value in zip(PERCENTILES, percentiles)},
        "max_ms": _milliseconds(times.max if times.count else None),
    }


def _row_of_rate(role: str, name: str, operation: Operation, rate: Rate) -> dict[str, Any]:
    """Returns the row of an operation whose tool reports a rate of its own duration, but no times."""
    mean = rate.mean_ms
    return {
        "role": role,
        "operation": name,
        "count": rate.count,
        "per_second": rate.per_second or None,
        "errors": _commonest(operation.errors),
        "bytes_per_second": rate.bytes_per_second or None,
        "mean_ms": None if mean is None else round(mean, 6),
        **dict.fromkeys(PERCENTILES),
        "max_ms": None,
        "mean_derived": mean is not None,
    }


def _milliseconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1000


def _commonest(errors: dict[str, int]) -> dict[str, int]:
    ordered = sorted(errors.items(), key=lambda item: (-item[1], item[0]))
    shown = dict(ordered[:MOST_KINDS])
    if rest := sum(count for _, count in ordered[MOST_KINDS:]):
        shown[OTHER] = shown.get(OTHER, 0) + rest
    return shown
