"""Which ticks are expected: by hand, and against the calendars themselves."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import FRIDAY, at, calendar
from troop.chaos.expected_ticks import expected_ticks
from troop.shared.calendars import Calendar

DEFAULT = calendar()


def ticks(
    after: datetime,
    until: datetime,
    minutes: int = 15,
    calendars: tuple[Calendar, ...] = (DEFAULT,),
    zone: str = DEFAULT.time_zone,
) -> list[str]:
    """The expected ticks on the wall clock of ``zone``."""
    return [
        f"{moment.astimezone(ZoneInfo(zone)):%d %H:%M}"
        for moment, _ in expected_ticks(calendars, minutes, after, until)
    ]


@pytest.mark.parametrize(
    ("after", "until", "minutes", "expected"),
    [
        (at("09:00"), at("09:45"), 15, ["20 09:15", "20 09:30", "20 09:45"]),
        (at("08:59:59"), at("09:00"), 15, ["20 09:00"]),
        (at("09:00"), at("09:14:59"), 15, []),
        (at("14:40"), at("23:59"), 15, ["20 14:45"]),
        (at("14:57"), at("23:59"), 1, ["20 14:58", "20 14:59"]),
        (at("00:00"), at("09:09"), 5, ["20 09:00", "20 09:05"]),
        (at("09:30"), at("09:00"), 15, []),
    ],
)
def test_ticks_of_a_day(after: datetime, until: datetime, minutes: int, expected: list[str]) -> None:
    assert ticks(after, until, minutes) == expected


def test_none_on_weekends_holidays_and_in_freezes() -> None:
    monday = date(2026, 11, 23)
    freeze = [{"from": str(monday), "to": "2026-11-24", "reason": "release"}]
    moments = ticks(at("14:44", FRIDAY), at("23:00", date(2026, 11, 27)), 15, (calendar(freezes=freeze),))
    # 21 and 22 are a weekend, 23 and 24 frozen, the 26th is Thanksgiving Day.
    assert {day for day, _ in map(str.split, moments)} == {"20", "25", "27"}
    assert len(moments) == 1 + 24 + 24


def test_a_window_that_begins_between_two_ticks_waits_for_the_next() -> None:
    assert ticks(at("00:00"), at("10:00"), 15, (calendar(open="09:10", close="09:50"),)) == [
        "20 09:15",
        "20 09:30",
        "20 09:45",
    ]


def test_each_calendar_has_its_own() -> None:
    vienna = calendar("vienna", time_zone="Europe/Vienna", open="17:00", close="18:30", country=None)
    moments = expected_ticks((DEFAULT, vienna), 15, at("08:46"), at("09:15"))  # 17:46 to 18:15 in Vienna
    assert [(moment, name) for moment, name in moments] == [
        (at("09:00"), "default"),
        (at("09:00"), "vienna"),
        (at("09:15"), "default"),
        (at("09:15"), "vienna"),
    ]


def test_skipped_hour_has_no_tick_and_repeated_hour_ticks_once() -> None:
    night = calendar(time_zone="Europe/Vienna", open="01:00", close="04:00", weekdays=["SUN"], country=None)
    for day, hours in ((date(2026, 3, 29), ["01", "03"]), (date(2026, 10, 25), ["01", "02", "03"])):
        moments = ticks(
            at("00:00", day, "Europe/Vienna"), at("23:00", day, "Europe/Vienna"), 15, (night,), "Europe/Vienna"
        )
        assert moments == [f"{day:%d} {hour}:{minute:02}" for hour in hours for minute in (0, 15, 30, 45)]


@given(
    zone=st.sampled_from(["America/Los_Angeles", "Europe/Vienna", "Asia/Jerusalem", "Australia/Lord_Howe", "UTC"]),
    tick=st.sampled_from([1, 5, 10, 15]),
    opens=st.integers(0, 1400),
    length=st.integers(16, 600),
    start=st.integers(0, 330 * 24 * 3600).map(
        lambda seconds: at("00:00", date(2026, 1, 1)) + timedelta(seconds=seconds)
    ),
    hours=st.integers(0, 60),
)
def test_they_are_the_moments_on_the_grid_at_which_the_calendar_is_open(
    zone: str, tick: int, opens: int, length: int, start: datetime, hours: int
) -> None:
    closes = min(opens + length, 1440)
    if closes - opens < 16:
        return
    chosen = calendar(
        time_zone=zone, open=f"{opens // 60:02}:{opens % 60:02}", close=f"{closes // 60:02}:{closes % 60:02}"
    )
    until = start + timedelta(hours=hours)
    moment = start.replace(second=0, microsecond=0)
    expected = []
    while moment <= until:
        local = moment.astimezone(ZoneInfo(zone))
        if moment > start and local.minute % tick == 0 and not local.fold and chosen.at(moment).closure is None:
            expected.append(moment)
        moment += timedelta(minutes=1)
    assert [instant for instant, _ in expected_ticks([chosen], tick, start, until)] == expected
