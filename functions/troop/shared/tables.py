"""Defines the tables: the keys of their items, their indices, and the attributes by which items expire.

The stack creates the tables from these definitions, and all code that reads a table or an index uses these names.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Index:
    """A global secondary index. Its keys are text, as a table's are.

    Attributes:
        partition, sort: attributes; an item without one of them is not in the index.
        projected: its attributes other than keys; None for all of them.
        numbered: whether the partition is a number.
    """

    name: str
    partition: str
    sort: str = "at"
    projected: tuple[str, ...] | None = None
    numbered: bool = False


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: the name of its construct in the stack, and of the tag by which a later deployment finds it.
        partition, sort: attributes, both text; ``sort`` is "" if the partition alone is the key.
        expires: the attribute with the seconds since 1970 after which DynamoDB removes an item; "" for never.
        streamed: whether writes can cause notifications: see infra/notifications.py.
    """

    name: str
    partition: str
    sort: str = ""
    indices: tuple[Index, ...] = ()
    expires: str = ""
    streamed: bool = False


GROUP_TAGS = Table("GroupTags", "unit", streamed=True)
"""Policy of units, edited by people."""

EVENTS_BY_TIME = Index("by-time", "kind")
EVENTS_BY_UNIT = Index("by-unit", "unit")
EVENTS_BY_OPEN = Index("by-open", "open")
"""The index of the events in flight."""

EVENTS = Table("Events", "event_id", indices=(EVENTS_BY_TIME, EVENTS_BY_UNIT, EVENTS_BY_OPEN), streamed=True)
"""Terminations. ``at`` is unique: a moment and the id."""

EVENT, EVENT_OPEN, EVENT_SETTLES = "event", "open", "settles"
"""The values of ``kind``, which all events have, and of ``open``: of those in flight, and of those that have recovered
and await their verdict.
"""

STATE = Table("State", "key", expires="expires_at", streamed=True)
"""The switch, counters and the state of units; temporary items have ``expires_at``. :mod:`troop.shared.state_keys`
lists the keys.
"""

DECISIONS_BY_DAY = Index(
    "by-day",
    "day_shard",
    # Without the policy, which is half of an item: queries for a day need the reasons.
    projected=("calendar", "day", "detail", "group", "groups", "instance_id", "probability", "reason", "rolled"),
)
"""The index of a part of a local day, newest first."""

DECISIONS = Table("Decisions", "unit", "tick", indices=(DECISIONS_BY_DAY,), expires="expires_at")
"""The decisions of each tick about each unit; apart from them, the risks on record."""

RISKS = "\trisks"
"""The partition of :data:`DECISIONS` with the risks on record: no unit has a control character. Ticks read whole other
tables, so risks are in none of these.
"""

CHANGES_BY_TIME = Index("by-time", "schema", numbered=True)
"""The index of the changes of all subjects. All records have the same ``schema``, also those older than the index."""

CHANGES = Table("Changes", "subject", "at", indices=(CHANGES_BY_TIME,), streamed=True)
"""Changes of policies and of the switch, with their authors. ``at`` is unique: a moment and the id of the request."""

RUNS_BY_TIME = Index("by-time", "kind")
RUNS_BY_OPEN = Index("by-open", "open")
"""The index of runs that may still have resources."""

RUNS_BY_NAME = Index("by-name", "series")
"""The index of the lines of ended runs, by the name of the benchmark."""

RUNS = Table("Runs", "run", "item", indices=(RUNS_BY_TIME, RUNS_BY_OPEN, RUNS_BY_NAME))
"""Runs, their cells, what they create, and their lines; the other indices contain only runs."""

BENCHMARK, FLEET = "run", "fleet"
"""The values of a run's ``kind``, to list runs of benchmarks and standing fleets separately."""

RUN_OPEN, RUN_LEFT = "1", "left"
"""The values of ``open``: of a run that has not ended, and of one that has ended with leftovers."""

CHAOS_TABLES = (GROUP_TAGS, EVENTS, STATE, DECISIONS, CHANGES)
"""The tables of every deployment; with benchmarks also :data:`RUNS`."""
