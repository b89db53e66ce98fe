"""Defines terminations on demand: the guards that apply, and their ids. Pure.

The request replaces roll and calendar. Protection, the owner's policy and the deployment's limits still apply. The
request of a benchmark that loads the unit replaces only the roll, and needs the owner's agreement.
"""

from __future__ import annotations

import hashlib

from troop.chaos.events import OPEN, Event
from troop.chaos.facts import Facts
from troop.chaos.guards import (
    SCHEDULED,
    Guard,
    Refusal,
    already_today,
    calendar_closed,
    change_calendar_closed,
    not_rolled,
    not_yet,
    too_late,
    too_soon,
)

IGNORED = frozenset({calendar_closed, change_calendar_closed, too_soon, not_rolled, not_yet, already_today, too_late})
"""Guards about time and frequency: window, holidays, freezes and SSM Change Calendars, the roll, the distance from the
last termination.
"""

ON_DEMAND = tuple(guard for guard in SCHEDULED if guard not in IGNORED)
"""The guards of a termination on demand, in the same order."""

NOT_UNDER_LOAD = "not-under-load"
"""The reason of :func:`not_under_load`, beside those of :data:`troop.chaos.guards.REASONS`: ticks do not know it."""


def not_under_load(facts: Facts) -> Refusal | None:
    """Refuses units that benchmarks may not hit."""
    if not facts.settings.under_load:
        return Refusal(NOT_UNDER_LOAD, "the setting troop:under_load is false")
    agreed = facts.policy.under_load
    if agreed.value:
        return None
    return Refusal(NOT_UNDER_LOAD, f"its policy does not agree: under_load is false ({agreed.source})")


_IN_TIME = frozenset({calendar_closed, change_calendar_closed, too_late})

UNDER_LOAD: tuple[Guard, ...] = (
    *(guard for guard in SCHEDULED if guard in _IN_TIME or guard not in IGNORED),
    not_under_load,
)
"""The guards of a hit that a benchmark requests: those on demand, the unit's window, holidays and freezes, and its
owner's agreement.
"""


def guards_of(event: Event) -> tuple[Guard, ...]:
    """Returns the guards that an event on demand had to pass, except those about time: its deadline has the window."""
    return (*ON_DEMAND, not_under_load) if event.benchmark else ON_DEMAND


def execution_name(event_id: str) -> str:
    """Returns the name of the event's only execution, in the characters and length that Step Functions accepts."""
    return "od-" + hashlib.sha256(event_id.encode()).hexdigest()[:48]


def refuse_if_in_flight(last: Event | None) -> Refusal | None:
    """Refuses while the unit's last termination is in flight, as its group may not show the missing instance yet; and
    until its verdict, which another loss would decide.
    """
    if last and last.status in OPEN:
        return Refusal("in-flight", f"its termination {last.event_id} is {last.status}: wait until it is over")
    if last and last.awaits_verdict:
        return Refusal("in-flight", f"its termination {last.event_id} awaits its verdict: wait until it is given")
    return None
