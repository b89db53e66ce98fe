"""Computes when a unit can next be terminated, by the public rules only: the roll and its minute stay secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from troop.calendars import Calendar
from troop.chaos.facts import UnitState
from troop.chaos.groups import Group
from troop.chaos.participation import protection
from troop.chaos.policy import Policy, effective_policy
from troop.settings import Settings

HORIZON = timedelta(days=6 * 366)
"""The longest time that is searched; it contains 250 business days of a calendar with one day a week."""

_DAY = timedelta(days=1)
_NOBODY = (Group("", 0),)


def policy_at(
    groups: Sequence[Group], item: Mapping[str, Any], settings: Settings, now: datetime, near: Sequence[str] = ()
) -> Policy:
    """Returns the policy of a unit at a moment; without groups, that of its item and the settings.

    Args:
        near: see :func:`troop.chaos.policy.effective_policy`.
    """
    return effective_policy(groups or _NOBODY, item, settings, lambda c: settings.calendars[c].at(now).day, near)


def next_possible(
    groups: Sequence[Group],
    item: Mapping[str, Any],
    settings: Settings,
    state: UnitState,
    now: datetime,
    near: Sequence[str] = (),
) -> datetime | None:
    """Returns the earliest moment, from ``now`` on, at which calendar and policy allow a termination of the unit.

    Considers the calendar's window, holidays and freezes, the last day of an opt-out, and the distance from the last
    termination. Returns None if someone must act first (all groups are protected, the policy is malformed, an opt-out
    has no end, the unit has not recovered, the probability is 0), or if there is no such day within :data:`HORIZON`.
    Ignores the roll, the group's health, the switch and SSM Change Calendars.

    Args:
        groups: the unit's; may be empty.
        item: the unit's item in the table ``GroupTags``, as stored; empty if there is none.
        near: see :func:`troop.chaos.policy.effective_policy`.
    """
    policy = policy_at(groups, item, settings, now, near)
    if protection(groups) or policy.problems or state.unrecovered is not None or policy.probability.value == 0:
        return None
    calendar = settings.calendars[policy.calendar.value]
    today = calendar.at(now).day
    last = today + HORIZON
    day = max(today, _after_the_last(calendar, state.last_day, policy.min_days_between.value, last))
    if state.abandoned:
        day = max(day, _after_the_last(calendar, state.abandoned.day, 0, last))
    while not policy.takes_part.value:
        until = policy.until.value
        if until is None or until >= last:
            return None
        day = max(day, until + _DAY)
        policy = _policy_on(day, groups, item, settings)  # a lower layer can have an opt-out too
    while day <= last:
        opens, closes = calendar.window(day)
        moment = max(opens, now)
        if moment < closes and calendar.at(moment).closure is None:
            return moment
        day += _DAY
    return None


def _policy_on(day: date, groups: Sequence[Group], item: Mapping[str, Any], settings: Settings) -> Policy:
    return effective_policy(groups or _NOBODY, item, settings, lambda _: day)


def _after_the_last(calendar: Calendar, earlier: date | None, needed: int, last: date) -> date:
    """Returns the first day, no later than the one after ``last``, that is far enough from ``earlier``."""
    if earlier is None or earlier < last - 2 * HORIZON:
        return date.min
    day = earlier
    if not needed:
        return day + _DAY if day <= last else last + _DAY
    while needed and day <= last:
        day += _DAY
        needed -= calendar.is_business_day(day)
    return day
