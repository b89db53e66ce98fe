"""When a schedule starts next: by rate, once, and by cron in its time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.records.next_start import next_start
from troop.bench.records.schedule import Schedule

CREATED = datetime(2026, 11, 1, 10, 7, tzinfo=UTC)
NOW = "2026-11-23T09:00"  # a Monday


def schedule(expression: str, zone: str = "UTC", last_at: datetime | None = None) -> Schedule:
    return Schedule(
        name="nightly",
        expression=expression,
        time_zone=zone,
        digest="d",
        benchmark="disk-io",
        size=None,
        expected=Decimal(1),
        most=Decimal(2),
        currency="USD",
        created_at=CREATED,
        created_by="arn",
        last_at=last_at,
    )


def following(expression: str, now: str, zone: str = "UTC") -> str | None:
    start = next_start(schedule(expression, zone), datetime.fromisoformat(now).replace(tzinfo=UTC))
    return None if start is None else f"{start:%Y-%m-%dT%H:%M}"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("cron(0 3 ? * MON-FRI *)", "2026-11-24T03:00"),
        ("cron(0 9 * * ? *)", "2026-11-24T09:00"),  # now is over
        ("cron(0/15 8-18 1,23 JAN,NOV ? 2026-2030)", "2026-11-23T09:15"),
        ("cron(/20 * * * ? *)", "2026-11-23T09:20"),
        ("cron(5 */6 L * ? *)", "2026-11-30T00:05"),
        ("cron(0 10 LW 1 ? *)", "2027-01-29T10:00"),  # 31 January 2027 is a Sunday
        ("cron(0 10 1W 8 ? *)", "2027-08-02T10:00"),  # 1 August 2027 is a Sunday
        ("cron(0 10 1W 5 ? *)", "2027-05-03T10:00"),  # a Saturday, and not in April
        ("cron(0 10 ? * 2#1 *)", "2026-12-07T10:00"),
        ("cron(0 10 ? * FRIL *)", "2026-11-27T10:00"),
        ("cron(0 10 ? * L *)", "2026-11-28T10:00"),
        ("cron(0 10 ? * fri-mon *)", "2026-11-23T10:00"),
        ("cron(0 10 ? * SAT-SUN *)", "2026-11-28T10:00"),
        ("cron(0 0 29 2 ? *)", "2028-02-29T00:00"),
        ("cron(0 0 31 2 ? *)", None),
        ("cron(0 8 23 11 ? 2026)", None),
        ("at(2026-11-23T09:30:00)", "2026-11-23T09:30"),
        ("at(2026-11-23T08:30:00)", None),
    ],
)
def test_the_next_start_in_utc(expression: str, expected: str | None) -> None:
    assert following(expression, NOW) == expected


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2027-03-26T12:00", "2027-03-27T01:30"),
        ("2027-03-27T12:00", "2027-03-29T00:30"),  # on 28 March, the clock skips 02:30
        ("2026-10-24T12:00", "2026-10-25T00:30"),  # 02:30 comes twice: the first time, and no second
        ("2026-10-25T00:30", "2026-10-26T01:30"),
    ],
)
def test_a_change_of_the_clock(now: str, expected: str) -> None:
    assert following("cron(30 2 * * ? *)", now, "Europe/Berlin") == expected


def test_a_time_once_is_of_its_zone() -> None:
    assert following("at(2026-12-01T00:00:00)", NOW, "Asia/Tokyo") == "2026-11-30T15:00"


@pytest.mark.parametrize(
    ("last_at", "expected"),
    [(None, "2026-11-23T10:07"), (datetime(2026, 11, 23, 7, 8, tzinfo=UTC), "2026-11-23T13:08")],
)
def test_a_rate_counts_from_the_last_start_else_from_the_creation(last_at: datetime | None, expected: str) -> None:
    start = next_start(schedule("rate(6 hours)", last_at=last_at), datetime(2026, 11, 23, 9, tzinfo=UTC))
    assert start == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@given(
    st.integers(0, 59),
    st.integers(0, 23),
    st.integers(0, 4 * 366 * 24 * 60).map(lambda minutes: CREATED + timedelta(minutes=minutes)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana"]),
)
def test_a_daily_start_is_the_first_such_minute_after_now(minute: int, hour: int, now: datetime, zone: str) -> None:
    start = next_start(schedule(f"cron({minute} {hour} * * ? *)", zone), now)
    assert start is not None
    assert now < start < now + timedelta(days=2, hours=2)
    local = start.astimezone(ZoneInfo(zone))
    assert (local.hour, local.minute) == (hour, minute)
    assert local.fold == 0
