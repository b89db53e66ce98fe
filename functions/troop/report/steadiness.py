"""Judges whether a measurement was steady: whether its second half was worse than its first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean, median, variance

from troop.report.document import Phase, Series

SLOWER = 0.9
"""The throughput of the second half relative to the first, below which it is worse."""
LONGER = 1.25
"""The p99 of the second half relative to the first, above which it is worse: several widths of a bucket over time."""
FEWEST_OPERATIONS = 4000
"""The fewest successes: halves with fewer differ by chance."""
FEWEST_STEPS = 5
"""The fewest steps in each half."""
FEWEST_IN_A_STEP = 200
"""Successes in a step on average, with fewer of which its p99 is little more than its maximum."""
ERRORS_APART = 3.0
"""Standard errors between the halves' mean rates, below which the difference is chance."""

ADVICE = "The result is no steady state: extend the warm-up or the measured time, and check limits that allow bursts."


def findings(phase: Phase) -> Iterator[str]:
    """Yields a sentence for each operation whose second half is worse than its first.

    Throughput is worse if its mean is below :data:`SLOWER` of the first half's, by more than :data:`ERRORS_APART`
    standard errors. p99 is worse if the median of its steps is above :data:`LONGER` of the first half's.
    """
    if phase.measured_from is None:
        return
    series = {(one.role, one.operation, one.name): one for one in phase.series if not one.node}
    for one in phase.operations:
        if one.count < FEWEST_OPERATIONS:
            continue
        worse = []
        rates = series.get((one.role, one.operation, "per_second"))
        if rates and (halves := _halves(rates, phase.measured_seconds)) and _fell(*halves):
            before, after = map(fmean, halves)
            worse.append(f"throughput fell from {before:,.0f} to {after:,.0f} a second ({after / before - 1:.0%})")
        times = series.get((one.role, one.operation, "p99_ms"))
        if times and (halves := _halves(times, phase.measured_seconds)):
            before, after = map(median, halves)
            in_a_step = one.count * times.step_seconds / phase.measured_seconds
            if before > 0 and after > before * LONGER and in_a_step >= FEWEST_IN_A_STEP:
                worse.append(f"p99 rose from {before:,.3g} to {after:,.3g} ms ({after / before - 1:+.0%})")
        if worse:
            subject = f"{phase.title}, {one.operation} of {one.role}"
            yield f"{subject}: in the second half of the measured time, {' and '.join(worse)}. {ADVICE}"


def _halves(series: Series, seconds: float) -> tuple[list[float], list[float]] | None:
    """Returns the known values of the steps within each half of the measured time; None if a half has too few."""
    first: list[float] = []
    second: list[float] = []
    for number, value in enumerate(series.values):
        begin = series.start + number * series.step_seconds
        end = begin + series.step_seconds
        if value is None or begin < 0 or end > seconds:
            continue
        if end <= seconds / 2:
            first.append(value)
        elif begin >= seconds / 2:
            second.append(value)
    return (first, second) if min(len(first), len(second)) >= FEWEST_STEPS else None


def _fell(first: Sequence[float], second: Sequence[float]) -> bool:
    before, after = fmean(first), fmean(second)
    error = math.sqrt(variance(first) / len(first) + variance(second) / len(second))
    return after < before * SLOWER and before - after > ERRORS_APART * error
