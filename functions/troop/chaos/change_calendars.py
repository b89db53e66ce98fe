"""Defines what is known of SSM Change Calendars, which can close the windows of Troop's calendars. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from troop.shared import moments
from troop.shared.calendars import Calendar

_ALWAYS = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ChangePeriod:
    """A period in which a Change Calendar keeps its state.

    Attributes:
        document: the name or ARN of the Change Calendar, as in the settings.
        start: the moment for which the state was read.
        end: when the state changes; None if no change is known.
        unread: why the state could not be read; then ``is_open`` is what is assumed. A tick assumes closed.
    """

    document: str
    start: datetime
    end: datetime | None
    is_open: bool
    unread: str = ""

    def covers(self, moment: datetime) -> bool:
        return self.start <= moment and (self.end is None or moment < self.end)

    def in_words(self) -> str:
        """Returns the state and how long it lasts, in words that follow the calendar's name."""
        if self.unread:
            return f"cannot be read: {self.unread}"
        until = f" until {moments.second(self.end)}" if self.end else ""
        return ("is open" if self.is_open else "is closed") + until


Changes = Mapping[str, tuple[ChangePeriod, ...]]
"""Known periods by the name of Troop's calendar, of calendars that name a Change Calendar."""


def period_at(periods: Iterable[ChangePeriod], moment: datetime) -> ChangePeriod | None:
    """Returns the period that covers a moment; None if the state is not known."""
    return next((period for period in periods if period.covers(moment)), None)


def documents(calendars: Iterable[Calendar]) -> tuple[str, ...]:
    """Lists the Change Calendars that calendars name, each once."""
    return tuple(dict.fromkeys(c.change_calendar for c in calendars if c.change_calendar))


def assumptions(changes: Changes) -> tuple[str, ...]:
    """Says what a forecast assumes of each Change Calendar that could not be read."""
    unread = (period for periods in changes.values() for period in periods if period.unread)
    return tuple(
        dict.fromkeys(
            f"SSM Change Calendar {period.document} stays {'open' if period.is_open else 'closed'}, because it cannot "
            f"be read: {period.unread}"
            for period in unread
        )
    )


def assumed_open(calendars: Mapping[str, Calendar]) -> Changes:
    """Returns the periods of a forecast that reads no Change Calendar."""
    named = {name: calendar.change_calendar for name, calendar in calendars.items()}
    return {name: (ChangePeriod(one, _ALWAYS, None, is_open=True),) for name, one in named.items() if one}
