"""Claims: how long one holds, and what becomes of one that was left behind. Pure; the transaction is an adapter's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import Enum, auto

from troop.calendars import Calendar
from troop.chaos.events import CAME_TO_NOTHING, Event, Status
from troop.chaos.facts import Switch

LONGEST_CLAIM = timedelta(minutes=10)

LAST_CALL = timedelta(seconds=30)
"""No call to terminate starts this close to the deadline: it must have ended, retries and all, when the claim does."""

GRACE = timedelta(seconds=60)
"""How long after its deadline a claim is left alone before it is reconciled: clocks differ."""


_SWITCHED = "chaos was {} first"


class Nothing(Enum):
    """What a claim has come to nothing of: chaos was put to sleep; its instance is gone; anything else."""

    ASLEEP = auto()
    GONE = auto()
    REFUSED = auto()


def deadline(now: datetime, calendar: Calendar | None) -> datetime:
    """The end of a claim made now, in UTC: at most ten minutes away, and inside the window of a scheduled one.

    Args:
        calendar: the unit's; None on demand, where no window holds.
    """
    longest = now.astimezone(UTC) + LONGEST_CLAIM
    if calendar is None:
        return longest
    _, closes = calendar.window(calendar.at(now).day)
    return min(longest, closes)


def may_carry_out(event: Event, now: datetime) -> bool:
    """Whether there is time left to terminate the claimed instance. By a clock that shows a moment well before the
    claim was made, there is not: it is wrong.
    """
    in_time = event.deadline is not None and event.at - GRACE <= now < event.deadline - LAST_CALL
    return event.status is Status.CLAIMED and in_time


def is_stale(event: Event, now: datetime) -> bool:
    """Whether a claim is past its deadline, so that nobody carries it out any more."""
    return event.status is Status.CLAIMED and event.deadline is not None and now > event.deadline + GRACE


def reconciled(event: Event, instance_gone: bool) -> tuple[Status, str]:
    """What a stale claim turned out to be, and a sentence that says so.

    Args:
        event: the claim.
        instance_gone: whether the instance is terminated, shutting down or no longer known.
    """
    if not instance_gone:
        addition = ", though AWS was asked to terminate it" if event.attempted_at else ""
        return Status.ABANDONED, f"the deadline passed and the instance lives{addition}"
    if event.attempted_at is None:
        return Status.GONE_ELSEWHERE, "the instance was terminated by somebody else"
    return Status.TERMINATED, "found terminated after the deadline"


def switched_off(switch: Switch) -> str:
    """Why a claim is given up that the switch was faster than."""
    return _SWITCHED.format("halted" if switch.halted else "leashed")


def came_to_nothing(event: Event) -> Nothing | None:
    """Of what an event has come to nothing; None when it has not."""
    if event.status not in CAME_TO_NOTHING:
        return None
    if event.detail in (_SWITCHED.format("halted"), _SWITCHED.format("leashed")):
        return Nothing.ASLEEP
    return Nothing.GONE if event.status is Status.GONE_ELSEWHERE else Nothing.REFUSED
