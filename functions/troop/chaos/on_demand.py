"""Terminations on demand: which guards they obey, and what they are known by. Pure.

Whoever asks takes the place of roll and calendar. What protects a group, its owner's word and the deployment's limits
hold for him, too.
"""

from __future__ import annotations

import hashlib

from troop.chaos.events import OPEN, Event
from troop.chaos.guards import SCHEDULED, Refusal, already_today, calendar_closed, not_rolled, not_yet, too_soon

IGNORED = frozenset({calendar_closed, too_soon, not_rolled, not_yet, already_today})
"""Guards about when, and how often: window, holidays and freezes, the roll, the distance from the last time."""

ON_DEMAND = tuple(guard for guard in SCHEDULED if guard not in IGNORED)
"""The guards of a termination on demand, in the order of the one list."""


def execution_name(event_id: str) -> str:
    """The name of the one execution that carries out the event: of characters and length that Step Functions takes."""
    return "od-" + hashlib.sha256(event_id.encode()).hexdigest()[:48]


def beside(last: Event | None) -> Refusal | None:
    """Refuses while the unit's last termination is in flight: its group may not show yet that it lacks an instance."""
    if last is None or last.status not in OPEN:
        return None
    return Refusal("in-flight", f"its termination {last.event_id} is {last.status}: wait until it is over")
