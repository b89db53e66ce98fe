"""Slow, by a unit's own history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.chaos.slowness import ENOUGH, LATEST, RECENT, Compared, Slowness, is_slow, usual

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


@dataclass(frozen=True)
class Recovery:
    number: int
    unit: str
    method: str
    at: datetime
    seconds: float


@st.composite
def recoveries(draw: st.DrawFn) -> list[Recovery]:
    """Recoveries of two units by two methods, the newest first, some of them years apart."""
    at, generated = datetime(2026, 11, 20, tzinfo=UTC), []
    for number in range(draw(st.integers(0, 70))):
        at -= timedelta(days=draw(st.sampled_from([1, 1, 1, 7, 90, 365, 400])))
        unit, method = draw(st.sampled_from(["web", "db"])), draw(st.sampled_from(["crash", "crash", "drain"]))
        generated.append(Recovery(number, unit, method, at, draw(st.sampled_from([30.0, 60.0, 90.0, 200.0, 1000.0]))))
    return generated


@given(recoveries(), st.integers(0, 70))
def test_one_pass_compares_each_recovery_with_those_before_it(generated: list[Recovery], subjects: int) -> None:
    slowness: Slowness[int] = Slowness()
    compared_by_number: dict[int, Compared[int]] = {}
    for one in generated:
        subject = one.number if one.number < subjects else None
        compared_by_number |= {c.subject: c for c in slowness.add(one.unit, one.method, one.at, one.seconds, subject)}
        assert slowness.waiting == min(one.number + 1, subjects) - len(compared_by_number)
    compared_by_number |= {c.subject: c for c in slowness.rest()}
    expected = {}
    for one in generated[:subjects]:
        alike = [e for e in generated[one.number + 1 :] if (e.unit, e.method) == (one.unit, one.method)][:LATEST]
        expected[one.number] = usual([e.seconds for e in alike if one.at - e.at <= RECENT])
    assert {number: compared.usually for number, compared in compared_by_number.items()} == expected
    assert slowness.waiting == 0


def test_latest_recoveries_count_and_no_earlier_one() -> None:
    slowness: Slowness[str] = Slowness()
    at = datetime(2026, 11, 20, tzinfo=UTC)
    seconds = [500.0, *(float(n) for n in range(1, LATEST + 1)), *[9000.0] * 30]
    compared = [
        one
        for n, its in enumerate(seconds)
        for one in slowness.add("web", "crash", at - timedelta(days=n), its, "newest" if n == 0 else None)
    ]
    assert compared == [Compared("newest", 500.0, (LATEST + 1) / 2)]


def test_waiting_recoveries_are_bounded() -> None:
    slowness: Slowness[int] = Slowness()
    at = datetime(2026, 11, 20, tzinfo=UTC)
    for number in range(1000):
        list(slowness.add("web", "crash", at - timedelta(hours=number), 30.0, number))
        assert slowness.waiting <= LATEST
