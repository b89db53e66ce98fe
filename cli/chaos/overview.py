"""Counts units by state, and describes the ticks, for `troop status`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

STATES = ("taking part", "no instances", "opted out", "not opted in", "unrecovered", "malformed", "protected")
"""States of units, in the order in which they are shown."""

_TICKS, _STRAYS = "ticks-", "stray-items"


def state_of(groups: Sequence[Mapping[str, Any]]) -> str:
    """Returns the state of a unit from its groups, as GET /groups returns them."""
    if all(group.get("protected") for group in groups):
        return "protected"
    if any(group["problems"] for group in groups):
        return "malformed"
    if any(group["unrecovered"] for group in groups):
        return "unrecovered"
    if not all(group["takes_part"] for group in groups if not group.get("protected")):
        settings = all(group["sources"].get("takes_part") == "settings" for group in groups)
        return "not opted in" if settings else "opted out"
    return "taking part" if any(group["desired"] for group in groups) else "no instances"


def units_by_state(groups: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Counts units by state; states without a unit are omitted."""
    units: dict[str, list[Mapping[str, Any]]] = {}
    for group in groups:
        units.setdefault(group["unit"], []).append(group)
    counts = Counter(state_of(members) for members in units.values())
    return {state: counts[state] for state in STATES if counts[state]}


def events_by_status(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Counts events by status, the most frequent first."""
    return dict(Counter(str(event["status"]) for event in events).most_common())


def ticks(health: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the checks of GET /health that are about ticks."""
    return [check for check in health["checks"] if str(check["name"]).startswith(_TICKS)]


def strays(health: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the check of GET /health that names items of ``GroupTags`` without a unit; None if there are none."""
    return next((check for check in health["checks"] if check["name"] == _STRAYS and check["status"] != "ok"), None)


def in_words(counts: Mapping[str, int]) -> str:
    """Returns counts such as ``3 taking part, 1 protected``."""
    return ", ".join(f"{count:,} {word}" for word, count in counts.items())
