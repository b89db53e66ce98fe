"""Defines business calendars: the days, and the minutes of a day, that are open to chaos.

A window such as "09:00 to 15:00" is on the wall clock, also on days on which the clocks change. Its length, and the
moments in it, are in real minutes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any, cast

import holidays

from troop.shared import values, zones
from troop.shared.day_rules import WEEKDAYS, Country, DayRule, OneDay, categories_of, day_rule
from troop.shared.errors import SettingsError

MARGIN_MINUTES = 15
"""The last minutes of a window, in which no roll is due, so that the next tick and the termination fit into it."""

_MINUTE, _A_YEAR = timedelta(minutes=1), timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Freeze:
    """Days without chaos, both ends included: once, or from a day of every year to the other rule's next day, which
    comes within a year.
    """

    start: DayRule
    end: DayRule
    reason: str

    def covers(self, day: date) -> bool:
        first, last = self.start.base, self.end.base
        if isinstance(first, OneDay) and isinstance(last, OneDay):
            return first.day <= day <= last.day
        near = (day.year - 1, day.year, day.year + 1)
        start = max((start for year in near for start in self.start.dates(year) if start <= day), default=None)
        if start is None:
            return False
        ends = (end for year in near for end in self.end.dates(year) if start <= end <= start + _A_YEAR)
        return day <= min(ends, default=date.min)


@dataclass(frozen=True, slots=True)
class ExtraDate:
    """Days that differ from others: days off, or half days.

    Attributes:
        hours: the window [open, close) of a half day in local minutes since midnight, inside the calendar's window;
            None for a day off.
    """

    rule: DayRule
    name: str
    hours: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Closure:
    """The reason why a calendar is closed. ``kind``: ``weekend``, ``holiday``, ``freeze`` or ``outside-window``."""

    kind: str
    detail: str


@dataclass(frozen=True)
class Calendar:
    """The times that are open to chaos.

    Attributes:
        name: the key in the settings; a group names its calendar by tag or item.
        time_zone: IANA name, such as ``Europe/Vienna``.
        weekdays: ``date.weekday()`` numbers of the working week, Monday is 0.
        open_minute, close_minute: the window [open, close) in local minutes since midnight.
        country: whose holidays are days off; None for no country.
        extra_dates: other days off, and half days.
        freezes: periods without chaos. A frozen day is still a business day, on which people work.
        change_calendar: the name or ARN of an SSM Change Calendar that closes the window, too; None for none. This
            class does not know its state.
    """

    name: str
    time_zone: str
    weekdays: frozenset[int]
    open_minute: int
    close_minute: int
    country: Country | None = None
    extra_dates: tuple[ExtraDate, ...] = ()
    freezes: tuple[Freeze, ...] = ()
    change_calendar: str | None = None

    def __hash__(self) -> int:
        return hash(self.name)  # cheap: the caches below hash calendars several times for every unit

    def local(self, moment: datetime) -> datetime:
        """Returns an aware moment on this calendar's clock."""
        return self.at(moment).local

    def at(self, moment: datetime) -> Reading:
        """Returns the reading at an aware moment. Cached, because all units of a tick need the same."""
        return _reading(self, moment)

    def day_off(self, day: date) -> Closure | None:
        """Returns why ``day`` is not a business day (``weekend`` or ``holiday``), or None if it is one."""
        if day.weekday() not in self.weekdays:
            return Closure("weekend", f"{day:%A} is not a working day of calendar {self.name}")
        extras = self.extras(day)
        for extra in extras:
            if extra.hours is None:
                return Closure("holiday", extra.name)
        if self.country and (name := self.country.holidays(day.year).get(day)):
            return Closure("holiday", name)
        opens, closes = self.hours(day)
        if closes - opens <= MARGIN_MINUTES:  # half days that hardly overlap
            return Closure("holiday", ", ".join(extra.name for extra in extras))
        return None

    def extras(self, day: date) -> tuple[ExtraDate, ...]:
        """Returns the extra dates that a day is."""
        return _extras(self, day)

    def hours(self, day: date) -> tuple[int, int]:
        """Returns the window [open, close) of a business day, in local minutes since midnight: the calendar's, or on a
        half day a part of it.
        """
        halves = [extra.hours for extra in self.extras(day) if extra.hours]
        opens = max([self.open_minute, *(opens for opens, _ in halves)])
        return opens, min([self.close_minute, *(closes for _, closes in halves)])

    def is_business_day(self, day: date) -> bool:
        return self.day_off(day) is None

    def frozen(self, day: date) -> Closure | None:
        """Returns the freeze that covers ``day``, or None."""
        for freeze in self.freezes:
            if freeze.covers(day):
                return Closure("freeze", freeze.reason)
        return None

    def window(self, day: date) -> tuple[datetime, datetime]:
        """Returns the moments, in UTC, at which the window of ``day`` opens and closes.

        A time that the clocks skip is the moment of the skip; one that they show twice is its first occurrence.
        """
        return _window(self, day)

    def business_days_since(self, earlier: date, day: date, enough: int) -> int:
        """Counts the business days after ``earlier`` up to and including ``day``, at most ``enough``.

        Monday after Friday is 1; the same or an earlier day is 0.
        """
        return _business_days_since(self, earlier, day, enough)


