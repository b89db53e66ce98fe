"""Judges the window before a fault, and what counts as back afterwards. Pure."""

from __future__ import annotations

from collections.abc import Callable

from troop.bench.results.fault_windows import HOLD, Counted, percentile_ms

SHORTEST = 10
"""The fewest seconds of a window before."""

LEAST_RATE = 0.99
"""The least part of the set rate before a fault."""

SLOWER, SLOWER_MS = 1.25, 2.0
"""Times are like others if they are at most so many times as long, or so much longer: smaller differences are noise."""

EVEN = 0.95
"""The least part of the mean rate in any :data:`~troop.bench.results.fault_windows.HOLD` seconds before a fault."""


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
    rate = every.done(begin, end) / seconds
    if not rate:
        return "no operation succeeded before"
    if set_rate is not None and rate < LEAST_RATE * set_rate:
        return f"the rate before was {rate / set_rate:.1%} of the set rate of {set_rate:,g}/s"
    least = min(every.done(at, at + HOLD) for at in range(begin, end - HOLD + 1)) / HOLD
    if least < EVEN * rate:
        return f"the rate before was uneven: {least / rate:.1%} of its mean in {HOLD} s"
    middle = begin + seconds // 2
    first, second = (percentile_ms(every.took(*part), 99) for part in ((begin, middle), (middle, end)))
    if first is None or second is None or second > _slower(first):
        return f"p99 before was uneven: {first} ms, then {second} ms"
    return None


def is_rate_back(every: Counted, begin: int, end: int, share: float) -> Callable[[int, int], bool]:
    """Returns a check whether seconds have at least a share of the rate of the window before."""
    rate = every.done(begin, end) / (end - begin)
    return lambda at, until: every.done(at, until) >= share * rate * (until - at)


def is_p99_back(every: Counted, begin: int, end: int) -> Callable[[int, int], bool]:
    """Returns a check whether p99 of seconds is like that of the worst seconds of the window before."""
    worst = max(percentile_ms(every.took(at, at + HOLD), 99) or 0.0 for at in range(begin, end - HOLD + 1))

    def check(at: int, until: int) -> bool:
        p99 = percentile_ms(every.took(at, until), 99)
        return p99 is not None and p99 <= _slower(worst)

    return check


def _slower(milliseconds: float) -> float:
    return max(SLOWER * milliseconds, milliseconds + SLOWER_MS)
