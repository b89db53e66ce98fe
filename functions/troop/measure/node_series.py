"""Reduces a node's summary to a few values over time, so that a report can draw any node beside its role.

The values of a step are those of the node alone: rates, and mean and p99 of all its operations together, from merged
buckets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from troop.measure.histogram import buckets_at
from troop.measure.histogram_rows import Counts, by_bucket, sum_of
from troop.measure.summary import BUSY, Samples, Summary
from troop.measure.windows import highest_in, mean_of, step_for

MOST_NODES = 400
"""The most nodes of a role: half of them are the slowest, the others the first by rank."""
STEPS_FOR = 5
"""Factor of the time for which a step is chosen: a node has a fifth of the steps of a role, at most 60."""

LEVELS = ("cpu", "iowait")
"""Names of levels, in thousandths of all processors."""
AMOUNTS = ("network_received_bytes", "network_sent_bytes", "disk_read_bytes", "disk_write_bytes")
"""Names of amounts per second. Those that are 0 throughout are left out."""

Order = tuple[float, int, float, int, str]
"""Sorts nodes: the slowest first, then by rank and name."""


def chosen(rows: Mapping[Any, Any], most: int) -> list[Any]:
    """Returns the keys of at most ``most`` rows: half are the slowest nodes', the others the first by rank.

    Args:
        rows: by keys that begin as an :data:`Order`.
    """
    slowest = sorted(rows)
    by_rank = sorted(slowest[most // 2 :], key=lambda key: key[3:]) if len(slowest) > most else slowest[most // 2 :]
    return sorted([*slowest[: most // 2], *by_rank[: most - most // 2]])


def candidates(rows: Mapping[Any, Any], most: int) -> set[Any]:
    """Returns the keys that :func:`chosen` could return, also after other rows are added."""
    return {*sorted(rows)[: most // 2], *sorted(rows, key=lambda key: key[3:])[:most]}


@dataclass
class NodeSeries:
    """The values over time of a role's nodes."""

    _rows: dict[Order, dict[str, Any]] = field(default_factory=dict)

    def add(self, summary: Summary) -> None:
        """Adds a node by the common clock; nothing for a phase that is not measured."""
        if summary.measured_from is not None and summary.measured_seconds:
            self._rows[order_of(summary)] = _row(summary, summary.measured_from)
            self._cut()

    def merge(self, other: NodeSeries) -> None:
        """Adds all nodes of another one, which must not be used afterwards."""
        self._rows |= other._rows
        self._cut()

    def document(self) -> list[dict[str, Any]]:
        """Returns a row for each node, the slowest first: ``[{"node", "rank", "from", "step_seconds", "count": [...],
        "errors", "mean_micros", "p99_micros", "cpu", "iowait", ...}]``. What is unknown is left out, or None in a step.
        """
        return [self._rows[key] for key in chosen(self._rows, MOST_NODES)]

    def _cut(self) -> None:
        """Keeps what could be chosen. At times more than that, because sorting takes time."""
        if len(self._rows) > 2 * MOST_NODES:
            self._rows = {key: self._rows[key] for key in candidates(self._rows, MOST_NODES)}


def order_of(summary: Summary) -> Order:
    """Returns the key by which the slowest node is the first: without times, by the fewest operations and the busiest
    processors; then by the highest mean time. So a node that did nothing is slower than all that did something.
    """
    several = [one.times for one in summary.operations.values() if one.times.count]
    count = sum(one.count for one in several)
    mean = sum((one.mean() or 0) * one.count for one in several) / count if count else math.inf
    done = 0 if count else sum(one.count for one in summary.operations.values())
    cpu = [value for value in _busy(summary.samples) if value is not None] if summary.samples else []
    return -mean, done, -sum(cpu) / len(cpu) if cpu else 0.0, summary.rank, summary.node


def _row(summary: Summary, measured_from: float) -> dict[str, Any]:
    begin, end = measured_from - summary.warm_up_seconds, measured_from + summary.measured_seconds
    step = step_for(STEPS_FOR * (end - begin))
    first = math.floor(begin) // step
    starts = [number * step for number in range(first, (math.ceil(end) - 1) // step + 1)]
    values: dict[str, list[int | None]] = {}
    # Where something was not counted over time, the rest would look like the whole.
    operations = [*summary.operations.values()]
    lacks = [one.lacks for one in operations]
    whole = not any(one.successes or one.errors for one in lacks) and not any(one.rate for one in operations)
    for name in ("count", "errors"):
        amounts = [0] * len(starts)
        for one in operations if whole else []:
            counted = getattr(one.per_second, name)
            for place, start in enumerate(starts):
                since = start - one.per_second.start
                amounts[place] += sum(counted[max(0, since) : max(0, since + step)])
        values[name] = [*amounts] if any(amounts) else []
    if not any(one.times for one in lacks):
        values["mean_micros"], values["p99_micros"] = _times(summary, starts, step)
    if samples := summary.samples:
        levels = dict(zip(LEVELS, (_busy(samples), samples.series["cpu_iowait"])))
        for name, level in levels.items():
            values[name] = _means(samples, level, starts, step)
        for name in AMOUNTS:
            amount = samples.series[name]
            if any(amount):
                means = _means(samples, amount, starts, step)
                values[name] = [None if mean is None else mean // samples.interval_seconds for mean in means]
    known = {name: series for name, series in values.items() if any(value is not None for value in series)}
    return {"node": summary.node, "rank": summary.rank, "from": starts[0], "step_seconds": step, **known}


def _times(summary: Summary, starts: list[int], step: int) -> tuple[list[int | None], list[int | None]]:
    several = [one.over_time for one in summary.operations.values() if one.over_time is not None]
    means: list[int | None] = []
    highest: list[int | None] = []
    for start in starts:
        counts: Counts = {}
        for one in several:
            counts = sum_of(counts, one.within(start, step))
        times = by_bucket(counts)
        mean = mean_of(times)
        (p99,) = buckets_at(times, (99,))
        means.append(None if mean is None else round(mean))
        highest.append(None if p99 is None else highest_in(p99))
    return means, highest


def _busy(samples: Samples) -> list[int | None]:
    parts = zip(*(samples.series[name] for name in BUSY))
    return [None if None in each else sum(each) for each in parts]


def _means(samples: Samples, values: list[int | None], starts: list[int], step: int) -> list[int | None]:
    """Returns the mean of the known values in each step."""
    means: list[int | None] = []
    for start in starts:
        low, high = (max(0, -((samples.start - at) // samples.interval_seconds)) for at in (start, start + step))
        known = [value for value in values[low:high] if value is not None]
        means.append(round(sum(known) / len(known)) if known else None)
    return means
