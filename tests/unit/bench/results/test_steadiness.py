"""The window before a fault: noise is no disturbance, and a disturbance is no noise."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from tests.unit.bench.measuring.request_log import BEGIN, Request, recorded, steady
from troop.bench.results.fault_windows import Counted, counted
from troop.bench.results.steadiness import is_p99_back, is_rate_back, unsteady

SECONDS, RATE = 40, 100


def noisy(change: Callable[[Request], Request | None] = lambda one: one, rate: int = RATE, seed: int = 1) -> Counted:
    """An open loop with a long tail of times, disturbed by what changes or removes requests."""
    dice = random.Random(seed)
    requests = (one._replace(micros=round(dice.lognormvariate(8, 1))) for one in steady(SECONDS, rate))
    return counted([recorded([changed for one in requests if (changed := change(one))], SECONDS)])


def judged(every: Counted, rate: int | None = RATE, begin: int = 0, end: int = SECONDS) -> str | None:
    return unsteady(every, int(BEGIN) + begin, int(BEGIN) + end, rate)


@pytest.mark.parametrize("rate", [20, 100, 500])
@pytest.mark.parametrize("length", [10, SECONDS])
def test_few_operations_and_long_tails_are_steady(rate: int, length: int) -> None:
    for seed in range(5):
        every = noisy(rate=rate, seed=seed)
        assert judged(every, rate, end=length) is None
        assert judged(every, None, end=length) is None


def slower(one: Request, factor: int = 3) -> Request:
    return one._replace(micros=factor * one.micros)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda one: one if int(one.ended * RATE) % 2 else None, "50.0% of the set rate of 100/s"),
        (lambda one: slower(one) if one.ended >= 35 else one, "p99 .* ms in the 5 s up to 0 s before .* otherwise"),
        (lambda one: slower(one) if one.ended < 20 else one, "p99 .* ms in the 20 s up to 20 s before"),
        (lambda one: slower(one) if 20 < one.ended < 25 else one, "p99 .* ms in the 5 s up to 15 s before"),
    ],
)
def test_a_disturbance_has_its_place_in_the_reason(change: Callable[[Request], Request | None], reason: str) -> None:
    assert re.search(reason, judged(noisy(change)) or "steady")


def test_a_stall_is_uneven_although_all_operations_end() -> None:
    def stalled(one: Request) -> Request:
        return Request(22.01, one.micros + round(1e6 * (22 - one.ended))) if 20 < one.ended < 22 else one

    assert "the rate before was uneven" in (judged(noisy(stalled)) or "")
    assert "the rate before was uneven" in (judged(noisy(stalled), None) or "")


def test_a_window_needs_ten_seconds_with_operations_and_their_times() -> None:
    every = noisy()
    assert judged(every, begin=31) == "the window before has 9 whole seconds, of the 10 that are needed"
    assert judged(every, begin=SECONDS, end=SECONDS + 10) == "no operation succeeded before"
    coarse = Counted(every.start, every.successes, {}, noisy(lambda one: one if one.ended < 20 else None).times)
    assert judged(coarse) == "the window before has 5 s without times of operations"


def test_rate_and_p99_are_back_if_they_are_like_before() -> None:
    begin, end = int(BEGIN), int(BEGIN) + 20

    def after(one: Request) -> Request | None:
        if one.ended >= 30:
            return slower(one)
        return one if one.ended < 20 or round(one.ended * RATE) % 10 else None

    every = noisy(after)
    rate, p99 = is_rate_back(every, begin, end, 0.95), is_p99_back(every, begin, end)
    assert [rate(end + at, end + at + 5) for at in (-5, 0, 5, 10)] == [True, False, False, True]
    assert [p99(end + at, end + at + 5) for at in (-5, 0, 5, 10)] == [True, True, True, False]
    assert not p99(end + 40, end + 45), "no operation ended"
    assert is_rate_back(every, begin, end, 0.8)(end, end + 5)
