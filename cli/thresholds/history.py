"""The values of a metric over a period: how many there are, where they are missing, and when an alarm had gone off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median

from cli.thresholds.metric import Side

DAY = 86_400


@dataclass(frozen=True)
class Point:
    """A value of a metric. ``at``: when its period begins, in seconds of Unix time."""

    at: int
    value: float


@dataclass(frozen=True)
class PastAlarm:
    """An alarm that would have gone off.

    Attributes:
        at: when it would have gone off, in seconds of Unix time.
        seconds: how long it would have been on; for the last one until the last value.
        peak: the worst value.
    """

    at: int
    seconds: int
    peak: float


@dataclass(frozen=True)
class History:
    """The values of a metric, oldest first.

    Attributes:
        period: seconds that a value stands for.
    """

    points: Sequence[Point]
    period: int

    @property
    def seconds(self) -> int:
        """The time from the first value to the end of the last one."""
        return self.points[-1].at + self.period - self.points[0].at if self.points else 0

    @property
    def days(self) -> float:
        return self.seconds / DAY

    @cached_property
    def gaps(self) -> tuple[int, ...]:
        """The seconds of each gap between values."""
        steps = (later.at - earlier.at - self.period for earlier, later in pairwise(self.points))
        return tuple(step for step in steps if step > 0)

    @property
    def coverage(self) -> float:
        """The share of periods that have a value, from the first value on."""
        return len(self.points) * self.period / self.seconds if self.points else 0.0

    @cached_property
    def sorted(self) -> tuple[float, ...]:
        return tuple(sorted(point.value for point in self.points))

    def quantile(self, share: float) -> float:
        """Returns the smallest value that so large a share of the values does not exceed (nearest rank)."""
        # The share of a rank, such as 0.95 x 20, can lie a rounding error above it.
        rank = math.ceil(round(share * len(self.sorted), 9))
        return self.sorted[max(rank, 1) - 1]

    def extreme(self, share: float, side: Side) -> float:
        """Returns the value that so large a share of the values is not beyond."""
        if side is Side.ABOVE:
            return self.quantile(share)
        rank = math.ceil(round(share * len(self.sorted), 9))
        return self.sorted[-max(rank, 1)]

    def split(self, share: float) -> tuple[History, History]:
        """Splits the history in time, after such a share of it."""
        if not self.points:
            return self, self
        cut = self.points[0].at + self.seconds * share
        before = [point for point in self.points if point.at < cut]
        return History(before, self.period), History(self.points[len(before) :], self.period)

    def alarms(self, threshold: float, side: Side, in_a_row: int) -> tuple[PastAlarm, ...]:
        """Returns the alarms that would have gone off, oldest first.

        An alarm goes off after so many values in a row beyond the threshold. It ends with the first other value. A
        missing value counts as one that is not beyond, as with ``notBreaching``.
        """
        return tuple(
            PastAlarm(
                run[in_a_row - 1].at + self.period,
                self.period * (len(run) - in_a_row + 1),
                (max if side is Side.ABOVE else min)(point.value for point in run),
            )
            for run in self._runs(threshold, side)
            if len(run) >= in_a_row
        )

    def _runs(self, threshold: float, side: Side) -> Iterator[list[Point]]:
        run: list[Point] = []
        for point in self.points:
            is_beyond = point.value > threshold if side is Side.ABOVE else point.value < threshold
            if run and (not is_beyond or point.at - run[-1].at != self.period):
                yield run
                run = []
            if is_beyond:
                run.append(point)
        if run:
            yield run


def spacing(points: Sequence[Point]) -> float:
    """Returns the usual seconds between two values; 0 for less than two."""
    return median(later.at - earlier.at for earlier, later in pairwise(points)) if len(points) > 1 else 0.0
