"""Defines rules for days, such as "4th THU of NOV +1", and the holidays of countries that rules can name."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, Protocol

import holidays

from troop.shared import values

HOLIDAY_LANGUAGE = "en_US"
"""The language for the holidays of every country: their names are parts of English sentences."""

WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
"""The weekdays by EventBridge's names in cron expressions; the position is Python's ``date.weekday()``."""

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")

FORMS = (
    "a date as YYYY-MM-DD, or as MM-DD for every year; 4th THU of NOV or last FRI of JUN; or holiday and its name. "
    "Except for a date as YYYY-MM-DD, +1 or -1 at the end is a day later or earlier"
)
"""Every form of a rule, as a phrase that follows "must be"."""

_ONE_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAY_OF_MONTH = re.compile(r"([0-9]{2})-([0-9]{2})")
_WEEKDAY_OF_MONTH = re.compile(
    rf"(1st|2nd|3rd|4th|last)\s+({'|'.join(WEEKDAYS)})\s+of\s+({'|'.join(MONTHS)})", re.IGNORECASE
)
_HOLIDAY = re.compile(r"holiday\s+(.+)", re.IGNORECASE)
_MOVED = re.compile(r"(.+?)\s+([+-][0-9]{1,2})")
_PLACES = {"1st": 0, "2nd": 1, "3rd": 2, "4th": 3, "last": -1}
_LEAP_YEAR = 2028
_NAMED_YEARS = range(2026, 2030)
"""The years whose holidays a rule can name; four, because some come every fourth year only."""


@dataclass(frozen=True, slots=True)
class Country:
    """The holidays of a country that are days off.

    Attributes:
        code: ISO 3166.
        subdivision: the subdivision's code within the country; None for what the whole country has.
        categories: the categories of the library ``holidays``, such as ``public`` or ``bank``; None for its default,
            which is ``public``.
    """

    code: str
    subdivision: str | None = None
    categories: tuple[str, ...] | None = None

    def holidays(self, year: int) -> Mapping[date, str]:
        """Returns the names of a year's holidays by day; several names of one day are separated by ``; ``."""
        return _holidays(self, year)

    def names(self) -> tuple[str, ...]:
        """Lists the names of the holidays."""
        every = (name for year in _NAMED_YEARS for names in self.holidays(year).values() for name in names.split("; "))
        return tuple(dict.fromkeys(every))


@lru_cache(maxsize=256)
def _holidays(country: Country, year: int) -> Mapping[date, str]:
    return dict(
        holidays.country_holidays(
            country.code,
            subdiv=country.subdivision,
            years=year,
            language=HOLIDAY_LANGUAGE,
            categories=country.categories,
        ).items()
    )


@lru_cache(maxsize=64)
def categories_of(code: str) -> tuple[str, ...]:
    """Lists the categories of a country's holidays, without days on which people work in place of a weekday."""
    return tuple(c for c in holidays.country_holidays(code).supported_categories if c != "workday")


class Base(Protocol):
    """Days of every year."""

    def dates(self, year: int) -> tuple[date, ...]:
        """Lists the days of a year."""


@dataclass(frozen=True, slots=True)
class OneDay:
    """One day of one year."""

    day: date

    def dates(self, year: int) -> tuple[date, ...]:
        return (self.day,) if self.day.year == year else ()


@dataclass(frozen=True, slots=True)
class DayOfMonth:
    """A day of a month, both from 1; 29 February is the last day of February in other years."""

    month: int
    day: int

    def dates(self, year: int) -> tuple[date, ...]:
        return (date(year, self.month, min(self.day, monthrange(year, self.month)[1])),)


@dataclass(frozen=True, slots=True)
class WeekdayOfMonth:
    """A weekday of a month. ``place``: from 0; -1 for the last. ``weekday``: ``date.weekday()``."""

    place: int
    weekday: int
    month: int

    def dates(self, year: int) -> tuple[date, ...]:
        first, length = monthrange(year, self.month)
        days = range(1 + (self.weekday - first) % 7, length + 1, 7)
        return (date(year, self.month, days[self.place]),)


@dataclass(frozen=True, slots=True)
class NamedHoliday:
    """The days of a holiday of a country, without those on which it is only observed."""

    name: str
    country: Country

    def dates(self, year: int) -> tuple[date, ...]:
        return tuple(day for day, names in self.country.holidays(year).items() if self.name in names.split("; "))


@dataclass(frozen=True, slots=True)
class DayRule:
    """The days of ``base``, moved by ``later`` days. ``text``: the rule as in the settings."""

    text: str
    base: Base
    later: int = 0

    def covers(self, day: date) -> bool:
        start = day - timedelta(days=self.later)
        return start in self.base.dates(start.year)

    def dates(self, year: int) -> list[date]:
        """Lists the days of a year's ``base``, in order; moved ones can be in the year before or after."""
        return sorted(day + timedelta(days=self.later) for day in self.base.dates(year))

    @property
    def is_yearly(self) -> bool:
        return not isinstance(self.base, OneDay)


def day_rule(value: Any, country: Country | None) -> DayRule:
    """Parses a rule in one of the :data:`FORMS`.

    Args:
        country: whose holidays the rule can name; None for no country.

    Raises:
        BadValue: the text has no such form, or names a holiday that the country does not have.
    """
    if isinstance(value, date) or (isinstance(value, str) and _ONE_DAY.fullmatch(value.strip())):
        day = values.day(value)
        return DayRule(day.isoformat(), OneDay(day))
    if not isinstance(value, str):
        raise values.BadValue(FORMS)
    text = value.strip()
    moved = _MOVED.fullmatch(text)
    return DayRule(text, _base(moved[1] if moved else text, country), int(moved[2]) if moved else 0)


def _base(text: str, country: Country | None) -> Base:
    if match := _DAY_OF_MONTH.fullmatch(text):
        month, day = int(match[1]), int(match[2])
        if 1 <= month <= len(MONTHS) and 1 <= day <= monthrange(_LEAP_YEAR, month)[1]:
            return DayOfMonth(month, day)
    if match := _WEEKDAY_OF_MONTH.fullmatch(text):
        place, weekday, month_name = match.groups()
        return WeekdayOfMonth(
            _PLACES[place.lower()], WEEKDAYS.index(weekday.upper()), MONTHS.index(month_name.upper()) + 1
        )
    if match := _HOLIDAY.fullmatch(text):
        if country is None:
            raise values.BadValue("another rule: this calendar has no country, whose holidays it could name")
        if match[1] not in (known := country.names()):
            raise values.BadValue("holiday and " + values.spelling(match[1], known))
        return NamedHoliday(match[1], country)
    raise values.BadValue(FORMS)
