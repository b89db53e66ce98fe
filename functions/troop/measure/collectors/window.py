"""Counts operations in the measured time and its warm-up."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from troop.measure import phase_environment
from troop.measure.collectors.common import a_name
from troop.measure.empty import empty_operation
from troop.measure.live import recent
from troop.measure.live_writer import LiveWriter
from troop.measure.operations import (
    LONGEST_SECONDS,
    MOST_LISTED,
    MOST_NAMES,
    OTHER,
    Operation,
    Operations,
)

_LATE_SECONDS = 3
"""Seconds by which samples may be late, because tools write them in blocks."""

_MOST_LABELS = 10_000
"""The most labels to remember; a label may be the address of a single request."""


@dataclass(frozen=True)
class Window:
    """The time in which operations must end to count, in seconds since 1970; ``end`` is excluded.

    Attributes:
        warm_up: seconds before ``start`` in which operations only count over time.
    """

    start: float
    end: float
    warm_up: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.end - self.start <= LONGEST_SECONDS - self.warm_up or self.warm_up < 0:
            raise ValueError(
                f"the measured time is {self.end - self.start} s: must be more than 0 and at most {LONGEST_SECONDS} s"
            )

    @classmethod
    def of_this_phase(cls, environment: Mapping[str, str] = os.environ) -> Window:
        """Returns the window of the phase for which this script runs.

        Raises:
            KeyError: the agent did not start this script.
            ValueError: the phase is not measured.
        """
        start, seconds, warm_up = phase_environment.measured(environment)
        return cls(start, start + seconds, warm_up)

    @property
    def measured(self) -> float:
        """The length of the measured time in seconds."""
        return self.end - self.start

    @property
    def begin(self) -> float:
        """The start of the warm-up."""
        return self.start - self.warm_up

    @property
    def first(self) -> int:
        """The first whole second, which is in the warm-up."""
        return math.floor(self.begin)

    @property
    def seconds(self) -> int:
        return math.ceil(self.end) - self.first

    def empty(self) -> Operation:
        """Returns an operation without counts."""
        return empty_operation(self.first, self.seconds, self.warm_up + self.measured)


@dataclass
class Counted:
    """Operations that are counted one by one.

    Attributes:
        outside: the number of operations that ended outside the measured time; those of the warm-up count only over
            time.
        elsewhere: the end of the last that ended outside both, in seconds since 1970; None if there is none.
        left_out: the number of samples that are no operations here, by their metric.
    """

    window: Window
    operations: Operations = field(default_factory=dict)
    outside: int = 0
    elsewhere: float | None = None
    left_out: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        window = self.window
        self._begin, self._start, self._end, self._first = window.begin, window.start, window.end, window.first
        self._by_label: dict[str, Operation] = {}

    def live(self, results: Path | None) -> LiveWriter:
        """Returns a writer of running summaries, for a tool that runs. Other threads may count meanwhile.

        Args:
            results: the phase's folder; None to write nothing.
        """
        return LiveWriter(results, lambda until: recent(dict(self.operations), until), late_seconds=_LATE_SECONDS)

    def ok(self, name: str, ended: float, microseconds: int, moved: int = 0) -> None:
        """Counts a success with its end and its time.

        Raises:
            ValueError: the time is out of range.
        """
        if not self._begin <= ended < self._end:
            self.outside += 1
            self.elsewhere = ended
            return
        operation = self._by_label.get(name) or self.operation(name)
        if operation.over_time is not None:
            operation.over_time.record(ended, microseconds)
        operation.per_second.count[int(ended) - self._first] += 1
        if ended < self._start:
            self.outside += 1
        else:
            operation.times.record(microseconds)
            operation.bytes += moved

    def error(self, name: str, ended: float, kind: str, count: int = 1) -> None:
        """Counts an error ``count`` times; ``kind`` is converted to a valid name."""
        if not self._begin <= ended < self._end:
            self.outside += count
            self.elsewhere = ended
            return
        if ended < self._start:
            self.outside += count
        self.operation(name).fail(int(ended), a_name(kind), count, is_measured=ended >= self._start)

    def leave_out(self, metric: str) -> None:
        """Counts a sample of a metric that is no operation here."""
        if metric in self.left_out or len(self.left_out) < MOST_NAMES:
            self.left_out[metric] = self.left_out.get(metric, 0) + 1

    def notes(self, noun: str) -> list[str]:
        """Returns a sentence for each kind of samples that do not count, or not under their own name.

        Args:
            noun: the operations are, such as ``requests``.
        """
        notes = [f"{self.outside} {noun} were outside the measured time"] if self.outside else []
        if self.elsewhere is not None:
            notes[0] += f", the last at {_moment(self.elsewhere)}"
        if self.left_out:
            metrics = ", ".join(f"{name[:80]} ({count})" for name, count in sorted(self.left_out.items()))
            notes.append(f"samples of these metrics are left out: {metrics}")
        if OTHER in self.operations and (together := self.operations[OTHER].names):
            least = "at least " if len(together) >= MOST_LISTED else ""
            notes.append(
                f"{least}{len(together)} labels after the first {MOST_NAMES - 1} are counted together as {OTHER}, "
                f"such as {min(together)}"
            )
        return notes

    def nothing(self, noun: str) -> str:
        """Returns the problem that no operation ended in the measured time; ``what`` as for :meth:`notes`."""
        clock = ": check the unit and the clock of its timestamps" if self.elsewhere is not None else ""
        return "; ".join([f"no operation ended in the measured time{clock}", *self.notes(noun)])

    def operation(self, label: str) -> Operation:
        """Finds or creates the operation of a label. Remembers it, because forming a name takes as long as counting."""
        operation = self._by_label.get(label) or self.operations.get(label)
        if operation is None:
            name = a_name(label)
            if name not in self.operations and len(self.operations) >= MOST_NAMES - 1:
                operation = self.operations.setdefault(OTHER, self.window.empty())
                operation.note([name])
            else:
                operation = self.operations.setdefault(name, self.window.empty())
        if len(self._by_label) < _MOST_LABELS:
            self._by_label[label] = operation
        return operation


def _moment(seconds: float) -> str:
    """Returns a moment as text, such as ``2026-11-26T15:04:05Z``; as a number if no calendar has it."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g} s since 1970"
