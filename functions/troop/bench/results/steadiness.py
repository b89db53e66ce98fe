"""Judges the window before a fault, and what counts as back afterwards. Pure.

A window is steady if no part of it differs from the rest by more than chance, and by so much that it matters. A part is
compared by counts in each second: of successes, and of those that are slower than a percentile of the whole window. How
much they vary from second to second within the part and the rest says how much the part can differ by chance. So few
operations, rare pauses and long tails are not taken for a disturbance. ``perf.failure`` measures how often that fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from statistics import median

from troop.bench.results.fault_windows import HOLD, Counted, percentile_ms
from troop.measure.histogram import buckets_at
from troop.measure.windows import highest_in

SHORTEST = 10
"""The fewest seconds of a window before."""

LEAST_RATE = 0.99
"""The least part of the set rate before a fault."""

EVEN = 0.95
"""The least rate of a part of the window before, as a part of the rate in the rest."""

SLOWER, SLOWER_MS = 1.25, 2.0
"""Times are like others if they are at most so many times as long, or so much longer."""

CHANCE = 4.0
"""Standard deviations by which counts of steady seconds may differ from what is expected."""

_LEAST_VARIANCE = 0.25
"""Of whole numbers of operations in a second."""

_SLOW = (50.0, 90.0, 99.0)
"""Percentiles of the whole window, of which slower operations are counted."""


def unsteady(every: Counted, begin: int, end: int, set_rate: float | None) -> str | None:
    """Returns why nothing can be compared with the window before a fault; None if it is steady.

    Args:
        begin: its first second.
        end: the second of the fault.
        set_rate: operations per second; None if unknown.
    """
    seconds = end - begin
    if seconds < SHORTEST:
        return f"the window before has {max(0, seconds)} whole seconds, of the {SHORTEST} that are needed"
    count, times = every.done(begin, end), every.took(begin, end)
    if not count:
        return "no operation succeeded before"
    if not all(every.took(at, at + HOLD) for at in range(begin, end - HOLD + 1)):
        return f"the window before has {HOLD} s without times of operations"
    if set_rate is not None:
        chance = _chance(min(set_rate, _variance(every, begin, end)) * seconds)
        if set_rate * seconds - count > max((1 - LEAST_RATE) * set_rate * seconds, chance):
            part = count / seconds / set_rate
            return f"the rate before was {part:.1%} of the set rate of {set_rate:,g}/s"
    return _uneven_rate(every, begin, end) or _uneven_times(every, begin, end, times)


def _uneven_rate(every: Counted, begin: int, end: int) -> str | None:
    counts = [-every.done(at, at + 1) for at in range(begin, end)]
    for low, high in _differing(counts, _LEAST_VARIANCE, _variance(every, begin, end)):
        rate = every.done(begin + low, begin + high) / (high - low)
        rest = (-sum(counts) - rate * (high - low)) / (len(counts) - high + low)
        if rate < EVEN * rest:
            where = _where(low, high, end - begin)
            return f"the rate before was uneven: {rate:,.1f}/s in {where}, otherwise {rest:,.1f}/s"
    return None


def _variance(every: Counted, begin: int, end: int) -> float:
    """Returns the variance of the successes of a second, without outliers."""
    counts = [every.done(at, at + 1) for at in range(begin, end)]
    middle = median(counts)
    return max(_LEAST_VARIANCE, (1.4826 * median(abs(count - middle) for count in counts)) ** 2)


def _uneven_times(every: Counted, begin: int, end: int, times: Mapping[int, int]) -> str | None:
    each = [every.took(at, at + 1) for at in range(begin, end)]
    for bucket in dict.fromkeys(buckets_at(times, _SLOW)):
        slow = [sum(count for its, count in second.items() if its > (bucket or 0)) for second in each]
        for low, high in _differing(slow, sum(slow) / len(slow), math.inf):
            part = every.took(begin + low, begin + high)
            p99 = percentile_ms(part, 99)
            rest = percentile_ms({bucket: count - part.get(bucket, 0) for bucket, count in times.items()}, 99)
            if p99 is None or rest is None or p99 > slower(rest):
                where = _where(low, high, end - begin)
                return f"p99 before was uneven: {p99} ms in {where}, otherwise {rest} ms"
    return None


def _where(low: int, high: int, seconds: int) -> str:
    return f"the {high - low} s up to {seconds - high} s before the fault"


def _differing(values: Sequence[int], least: float, usual: float) -> list[tuple[int, int]]:
    """Returns the parts whose values are larger than the others by more than chance, the most certain first; each by
    its first index and the one after its last.

    Args:
        values: of each second.
        least: the least variance of a value.
        usual: the variance without outliers.
    """
    count, parts = len(values), list[tuple[float, int, int]]()
    sums, squares = ([0, *accumulate(its)] for its in (values, [value * value for value in values]))
    total, all_squares = sums[-1], squares[-1]
    length, lengths = HOLD, {count // 2}
    while length <= count / 2:
        lengths.add(length)
        length *= 2
    for length in sorted(lengths):
        rest = count - length
        for low in {*range(0, rest, max(1, length // HOLD)), rest}:
            part = sums[low + length] - sums[low]
            within = squares[low + length] - squares[low]
            inner = within - part * part / length + (all_squares - within) - (total - part) ** 2 / rest
            variance = max(least, min(usual, inner / (count - 2)))
            beyond = (part - total * length / count) / _chance(variance * length * rest / count)
            if beyond > 1:
                parts.append((-beyond, low, low + length))
    return [(low, high) for _, low, high in sorted(parts)]


def _chance(variance: float, deviations: float = CHANCE) -> float:
    """Returns by how much a count may differ by chance. Small counts are often larger than their variance says."""
    return deviations * math.sqrt(variance) + deviations * deviations / 6


def is_rate_back(
    every: Counted, begin: int, end: int, share: float, deviations: float = CHANCE
) -> Callable[[int, int], bool]:
    """Returns a check whether seconds have at least a share of the rate of the window before, less what chance can take
    from them.

    Args:
        deviations: standard deviations that count as chance; 0 for none.
    """
    rate, variance = every.done(begin, end) / (end - begin), _variance(every, begin, end)

    def check(at: int, until: int) -> bool:
        seconds = until - at
        return every.done(at, until) >= share * rate * seconds - _chance(variance * seconds, deviations)

    return check


def is_p99_back(every: Counted, begin: int, end: int, deviations: float = CHANCE) -> Callable[[int, int], bool]:
    """Returns a check whether p99 of seconds is like that of the worst :data:`HOLD` seconds of the window before. If
    there are few operations, more than one in a hundred may be slower by chance.

    Args:
        deviations: as of :func:`is_rate_back`.
    """
    worst = max(percentile_ms(every.took(at, at + HOLD), 99) or 0.0 for at in range(begin, end - HOLD + 1))
    most = slower(worst) * 1000

    @cache
    def counts(second: int) -> tuple[int, int]:
        times = every.took(second, second + 1)
        return sum(times.values()), sum(its for bucket, its in times.items() if highest_in(bucket) > most)

    def check(at: int, until: int) -> bool:
        count, late = map(sum, zip(*map(counts, range(at, until)), strict=True))
        return late < count / 2 and late <= count / 100 + _chance(count / 100, deviations)

    return check


def slower(milliseconds: float) -> float:
    """Returns the longest time that is like another."""
    return max(SLOWER * milliseconds, milliseconds + SLOWER_MS)
