"""Describes in words what keeps a unit from taking part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.shared import show
from cli.shared.errors import CliError, Exit
from troop.chaos.events import in_words

AHEAD_HINT = "`troop groups` lists all units; --ahead sets the policy of one that does not exist yet"


def outlook(unit: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the state of a unit, as GET /groups/{unit} and GET /groups give it.

    Raises:
        CliError: the deployment has an earlier version, which gives none.
    """
    if "outlook" not in unit:
        older = "this deployment is older than the command, and does not give the state of units: deploy it again"
        raise CliError(Exit.API_FAILED, older)
    unit_outlook: Mapping[str, Any] = unit["outlook"]
    return unit_outlook


def lapse(unit: Mapping[str, Any]) -> str:
    """Returns the termination from which a unit has not recovered, in words."""
    event_id = str(unit["unrecovered"])
    for event in unit["events"]:
        if event["event_id"] == event_id and event["instance_id"]:
            return f"the termination of {event['instance_id']} at {show.moment(event['at'])}"
    return in_words(event_id)


def missing_alarms(unit: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each stop alarm that does not exist."""
    missing = unit.get("missing_alarms") or ()
    return [f"The alarm {name} does not exist: until it does, {unit['unit']} is skipped." for name in missing]


def state(unit: Mapping[str, Any]) -> str:
    """Returns whether a unit takes part, and if not, why: ``yes`` or ``no (opted out)``.

    Args:
        unit: as GET /groups/{unit} returns it, or a group of it, as GET /groups does.
    """
    one = outlook(unit)
    return "yes" if one["takes_part"] else f"no ({one['state']})"


def possible(unit: Mapping[str, Any]) -> str:
    """Returns when a unit can next be hit, in words."""
    moment = outlook(unit)["next_possible"]
    return show.moment(moment) if moment else "not while this is so"
