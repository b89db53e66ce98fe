"""Replaces the agent's samples with the node metrics of a tool such as sysstat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from troop.measure.device_samples import MOST_DEVICES, DeviceSamples
from troop.measure.summary import LEVELS, SERIES, Samples

FORMAT = "troop.samples/1"

Values = Sequence[Optional[int]]


def replace_samples(sampled: Samples, reported: Samples) -> Samples:
    """Returns ``sampled`` with the values of ``reported`` where it has any.

    Start, interval and length stay those of ``sampled``: all nodes of a phase have the same interval.
    """
    grid = _Grid(sampled.start, sampled.interval_seconds, len(sampled.series[SERIES[0]]))
    series = {
        name: grid.replaced(sampled.series[name], reported, reported.series[name], level=name in LEVELS)
        for name in SERIES
    }
    return Samples(sampled.start, sampled.interval_seconds, series, _devices(grid, sampled.devices, reported.devices))


def _devices(nodes: _Grid, sampled: DeviceSamples | None, reported: DeviceSamples | None) -> DeviceSamples | None:
    """Returns the devices of ``sampled`` with the values of ``reported``, and those that only ``reported`` has."""
    if reported is None:
        return sampled
    grid = _Grid(sampled.start, sampled.interval_seconds, sampled.length) if sampled else nodes
    mine = sampled.series if sampled else {}
    series: dict[str, Mapping[str, list[int | None]]] = dict(mine)
    for name, its in reported.series.items():
        if name not in series and len(series) == MOST_DEVICES:
            break
        blank: list[int | None] = [None] * grid.length
        own = mine.get(name, {})
        series[name] = {
            **own,
            **{key: grid.replaced(own.get(key, blank), reported, values, level=False) for key, values in its.items()},
        }
    return DeviceSamples(
        grid.start, grid.interval, series, {**reported.devices, **(sampled.devices if sampled else {})}
    )


@dataclass(frozen=True)
class _Grid:
    """Equal intervals: the first one's start, seconds of each, and their number."""

    start: int
    interval: int
    length: int

    def replaced(
        self, own: Values, reported: Samples | DeviceSamples, values: Values, *, level: bool
    ) -> list[int | None]:
        """Returns ``own``, one value for each interval, with the values of a reported series where they cover it."""
        result = list(own)
        # Split only what overlaps the sampled time into seconds: the file can cover another time, and be much longer.
        skipped = max(0, (self.start - reported.start) // reported.interval_seconds)
        end = max(0, self.start + self.length * self.interval - reported.start)
        near = values[skipped : -(-end // reported.interval_seconds)]
        seconds = _by_second(near, reported.interval_seconds, level=level)
        begin = self.start - reported.start - skipped * reported.interval_seconds
        for at in range(len(result)):
            first = begin + at * self.interval
            part = seconds[max(first, 0) : max(first + self.interval, 0)]
            known = [value for value in part if value is not None]
            # Values for a part of an interval say nothing about the rest.
            if len(known) == self.interval:
                result[at] = round(sum(known) / len(known)) if level else sum(known)
        return result


def _by_second(values: Values, interval: int, *, level: bool) -> list[int | None]:
    """Spreads values over seconds. A level is the same in each second; an amount is split into whole numbers of equal
    sum.
    """
    result: list[int | None] = []
    for value in values:
        if value is None or level:
            result.extend([value] * interval)
        else:
            result.extend(value * (n + 1) // interval - value * n // interval for n in range(interval))
    return result
