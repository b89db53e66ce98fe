"""Replaces the agent's samples with the node metrics of a tool such as sysstat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from troop.measure.summary import LEVELS, SERIES, Samples

FORMAT = "troop.samples/1"

Values = Sequence[Optional[int]]


def over(sampled: Samples, reported: Samples) -> Samples:
    """Returns ``sampled`` with the values of ``reported`` where it has any.

    Start, interval and length stay those of ``sampled``: all nodes of a phase have the same interval.
    """
    series: dict[str, list[int | None]] = {}
    for name in SERIES:
        values = list(sampled.series[name])
        # Split only what overlaps the sampled time into seconds: the file can cover another time, and be much longer.
        skipped = max(0, (sampled.start - reported.start) // reported.interval_seconds)
        end = max(0, sampled.start + len(values) * sampled.interval_seconds - reported.start)
        near = reported.series[name][skipped : -(-end // reported.interval_seconds)]
        seconds = _by_second(near, reported.interval_seconds, level=name in LEVELS)
        begin = sampled.start - reported.start - skipped * reported.interval_seconds
        for at in range(len(values)):
            first = begin + at * sampled.interval_seconds
            part = seconds[max(first, 0) : max(first + sampled.interval_seconds, 0)]
            known = [value for value in part if value is not None]
            # Values for a part of an interval say nothing about the rest.
            if len(known) == sampled.interval_seconds:
                values[at] = round(sum(known) / len(known)) if name in LEVELS else sum(known)
        series[name] = values
    return Samples(sampled.start, sampled.interval_seconds, series)


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
