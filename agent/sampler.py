"""Samples the node during a phase, in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Optional

from agent import block_devices, proc
from agent.ethtool import NetworkLimits
from agent.log import say
from agent.nvme import Volumes
from troop.measure.device_samples import DEVICE_SERIES, MOST_DEVICE_SAMPLES, MOST_DEVICES, Device, DeviceSamples
from troop.measure.summary import SERIES, Samples, busy

MOST = 10_800
"""The most samples of a phase: one a second for three hours. A longer phase has a longer interval."""


def interval_for(timeout_seconds: float, most: int = MOST) -> int:
    """Returns the seconds between two samples, computed from the phase's limit so that all nodes have the same."""
    interval = 1
    while timeout_seconds / interval > most:
        interval *= 2
    return interval


class Series:
    """Samples from readings at multiples of the interval. Pure.

    Args:
        device_interval: seconds between samples of devices, a multiple of the interval.
    """

    def __init__(self, interval: int, device_interval: int | None = None) -> None:
        self._nodes = _Intervals(interval, MOST)
        self._devices = _Intervals(device_interval or interval, MOST_DEVICE_SAMPLES)

    def add(self, at: float, reading: proc.Reading) -> None:
        """Adds a reading at ``at``, in seconds since 1970. After missed readings, the time between has no values."""
        self._nodes.add(at, reading, proc.figures)
        if self._devices.is_due(at):
            self._devices.add(at, reading.diskstats, proc.device_figures)

    def samples(self, describe: Describe | None = None) -> Samples | None:
        """Returns the samples; None before two readings.

        Args:
            describe: returns facts of devices by name; None leaves them unknown.
        """
        nodes = self._nodes
        if nodes.start is None or not nodes.values:
            return None
        series = {name: [(one or {}).get(name) for one in nodes.values] for name in SERIES}
        return Samples(nodes.start, nodes.interval, series, self._device_samples(describe))

    def cpu(self, seconds: int) -> Cpu:
        """Returns the means of the last ``seconds``, in thousandths of all processors: how many are busy, and how many
        wait for disks (iowait); None if unknown.
        """
        last = [one for one in self._nodes.values[-max(1, seconds // self._nodes.interval) :] if one]
        return _mean(map(busy, last)), _mean(one.get("cpu_iowait") for one in last)

    def _device_samples(self, describe: Describe | None) -> DeviceSamples | None:
        devices = self._devices
        names = sorted({name for one in devices.values for name in one or ()})[:MOST_DEVICES]
        if devices.start is None or not names:
            return None
        series = {
            name: {key: [((one or {}).get(name) or {}).get(key) for one in devices.values] for key in DEVICE_SERIES}
            for name in names
        }
        return DeviceSamples(devices.start, devices.interval, series, describe(names) if describe else {})


def _mean(values: Iterable[float | None]) -> int | None:
    known = [value for value in values if value is not None]
    return min(1000, int(sum(known) // len(known))) if known else None


Cpu = tuple[Optional[int], Optional[int]]
Describe = Callable[[Iterable[str]], Mapping[str, Device]]


class _Intervals:
    """Figures computed from two readings at the limits of each interval; None where one of them is missing.

    Attributes:
        start: of the first interval, seconds since 1970; None before the first reading.
        values: one for each interval, at most ``most``.
    """

    def __init__(self, interval: int, most: int) -> None:
        self.interval, self._most = interval, most
        self.start: int | None = None
        self._last: tuple[int, Any] | None = None
        self.values: list[Any] = []

    def is_due(self, at: float) -> bool:
        """Checks whether a reading at this moment is the first in its interval."""
        return self._last is None or int(at) // self.interval > self._last[0]

    def add(self, at: float, reading: Any, compute: Callable[[Any, Any], Any]) -> None:
        number = int(at) // self.interval
        if self._last is None:
            self.start = number * self.interval
        elif number <= self._last[0]:  # the clock was set back
            return
        elif number == self._last[0] + 1:
            self.values.append(compute(self._last[1], reading))
        else:
            self.values.extend([None] * min(number - self._last[0], self._most))
        del self.values[self._most :]
        self._last = (number, reading)


class Sampler:
    """Reads /proc and EC2's counters at every full interval from :meth:`start` to :meth:`stop`."""

    def __init__(
        self,
        interval: int,
        folder: Path = Path("/proc"),
        clock: Callable[[], float] = time.time,
        device_interval: int | None = None,
    ) -> None:
        self._series = Series(interval, device_interval)
        self._interval, self._folder, self._clock = interval, folder, clock
        self._network, self._volumes = NetworkLimits(), Volumes()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="sampler", daemon=True)

    @classmethod
    def from_timeout(cls, timeout_seconds: float) -> Sampler:
        """Returns a sampler for a phase of at most this length."""
        interval = interval_for(timeout_seconds)
        return cls(interval, device_interval=max(interval, interval_for(timeout_seconds, MOST_DEVICE_SAMPLES)))

    def start(self) -> None:
        self._thread.start()

    def cpu(self, seconds: int) -> Cpu:
        """Returns what :meth:`Series.cpu` does, while this samples."""
        return self._series.cpu(seconds)

    def stop(self) -> Samples | None:
        """Stops the thread and returns the samples; None if less than an interval has passed."""
        self._over.set()
        self._thread.join()
        self._network.close()
        return self._series.samples(lambda names: block_devices.describe(names, self._volumes.mapped_name))

    def _sample(self) -> None:
        try:
            while not self._over.wait(self._interval - self._clock() % self._interval):
                at = self._clock()
                self._series.add(at, self._read())
        except Exception as error:  # noqa: BLE001 - a phase without samples is better than no phase
            say(f"sampling failed: {error!r}")

    def _read(self) -> proc.Reading:
        reading = proc.read(self._folder)
        return replace(reading, network_exceeded=self._network.read(), ebs_exceeded=self._volumes.read())


def limits() -> dict[str, str]:
    """Returns for the node's registration whether EC2's counters can be read here, and why not."""
    network, volumes = NetworkLimits(), Volumes()
    network.close()
    problems = {"network_allowances": network.problem, "ebs_limits": volumes.problem}
    return {name: "available" if problem is None else f"not available: {problem}" for name, problem in problems.items()}
