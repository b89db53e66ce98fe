"""The settings of local deployments: everything is due now, and stays so for a while; or chaos goes on and on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.settings import lasting_settings, local_settings, open_settings, salt_for
from troop.chaos.roll import due_at, last_due
from troop.shared.calendars import Calendar

ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), ZoneInfo("America/Los_Angeles")])
MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2040, 1, 1), timezones=ZONES)  # noqa: DTZ001 - zones are added


def minutes(clock: str) -> int:
    hours, rest = clock.split(":")
    return int(hours) * 60 + int(rest)


@given(MOMENTS)
def test_a_longer_window_spreads_its_rolls_over_the_minutes(now: datetime) -> None:
    short, longer = (local_settings(now, more)["troop:calendars"]["default"] for more in (0, 30))
    assert minutes(longer["close"]) - minutes(short["close"]) == 30
    assert {**longer, "close": short["close"]} == short


@given(MOMENTS)
def test_every_roll_is_due_and_the_window_stays_open(now: datetime) -> None:
    calendar = local_settings(now)["troop:calendars"]["default"]
    opens, closes = minutes(calendar["open"]), minutes(calendar["close"])
    local = now.astimezone(ZoneInfo(calendar["time_zone"]))
    minute = local.hour * 60 + local.minute
    last_roll = closes - 15  # rolls are uniform over the window less its last 15 minutes
    assert opens < last_roll <= minute - 1
    for ahead in range(11):
        later = local + timedelta(minutes=ahead)
        assert later.date() == local.date()
        assert opens <= later.hour * 60 + later.minute < closes


@given(MOMENTS)
def test_no_midnight_is_near(now: datetime) -> None:
    name = local_settings(now)["troop:calendars"]["default"]["time_zone"]
    assert now.astimezone(ZoneInfo(name)).hour == 12
    assert not name.startswith("Etc/"), "Etc/GMT-11 is ahead of UTC, and reads like the opposite"


@settings(max_examples=20)
@given(MOMENTS)
def test_lasting_settings_leave_no_minute_out_and_most_of_a_day_is_behind_them(now: datetime) -> None:
    context = lasting_settings(now)
    default_calendar = context["troop:calendars"]["default"]
    calendar = Calendar(
        "default", default_calendar["time_zone"], frozenset(range(7)), 0, 24 * 60
    )  # parsing takes long, so often
    assert (len(default_calendar["weekdays"]), default_calendar["open"], default_calendar["close"]) == (
        7,
        "00:00",
        "24:00",
    )
    local = now.astimezone(ZoneInfo(calendar.time_zone))
    first, last = calendar.window(local.date())[0], last_due(local.date(), calendar)
    assert (now - first) / (last - first) > 0.9, "the share of rolls that are due at once"
    assert timedelta(minutes=30) < last - now, "the others come the same day"
    for hours in range(0, 50, 7):
        assert calendar.at(now + timedelta(hours=hours)).closure is None
    more = {"troop:inside_instances": True, "troop:queues": True}
    expected = {**local_settings(now), "troop:calendars": {}, **more}
    assert {**context, "troop:calendars": {}} == expected


@given(MOMENTS)
def test_every_day_of_the_week_is_a_business_day(now: datetime) -> None:
    calendar = local_settings(now)["troop:calendars"]["default"]
    assert len(set(calendar["weekdays"])) == 7
    assert calendar["country"] is None


def test_the_moment_has_to_be_aware() -> None:
    with pytest.raises(ValueError, match="aware"):
        local_settings(datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point


UNITS = st.lists(st.text(min_size=1, max_size=8), max_size=4)


@settings(max_examples=30)
@given(MOMENTS, UNITS, st.integers(0, 119))
def test_by_the_salt_for_some_units_all_of_them_are_due_for_two_hours(
    now: datetime, units: list[str], minutes_later: int
) -> None:
    salt, later = salt_for(units, now).encode(), now.astimezone(UTC) + timedelta(minutes=minutes_later)
    default_calendar = open_settings(later)["troop:calendars"]["default"]
    calendar = Calendar(
        "default", default_calendar["time_zone"], frozenset(range(7)), 0, minutes(default_calendar["close"])
    )
    reading = calendar.at(later)
    assert calendar.at(later + timedelta(hours=2)).closure is None
    assert all(due_at(salt, reading.day, unit, calendar) <= later for unit in units)
