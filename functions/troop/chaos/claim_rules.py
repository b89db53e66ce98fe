"""Defines how long a claim holds, and how a stale one is reconciled. Pure; see
:mod:`troop.chaos.aws.claim_transaction`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from troop.chaos.change_calendars import ChangePeriod
from troop.chaos.events import USUAL_CAUSES, AbandonReason, Event, Status
from troop.chaos.facts import Switch
from troop.shared.calendars import Calendar

LONGEST_CLAIM = timedelta(minutes=10)

LAST_CALL = timedelta(seconds=30)
"""The time before the deadline in which no request to terminate starts: it must end, including retries, by then."""

GRACE = timedelta(seconds=60)
"""The time from a claim's deadline until the claim is reconciled: clocks differ."""


def latest(now: datetime, calendar: Calendar, change: ChangePeriod | None, takes: timedelta) -> datetime:
    """Returns the moment by which a scheduled claim must be carried out, in UTC: the end of the window and of the SSM
    Change Calendar's period, less the time that the fault takes.
    """
    _, closes = calendar.window(calendar.at(now).day)
    ends = min(closes, change.end) if change and change.end else closes
    return ends - takes


def deadline(
    now: datetime, calendar: Calendar | None, change: ChangePeriod | None = None, takes: timedelta = timedelta()
) -> datetime:
    """Returns the end of a claim made now, in UTC: at most ten minutes away and, for a scheduled one, see
    :func:`latest`.

    Args:
        calendar: the unit's; None on demand, where no window applies.
        takes: the time that a lasting fault takes inside the window, see :meth:`troop.shared.choice.Choice.takes`.
    """
    longest = now.astimezone(UTC) + LONGEST_CLAIM
    return min(longest, latest(now, calendar, change, takes)) if calendar else longest


def may_carry_out(event: Event, now: datetime) -> bool:
    """Checks whether there is time left to terminate the claimed instance. False by a clock that shows a moment well
    before the claim: this clock is wrong.
    """
    in_time = event.deadline is not None and event.at - GRACE <= now < event.deadline - LAST_CALL
    return event.status is Status.CLAIMED and in_time


def is_stale(event: Event, now: datetime) -> bool:
    """Checks whether a claim is past its deadline, so that nothing carries it out any more."""
    return event.status is Status.CLAIMED and event.deadline is not None and now > event.deadline + GRACE


def reconciled(event: Event, instance_gone: bool) -> tuple[Status, str]:
    """Returns the outcome of a stale claim, and a sentence about it.

    Args:
        event: the claim.
        instance_gone: whether the instance is terminated, shutting down or no longer known.
    """
    if event.injection:  # the attempt would have made it RUNNING
        return Status.ABANDONED, "the deadline passed before the fault was injected"
    if not instance_gone:
        addition = ", though AWS was asked to terminate it" if event.attempted_at else ""
        return Status.ABANDONED, f"the deadline passed and the instance lives{addition}"
    if event.attempted_at is None:
        return Status.GONE_ELSEWHERE, "the instance was terminated by somebody else"
    return Status.TERMINATED, "found terminated after the deadline"


def switched_off(switch: Switch) -> str:
    """Returns why a claim is abandoned if the switch was changed before the termination."""
    if switch.itself:
        return switch.itself.in_brief
    return f"chaos was {'halted' if switch.halted else 'leashed'}"


def abandon_reason(event: Event) -> AbandonReason | None:
    """Returns why an event terminated nothing; None if it did, or is open."""
    usual = USUAL_CAUSES.get(event.status)
    return usual and (event.cause or usual)
