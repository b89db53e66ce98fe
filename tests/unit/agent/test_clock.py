"""S3's clock: each answer bounds it, several of them closely, and only a clock that is certainly wrong is corrected."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.clock import MOST_ANSWERS, ClockWatch, correction
from troop.measure.summary import Clock

NOW = 1_790_000_000.0


def answers(watch: ClockWatch, ahead: float, moments: list[float], took: float = 0.02) -> None:
    """Answers to a node whose clock is ``ahead`` of S3's, at moments of S3's clock."""
    for moment in moments:
        watch.saw(formatdate(int(moment), usegmt=True), moment + ahead - took / 2, moment + ahead + took / 2)


@given(
    st.floats(-10_000, 10_000),
    st.lists(st.floats(NOW, NOW + 100), min_size=1, max_size=20),
    st.floats(0.0001, 3),
)
def test_the_truth_is_within_the_bounds(ahead: float, moments: list[float], took: float) -> None:
    watch = ClockWatch()
    answers(watch, ahead, moments, took)
    clock = watch.estimate()
    assert clock is not None
    assert abs(clock.offset_seconds - ahead) <= clock.uncertainty_seconds


def test_a_few_answers_at_different_fractions_of_a_second_leave_little_doubt() -> None:
    watch = ClockWatch()
    answers(watch, 0.3, [NOW + n * 1.17 for n in range(6)])
    clock = watch.estimate()
    assert clock is not None
    assert clock.uncertainty_seconds < 0.2


def test_nothing_is_known_before_the_first_answer_and_from_headers_that_are_no_dates() -> None:
    watch = ClockWatch()
    for header in ("", "yesterday", "Sat, 99 Foo 2026 00:00:00 GMT"):
        watch.saw(header, NOW, NOW)
    assert watch.estimate() is None


def test_clock_set_meanwhile_is_estimated_as_it_is_now() -> None:
    watch = ClockWatch()
    answers(watch, 3600, [NOW + n * 1.3 for n in range(10)])
    answers(watch, 0, [NOW + 60 + n * 1.3 for n in range(3)])
    clock = watch.estimate()
    assert clock is not None
    assert abs(clock.offset_seconds) <= clock.uncertainty_seconds


def test_a_clock_that_drifts_is_followed() -> None:
    watch = ClockWatch()
    for n in range(10 * MOST_ANSWERS):
        answers(watch, n * 0.001, [NOW + n * 1.3])
    clock = watch.estimate()
    assert clock is not None
    assert clock.offset_seconds == pytest.approx(10 * MOST_ANSWERS * 0.001, abs=0.1)


@pytest.mark.parametrize(
    ("clock", "seconds"),
    [
        (None, 0.0),
        (Clock(0.2, 0.3), 0.0),
        (Clock(-0.3, 0.3), 0.0),
        (Clock(7.5, 0.3), 7.5),
        (Clock(-7.5, 0.3), -7.5),
    ],
)
def test_only_a_clock_that_is_certainly_wrong_is_corrected(clock: Clock | None, seconds: float) -> None:
    assert correction(clock) == seconds
