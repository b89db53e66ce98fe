"""Describes in words what keeps a unit from taking part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.shared import show
from troop.chaos.events import in_words

AHEAD_HINT = "`troop groups` lists all units; --ahead sets the policy of one that does not exist yet"


def lapse(unit: Mapping[str, Any]) -> str:
    """Returns the termination from which a unit has not recovered, in words.

    GET /groups/{unit} gives the instance and the time; GET /groups gives the id of the event only.
    """
    event_id = str(unit["unrecovered"])
    for event in unit.get("events") or ():
        if event["event_id"] == event_id and event["instance_id"]:
            return f"the termination of {event['instance_id']} at {show.moment(event['at'])}"
    return in_words(event_id)


def missing_alarms(unit: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each stop alarm that does not exist."""
    missing = unit.get("missing_alarms") or ()
    return [f"The alarm {name} does not exist: until it does, {unit['unit']} is skipped." for name in missing]


def protection(unit: Mapping[str, Any]) -> str | None:
    """Returns what protects all groups of a unit, such as ``tag troop:protected``; None if one is not protected."""
    source = str(unit["policy"]["takes_part"]["source"]) if unit["policy"] else ""
    return source if source.startswith("tag troop:") else None
