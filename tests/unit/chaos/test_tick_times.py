"""Ticks at the hours of another time zone: what counts as a shift, and which day is judged."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.unit.chaos.build import at, calendar
from troop.chaos.tick_times import AROUND, TickSpan, last_spans, shift

THURSDAY = date(2026, 11, 19)
SPAN = TickSpan(THURSDAY, at("09:00", THURSDAY), at("15:45", THURSDAY))


def minutes(first: int, last: int) -> timedelta:
    """The shift of a day whose first and last tick came so many minutes late."""
    return shift(SPAN, [SPAN.first + timedelta(minutes=first), SPAN.last + timedelta(minutes=last)])


@pytest.mark.parametrize(
    ("first", "last", "late"),
    [
        (0, 0, 0),
        (60, 60, 60),
        (-60, -60, -60),
        (30, 30, 30),
        (75, 60, 60),  # the first was missing, too
        (15, 15, 0),  # a delivery may take so long
        (180, 0, 0),  # the schedule was halted in the morning
        (0, -180, 0),
        (90, -90, 0),
        (-180, 180, 0),  # those of the days before and after
    ],
)
def test_a_shift_moves_both_ends(first: int, last: int, late: int) -> None:
    assert minutes(first, last) == timedelta(minutes=late)


def test_without_ticks_nothing_is_known() -> None:
    assert shift(SPAN, []) == timedelta()


@pytest.mark.parametrize(
    ("now", "day"),
    [
        (at("12:00", date(2026, 11, 20)), THURSDAY),
        (at("18:44", THURSDAY), date(2026, 11, 18)),
        (at("18:45", THURSDAY), THURSDAY),
        (at("12:00", date(2026, 11, 23)), date(2026, 11, 20)),
        (at("12:00", date(2026, 11, 27)), date(2026, 11, 25)),  # Thanksgiving is no business day
    ],
)
def test_the_last_business_day_that_is_over_is_judged(now: datetime, day: date) -> None:
    (span,) = last_spans({"default": calendar()}, 15, now).values()
    assert span == TickSpan(day, at("09:00", day), at("15:45", day))


def test_no_day_on_which_the_clocks_change_is_judged() -> None:
    sundays = {"default": calendar(weekdays=["SUN"])}
    (span,) = last_spans(sundays, 15, at("12:00", date(2026, 11, 3))).values()
    assert span.day == date(2026, 10, 25)


def test_a_calendar_that_was_closed_for_a_month_is_not_judged() -> None:
    assert last_spans({"default": calendar(extra_dates=CLOSED)}, 15, at("12:00", date(2026, 11, 20))) == {}


CLOSED = [{"date": str(date(2026, 11, 20) - timedelta(days=n)), "name": "works closed"} for n in range(40)]


@given(
    late=st.sampled_from([-60, -30, 0, 30, 60, 120]),
    window=st.tuples(st.integers(0, 1400), st.integers(16, 1440)).map(lambda w: (w[0], min(1440, w[0] + w[1]))),
    tick_minutes=st.sampled_from([1, 5, 10, 15]),
)
def test_shift_of_all_ticks_is_detected_after_a_long_night(
    late: int, window: tuple[int, int], tick_minutes: int
) -> None:
    opens, closes = (f"{m // 60:02}:{m % 60:02}" for m in window)
    days = {"default": calendar(open=opens, close=closes)}
    (span,) = last_spans(days, tick_minutes, at("23:59", date(2026, 11, 22))).values()
    every = range(0, int((span.last - span.first) / timedelta(minutes=1)) + 1, tick_minutes)
    nights = [span.first + timedelta(days=d, minutes=m + late) for d in (-1, 0) for m in every]
    came = [tick for tick in nights if span.first - AROUND <= tick <= span.last + AROUND]
    long_night = span.last - span.first < timedelta(hours=24) - AROUND - timedelta(hours=2)
    assume(long_night or not late)
    assert shift(span, came) == timedelta(minutes=late)
