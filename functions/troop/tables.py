"""The tables: by which keys their items are found, which indices are over them, and what expires.

The stack makes them of these descriptions, roles may query these indices, and whoever reads a table names them so.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Index:
    """A global secondary index. Its keys are text, as a table's are.

    Attributes:
        partition, sort: attributes; an item that lacks one is not in the index.
        view: the attributes that it holds besides keys; None for all of them.
    """

    name: str
    partition: str
    sort: str = "at"
    projected: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: what the stack calls it: its construct, and the tag by which a later deployment finds it.
        partition, sort: attributes, both text; ``sort`` is "" where the partition alone is the key.
        expires: the attribute with the seconds since 1970 after which DynamoDB removes an item; "" for never.
        streamed: whether others are told of what is written: see infra/notifications.py.
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
"""Those in flight."""

EVENTS = Table("Events", "event_id", indices=(EVENTS_BY_TIME, EVENTS_BY_UNIT, EVENTS_BY_OPEN), streamed=True)
"""Terminations. ``at`` is unique: a moment and the id."""

EVENT, EVENT_OPEN = "event", "open"
"""Values of ``kind``, which all events have, and of ``open``, which those in flight have."""

STATE = Table("State", "key", expires="expires_at", streamed=True)
"""The switch, counters and what is known of a unit; what passes has ``expires_at``. :mod:`troop.state_keys`
lists its keys.
"""

DECISIONS_BY_DAY = Index(
    "by-day",
    "day_shard",
    # All but the policy, which is half of an item: whoever asks for a day wants the reasons.
    projected=("calendar", "day", "detail", "group", "groups", "instance_id", "probability", "reason", "rolled"),
)
"""A part of a local day, newest first."""

DECISIONS = Table("Decisions", "unit", "tick", indices=(DECISIONS_BY_DAY,), expires="expires_at")
"""What each tick decided about each unit."""

CHANGES = Table("Changes", "subject", "at", streamed=True)
"""Who has changed which policy, or the switch."""

RUNS_BY_TIME = Index("by-time", "kind")
RUNS_BY_OPEN = Index("by-open", "open")
"""Runs of which something may still exist."""

RUNS = Table("Runs", "run", "item", indices=(RUNS_BY_TIME, RUNS_BY_OPEN))
"""Runs, their cells, and what they create; runs alone are in the indices."""

BENCHMARK, FLEET = "run", "fleet"
"""Values of a run's ``kind``, by which runs of benchmarks and standing fleets are listed apart."""

RUN_OPEN, RUN_LEFT = "1", "left"
"""Values of ``open``: of a run that has not ended, and of one that has ended and has left something behind."""

CHAOS_TABLES = (GROUP_TAGS, EVENTS, STATE, DECISIONS, CHANGES)
"""Those of every deployment; with benchmarks there is :data:`RUNS`, too."""
