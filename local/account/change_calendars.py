"""Evaluates SSM Change Calendars: documents in the iCalendar format, and their state at a moment.

As AWS documents it: the type DEFAULT_OPEN is closed during events, and DEFAULT_CLOSED is open during them (Systems
Manager User Guide, "AWS Systems Manager Change Calendar"); an example of a document is in the CloudFormation reference
of AWS::SSM::Document. Not emulated: repeated events; such a document is refused as unsupported.
"""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

_DAY = dt.timedelta(days=1)


class CalendarError(Exception):
    """A document without a state. ``code``: the API's error."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


def state(content: str, moment: dt.datetime) -> tuple[bool, dt.datetime | None]:
    """Returns whether a calendar is open at a moment, and when that changes; None if it does not.

    Raises:
        CalendarError: the document has no type, or repeated events.
    """
    lines = content.replace("\r\n", "\n").split("\n")
    kinds = {line.partition(":")[2] for line in lines if line.startswith("X-CALENDAR-TYPE:")}
    if not kinds & {"DEFAULT_OPEN", "DEFAULT_CLOSED"} or any(line.startswith("RRULE") for line in lines):
        raise CalendarError("UnsupportedCalendarException", "The calendar entry is not supported.")
    events = _events(lines)
    edges = sorted({edge for event in events for edge in event if edge > moment})

    def is_open(at: dt.datetime) -> bool:
        return any(start <= at < end for start, end in events) is not ("DEFAULT_OPEN" in kinds)

    now = is_open(moment)
    return now, next((edge for edge in edges if is_open(edge) is not now), None)


def _events(lines: list[str]) -> list[tuple[dt.datetime, dt.datetime]]:
    events, values = [], dict[str, dt.datetime]()
    for line in lines:
        if line == "BEGIN:VEVENT":
            values = {}
        elif line.startswith(("DTSTART", "DTEND")):
            name, _, value = line.partition(":")
            values[name.partition(";")[0]] = _moment(name, value)
        elif line == "END:VEVENT":
            events.append((values["DTSTART"], values.get("DTEND", values["DTSTART"] + _DAY)))
    return events


def _moment(name: str, value: str) -> dt.datetime:
    if "VALUE=DATE" in name:
        return dt.datetime.strptime(value, "%Y%m%d").replace(tzinfo=dt.UTC)
    if value.endswith("Z"):
        return dt.datetime.strptime(value, "%Y%m%dT%H%M%SZ").replace(tzinfo=dt.UTC)
    zone = ZoneInfo(name.partition("TZID=")[2].partition(";")[0] or "UTC")
    return dt.datetime.strptime(value, "%Y%m%dT%H%M%S").replace(tzinfo=zone)
