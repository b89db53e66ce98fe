"""A second half that is worse than the first: no steady state, so the numbers depend on when one stops."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.reports import operation
from troop.report import steadiness
from troop.report.document import Phase, Series


def series(name: str, values: list[float | None], start: float = 0, step: int = 1) -> Series:
    return Series(role="drivers", operation="read", name=name, start=start, step_seconds=step, values=values)


def phase(*series: Series, count: int = 60_000, seconds: float = 60, **more: Any) -> Phase:
    one = operation(1000.0, count=count)
    about = {"measured_from": datetime(2026, 11, 21, tzinfo=UTC), **more}
    return Phase(phase="measure", nodes=4, measured_seconds=seconds, operations=[one], series=[*series], **about)


def noisy(level: float, number: int = 30) -> list[float | None]:
    return [level * (1.02 if n % 2 else 0.98) for n in range(number)]


def test_falling_throughput_and_growing_times_are_one_finding() -> None:
    rates, times = noisy(1000) + noisy(800), noisy(8) + noisy(12)
    (text,) = steadiness.findings(phase(series("per_second", rates), series("p99_ms", times)))
    assert text.startswith("measure, read of drivers: in the second half of the measured time, throughput fell from ")
    assert "1,000 to 800 a second (-20%) and p99 rose from 8 to 12 ms (+50%)" in text


@pytest.mark.parametrize(
    ("rates", "times"),
    [
        (noisy(1000) + noisy(950), noisy(8) + noisy(9)),  # little
        (noisy(800) + noisy(1000), noisy(12) + noisy(8)),  # better
        ([1000.0, 2000.0, 3000.0, 400.0, 3000.0, 200.0] * 5 + [700.0, 100.0, 3300.0] * 10, noisy(8) * 2),  # scatter
        (noisy(1000, 4) + [None] * 52 + noisy(500, 4), noisy(8, 4) + [None] * 52 + noisy(20, 4)),  # few steps
    ],
)
def test_chance_and_improvement_have_no_finding(rates: list[float | None], times: list[float | None]) -> None:
    assert [*steadiness.findings(phase(series("per_second", rates), series("p99_ms", times)))] == []


def test_the_warm_up_and_what_follows_do_not_count() -> None:
    rates = noisy(5000) + noisy(1000) + noisy(1000) + noisy(10, 20)
    assert [*steadiness.findings(phase(series("per_second", rates, start=-30)))] == []


def test_halves_need_enough_operations_and_a_known_start() -> None:
    rates, times = series("per_second", noisy(50) + noisy(40)), series("p99_ms", noisy(8) + noisy(12))
    assert [*steadiness.findings(phase(rates, times, count=3999))] == []
    assert [*steadiness.findings(phase(rates, times, measured_from=None))] == []
    (text,) = steadiness.findings(phase(rates, times, count=4000))  # 67 in a step: too few for its p99
    assert "throughput fell" in text
    assert "p99" not in text


@given(st.lists(st.none() | st.floats(0, 1e9), max_size=80), st.integers(-20, 20), st.sampled_from([0.5, 7, 60]))
def test_any_series_can_be_judged(values: list[float | None], start: int, seconds: float) -> None:
    judged = phase(series("per_second", values, start), series("p99_ms", values, start), seconds=seconds)
    assert len([*steadiness.findings(judged)]) <= 1
