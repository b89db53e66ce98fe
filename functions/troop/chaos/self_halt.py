"""Defines the halt that the deployment gives itself when too many units are broken. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate

from troop.shared import moments
from troop.shared.formatting import counted

WINDOW = timedelta(hours=1)
"""The time in which broken units count together."""

LARGEST_COUNT = 300_000
"""The most bytes of the names in the events that are kept, the newest ones: an item has at most 400 KB."""

LONGEST_WHY, LONGEST_BRIEF = 2000, 200

_OVERHEAD = 40
"""Bytes of attribute names and types, and of the moment, for each name of an event; rather too many."""


@dataclass(frozen=True, slots=True)
class SelfHalt:
    """The deployment has halted itself. Only the API removes this.

    Attributes:
        at: when.
        why: a sentence with the broken units and their alarms.
        events: the ids of the events that led to it.
    """

    at: datetime
    why: str
    events: tuple[str, ...] = ()

    @property
    def in_brief(self) -> str:
        """A short sentence: a tick stores it with the decision about each unit."""
        why = self.why if len(self.why) <= LONGEST_BRIEF else f"{self.why[:LONGEST_BRIEF]} ..."
        return f"the deployment halted itself at {moments.second(self.at)}: {why}"


@dataclass(frozen=True, slots=True)
class BrokenEvent:
    """An event whose hypothesis was broken.

    Attributes:
        at: when the verdict was given.
        alarms: the names of the alarms that went off; empty for a failed or slow recovery alone.
    """

    event_id: str
    unit: str
    at: datetime
    alarms: tuple[str, ...] = ()


def recent(broken: Sequence[BrokenEvent], new: BrokenEvent) -> tuple[BrokenEvent, ...]:
    """Adds an event to those of the last hour, and drops older ones. Their order is that of the verdicts."""
    earlier = [one for one in broken if one.event_id != new.event_id and new.at - one.at <= WINDOW]
    newest_first = [new, *reversed(earlier)]
    sizes = accumulate(map(_size, newest_first))
    return tuple(reversed([one for one, size in zip(newest_first, sizes, strict=True) if size <= LARGEST_COUNT]))


def _size(event: BrokenEvent) -> int:
    names = (event.event_id, event.unit, *event.alarms)
    return sum(len(name.encode()) + _OVERHEAD for name in names)


def causes(broken: Sequence[BrokenEvent]) -> list[tuple[BrokenEvent, ...]]:
    """Groups events by their cause: events of one unit, or with a common alarm, have one, also through others."""
    groups: list[tuple[set[str], list[BrokenEvent]]] = []
    for event in broken:
        signs = {f"unit {event.unit}", *(f"alarm {name}" for name in event.alarms)}
        joined = [group for group in groups if group[0] & signs]
        groups = [group for group in groups if not group[0] & signs]
        groups.append((signs.union(*(s for s, _ in joined)), [e for _, events in joined for e in events] + [event]))
    return [tuple(events) for _, events in groups]


def self_halt(broken: Sequence[BrokenEvent], halt_after: int, at: datetime) -> SelfHalt | None:
    """Returns the halt if the events of an hour have at least ``halt_after`` causes; 0 for never."""
    groups = causes(broken)
    if not halt_after or len(groups) < halt_after:
        return None
    shown = "; ".join(_in_words(events) for events in groups[:10])
    more = f"; and {len(groups) - 10} more" if len(groups) > 10 else ""
    why = f"{counted(len(groups), 'cause')} broke units within an hour: {shown}{more}"
    return SelfHalt(at, why[:LONGEST_WHY], tuple(event.event_id for event in broken))


def _in_words(events: Sequence[BrokenEvent]) -> str:
    """Names the units of one cause and their alarms: at most three of each."""
    units = list(dict.fromkeys(event.unit for event in events))
    alarms = list(dict.fromkeys(name for event in events for name in event.alarms))
    return f"{_few(units)} ({'alarm ' + _few(alarms) if alarms else 'recovery'})"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
