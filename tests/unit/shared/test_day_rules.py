"""Days off, half days and freezes as rules: which days they are, and what a half day leaves of a window."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import at, calendar, closed, days
from troop.chaos.expected_ticks import is_open, ticks_of
from troop.chaos.roll import due_at, last_due
from troop.shared.calendars import MARGIN_MINUTES
from troop.shared.day_rules import Country, day_rule

US = Country("US")
EVERY_DAY = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-24", ["2026-12-24"]),
        ("12-24", ["2025-12-24", "2026-12-24", "2027-12-24"]),
        ("02-29", ["2025-02-28", "2026-02-28", "2027-02-28"]),
        ("4th THU of NOV", ["2025-11-27", "2026-11-26", "2027-11-25"]),
        ("4th THU of NOV +1", ["2025-11-28", "2026-11-27", "2027-11-26"]),
        ("4th thu of nov  +1", ["2025-11-28", "2026-11-27", "2027-11-26"]),
        ("last FRI of JUN", ["2025-06-27", "2026-06-26", "2027-06-25"]),
        ("1st MON of JUN -3", ["2025-05-30", "2026-05-29", "2027-06-04"]),
        ("holiday Thanksgiving Day +1", ["2025-11-28", "2026-11-27", "2027-11-26"]),
        ("holiday New Year's Day -1", ["2025-12-31", "2026-12-31", "2027-12-31"]),  # also before the year begins
        ("12-31 +1", ["2025-01-01", "2026-01-01", "2027-01-01"]),
    ],
)
def test_a_rule_is_these_days(text: str, expected: list[str]) -> None:
    rule = day_rule(text, US)
    span = days(date(2025, 1, 1), date(2027, 12, 31))
    assert [str(day) for day in span if rule.covers(day)] == expected
    listed = {day for year in range(2024, 2030) for day in rule.dates(year)}
    assert [day for day in span if day in listed] == [day for day in span if rule.covers(day)]


def test_a_holiday_that_is_observed_on_another_day_is_its_own_day() -> None:
    rule = day_rule("holiday Independence Day +1", US)
    assert rule.covers(date(2026, 7, 5))
    assert not rule.covers(date(2026, 7, 4))  # the day after the observed one


def test_days_relative_to_easter_come_from_the_country() -> None:
    good_friday = day_rule("holiday Easter Monday -3", Country("AT"))
    assert good_friday.covers(date(2026, 4, 3))
    assert good_friday.covers(date(2027, 3, 26))


def test_categories_are_days_off_and_can_be_named() -> None:
    bank = calendar(country="AT", categories=["public", "bank"])
    assert bank.day_off(date(2026, 4, 3)) is not None
    assert calendar(country="AT").day_off(date(2026, 4, 3)) is None
    named = [{"date": "holiday Good Friday -1", "name": "bridge"}]
    assert not calendar(country="AT", categories=["public", "bank"], extra_dates=named).is_business_day(
        date(2026, 4, 2)
    )


@pytest.mark.parametrize(
    ("start", "end", "frozen"),
    [
        ("12-20", "01-06", ["2026-01-01/2026-01-06", "2026-12-20/2026-12-31"]),
        ("4th THU of NOV", "4th THU of NOV +4", ["2026-11-26/2026-11-30"]),
        ("holiday Thanksgiving Day -3", "holiday Thanksgiving Day +1", ["2026-11-23/2026-11-27"]),
        ("06-30", "06-30", ["2026-06-30/2026-06-30"]),
        ("02-25", "02-29", ["2026-02-25/2026-02-28"]),
    ],
)
def test_a_freeze_comes_every_year(start: str, end: str, frozen: list[str]) -> None:
    one = calendar(freezes=[{"from": start, "to": end, "reason": "sales"}])
    expected = {day for span in frozen for day in days(*map(date.fromisoformat, span.split("/")))}
    assert {day for day in days(date(2026, 1, 1), date(2026, 12, 31)) if one.frozen(day)} == expected


def test_a_freeze_of_dates_can_be_longer_than_a_year() -> None:
    one = calendar(freezes=[{"from": "2026-12-20", "to": "2029-01-06", "reason": "sold"}])
    assert one.frozen(date(2028, 7, 1))
    assert not one.frozen(date(2026, 12, 19))
    assert not one.frozen(date(2029, 1, 7))


def test_a_yearly_freeze_ends_within_a_year() -> None:
    """An end that comes every fourth year only."""
    rules = {"from": "01-15", "to": "holiday Inauguration Day", "reason": "x"}
    one = calendar(subdivision="DC", freezes=[rules])
    frozen = [day for day in days(date(2026, 1, 1), date(2029, 12, 31)) if one.frozen(day)]
    assert frozen == days(date(2029, 1, 15), date(2029, 1, 20))


EVE = date(2026, 12, 24)
HALF: list[dict[str, Any]] = [{"date": "12-24", "name": "Christmas Eve", "close": "12:00"}]


def test_a_half_day_closes_early() -> None:
    one = calendar(extra_dates=HALF)
    assert one.is_business_day(EVE)
    assert closed(at("11:59", EVE), extra_dates=HALF) is None
    assert closed(at("12:00", EVE), extra_dates=HALF) == (
        "outside-window",
        "12:00 is outside 09:00 to 12:00 America/Los_Angeles (Christmas Eve)",
    )
    assert one.window(EVE) == (at("09:00", EVE), at("12:00", EVE))
    assert ticks_of(one, EVE, 15)[-1] == at("11:45", EVE)
    assert last_due(EVE, one) == at("11:44", EVE)
    assert closed(at("12:00", EVE - timedelta(days=1)), extra_dates=HALF) is None


def test_a_half_day_can_open_late_and_several_leave_what_they_have_in_common() -> None:
    late = [*HALF, {"date": "2026-12-24", "name": "inventory", "open": "10:30"}]
    assert calendar(extra_dates=late).window(EVE) == (at("10:30", EVE), at("12:00", EVE))


def test_half_days_that_leave_too_little_close_the_day() -> None:
    apart = [*HALF, {"date": "2026-12-24", "name": "inventory", "open": "11:45"}]
    assert closed(at("11:50", EVE), extra_dates=apart) == ("holiday", "Christmas Eve, inventory")


def test_a_day_off_stays_off_whatever_its_hours() -> None:
    off = [*HALF, {"date": "2026-12-24", "name": "closed works"}]
    assert closed(at("10:00", EVE), extra_dates=off) == ("holiday", "closed works")
    friday = [{"date": "12-25", "name": "x", "close": "12:00"}]
    assert closed(at("10:00", date(2026, 12, 25)), extra_dates=friday) == ("holiday", "Christmas Day")


RULES = st.sampled_from(
    ["2026-12-24", "12-24", "4th THU of NOV +1", "last FRI of JUN", "holiday Thanksgiving Day -1", "2nd MON of MAR -2"]
)
MINUTES = st.integers(9 * 60, 15 * 60)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


@st.composite
def _extra(draw: st.DrawFn) -> dict[str, str]:
    entry = {"date": draw(RULES), "name": "x"}
    opens, length = draw(MINUTES), draw(st.integers(MARGIN_MINUTES + 1, 6 * 60))
    if draw(st.booleans()) and opens + length <= 15 * 60:
        entry |= {"open": _clock(opens), "close": _clock(opens + length)}
    return entry


@given(
    extras=st.lists(_extra(), max_size=4),
    rule=RULES,
    year=st.integers(2025, 2030),
    tick_minutes=st.sampled_from([1, 5, 10, 15]),
)
def test_extra_dates_only_take_away(extras: list[dict[str, str]], rule: str, year: int, tick_minutes: int) -> None:
    plain, one = calendar(weekdays=EVERY_DAY), calendar(weekdays=EVERY_DAY, extra_dates=extras)
    for day in day_rule(rule, US).dates(year):
        assert not is_open(one, day) or is_open(plain, day)
        if not is_open(one, day):
            assert ticks_of(one, day, tick_minutes) == []
            continue
        (opens, closes), whole = one.window(day), plain.window(day)
        assert whole[0] <= opens < closes <= whole[1]
        ticks = ticks_of(one, day, tick_minutes)
        assert all(one.at(tick).closure is None for tick in ticks)
        assert set(ticks) <= set(ticks_of(plain, day, tick_minutes))
        due = due_at(b"salt", day, "web", one)
        assert opens <= due <= last_due(day, one) < closes - timedelta(minutes=MARGIN_MINUTES)
        assert any(tick >= due for tick in ticks), "a due roll has a tick in the window"
        night = datetime.combine(day, datetime.min.time(), UTC) + timedelta(hours=12)
        moments = [night + timedelta(minutes=n) for n in range(0, 24 * 60, 7)]
        assert all(plain.at(moment).closure is None for moment in moments if one.at(moment).closure is None)
