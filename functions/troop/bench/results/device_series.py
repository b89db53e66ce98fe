"""Computes values over time of block devices: by label over a role's nodes, and of the devices of single nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from troop.bench.results import steps
from troop.bench.results.steps import SeriesRow, Value

Amounts = Mapping[str, Sequence[Value]]

_AMOUNTS = {
    "disk_reads": "reads",
    "disk_writes": "writes",
    "disk_read_bytes": "read_bytes",
    "disk_write_bytes": "write_bytes",
}
"""Names of series per second, and the amounts they are of."""


def device_series(role: str, document: Mapping[str, Any] | None, zero: int, step: int) -> Iterator[SeriesRow]:
    """Yields the series of a role's devices; nothing for results of earlier versions.

    Args:
        document: the role's ``devices`` of the results.
        zero: the second since 1970 from which steps are counted.
        step: seconds; at least the interval of the samples.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the document is damaged.
    """
    if document is None:
        return
    interval = document["interval_seconds"]
    for label, its in document["labels"].items():
        yield from _device(role, "", label, its, its["devices"], interval, zero, step)
    for row in document["nodes"]:
        yield from _device(role, row["node"], row["label"], row, 1, interval, zero, step)


def _device(
    role: str, node: str, device: str, its: Mapping[str, Any], devices: int, interval: int, zero: int, step: int
) -> Iterator[SeriesRow]:
    step = max(step, interval)

    def summed(name: str) -> tuple[int, list[Value]] | None:
        """Returns the mean amount per second in each step."""
        values = its.get(name)
        if not values or all(value is None for value in values):
            return None
        rates = [None if value is None else value / interval for value in values]
        return steps.means(its["from"], interval, rates, zero, step)

    def one(name: str, low: int, values: Sequence[Value]) -> SeriesRow:
        short = [None if value is None else float(f"{value:.5g}") for value in values]
        return SeriesRow(role, name, low * step, step, short, node=node, device=device)

    for name, amount in _AMOUNTS.items():
        if rates := summed(amount):
            yield one(name, *rates)
    operations, waits = summed("operations"), summed("wait_micros")
    if operations and waits:
        pairs = zip(waits[1], operations[1], strict=True)
        yield one("disk_wait_ms", waits[0], [w / o / 1000 if w is not None and o else None for w, o in pairs])
    for name, amount, part in _PARTS:
        if rates := summed(amount):
            yield one(name, rates[0], [None if value is None else value * part / devices for value in rates[1]])


_PARTS = (("disk_queue", "queue_millis", 1 / 1000), ("disk_busy", "busy_millis", 100 / 1000))
"""Names of series, the amounts in milliseconds per second that they are of, and the factor to their unit. They are
means of the devices.
"""
