"""Describes in words what keeps a unit from taking part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cli.shared import show
from cli.shared.errors import CliError, Exit
from troop.chaos.events import in_words
from troop.shared.formatting import counted

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
    """Returns the hit because of which a unit has left chaos, in words."""
    event_id = str(unit["unrecovered"])
    for event in unit["events"]:
        if event["event_id"] == event_id and event["instance_id"]:
            hit = f"{event['method']} on" if event.get("injection") else "the termination of"
            return f"{hit} {event['instance_id']} at {show.moment(event['at'])}"
    return in_words(event_id)


def departure(unit: Mapping[str, Any]) -> str:
    """Returns why a unit has left chaos, to follow its name."""
    return f"{'was broken by' if unit.get('left_for') == 'broken' else 'did not recover from'} {lapse(unit)}"


def missing_alarms(unit: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each alarm of a policy that does not exist."""
    missing = unit.get("missing_alarms") or ()
    return [f"The alarm {name} does not exist: until it does, {unit['unit']} is skipped." for name in missing]


def faults_inside(unit: Mapping[str, Any]) -> str:
    """Returns for each group of a unit whether its owner consents to lasting faults, and how many of its instances may
    have one; "" where the deployment does not allow them.
    """
    return "; ".join(_inside(group["group"], group["inside"]) for group in unit["groups"] if group.get("inside"))


def _inside(name: str, inside: Mapping[str, Any]) -> str:
    if not inside["consent"]:
        return f"{name} {inside['why']}"
    consents = f"{name} consents ({inside['consent']}), "
    if inside["why"]:
        return f"{consents}but {inside['why']}"
    fit = "an unknown number of instances" if inside["fit"] is None else counted(inside["fit"], "instance")
    return f"{consents}with {fit} fit for one"


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


def differences(
    before: Mapping[str, Any] | None, after: Mapping[str, Any], changes: Mapping[str, Any]
) -> Iterator[str]:
    """Yields a line for each value of a unit's policy that a request has changed: ``probability: 1 (settings) -> 0.2
    (item)``.

    Args:
        before, after: the unit, as GET /groups/{unit} returns it; None for one that was unknown.
        changes: the request. A key that it has set to the value in force is mentioned, too.
    """
    old = before["policy"] if before else {}
    requested = {_SHOWN_AS.get(key, key) for key, stored in changes.items() if stored is not None}
    for key, now in after["policy"].items():
        text, earlier = _sourced(key, now), _sourced(key, old[key]) if key in old else None
        if earlier == text:
            if key in requested:
                yield f"{key}: {text}, as before"
        elif earlier:
            yield f"{key}: {earlier} -> {text}"
        elif key in requested:
            yield f"{key}: {text}"
    if before and before["unrecovered"] and not after["unrecovered"]:
        yield f"{before.get('left_for') or 'unrecovered'}: {lapse(before)} -> returned to chaos"


_SHOWN_AS = {"opt_in": "takes_part", "opt_out": "takes_part"}


def value(key: str, stored: Any) -> str:
    """Returns a value of a policy in words."""
    return ("yes" if stored else "no") if key == "takes_part" else show.plain(stored)


def _sourced(key: str, sourced: Mapping[str, Any]) -> str:
    text = value(key, sourced["value"])
    return "not set" if text == show.NOTHING else f"{text} ({sourced['source']})"