@dataclass(frozen=True, slots=True)
class Reading:
    """The state of a calendar at a moment.

    Attributes:
        local: the moment on the calendar's clock.
        day: its local date.
        closure: why chaos is closed then; None inside the window of an open business day.
    """

    local: datetime
    day: date
    closure: Closure | None


@lru_cache(maxsize=256)
def _reading(calendar: Calendar, moment: datetime) -> Reading:
    local = moment.astimezone(zones.zone(calendar.time_zone))
    day = local.date()
    closure = calendar.day_off(day) or calendar.frozen(day) or _outside_window(calendar, moment, local)
    return Reading(local, day, closure)


def _outside_window(calendar: Calendar, moment: datetime, local: datetime) -> Closure | None:
    """Checks both the wall clock and the window's real period: otherwise a clock that is set back would reopen a closed
    window.
    """
    opens, closes = calendar.window(local.date())
    first, last = calendar.hours(local.date())
    if first <= local.hour * 60 + local.minute < last and opens <= moment < closes:
        return None
    half = "".join(f" ({extra.name})" for extra in calendar.extras(local.date()))
    window = f"{clock(first)} to {clock(last)} {calendar.time_zone}{half}"
    return Closure("outside-window", f"{local:%H:%M} is outside {window}")


@lru_cache(maxsize=1024)
def _extras(calendar: Calendar, day: date) -> tuple[ExtraDate, ...]:
    return tuple(extra for extra in calendar.extra_dates if extra.rule.covers(day))


@lru_cache(maxsize=1024)
def _window(calendar: Calendar, day: date) -> tuple[datetime, datetime]:
    opens, closes = calendar.hours(day)
    return _first(calendar, day, opens), _first(calendar, day, closes)


def _first(calendar: Calendar, day: date, minute: int) -> datetime:
    """Returns the first moment, in UTC, at which the local clock of ``day`` shows ``minute`` or a later one."""
    zone = zones.zone(calendar.time_zone)
    local = datetime.combine(day, time.min) + timedelta(minutes=minute)
    moment = local.replace(tzinfo=zone).astimezone(UTC)
    while (moment - _MINUTE).astimezone(zone).replace(tzinfo=None) >= local:
        moment -= _MINUTE  # the clocks skip this time: go back to the moment of the skip
    return moment


@lru_cache(maxsize=4096)
def _business_days_since(calendar: Calendar, earlier: date, day: date, enough: int) -> int:
    count = 0
    while earlier < day and count < enough:
        earlier += timedelta(days=1)
        count += calendar.is_business_day(earlier)
    return count


def clock(minute: int) -> str:
    """Returns minutes since midnight as HH:MM."""
    return f"{minute // 60:02d}:{minute % 60:02d}"


_FIELDS = (
    "time_zone",
    "weekdays",
    "open",
    "close",
    "country",
    "subdivision",
    "categories",
    "extra_dates",
    "freezes",
    "change_calendar",
)


def parse_calendar(key: str, name: str, raw: Any) -> Calendar:
    """Parses a calendar of the settings.

    Args:
        key: the setting's name for error messages, such as ``troop:calendars``.
        name: the calendar's own name.
        raw: the JSON object: ``time_zone``, ``open``, ``close`` are required.

    Raises:
        SettingsError: for an unknown field, zone, country, subdivision, category or weekday, for a rule of days that
            does not exist, and for an empty, inverted or too short window.
    """
    where = f"{key}.{name}"
    if not isinstance(raw, Mapping):
        raise SettingsError(where, raw, "an object with time_zone, open and close")
    if unknown := sorted(set(raw) - set(_FIELDS)):
        raise SettingsError(f"{where}.{unknown[0]}", raw[unknown[0]], values.spelling(unknown[0], _FIELDS))
    zone = raw.get("time_zone")
    if not isinstance(zone, str) or zone not in zones.names():
        raise SettingsError(f"{where}.time_zone", zone, "an IANA time zone such as Europe/Vienna")
    hours = _hours(where, raw)
    country = _country(where, raw)
    return Calendar(
        name=name,
        time_zone=zone,
        weekdays=_weekdays(where, raw.get("weekdays", WEEKDAYS[:5])),
        open_minute=hours[0],
        close_minute=hours[1],
        country=country,
        extra_dates=tuple(_extra_dates(where, raw.get("extra_dates") or [], country, hours)),
        freezes=tuple(_freezes(where, raw.get("freezes") or [], country)),
        change_calendar=_change_calendar(where, raw.get("change_calendar")),
    )


def _hours(where: str, raw: Mapping[str, Any]) -> tuple[int, int]:
    opens, closes = _field(where, raw, "open", values.minute_of_day), _field(where, raw, "close", values.minute_of_day)
    if closes - opens <= MARGIN_MINUTES:
        raise SettingsError(
            f"{where}.close",
            raw["close"],
            f"more than {MARGIN_MINUTES} minutes after open ({raw['open']}), on the same day",
        )
    return opens, closes


