"""Samples the node during a phase, in a thread."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Callable

from agent import proc
from agent.log import say
from troop.measure.summary import SERIES, Samples

MOST = 10_800
"""The most samples of a phase: one a second for three hours. A longer phase has a longer interval."""


def interval_for(timeout_seconds: float) -> int:
    """Returns the seconds between two samples, computed from the phase's limit so that all nodes have the same."""
    interval = 1
    while timeout_seconds / interval > MOST:
        interval *= 2
    return interval


class Series:
    """Samples from readings at multiples of the interval. Pure."""

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._start: int | None = None
        self._last: tuple[int, proc.Reading] | None = None
        self._samples: list[proc.Figures] = []

    def add(self, at: float, reading: proc.Reading) -> None:
        """Adds a reading at ``at``, in seconds since 1970. After missed readings, the time between has no values."""
        number = int(at) // self._interval
        if self._last is None or self._start is None:
            self._start = number
        elif number <= self._last[0]:  # the clock was set back
            return
        elif number == self._last[0] + 1:
            self._samples.append(proc.figures(self._last[1], reading))
        else:
            missed = min(number - self._last[0], 2 * MOST - len(self._samples))
            self._samples.extend(dict.fromkeys(SERIES) for _ in range(missed))
        self._last = (number, reading)

    def samples(self) -> Samples | None:
        """Returns the samples; None before two readings."""
        if self._start is None or not self._samples:
            return None
        samples = self._samples[:MOST]
        return Samples(
            self._start * self._interval, self._interval, {name: [s[name] for s in samples] for name in SERIES}
        )


class Sampler:
    """Reads /proc at every full interval from :meth:`start` to :meth:`stop`."""

    def __init__(self, interval: int, folder: Path = Path("/proc"), clock: Callable[[], float] = time.time) -> None:
        self._series, self._interval, self._folder, self._clock = Series(interval), interval, folder, clock
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="sampler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> Samples | None:
        """Stops the thread and returns the samples; None if less than an interval has passed."""
        self._over.set()
        self._thread.join()
        return self._series.samples()

    def _sample(self) -> None:
        try:
            while not self._over.wait(self._interval - self._clock() % self._interval):
                self._series.add(self._clock(), proc.read(self._folder))
        except Exception as error:  # noqa: BLE001 - a phase without samples is better than no phase
            say(f"sampling failed: {error!r}")
