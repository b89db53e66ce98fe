"""Computes values over time, and the average load of nodes.

A series is one value over time. Its key says of what: (cell, point, role, node, device, operation, name).

- ``cell`` and ``point`` are those of the phase that contains the series; ``point`` is None for a phase that runs once.
- ``node`` is "" for all nodes of the role together, and ``device`` is "" for all devices of the node or nodes. So a
  series of one disk has both, and one of a whole node has an empty device.
- ``operation`` is None for values of nodes.
- ``name`` is one of :data:`troop.report.series_names.PANELS`; others are drawn too, in panels of their own.

The values are those of equal steps: the first begins ``start`` seconds after the measured time does (before it if
negative), and each is ``step_seconds`` long. None is an unknown value. Percentages are averaged over nodes, and
amounts per second are summed over them; times are merged, never averaged.

The page and comparisons draw whatever series a phase has. A new one needs an entry in ``PANELS`` for its label and
unit, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troop.bench.results import steps
from troop.bench.results.device_series import device_series
from troop.bench.results.exact_totals import total_over_time
from troop.bench.results.node_series import node_series
from troop.bench.results.steps import SeriesRow, Value
from troop.measure.operations import TOTAL
from troop.measure.summary import AMOUNTS, BUSIEST, BUSY, CPU
from troop.measure.windows import mean_of, step_for

_LATENCIES: Mapping[str, float] = {"p50_ms": 50, "p90_ms": 90, "p99_ms": 99, "max_ms": 100}

_CPU_PARTS = {"user": "cpu_user", "system": "cpu_system", "iowait": "cpu_iowait", "steal": "cpu_steal"}

_NODE_AMOUNTS = AMOUNTS

_DIGITS = 5
"""Significant digits of a value in a series: enough for a chart, in a tenth of the space."""


@dataclass(frozen=True)
class Times:
    """The times of a phase.

    Attributes:
        zero: the second since 1970 from which steps are counted: the one in which the measured time begins, or the
            first with data if that is unknown.
        begin: of the warm-up, in seconds after zero; None if unknown.
        measured_from, measured_until: in seconds after zero; None if unknown.
        step: seconds.
    """

    zero: int
    begin: float | None
    measured_from: float | None
    measured_until: float | None
    step: int


def times_of(phase: Mapping[str, Any]) -> Times:
    """Returns the times of a phase of the results. Earlier versions of Troop did not store them."""
    spans = [span for role in phase["roles"].values() for span in _spans(role)]
    measured_from, seconds = phase.get("measured_from"), float(phase["measured_seconds"])
    first = min((begin for begin, _ in spans), default=int(measured_from or 0))
    last = max((end for _, end in spans), default=first)
    step = step_for(max(last - first, 1))
    if measured_from is None:
        return Times(first, None, None, None, step)
    zero = math.floor(measured_from)
    after = measured_from - zero
    begin = after - float(phase.get("warm_up_seconds") or 0)
    return Times(zero, begin, after, after + seconds, step)


def _spans(role: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    for operation in role["operations"].values():
        counts = operation["per_second"]
        if counts["count"]:
            yield counts["from"], counts["from"] + len(counts["count"])
    if samples := role.get("samples"):
        yield samples["from"], samples["from"] + samples["interval_seconds"] * len(samples[CPU[0]])
    if devices := role.get("devices"):  # their intervals are longer, so they may begin before the others
        for its in devices["labels"].values():
            yield its["from"], its["from"] + devices["interval_seconds"]


def series(phase: Mapping[str, Any]) -> list[SeriesRow]:
    """Returns all series of a phase of the results by role: those of operations, then those of nodes.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the phase is damaged.
    """
    times = times_of(phase)
    series: list[SeriesRow] = []
    for name, role in phase["roles"].items():
        for operation, document in role["operations"].items():
            series += _counts(name, operation, document, times)
            series += _latencies(name, operation, document, times)
        if total := total_over_time(role["operations"]):
            series += _counts(name, TOTAL, total, times)
            series += _latencies(name, TOTAL, total, times)
        if samples := role.get("samples"):
            series += _samples(name, samples, times)
        series += node_series(name, role, times.zero, times.begin, times.measured_until)
        series += device_series(name, role.get("devices"), times.zero, times.step)
    return series


def partial_tools(phase: Mapping[str, Any]) -> list[str]:
    """Returns the operations whose counts by second are incomplete, but not those without any.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the phase is damaged.
    """
    return [
        f"{name} {operation}"
        for name, role in phase["roles"].items()
        for operation, document in role["operations"].items()
        if 0 < sum(document["per_second"]["count"]) < document["histogram"]["count"]
    ]


def _counts(role: str, operation: str, document: Mapping[str, Any], times: Times) -> Iterator[SeriesRow]:
    counts = document["per_second"]
    if not counts["count"]:
        return
    first, length = counts["from"] - times.zero, len(counts["count"])
    # If nodes did not begin together, some counts are before the warm-up or after the end.
    begin, until = times.begin, times.measured_until
    begin = float(first) if begin is None or first + 1 <= begin else begin
    end = float(first + length) if until is None or first + length > until + 1 else until
    series_counts: tuple[tuple[str, Sequence[int]], ...] = (
        ("per_second", counts["count"]),
        ("errors_per_second", counts["errors"]),
    )
    for name, values in series_counts:
        if name == "per_second" or any(values):
            low, totals = steps.sums(counts["from"], values, times.zero, times.step)
            rates = steps.rates(low, totals, times.step, begin, end)
            yield _series(role, operation, name, low * times.step, times.step, rates)


def _latencies(role: str, operation: str, document: Mapping[str, Any], times: Times) -> Iterator[SeriesRow]:
    over_time = document.get("over_time")
    if not over_time or not over_time["counts"]:
        return
    own, counts = int(over_time["step_seconds"]), over_time["counts"]
    together = max(1, -(-times.step // own))
    step = own * together
    low, windows = steps.windows(counts, over_time["from"] - times.zero, own, step)
    start, highest = low * step, document["histogram"]["max"]
    percentiles = [steps.percentiles(buckets, [*_LATENCIES.values()]) for _, buckets in windows]
    for place, name in enumerate(_LATENCIES):
        latencies = []
        for (begin, _), values in zip(windows, percentiles, strict=True):
            value = values[place]
            if value is not None and begin >= (times.measured_from or 0):
                value = min(value, highest)  # the maximum of the measured time; the warm-up may have been slower
            latencies.append(None if value is None else value / 1000)
        yield _series(role, operation, name, start, step, latencies)
    averages = [None if value is None else value / 1000 for value in (mean_of(buckets) for _, buckets in windows)]
    yield _series(role, operation, "mean_ms", start, step, averages)


def _samples(role: str, samples: Mapping[str, Any], times: Times) -> Iterator[SeriesRow]:
    first, interval = samples["from"], samples["interval_seconds"]
    step = max(times.step, interval)
    for name, values in _by_name(samples):
        if any(value is not None for value in values):
            low, means = steps.means(first, interval, values, times.zero, step)
            yield _series(role, None, name, low * step, step, means)


def _by_name(samples: Mapping[str, Any]) -> Iterator[tuple[str, list[Value]]]:
    yield "cpu", _busy(samples)
    for name, part in _CPU_PARTS.items():
        yield name, [_tenth(value) for value in samples[part]]
    yield "busiest", [_tenth(value) for value in samples.get(BUSIEST) or []]  # unknown to earlier versions
    for name in _NODE_AMOUNTS:
        values = samples.get(name) or []  # counters are left out where no node has them
        yield name, [None if value is None else value / samples["interval_seconds"] for value in values]


def _busy(samples: Mapping[str, Any]) -> list[Value]:
    """Returns percent of all processors' time by interval; None if a part is unknown."""
    parts = zip(*(samples[name] for name in BUSY), strict=True)
    return [None if None in each else sum(each) / 10 for each in parts]