def _field(where: str, raw: Mapping[str, Any], field: str, parse: Any) -> Any:
    try:
        return parse(raw.get(field))
    except values.BadValue as error:
        raise SettingsError(f"{where}.{field}", raw.get(field), str(error)) from None


def _weekdays(where: str, raw: Any) -> frozenset[int]:
    if not isinstance(raw, (list, tuple)) or not raw or any(d not in WEEKDAYS for d in raw):
        raise SettingsError(f"{where}.weekdays", raw, "a list of " + ", ".join(WEEKDAYS))
    return frozenset(WEEKDAYS.index(d) for d in raw)


def _country(where: str, raw: Mapping[str, Any]) -> Country | None:
    code, subdivision, categories = raw.get("country"), raw.get("subdivision"), raw.get("categories")
    if code is None:
        for field, value in (("subdivision", subdivision), ("categories", categories)):
            if value is not None:
                raise SettingsError(f"{where}.{field}", value, "null when there is no country")
        return None
    supported = holidays.list_supported_countries()
    if not isinstance(code, str) or code not in supported:
        raise SettingsError(f"{where}.country", code, "an ISO 3166 code with known holidays, such as US, AT or IL")
    if subdivision is not None and subdivision not in supported[code]:
        known = ", ".join(supported[code]) or "null: this country has none"
        raise SettingsError(f"{where}.subdivision", subdivision, f"a subdivision of {code}: {known}")
    return Country(code, subdivision, _categories(where, code, categories))


def _categories(where: str, code: str, raw: Any) -> tuple[str, ...] | None:
    if raw is None:
        return None
    known = categories_of(code)
    if not isinstance(raw, (list, tuple)) or not raw or any(category not in known for category in raw):
        raise SettingsError(f"{where}.categories", raw, "a list of categories of " + code + ": " + ", ".join(known))
    return tuple(raw)


def _extra_dates(where: str, raw: Any, country: Country | None, window: tuple[int, int]) -> Iterator[ExtraDate]:
    for at, entry in _entries(f"{where}.extra_dates", raw, {"date", "name"}, {"open", "close"}):
        hours = None
        if {"open", "close"} & set(entry):
            hours = _hours(at, {"open": clock(window[0]), "close": clock(window[1]), **entry})
            for field, inside in (("open", hours[0] >= window[0]), ("close", hours[1] <= window[1])):
                if not inside:
                    whole = " to ".join(map(clock, window))
                    raise SettingsError(f"{at}.{field}", entry[field], f"inside the calendar's window, {whole}")
        yield ExtraDate(_rule(at, entry, "date", country), _field(at, entry, "name", values.text()), hours)


def _freezes(where: str, raw: Any, country: Country | None) -> Iterator[Freeze]:
    for at, entry in _entries(f"{where}.freezes", raw, {"from", "to", "reason"}):
        start, end = _rule(at, entry, "from", country), _rule(at, entry, "to", country)
        if start.is_yearly != end.is_yearly:
            every = "a day of every year" if start.is_yearly else "a date as YYYY-MM-DD"
            raise SettingsError(f"{at}.to", entry["to"], f"{every}, as from is ({start.text})")
        if not start.is_yearly and end.text < start.text:
            raise SettingsError(f"{at}.to", entry["to"], f"not before from ({entry['from']})")
        yield Freeze(start, end, _field(at, entry, "reason", values.text()))


_CHANGE_CALENDAR = re.compile(r"(arn:aws[a-z-]*:ssm:[a-z0-9-]+:[0-9]{12}:document/)?[A-Za-z0-9_.-]{3,128}")
"""The name or ARN of an SSM document; the letters and the length are those of ``CreateDocument``."""


def _change_calendar(where: str, raw: Any) -> str | None:
    if raw is None or (isinstance(raw, str) and _CHANGE_CALENDAR.fullmatch(raw)):
        return raw
    allowed = "null, or the name or ARN of an SSM Change Calendar in the deployment's region"
    raise SettingsError(f"{where}.change_calendar", raw, allowed)


def _rule(where: str, entry: Mapping[str, Any], field: str, country: Country | None) -> DayRule:
    return cast(DayRule, _field(where, entry, field, lambda value: day_rule(value, country)))


def _entries(
    where: str, raw: Any, fields: set[str], optional: Collection[str] = ()
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(raw, (list, tuple)):
        raise SettingsError(where, raw, "a list")
    for index, entry in enumerate(raw):
        if not isinstance(entry, Mapping) or set(entry) - set(optional) != fields:
            allowed = "an object with " + ", ".join(sorted(fields))
            more = f", and for a half day {' or '.join(sorted(optional, reverse=True))}" if optional else ""
            raise SettingsError(f"{where}[{index}]", entry, allowed + more)
        yield f"{where}[{index}]", entry
