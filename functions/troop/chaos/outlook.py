"""Computes the state of a unit for people: whether it takes part, why it is skipped, and when it can next be hit.

By the public rules only: the roll and its minute stay secret. Every surface shows this, and none has rules of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from troop.chaos.facts import Facts, UnitState
from troop.chaos.groups import Group
from troop.chaos.guards import (
    Guard,
    Refusal,
    already_today,
    calendar_closed,
    day_cap,
    halted,
    in_flight,
    in_words,
    left_chaos,
    malformed,
    not_allowed_inside,
    only_protected_instances,
    operated,
    opted_out,
    pass_guards,
    protected,
    suspended,
    too_small,
    too_soon,
    unhealthy,
)
from troop.chaos.participation import protection
from troop.chaos.policy import Policy, effective_policy
from troop.shared.calendars import Calendar
from troop.shared.records import record
from troop.shared.settings import Settings

HORIZON = timedelta(days=6 * 366)
"""The longest time that is searched; it contains 250 business days of a calendar with one day a week."""

_DAY = timedelta(days=1)

LASTING: tuple[Guard, ...] = (
    protected,
    malformed,
    opted_out,
    left_chaos,
    operated,
    not_allowed_inside,
    suspended,
    too_small,
    only_protected_instances,
)
"""The guards against which somebody must do something: a unit that they refuse takes no part."""

_PASSING: tuple[Guard, ...] = (
    halted,
    calendar_closed,
    unhealthy,
    too_soon,
    already_today,
    day_cap,
    in_flight,
)
"""The guards that pass by themselves, or hold for the whole deployment."""

NO_GROUPS = "no-groups"
"""The reason of a unit that has only an item, beside those of :data:`troop.chaos.guards.REASONS`."""

TAKING_PART = "taking part"

_UNKNOWN_END = frozenset({"halted", "leashed", "unhealthy", "day-cap", "in-flight"})
"""Reasons whose end depends on people, or on what happens until then."""


@record
class Outlook:
    """The state of a unit at one moment.

    Attributes:
        takes_part: whether only reasons that pass by themselves can prevent a termination.
        reason: what prevents one now, see :data:`troop.chaos.guards.REASONS` and :data:`NO_GROUPS`; None if nothing
            but the roll does.
        detail: a sentence with the numbers; "" without a reason.
        next_possible: see :func:`next_possible`; None also while the reason has no known end.
    """

    takes_part: bool
    reason: str | None
    detail: str
    next_possible: datetime | None

    @property
    def state(self) -> str:
        """The state in one or two words, of a bounded set: :data:`TAKING_PART`, or why it does not."""
        return TAKING_PART if self.takes_part or self.reason is None else in_words(self.reason)

    @property
    def why(self) -> str:
        """What prevents a termination now, in words; "" for nothing."""
        return in_words(self.reason, self.detail) if self.reason else ""


def outlook(facts: Facts, item: Mapping[str, Any]) -> Outlook:
    """Returns the state of a unit.

    Lasting reasons come first, so that an opt-out is not hidden by a weekend.

    Args:
        facts: the unit's facts, with any salt; may have no groups, and needs no details that cost calls.
        item: the unit's item in the table ``GroupTags``, as stored; empty if there is none.
    """
    lasting = _refusal(facts, LASTING)
    if lasting is None and not facts.groups:
        lasting = Refusal(NO_GROUPS, "no Auto Scaling group belongs to it")
    refusal = lasting or _refusal(facts, (*LASTING, *_PASSING)) or _for_everybody(facts)
    stays = _refusal(facts, [guard for guard in LASTING if guard is not opted_out])
    ends = refusal is None or refusal.reason not in _UNKNOWN_END
    possible = None
    if facts.groups and stays is None and ends and not (facts.switch.halted or facts.switch.leashed):
        possible = next_possible(facts.policy, facts.groups, item, facts.settings, facts.state, facts.now)
    return Outlook(
        takes_part=lasting is None,
        reason=refusal.reason if refusal else None,
        detail=refusal.detail if refusal else "",
        next_possible=possible,
    )


def _refusal(facts: Facts, guards: Sequence[Guard]) -> Refusal | None:
    verdict = pass_guards(facts, guards)
    return verdict if isinstance(verdict, Refusal) else None


def _for_everybody(facts: Facts) -> Refusal | None:
    """Returns what still prevents a termination of a unit that all guards pass whose reasons are public."""
    if facts.switch.leashed:
        return Refusal("leashed", "the deployment is leashed: it decides and records, and hits nothing")
    if facts.policy.probability.value == 0:
        return Refusal("not-rolled", "its probability is 0")
    return None


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
    policy: Policy,
    groups: Sequence[Group],
    item: Mapping[str, Any],
    settings: Settings,
    state: UnitState,
    now: datetime,
) -> datetime | None:
    """Returns the earliest moment, from ``now`` on, at which calendar and policy allow a termination of the unit.

    Considers the calendar's window, holidays and freezes, the last day of an opt-out, and the distance from the last
    termination. Returns None if someone must act first (all groups are protected, the policy is malformed, an opt-out
    has no end, the unit has not recovered, the probability is 0), or if there is no such day within :data:`HORIZON`.
    Ignores the roll, the group's health, the switch and SSM Change Calendars.

    Args:
        policy: the unit's policy now.
        groups: the unit's; may be empty.
        item: the unit's item in the table ``GroupTags``, as stored; empty if there is none.
    """
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
    takes = min(choice.takes() for choice in policy.method.value)
    while day <= last:
        opens, closes = calendar.window(day)
        moment, closes = max(opens, now), closes - takes
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
