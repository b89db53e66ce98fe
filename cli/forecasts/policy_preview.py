"""Computes what a change of a unit's policy would do: values, their sources, and the decisions of coming days. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from cli.forecasts.calendar_ahead import Basis
from cli.forecasts.unit_ahead import DAYS, outcomes
from troop.chaos.changes import to_store
from troop.chaos.facts import Switch, UnitState
from troop.chaos.outlook import next_possible, policy_at
from troop.chaos.policy import PARSERS
from troop.chaos.strays import find
from troop.chaos.units import by_unit
from troop.shared import moments, values
from troop.shared.settings import Settings


def checked(
    texts: Mapping[str, str | None], settings: Settings | None, now: datetime
) -> tuple[dict[str, Any], dict[str, str]]:
    """Parses the values of a form by the rules of the API; None or an empty text removes a key.

    Args:
        settings: the deployment's; None if unknown: then the API alone checks the name of the calendar.

    Returns:
        The changes, and a sentence for each wrong value, both by key.
    """
    changes: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for key, text in texts.items():
        try:
            changes[key] = _stored(key, text, settings)
        except values.BadValue as error:
            wrong[key] = f"is {str(text)[:80]!r}, must be {error}"
    until = changes.get("until")
    if settings and until and changes.get("opt_out", True):
        calendars = settings.calendars
        chosen = calendars.get(changes.get("calendar") or "")
        today = min(one.at(now).day for one in ([chosen] if chosen else calendars.values())).isoformat()
        if until < today:
            wrong["until"] = f"is {until!r}, must be {today} or later: an opt-out that has ended protects nothing"
    return changes, wrong


def _stored(key: str, text: str | None, settings: Settings | None) -> Any:
    if key not in PARSERS:
        raise values.BadValue(values.spelling(key, tuple(PARSERS)))
    if not text:
        return None
    stored = to_store(key, text)
    if key == "calendar" and settings and stored not in settings.calendars:
        raise values.BadValue("one of " + ", ".join(settings.calendars))
    return stored


def document(
    basis: Basis, unit: str, item: Mapping[str, Any], changes: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """Returns the policy before and after a change, and the decisions of the next days with each, as JSON.

    The forecast assumes that chaos is not halted.

    Args:
        item: the unit's item in the table ``GroupTags``; empty without one.
        changes: values to store by key, None to remove.
    """
    settings = basis.settings.chaos
    after = {key: value for key, value in {**item, **changes}.items() if value is not None}
    units = by_unit(basis.account.groups, settings.units)
    groups, near = units.get(unit, ()), find(basis.account.items, units).near.get(unit, ())
    state = basis.account.states.get(unit, UnitState())
    policies = [policy_at(groups, one, settings, now, near) for one in (item, after)]
    old, new = (policy.as_dict() for policy in policies)
    possible = [
        next_possible(policy, groups, one, settings, state, now)
        for policy, one in zip(policies, (item, after), strict=True)
    ]
    return {
        "values": [{"key": key, "before": old[key], "after": new[key]} for key in new if old[key] != new[key]],
        "problems": list(policies[1].problems),
        "next_possible": [moments.iso(moment) if moment else None for moment in possible],
        "days": _days(basis, unit, item, after, now) if groups else [],
        "not_expected": basis.no_salt if basis.salt is None else "",
        "halted": basis.account.switch.halted,
        "assumptions": basis.assumptions(),
    }


def _days(
    basis: Basis, unit: str, before: Mapping[str, Any], after: Mapping[str, Any], now: datetime
) -> list[dict[str, Any]] | None:
    """Lists the days on which a tick decides about the unit, before or after the change; None without the salt."""
    if basis.salt is None:
        return None
    switch = Switch(halted=False, leashed=basis.account.switch.leashed)
    accounts = [
        replace(basis.account, items={**basis.account.items, unit: item}, switch=switch) for item in (before, after)
    ]
    old, new = (outcomes(account, basis.settings, basis.salt, unit, now, DAYS) for account in accounts)
    return [{"day": day, "before": old.get(day), "after": new.get(day)} for day in sorted({*old, *new})]
