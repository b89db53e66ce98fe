"""Slow, by a unit's own history."""

from __future__ import annotations

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.chaos.slowness import ENOUGH, LATEST, is_slow, usual

SECONDS = st.floats(0, 100_000)


@pytest.mark.parametrize(
    ("earlier", "expected"),
    [
        ([], None),
        ([90.0] * 4, None),
        ([90.0] * 5, 90.0),
        ([10.0, 20.0, 30.0, 40.0, 5000.0], 30.0),
        ([10.0, 20.0, 30.0, 40.0, 50.0, 60.0], 35.0),
        ([100.0] * 20 + [1.0] * 100, 100.0),
    ],
)
def test_usual_is_the_median_of_the_latest(earlier: list[float], expected: float | None) -> None:
    assert usual(earlier) == expected


@pytest.mark.parametrize(
    ("seconds", "usually", "slow"),
    [
        (10_000.0, None, False),
        (64.0, 4.0, False),  # sixteen times as long, but only a minute
        (64.1, 4.0, True),
        (120.0, 60.0, False),
        (120.1, 60.0, True),
        (400.0, 200.0, False),
        (400.1, 200.0, True),
        (60.0, 0.0, False),
        (60.1, 0.0, True),
    ],
)
def test_slow_is_more_than_twice_and_a_minute_more(seconds: float, usually: float | None, slow: bool) -> None:
    assert is_slow(seconds, usually) is slow


@given(st.lists(SECONDS, min_size=ENOUGH, max_size=LATEST), SECONDS, SECONDS)
def test_slow_recovery_stays_slow_when_it_takes_longer(earlier: list[float], seconds: float, more: float) -> None:
    usually = usual(earlier)
    assert usually is not None
    assert not is_slow(usually, usually)
    assert not is_slow(seconds, usually) or is_slow(seconds + more, usually)


@given(st.lists(SECONDS, max_size=60))
def test_only_the_latest_count(earlier: list[float]) -> None:
    assert usual(earlier) == usual(earlier[:LATEST])
    assert usual(earlier) == (median(earlier[:LATEST]) if len(earlier) >= ENOUGH else None)