def _tenth(thousandths: float | None) -> Value:
    return None if thousandths is None else thousandths / 10


def _series(role: str, operation: str | None, name: str, start: float, step: int, values: list[Value]) -> SeriesRow:
    shortened = map(float, map(f"%.{_DIGITS}g".__mod__, [value for value in values if value is not None]))
    short: list[Value] = (
        [*shortened] if None not in values else [None if v is None else next(shortened) for v in values]
    )
    return SeriesRow(role, name, start, step, short, operation=operation)


def use(phase: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the mean load of each sampled role over the measured time, or over the phase if that is unknown, as of
    :class:`troop.report.document.Use`.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the phase is damaged.
    """
    times = times_of(phase)
    return [
        _use(name, len(role["nodes"]), role["samples"], times)
        for name, role in phase["roles"].items()
        if role.get("samples")
    ]


def _use(role: str, nodes: int, samples: Mapping[str, Any], times: Times) -> dict[str, Any]:
    interval = samples["interval_seconds"]
    measured = _measured(samples, times)

    def mean(values: Sequence[Value]) -> Value:
        known = [value for value, counts in zip(values, measured, strict=True) if counts and value is not None]
        return round(math.fsum(known) / len(known), 3) if known else None

    parts = {name.removeprefix("cpu_"): mean([_tenth(value) for value in samples[name]]) for name in CPU}
    amounts = {
        name: mean([None if value is None else value / interval for value in samples[name]])
        for name in _NODE_AMOUNTS
        if samples.get(name)
    }
    cpu, memory = mean(_busy(samples)), mean(samples["memory_used"])
    busiest = mean([_tenth(value) for value in samples[BUSIEST]]) if samples.get(BUSIEST) else None
    levels = {"cpu": cpu, "busiest": busiest, "memory_bytes": memory}
    return {"role": role, "nodes": nodes, **levels, **parts, **amounts}


def _measured(samples: Mapping[str, Any], times: Times) -> list[bool]:
    """Returns for each interval whether its middle is in the measured time."""
    length, interval = len(samples[CPU[0]]), samples["interval_seconds"]
    if times.measured_from is None or times.measured_until is None:
        return [True] * length
    middle = samples["from"] - times.zero + interval / 2
    return [times.measured_from <= middle + number * interval < times.measured_until for number in range(length)]
