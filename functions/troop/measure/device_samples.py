"""Defines the samples of a node's block devices: whole disks, and devices on top of them such as md and dm.

A device on top of disks moves the same bytes as they do. So devices are never added up to totals of a node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from troop.measure.histogram import MOST

DEVICE_SERIES = (
    "operations",
    "reads",
    "writes",
    "read_bytes",
    "write_bytes",
    "bytes",
    "wait_micros",
    "read_wait_micros",
    "write_wait_micros",
    "queue_millis",
    "busy_millis",
)
"""Names of a device's amounts per interval. ``bytes`` is known only where a tool does not separate reads and writes.
Waits are summed over operations, from the queue to the end: divided by operations, the mean wait. ``queue_millis`` is
the time summed over the operations under way: divided by the interval, the mean queue. ``busy_millis`` is the time with
any operation under way: divided by the interval, the utilization.
"""

EBS, INSTANCE_STORE, STACKED, OTHER = "ebs", "instance-store", "stacked", ""
"""Kinds of devices. STACKED: on top of other devices."""
KINDS = (EBS, INSTANCE_STORE, STACKED, OTHER)

MOST_DEVICES = 40
"""The most devices of a node: the largest storage instances have 24 disks, beside volumes and arrays."""
MOST_DEVICE_SAMPLES = 1800
"""The most samples of a device. A phase of more seconds has a longer interval, so that a node with many disks stays
small.
"""
LONGEST_INTERVAL = 24 * 3600

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._!-]{0,31}")
LABEL = re.compile(r"[A-Za-z0-9/][A-Za-z0-9._+:/-]{0,63}")


class DeviceSamplesError(ValueError):
    """A document is not of device samples; the message says why."""


@dataclass(frozen=True)
class Device:
    """A block device.

    Attributes:
        kind: one of :data:`KINDS`.
        label: a name that is the same on all nodes: for EBS the device of the block device mapping, such as
            ``/dev/sdf``, because the kernel numbers NVMe devices in any order; otherwise the kernel's name.
        size_bytes: None if unknown.
    """

    kind: str = OTHER
    label: str = ""
    size_bytes: int | None = None


@dataclass(frozen=True)
class DeviceSamples:
    """Amounts of each device in equal intervals.

    Attributes:
        start: of the first interval, seconds since 1970; a multiple of the interval.
        series: by the kernel's name, one list for each known name of :data:`DEVICE_SERIES`; all lists have the same
            length; None where a value is unknown.
        devices: by the kernel's name.
    """

    start: int
    interval_seconds: int
    series: Mapping[str, Mapping[str, list[int | None]]]
    devices: Mapping[str, Device] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """The number of intervals."""
        return max((len(values) for its in self.series.values() for values in its.values()), default=0)

    def label(self, name: str) -> str:
        """Returns the label of a device."""
        device = self.devices.get(name)
        return device.label if device and device.label else name

    def earlier(self, seconds: float) -> DeviceSamples:
        """Returns these samples moved back by about ``seconds``: by whole intervals, and not before 1970."""
        moved = round(seconds / self.interval_seconds) * self.interval_seconds
        return replace(self, start=max(0, self.start - moved))

    def document(self) -> dict[str, Any]:
        """Returns ``{"from", "interval_seconds", "devices": {name: {"kind", "label", "size_bytes", "reads": [...],
        ...}}}``. Series without any value are left out.
        """
        devices = {}
        for name in sorted(self.series):
            device = self.devices.get(name, Device())
            known = {
                key: list(values)
                for key in DEVICE_SERIES
                if (values := self.series[name].get(key)) and any(value is not None for value in values)
            }
            facts = {"kind": device.kind, "label": self.label(name), "size_bytes": device.size_bytes}
            devices[name] = {**facts, **known}
        return {"from": self.start, "interval_seconds": self.interval_seconds, "devices": devices}


def parse(document: Any) -> DeviceSamples | None:
    """Reads a document of :meth:`DeviceSamples.document`; returns None for None.

    Raises:
        DeviceSamplesError: a value is missing or of the wrong type.
    """
    if document is None:
        return None
    if not isinstance(document, Mapping) or not isinstance(document.get("devices"), Mapping):
        raise DeviceSamplesError("samples.devices must be an object with devices")
    start, interval = document.get("from"), document.get("interval_seconds")
    if type(start) is not int or type(interval) is not int or not 1 <= interval <= LONGEST_INTERVAL or start % interval:
        raise DeviceSamplesError("samples.devices.from must be a multiple of interval_seconds, which is from 1")
    if not 0 <= start <= MOST:
        raise DeviceSamplesError("samples.devices.from must be from 0, below 2^63")
    devices = document["devices"]
    if len(devices) > MOST_DEVICES:
        raise DeviceSamplesError(f"there are {len(devices)} devices; the limit is {MOST_DEVICES}")
    series = {_name(name): _parse_device(its, f"samples.devices.{name}") for name, its in devices.items()}
    if len({len(values) for its in series.values() for values in its.values()}) > 1:
        raise DeviceSamplesError("all lists of samples of devices must have the same length")
    return DeviceSamples(start, interval, series, {name: _device(its, name) for name, its in devices.items()})


def _name(name: Any) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise DeviceSamplesError(f"the device {str(name)[:80]!r} must match {NAME.pattern}")
    return name


def _device(its: Mapping[str, Any], name: str) -> Device:
    kind, label, size = its.get("kind"), its.get("label"), its.get("size_bytes")
    if kind not in KINDS:
        raise DeviceSamplesError(f"samples.devices.{name}.kind must be one of {', '.join(map(repr, KINDS))}")
    if not isinstance(label, str) or not LABEL.fullmatch(label):
        raise DeviceSamplesError(f"samples.devices.{name}.label must match {LABEL.pattern}")
    if size is not None and (type(size) is not int or not 0 <= size <= MOST):
        raise DeviceSamplesError(f"samples.devices.{name}.size_bytes must be a whole number from 0, or null")
    return Device(kind, label, size)


def _parse_device(its: Any, where: str) -> dict[str, list[int | None]]:
    if not isinstance(its, Mapping):
        raise DeviceSamplesError(f"{where} must be an object")
    listed = [key for key in DEVICE_SERIES if its.get(key) is not None]
    return {key: values_of(its[key], f"{where}.{key}", 20 * MOST_DEVICE_SAMPLES) for key in listed}


def values_of(values: Any, where: str, most: int) -> list[int | None]:
    """Returns a list of samples.

    Args:
        where: its name in messages.
        most: the most samples.

    Raises:
        DeviceSamplesError: it is no list, is too long, or holds anything but whole numbers from 0 and None.
    """
    if not isinstance(values, list) or len(values) > most:
        raise DeviceSamplesError(f"{where} must be a list of at most {most} samples")
    types = set(map(type, values))
    if not types <= {int, type(None)}:
        raise DeviceSamplesError(f"{where} must hold whole numbers from 0, or null")
    known = [*filter(None, values)] if type(None) in types else values
    if min(known, default=0) < 0 or max(known, default=0) > MOST:
        raise DeviceSamplesError(f"{where} must hold whole numbers from 0, below 2^63, or null")
    return values


def totals(samples: DeviceSamples, counts: Sequence[bool]) -> dict[str, dict[str, Any]]:
    """Sums up each device over some intervals.

    Args:
        counts: for each interval, whether it counts.

    Returns:
        By name: ``{"kind", "label", "size_bytes", "seconds", "operations", ...}``. ``seconds`` are those of the
        intervals with known values; amounts that are never known are missing.
    """
    result = {}
    for name, series in samples.series.items():
        sums: dict[str, int] = {}
        intervals = 0
        for key, values in series.items():
            known = [value for value, count in zip(values, counts) if count and value is not None]
            if known:
                sums[key] = sum(known)
                intervals = max(intervals, len(known))
        device = samples.devices.get(name, Device())
        result[name] = {
            "kind": device.kind,
            "label": samples.label(name),
            "size_bytes": device.size_bytes,
            "seconds": intervals * samples.interval_seconds,
            **{key: sums[key] for key in DEVICE_SERIES if key in sums},
        }
    return result
