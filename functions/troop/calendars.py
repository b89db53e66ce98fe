"""Defines business calendars: the days, and the minutes of a day, that are open to chaos.

A window such as "09:00 to 15:00" is on the wall clock, also on days on which the clocks change. Its length, and the
moments in it, are in real minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any

import holidays

from troop import values, zones
from troop.errors import SettingsError

WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
"""As in EventBridge's cron expressions; the position is Python's ``date.weekday()``."""

MARGIN_MINUTES = 15
"""No roll is due in a window's last minutes, so that the next tick and the termination fit into it."""

HOLIDAY_LANGUAGE = "en_US"
"""One language for the holidays of every country: their names are parts of English sentences."""

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Freeze:
    """Days without chaos, both ends included."""

    start: date
    end: date
    reason: str

    def covers(self, day: date) -> bool:
        return self.start <= day <= self.end


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
        country, subdivision: the public holidays that are days off (ISO 3166 codes); None for no country.
        extra_dates: other days off, with their names.
        freezes: periods without chaos. A frozen day is still a business day, on which people work.
    """

    name: str
    time_zone: str
    weekdays: frozenset[int]
    open_minute: int
    close_minute: int
    country: str | None = None
    subdivision: str | None = None
    extra_dates: tuple[tuple[date, str], ...] = ()
    freezes: tuple[Freeze, ...] = ()

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
        for extra, name in self.extra_dates:
            if extra == day:
                return Closure("holiday", name)
        if self.country and (public := _public_holidays(self.country, self.subdivision, day.year).get(day)):
            return Closure("holiday", public)
        return None

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
    on_the_wall = calendar.open_minute <= local.hour * 60 + local.minute < calendar.close_minute
    if on_the_wall and opens <= moment < closes:
        return None
    window = f"{clock(calendar.open_minute)} to {clock(calendar.close_minute)} {calendar.time_zone}"
    return Closure("outside-window", f"{local:%H:%M} is outside {window}")


@lru_cache(maxsize=1024)
def _window(calendar: Calendar, day: date) -> tuple[datetime, datetime]:
    return _first(calendar, day, calendar.open_minute), _first(calendar, day, calendar.close_minute)


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


@lru_cache(maxsize=256)
def _public_holidays(country: str, subdivision: str | None, year: int) -> Mapping[date, str]:
    return dict(holidays.country_holidays(country, subdiv=subdivision, years=year, language=HOLIDAY_LANGUAGE).items())


_FIELDS = ("time_zone", "weekdays", "open", "close", "country", "subdivision", "extra_dates", "freezes")


def parse_calendar(key: str, name: str, raw: Any) -> Calendar:
    """Parses a calendar of the settings.

    Args:
        key: the setting's name for error messages, such as ``troop:calendars``.
        name: the calendar's own name.
        raw: the JSON object: ``time_zone``, ``open``, ``close`` are required.

    Raises:
        SettingsError: for an unknown field, zone, country, subdivision or weekday, and for an empty, inverted or too
            short window.
    """
    where = f"{key}.{name}"
    if not isinstance(raw, Mapping):
        raise SettingsError(where, raw, "an object with time_zone, open and close")
    if unknown := sorted(set(raw) - set(_FIELDS)):
        raise SettingsError(f"{where}.{unknown[0]}", raw[unknown[0]], values.spelling(unknown[0], _FIELDS))
    zone = raw.get("time_zone")
    if not isinstance(zone, str) or zone not in zones.names():
        raise SettingsError(f"{where}.time_zone", zone, "an IANA time zone such as Europe/Vienna")
    open_minute = _field(where, raw, "open", values.minute_of_day)
    close_minute = _field(where, raw, "close", values.minute_of_day)
    if close_minute - open_minute <= MARGIN_MINUTES:
        raise SettingsError(
            f"{where}.close",
            raw["close"],
            f"more than {MARGIN_MINUTES} minutes after open ({raw['open']}), on the same day",
        )
    country, subdivision = _country(where, raw)
    return Calendar(
        name=name,
        time_zone=zone,
        weekdays=_weekdays(where, raw.get("weekdays", WEEKDAYS[:5])),
        open_minute=open_minute,
        close_minute=close_minute,
        country=country,
        subdivision=subdivision,
        extra_dates=tuple(_extra_dates(where, raw.get("extra_dates") or [])),
        freezes=tuple(_freezes(where, raw.get("freezes") or [])),
    )


def _field(where: str, raw: Mapping[str, Any], field: str, parse: Any) -> Any:
    try:
        return parse(raw.get(field))
    except values.BadValue as error:
        raise SettingsError(f"{where}.{field}", raw.get(field), str(error)) from None


def _weekdays(where: str, raw: Any) -> frozenset[int]:
    if not isinstance(raw, (list, tuple)) or not raw or any(d not in WEEKDAYS for d in raw):
        raise SettingsError(f"{where}.weekdays", raw, "a list of " + ", ".join(WEEKDAYS))
    return frozenset(WEEKDAYS.index(d) for d in raw)


def _country(where: str, raw: Mapping[str, Any]) -> tuple[str | None, str | None]:
    country, subdivision = raw.get("country"), raw.get("subdivision")
    if country is None:
        if subdivision is not None:
            raise SettingsError(f"{where}.subdivision", subdivision, "null when there is no country")
        return None, None
    supported = holidays.list_supported_countries()
    if not isinstance(country, str) or country not in supported:
        raise SettingsError(f"{where}.country", country, "an ISO 3166 code with known holidays, such as US, AT or IL")
    if subdivision is not None and subdivision not in supported[country]:
        known = ", ".join(supported[country]) or "null: this country has none"
        raise SettingsError(f"{where}.subdivision", subdivision, f"a subdivision of {country}: {known}")
    return country, subdivision


def _extra_dates(where: str, raw: Any) -> Iterator[tuple[date, str]]:
    for at, entry in _entries(f"{where}.extra_dates", raw, {"date", "name"}):
        yield _field(at, entry, "date", values.day), _field(at, entry, "name", values.text())


def _freezes(where: str, raw: Any) -> Iterator[Freeze]:
    for at, entry in _entries(f"{where}.freezes", raw, {"from", "to", "reason"}):
        start, end = _field(at, entry, "from", values.day), _field(at, entry, "to", values.day)
        if end < start:
            raise SettingsError(f"{at}.to", entry["to"], f"not before from ({entry['from']})")
        yield Freeze(start, end, _field(at, entry, "reason", values.text()))


def _entries(where: str, raw: Any, fields: set[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(raw, (list, tuple)):
        raise SettingsError(where, raw, "a list")
    for index, entry in enumerate(raw):
        if not isinstance(entry, Mapping) or set(entry) != fields:
            raise SettingsError(f"{where}[{index}]", entry, "an object with " + ", ".join(sorted(fields)))
        yield f"{where}[{index}]", entry
