"""SSM Change Calendars of local AWS: their state, what is refused, and whom IAM lets read it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError

from local.account import change_calendars
from troop.chaos.aws.change_calendars import read_period

from .helpers import World, allow, code, unique

NOON, EVENING = (datetime(2026, 12, 1, hour, tzinfo=UTC) for hour in (12, 18))
CLOSED = "\r\n".join(
    [
        *("BEGIN:VCALENDAR", "PRODID:-//AWS//Change Calendar 1.0//EN", "VERSION:2.0", "X-CALENDAR-TYPE:DEFAULT_OPEN"),
        *("BEGIN:VEVENT", "DTSTART:20261201T120000Z", "DTEND:20261201T180000Z", "SUMMARY:release", "END:VEVENT"),
        "END:VCALENDAR",
    ]
)


def test_a_calendar_has_a_state_for_those_who_may_read_it(world: World) -> None:
    name = unique("calendar")
    world.account.client("ssm").create_document(
        Name=name, Content=CLOSED, DocumentType="ChangeCalendar", DocumentFormat="TEXT"
    )
    arn = f"arn:aws:ssm:us-east-1:000000000000:document/{name}"
    ssm = world.account.client("ssm", world.as_role(world.role(allow("ssm:GetCalendarState", arn))))
    for named in (name, arn):
        before, within = (read_period(ssm, named, at) for at in (NOON - timedelta(hours=1), NOON))
        assert (before.is_open, before.end) == (True, NOON)
        assert (within.is_open, within.end) == (False, EVENING)
    with pytest.raises(ClientError) as refused:
        ssm.get_calendar_state(CalendarNames=[unique("calendar")])
    assert code(refused) == "AccessDeniedException"


def test_one_that_does_not_exist_is_refused(world: World) -> None:
    with pytest.raises(ClientError) as refused:
        world.account.client("ssm").get_calendar_state(CalendarNames=[unique("calendar")])
    assert code(refused) == "InvalidDocument"


def test_the_state_of_a_document_is_that_of_its_events() -> None:
    for kind, inside in (("DEFAULT_OPEN", False), ("DEFAULT_CLOSED", True)):
        document = CLOSED.replace("DEFAULT_OPEN", kind)
        assert change_calendars.state(document, NOON - timedelta(hours=1)) == (not inside, NOON)
        assert change_calendars.state(document, NOON) == (inside, EVENING)
        assert change_calendars.state(document, EVENING) == (not inside, None)
    with pytest.raises(change_calendars.CalendarError):
        change_calendars.state("BEGIN:VCALENDAR\nEND:VCALENDAR", NOON)
