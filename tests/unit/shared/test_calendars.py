"""Calendars: which days and minutes are open, by the clock on the wall, wherever and whenever that clock is changed."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import EVERY_DAY, SUN_TO_THU, at, calendar, closed

# ------------------------------------------------------------------ the window


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Europe/Vienna", "Asia/Kolkata", "Pacific/Auckland", "UTC"])
@pytest.mark.parametrize(
    ("clock", "is_open"),
    [
        ("08:59:59", False),
        ("09:00", True),
        ("12:00", True),
        ("14:59", True),
        ("14:59:59", True),
        ("15:00", False),
        ("15:05", False),
    ],
)
def test_a_window_holds_its_first_minute_and_not_its_last(zone: str, clock: str, is_open: bool) -> None:
    refused = closed(at(clock, zone=zone), time_zone=zone)
    assert refused == (None if is_open else ("outside-window", f"{clock[:5]} is outside 09:00 to 15:00 {zone}"))


@pytest.mark.parametrize(("clock", "is_open"), [("00:00", True), ("23:59:59", True)])
def test_a_window_may_last_until_the_end_of_the_day(clock: str, is_open: bool) -> None:
    assert (closed(at(clock), open="00:00", close="24:00") is None) is is_open


def test_the_day_after_a_window_until_midnight_is_a_day_of_its_own() -> None:
    saturday = date(2026, 11, 21)
    assert closed(at("00:00", saturday), open="00:00", close="24:00") == (
        "weekend",
        "Saturday is not a working day of calendar default",
    )


def test_the_day_is_the_calendars_not_the_one_in_utc() -> None:
    """Friday 15:00 in Auckland is Friday 02:00 in UTC; Saturday 09:00 there is still Friday in UTC."""
    auckland = calendar(time_zone="Pacific/Auckland", country=None)
    saturday = at("09:00", date(2026, 11, 21), "Pacific/Auckland")
    assert saturday.weekday() == 4
    assert auckland.at(saturday).day == date(2026, 11, 21)
    assert auckland.at(saturday).closure is not None


@pytest.mark.parametrize(
    ("day", "opens", "closes"),
    [
        (date(2026, 11, 20), "2026-11-20T17:00Z", "2026-11-20T23:00Z"),
        (date(2026, 3, 6), "2026-03-06T17:00Z", "2026-03-06T23:00Z"),
        (date(2026, 3, 9), "2026-03-09T16:00Z", "2026-03-09T22:00Z"),  # the clocks were put forward on the 8th
        (date(2026, 10, 30), "2026-10-30T16:00Z", "2026-10-30T22:00Z"),
        (date(2026, 11, 2), "2026-11-02T17:00Z", "2026-11-02T23:00Z"),  # and back on the 1st
    ],
)
def test_window_follows_the_wall_clock_in_summer_and_winter(day: date, opens: str, closes: str) -> None:
    assert calendar().window(day) == (datetime.fromisoformat(opens), datetime.fromisoformat(closes))


# ------------------------------------------------------------------ the nights on which the clocks change

FORWARD = date(2027, 3, 28)
"""In Vienna, 02:00 becomes 03:00."""
BACK = date(2026, 10, 25)
"""In Vienna, 03:00 becomes 02:00."""
NIGHT: dict[str, Any] = {"time_zone": "Europe/Vienna", "country": None, "weekdays": EVERY_DAY}


@pytest.mark.parametrize(
    ("opens", "closes", "day", "minutes"),
    [
        ("00:00", "24:00", FORWARD, 23 * 60),
        ("00:00", "24:00", BACK, 25 * 60),
        ("01:00", "03:00", FORWARD, 60),
        ("01:00", "02:30", FORWARD, 60),
        ("02:10", "02:50", FORWARD, 0),
        ("02:30", "04:00", FORWARD, 60),
        ("01:00", "03:00", BACK, 180),
        ("01:00", "02:30", BACK, 90),  # 02:00 to 02:30 comes a second time, but the window is over
        ("02:30", "04:00", BACK, 120),  # from the first 02:30; 02:00 to 02:30 comes a second time and is outside
        ("04:00", "06:00", FORWARD, 120),
    ],
)
def test_a_window_on_a_night_of_clock_change_is_open_so_many_real_minutes(
    opens: str, closes: str, day: date, minutes: int
) -> None:
    night = calendar(open=opens, close=closes, **NIGHT)
    start = datetime.combine(day, datetime.min.time(), UTC) - timedelta(hours=12)
    open_moments = [
        moment
        for moment in (start + timedelta(minutes=n) for n in range(48 * 60))
        if night.at(moment).day == day and night.at(moment).closure is None
    ]
    assert len(open_moments) == minutes
    window = night.window(day)
    assert all(window[0] <= moment < window[1] for moment in open_moments)


@pytest.mark.parametrize(
    ("opens", "closes"),
    [("02:10", "02:50"), ("02:00", "03:00")],
)
def test_a_window_that_the_clocks_skip_is_not_open_at_all(opens: str, closes: str) -> None:
    window = calendar(open=opens, close=closes, **NIGHT).window(FORWARD)
    assert window == (at("03:00", FORWARD, "Europe/Vienna"),) * 2


def test_a_midnight_that_the_clocks_skip_is_the_moment_they_do() -> None:
    cairo = calendar(time_zone="Africa/Cairo", country=None, weekdays=EVERY_DAY, open="00:00", close="24:00")
    skipped = date(2026, 4, 24)
    assert cairo.window(skipped)[0] == at("01:00", skipped, "Africa/Cairo")
    assert cairo.window(date(2026, 4, 23))[1] == cairo.window(skipped)[0]


ZONES = [
    "America/Los_Angeles",
    "Europe/Vienna",
    "Asia/Jerusalem",
    "Africa/Cairo",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
]


@given(
    zone=st.sampled_from(ZONES),
    moment=st.datetimes(datetime(2024, 1, 1), datetime(2031, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    window=st.tuples(st.integers(0, 1424), st.integers(16, 1440)).map(lambda w: (w[0], min(1440, w[0] + w[1]))),
)
def test_open_moment_is_inside_the_window_of_the_wall_clock(
    zone: str, moment: datetime, window: tuple[int, int]
) -> None:
    opens, closes = (f"{m // 60:02}:{m % 60:02}" for m in window)
    reading = calendar(time_zone=zone, country=None, weekdays=SUN_TO_THU, open=opens, close=closes).at(moment)
    wall = moment.astimezone(ZoneInfo(zone))
    inside = wall.isoweekday() not in (5, 6) and window[0] <= wall.hour * 60 + wall.minute < window[1]
    clocks_change = len({(wall + timedelta(days=n)).replace(hour=12).utcoffset() for n in (-1, 0, 1)}) > 1
    assert reading.local == wall
    assert inside or reading.closure is not None
    assert clocks_change or inside == (reading.closure is None)


def test_two_calendars_of_one_name_have_readings_of_their_own() -> None:
    """Readings are remembered; two settings must not answer for each other."""
    moment = at("12:00")
    assert calendar().at(moment).closure is None
    assert calendar(open="13:00").at(moment).closure is not None
    assert calendar().at(moment).closure is None
