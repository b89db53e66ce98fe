"""Business days: weeks, public holidays, extra dates and freezes, and how they are counted."""

from __future__ import annotations

from datetime import date, timedelta

import holidays
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import EVERY_DAY, SUN_TO_THU, WORKING_WEEK, at, calendar, closed, days


@pytest.mark.parametrize(
    ("weekdays", "off"),
    [
        (WORKING_WEEK, {"Saturday", "Sunday"}),
        (SUN_TO_THU, {"Friday", "Saturday"}),
        (["WED"], {"Monday", "Tuesday", "Thursday", "Friday", "Saturday", "Sunday"}),
        (EVERY_DAY, set()),
    ],
)
def test_a_week_is_whatever_the_calendar_says(weekdays: list[str], off: set[str]) -> None:
    week = days(date(2026, 11, 16), date(2026, 11, 22))
    one = calendar(weekdays=weekdays, country=None)
    assert {f"{day:%A}" for day in week if not one.is_business_day(day)} == off


@pytest.mark.parametrize(
    ("country", "subdivision", "day", "name"),
    [
        ("US", None, date(2026, 11, 26), "Thanksgiving Day"),
        ("US", None, date(2026, 7, 3), "Independence Day (observed)"),  # the 4th is a Saturday
        ("US", None, date(2027, 12, 31), "New Year's Day (observed)"),  # of 2028, a Saturday: in the year before
        ("US", "CA", date(2026, 3, 31), "Cesar Chavez Day"),
        ("US", None, date(2026, 3, 31), None),
        ("US", "NY", date(2026, 3, 31), None),
        ("GB", "SCT", date(2026, 11, 30), "Saint Andrew's Day"),
        ("GB", "ENG", date(2026, 11, 30), None),
        ("GB", "ENG", date(2026, 12, 28), "Boxing Day (substitute day)"),
        ("AT", None, date(2026, 10, 26), "National Day"),
        ("AT", None, date(2026, 11, 26), None),
        (None, None, date(2026, 11, 26), None),
    ],
)
def test_public_holidays_of_a_country_and_subdivision(
    country: str | None, subdivision: str | None, day: date, name: str | None
) -> None:
    closure = calendar(country=country, subdivision=subdivision).day_off(day)
    reason = (closure.kind, closure.detail) if closure else None
    if name is None:
        assert reason is None
    else:
        assert reason is not None
        assert reason[0] == "holiday"
        assert name.split("(")[0].strip() in reason[1].replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def test_names_of_holidays_do_not_depend_on_the_machines_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGUAGE", "de")
    far = date(2043, 10, 26)  # a year that nobody has asked for yet: holidays are remembered
    closure = calendar(country="AT").day_off(far)
    assert closure is not None
    assert closure.detail == "National Day"


def test_a_year_of_holidays_is_the_countrys() -> None:
    known = holidays.country_holidays("US", subdiv="CA", years=2026)
    one = calendar(country="US", subdivision="CA", weekdays=EVERY_DAY)
    off = [day for day in days(date(2026, 1, 1), date(2026, 12, 31)) if not one.is_business_day(day)]
    assert off == sorted(known)


def test_extra_dates_are_holidays_too() -> None:
    extra = [{"date": "2026-12-24", "name": "Christmas Eve"}]
    assert closed(at("12:00", date(2026, 12, 24)), extra_dates=extra) == ("holiday", "Christmas Eve")
    assert closed(at("12:00", date(2026, 12, 23)), extra_dates=extra) is None


@pytest.mark.parametrize(
    ("day", "frozen"),
    [
        (date(2026, 12, 14), False),
        (date(2026, 12, 15), True),
        (date(2026, 12, 16), True),
        (date(2026, 12, 17), True),
        (date(2026, 12, 18), False),
    ],
)
def test_a_freeze_holds_on_its_first_and_last_day(day: date, frozen: bool) -> None:
    freeze = [{"from": "2026-12-15", "to": "2026-12-17", "reason": "year-end sales"}]
    assert closed(at("12:00", day), freezes=freeze) == (("freeze", "year-end sales") if frozen else None)


def test_a_frozen_day_is_still_a_business_day() -> None:
    freeze = [{"from": "2026-11-16", "to": "2026-11-20", "reason": "x"}]
    assert calendar(freezes=freeze).business_days_since(date(2026, 11, 13), date(2026, 11, 20), 99) == 5


def test_the_day_speaks_before_the_window() -> None:
    assert closed(at("20:00", date(2026, 11, 21)), close="15:00") == (
        "weekend",
        "Saturday is not a working day of calendar default",
    )
    freeze = [{"from": "2026-11-20", "to": "2026-11-20", "reason": "x"}]
    assert closed(at("20:00"), freezes=freeze) == ("freeze", "x")


# ------------------------------------------------------------------ business-day arithmetic


@pytest.mark.parametrize(
    ("earlier", "day", "count"),
    [
        (date(2026, 11, 19), date(2026, 11, 20), 1),
        (date(2026, 11, 20), date(2026, 11, 20), 0),
        (date(2026, 11, 20), date(2026, 11, 19), 0),
        (date(2026, 11, 20), date(2026, 11, 22), 0),  # a Sunday
        (date(2026, 11, 20), date(2026, 11, 23), 1),
        (date(2026, 11, 21), date(2026, 11, 23), 1),  # from a Saturday
        (date(2026, 11, 25), date(2026, 11, 27), 1),  # over Thanksgiving Day
        (date(2026, 12, 30), date(2027, 1, 4), 2),  # the 31st and, after New Year's Day and a weekend, the 4th
        (date(2027, 12, 30), date(2028, 1, 3), 1),  # New Year's Day is observed on the 31st
        (date(2026, 3, 6), date(2026, 3, 9), 1),  # the clocks were put forward
        (date(2026, 10, 30), date(2026, 11, 2), 1),  # and back
    ],
)
def test_business_days_between(earlier: date, day: date, count: int) -> None:
    assert calendar().business_days_since(earlier, day, 250) == count


def test_business_days_of_a_week_from_sunday_to_thursday() -> None:
    israel = calendar(time_zone="Asia/Jerusalem", weekdays=SUN_TO_THU, country="IL")
    assert israel.business_days_since(date(2026, 11, 19), date(2026, 11, 22), 9) == 1  # Thursday to Sunday
    assert israel.business_days_since(date(2026, 11, 19), date(2026, 11, 21), 9) == 0


US_HOLIDAYS = frozenset(holidays.country_holidays("US", years=range(2023, 2036)))


@given(
    earlier=st.dates(date(2024, 1, 1), date(2032, 1, 1)),
    length=st.integers(-5, 400),
    enough=st.integers(0, 250),
    weekdays=st.sampled_from([WORKING_WEEK, SUN_TO_THU, ["WED"]]),
)
def test_business_days_are_counted_one_by_one_up_to_the_limit(
    earlier: date, length: int, enough: int, weekdays: list[str]
) -> None:
    day = earlier + timedelta(days=length)
    numbers = {EVERY_DAY.index(name) for name in weekdays}
    counted = [d for d in days(earlier + timedelta(days=1), day) if d.weekday() in numbers and d not in US_HOLIDAYS]
    count = calendar(weekdays=weekdays).business_days_since(earlier, day, enough)
    assert count == min(enough, len(counted))
