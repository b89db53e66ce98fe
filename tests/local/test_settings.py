"""The settings of a local deployment: everything is due now, and stays so for a while."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.settings import local_settings

ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), ZoneInfo("America/Los_Angeles")])
MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2040, 1, 1), timezones=ZONES)  # noqa: DTZ001 - zones are added


def minutes(clock: str) -> int:
    hours, rest = clock.split(":")
    return int(hours) * 60 + int(rest)


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
    zone = ZoneInfo(local_settings(now)["troop:calendars"]["default"]["time_zone"])
    assert now.astimezone(zone).hour == 12


@given(MOMENTS)
def test_every_day_of_the_week_is_a_business_day(now: datetime) -> None:
    calendar = local_settings(now)["troop:calendars"]["default"]
    assert len(set(calendar["weekdays"])) == 7
    assert calendar["country"] is None


def test_the_moment_has_to_be_aware() -> None:
    with pytest.raises(ValueError, match="aware"):
        local_settings(datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point
