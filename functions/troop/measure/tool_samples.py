"""Node metrics that a tool has told, such as sysstat, in place of what the agent has sampled itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from troop.measure.summary import LEVELS, SERIES, Samples

FORMAT = "troop.samples/1"

Values = Sequence[Optional[int]]


def over(sampled: Samples, reported: Samples) -> Samples:
    """``sampled``, and wherever ``reported`` has a value, that one. Start, interval and length are those of
    ``sampled``: all nodes of a phase have the same interval.
    """
    series: dict[str, list[int | None]] = {}
    for name in SERIES:
        values = list(sampled.series[name])
        # Only what covers the sampled time is split into seconds: the file can be of any other time, and much longer.
        skipped = max(0, (sampled.start - reported.start) // reported.interval_seconds)
        end = max(0, sampled.start + len(values) * sampled.interval_seconds - reported.start)
        near = reported.series[name][skipped : -(-end // reported.interval_seconds)]
        seconds = _by_second(near, reported.interval_seconds, level=name in LEVELS)
        begin = sampled.start - reported.start - skipped * reported.interval_seconds
        for at in range(len(values)):
            first = begin + at * sampled.interval_seconds
            part = seconds[max(first, 0) : max(first + sampled.interval_seconds, 0)]
            known = [value for value in part if value is not None]
            # What is told of a part of an interval says nothing of the rest.
            if len(known) == sampled.interval_seconds:
                values[at] = round(sum(known) / len(known)) if name in LEVELS else sum(known)
        series[name] = values
    return Samples(sampled.start, sampled.interval_seconds, series)


def _by_second(values: Values, interval: int, *, level: bool) -> list[int | None]:
    """A level is the same in each second; an amount is split as evenly as whole numbers allow, and its sum stays."""
    result: list[int | None] = []
    for value in values:
        if value is None or level:
            result.extend([value] * interval)
        else:
            result.extend(value * (n + 1) // interval - value * n // interval for n in range(interval))
    return result
