"""Merges the samples of block devices of a role: by label over all nodes, and each device of some nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from troop.measure.device_samples import DEVICE_SERIES, MOST_DEVICE_SAMPLES, MOST_DEVICES, DeviceSamples
from troop.measure.node_series import Order, candidates, chosen
from troop.measure.operations import aligned_sum

MOST_NODE_SERIES = 64
"""The most devices of single nodes of a role with values over time: half of them are of the slowest nodes,
the others of the first by rank.
"""
MOST_LABELS = 2 * MOST_DEVICES
"""The most labels of a role with values over time: the first in their order."""
LONGEST = 20 * MOST_DEVICE_SAMPLES
"""The most intervals of a sum: the clocks of two nodes may be off."""

SERIES_OVER_TIME = tuple(name for name in DEVICE_SERIES if not name.startswith(("read_wait", "write_wait")))
"""Names of amounts over time. The waits of reads and of writes are in the totals only."""


@dataclass
class _Sum:
    """Sums of one label over nodes: amounts, and the number of nodes in each, by name of the series."""

    first: int
    length: int
    devices: int = 1
    amounts: dict[str, list[int]] = field(default_factory=dict)
    nodes: dict[str, list[int]] = field(default_factory=dict)

    def add(self, other: _Sum) -> None:
        first = min(self.first, other.first)
        length = max(self.first + self.length, other.first + other.length) - first
        if length > LONGEST:  # one of the clocks is days off: keep what is there
            return
        for name in {**self.amounts, **other.amounts}:
            for mine, more in ((self.amounts, other.amounts), (self.nodes, other.nodes)):
                parts = (self.first, mine.get(name, [])), (other.first, more.get(name, []))
                mine[name] = aligned_sum(first, length, *parts)
        self.first, self.length = first, length
        self.devices += other.devices


Row = dict[str, Any]
_Place = tuple[float, int, float, int, str, str]
"""Key of a device: the order of its node, and its name."""


@dataclass
class DeviceMerger:
    """Sums by label, and the series of single nodes' devices."""

    _interval: int = 0
    _sums: dict[str, _Sum] = field(default_factory=dict)
    _rows: dict[_Place, Row] = field(default_factory=dict)

    def add(self, order: Order, samples: DeviceSamples) -> None:
        """Adds one node. A node whose interval differs from that of the first is left out over time."""
        self._interval = self._interval or samples.interval_seconds
        if samples.interval_seconds != self._interval:
            return
        first, length = samples.start // self._interval, samples.length
        for name, series in samples.series.items():
            known = {key: values for key in SERIES_OVER_TIME if (values := series.get(key)) and _any(values)}
            amounts = {key: [value or 0 for value in values] for key, values in known.items()}
            nodes = {key: [int(value is not None) for value in values] for key, values in known.items()}
            self._add(samples.label(name), _Sum(first, length, 1, amounts, nodes))
            row = {
                "node": order[4],
                "rank": order[3],
                "device": name,
                "label": samples.label(name),
                "from": samples.start,
            }
            self._rows[(*order, name)] = {**row, **known}
        self._cut()

    def merge(self, other: DeviceMerger) -> None:
        """Adds all nodes of another merger, which must not be used afterwards."""
        self._interval = self._interval or other._interval
        if other._interval not in (0, self._interval):
            return
        for label, more in other._sums.items():
            self._add(label, more)
        self._rows |= other._rows
        self._cut()

    def _add(self, label: str, more: _Sum) -> None:
        if label in self._sums:
            self._sums[label].add(more)
        else:
            self._sums[label] = more

    def _cut(self) -> None:
        if len(self._rows) > 2 * MOST_NODE_SERIES:
            self._rows = {key: self._rows[key] for key in candidates(self._rows, MOST_NODE_SERIES)}
        if len(self._sums) > MOST_LABELS:
            self._sums = dict(sorted(self._sums.items())[:MOST_LABELS])

    def document(self) -> dict[str, Any] | None:
        """Returns ``{"interval_seconds", "labels": {label: {"from", "devices", "operations": [...], ...}}, "nodes":
        [{"node", "rank", "device", "label", "from", "operations": [...], ...}]}``; None without devices.

        Amounts of labels are sums over so many ``devices``. Amounts of nodes are those of
        :data:`MOST_NODE_SERIES` devices, by rank. All are per interval; None where a value is unknown.
        """
        if not self._sums:
            return None
        labels = {label: self._label(one) for label, one in sorted(self._sums.items())}
        rows = [self._rows[key] for key in sorted(chosen(self._rows, MOST_NODE_SERIES), key=lambda key: key[3:])]
        return {"interval_seconds": self._interval, "labels": labels, "nodes": rows}

    def _label(self, one: _Sum) -> dict[str, Any]:
        series = {
            name: [total if nodes else None for total, nodes in zip(one.amounts[name], one.nodes[name])]
            for name in SERIES_OVER_TIME
            if name in one.amounts
        }
        return {"from": one.first * self._interval, "devices": one.devices, **series}


def _any(values: list[int | None]) -> bool:
    return any(value is not None for value in values)
