"""Defines scheduled runs of benchmarks: their names, their expressions, and the state of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from troop.shared import zones
from troop.shared.values import BadValue

MOST_SCHEDULES = 100
"""The most schedules of one deployment."""

NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,47}")
_RATE = re.compile(r"rate\(([1-9][0-9]{0,4}) (minute|hour|day)s?\)")
_AT = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")
_CRON = re.compile(r"cron\(([^()]*)\)")
_NUMBERS = (r"\*|\?", r"\d+(-\d+)?(/\d+)?", r"\*?/\d+")
_MONTHS = "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"
_DAYS = "SUN|MON|TUE|WED|THU|FRI|SAT"
_FIELDS = (
    ("minutes", 0, 59, ()),
    ("hours", 0, 23, ()),
    ("day of the month", 1, 31, (r"L|LW|\d+W",)),
    ("month", 1, 12, (rf"({_MONTHS})(-({_MONTHS}))?",)),
    ("day of the week", 1, 7, (rf"({_DAYS})(-({_DAYS}))?", r"L|[1-7]L|[1-7]#[1-5]", rf"({_DAYS})(L|#[1-5])")),
    ("year", 1970, 2199, ()),
)
_DAY_OF_MONTH, _DAY_OF_WEEK = 2, 4
_FORMS = "rate(6 hours), cron(0 3 ? * MON-FRI *) or at(2027-01-31T03:00:00)"


@dataclass(frozen=True)
class Schedule:
    """A schedule that starts runs of one benchmark.

    Attributes:
        digest: a hash of the expression and of the request to run; the start names it, so that a call for an earlier
            schedule of this name starts nothing.
        expected, most: the estimated cost of one run when the schedule was created.
        created_by: ARN of the caller.
        last_at: the time of the last start, as scheduled.
        last_run: the run of the last start; None if it was refused.
        last_refusal: why the last start was refused; None if it was not.
    """

    name: str
    expression: str
    time_zone: str
    digest: str
    benchmark: str
    size: str | None
    expected: Decimal
    most: Decimal
    currency: str
    created_at: datetime
    created_by: str
    last_at: datetime | None = None
    last_run: str | None = None
    last_refusal: str | None = None


def check_name(name: str) -> None:
    """Raises BadValue for a name that a schedule cannot have."""
    if not NAME.fullmatch(name):
        raise BadValue("a letter, then letters, digits and hyphens, at most 48 in all")


def check_expression(expression: str, time_zone: str, now: datetime) -> None:
    """Raises BadValue for an expression that EventBridge Scheduler refuses, or that is over.

    Args:
        time_zone: of :func:`check_zone`.
        now: aware.
    """
    if _RATE.fullmatch(expression):
        return
    if at := _AT.fullmatch(expression):
        zone = zones.zone(time_zone)
        try:
            moment = datetime.fromisoformat(at[1]).replace(tzinfo=zone)
        except ValueError:
            raise BadValue(f"a date and time that exist, such as in {_FORMS}") from None
        if moment.astimezone(UTC) <= now:
            raise BadValue(f"in the future: in {time_zone} it is {now.astimezone(zone):%Y-%m-%dT%H:%M}")
        return
    if cron := _CRON.fullmatch(expression):
        _check_cron(cron[1].split(" "))
        return
    raise BadValue(f"such as {_FORMS}")


def _check_cron(fields: list[str]) -> None:
    if len(fields) != len(_FIELDS):
        raise BadValue(f"cron with 6 fields, not {len(fields)}: {', '.join(name for name, *_ in _FIELDS)}")
    for n, (field, (name, low, high, words)) in enumerate(zip(fields, _FIELDS, strict=True)):
        for part in field.split(","):
            numbers = [int(number) for number in re.findall(r"\d+", part.split("/")[0])]
            if any(re.fullmatch(word, part, re.IGNORECASE) for word in words):
                numbers = [number for number in numbers if n == _DAY_OF_MONTH]
            elif not any(re.fullmatch(pattern, part) for pattern in _NUMBERS):
                raise BadValue(f"cron with a valid field for the {name}, not {field!r}")
            if not all(low <= number <= high for number in numbers):
                raise BadValue(f"cron with {low} to {high} for the {name}, not {field!r}")
        if "?" in field and (n not in (_DAY_OF_MONTH, _DAY_OF_WEEK) or field != "?"):
            raise BadValue(f"cron with a valid field for the {name}, not {field!r}")
    if [fields[_DAY_OF_MONTH], fields[_DAY_OF_WEEK]].count("?") != 1:
        raise BadValue("cron with ? for either the day of the month or the day of the week, not both")


def check_zone(name: str) -> None:
    """Raises BadValue for a name that is not a time zone."""
    try:
        zones.zone(name)
    except zones.UnknownZoneError:
        raise BadValue("a time zone of the IANA database, such as Europe/Berlin or UTC") from None
