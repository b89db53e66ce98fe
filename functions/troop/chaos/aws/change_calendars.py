"""Reads the states of SSM Change Calendars."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.change_calendars import ChangePeriod
from troop.shared import moments

PERIODS_READ = 40
"""The most periods of a Change Calendar that a forecast reads. It takes what follows for open."""

_DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
_UNREADABLE = frozenset({"InvalidDocument", "InvalidDocumentType", "UnsupportedCalendarException"})


def read_period(ssm: Any, document: str, moment: datetime) -> ChangePeriod:
    """Returns the period of a moment; 1 call. A calendar that cannot be read is no reason to fail for all others: its
    period says why.
    """
    try:
        return _period(ssm, document, moment)
    except (BotoCoreError, ClientError) as error:
        return ChangePeriod(document, moment, None, is_open=False, unread=f"{type(error).__name__}: {error}")


def read_periods(ssm: Any, document: str, first: datetime, last: datetime) -> tuple[ChangePeriod, ...]:
    """Returns the periods from ``first`` to ``last``, in order; 1 call for each.

    A calendar that only this caller may not read is taken for open, and one that nobody can read for closed, as by a
    tick; its period says so. Any other error is raised.
    """
    try:
        return _periods(ssm, document, first, last)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in _DENIED:
            return (ChangePeriod(document, first, None, True, "your policies must allow ssm:GetCalendarState"),)
        if code in _UNREADABLE:
            return (ChangePeriod(document, first, None, False, str(error)),)
        raise


def _periods(ssm: Any, document: str, first: datetime, last: datetime) -> tuple[ChangePeriod, ...]:
    periods = [_period(ssm, document, first)]
    while (end := periods[-1].end) and end <= last and len(periods) < PERIODS_READ:
        periods.append(_period(ssm, document, end))
    if end and end <= last:
        periods.append(ChangePeriod(document, end, None, is_open=True))
    return tuple(periods)


def _period(ssm: Any, document: str, moment: datetime) -> ChangePeriod:
    answer = ssm.get_calendar_state(CalendarNames=[document], AtTime=moments.second(moment))
    end = _parsed(answer.get("NextTransitionTime"))
    if end is not None and end <= moment:
        end = None
    return ChangePeriod(document, moment, end, is_open=answer.get("State") == "OPEN")


def _parsed(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:  # then only the end is unknown
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
