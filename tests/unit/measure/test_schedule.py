"""When operations of an open loop are due: all of them, however late, and none after the end."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.measure.schedule import Schedule


class Clock:
    """A clock that only sleeping and working move."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def schedule(clock: Clock, rate: float = 10, until: float = 101.0, **more: Any) -> Schedule:
    return Schedule(rate, 100.0, until, clock, clock.sleep, **more)


def test_an_operation_is_due_at_equal_distances_and_not_before_its_time() -> None:
    clock = Clock()
    moments = [(due, clock.now) for due in schedule(clock)]
    assert [due for due, _ in moments] == pytest.approx([100 + n / 10 for n in range(10)])
    assert all(now >= due for due, now in moments)


@given(st.lists(st.floats(0, 0.3), max_size=40))
def test_a_late_thread_omits_nothing_and_each_moment_stays_where_it_was(works: list[float]) -> None:
    clock, moments = Clock(), []
    its = schedule(clock, until=103.0)
    for work, due in zip(works, its, strict=False):
        moments.append(due)
        assert clock.now >= due
        clock.sleep(work)
    assert moments == pytest.approx([100 + n / 10 for n in range(len(moments))])
    assert len(moments) == min(len(works), 30) or clock.now >= 103.0


def test_operation_still_due_at_the_end_is_not_begun() -> None:
    clock = Clock()
    its = schedule(clock)
    next(its)
    clock.sleep(1.0)
    assert list(its) == []


@given(st.integers(1, 5), st.floats(0.5, 50))
def test_processes_share_the_moments_and_together_have_the_rate(processes: int, rate: float) -> None:
    whole = [*schedule(Clock(), rate)]
    shares = [due for n in range(processes) for due in schedule(Clock(), rate, share=(n, processes))]
    assert sorted(shares) == whole


def test_threads_share_a_schedule_and_no_moment_comes_twice() -> None:
    its, moments, lock = Schedule(1e6, 0.0, 0.02, lambda: 0.01999), [], threading.Lock()

    def work() -> None:
        for due in its:
            with lock:
                moments.append(due)
            if len(moments) > 15_000:
                return

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(set(moments)) == len(moments) > 15_000


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_is_above_zero(rate: float) -> None:
    with pytest.raises(ValueError, match="must be a number above 0"):
        schedule(Clock(), rate)


@pytest.mark.parametrize("share", [(1, 1), (-1, 2), (0, 0)])
def test_a_share_is_one_of_the_processes(share: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="the share is"):
        schedule(Clock(), share=share)
