"""Fits a cell's fleets to the counts of its scale step or combination.

A count of 0 leaves the role out of the cell, with its place in the phases. With a count below ``zones``, each node has
a zone of its own: the smallest step of a tier in three zones can be a single node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from troop.bench.definition.keys import seconds
from troop.bench.definition.problems import Problem


def fit_tiers(document: dict[str, Any], changed: Collection[str]) -> tuple[dict[str, Any], list[Problem]]:
    """Returns the document of a cell, and problems of roles that it cannot leave out.

    Args:
        document: of the cell, to be changed; values that are not valid stay as they are.
        changed: the keys that the step and the combination set, such as ``fleets.cache.count``.
    """
    fleets = document.get("fleets")
    if not isinstance(fleets, dict):
        return document, []
    resized = {
        role: fleet
        for role, fleet in fleets.items()
        if f"fleets.{role}.count" in changed and isinstance(fleet, dict) and _is_whole(fleet.get("count"))
    }
    for role, fleet in resized.items():
        if f"fleets.{role}.zones" not in changed and _is_whole(fleet.get("zones")):
            fleet["zones"] = min(fleet["zones"], max(1, fleet["count"]))
    absent = [role for role, fleet in resized.items() if fleet["count"] == 0]
    if not absent:
        return document, []
    if len(absent) == len(fleets):
        return document, [_needed(absent[0], "the cell has no other role")]
    problems = list(_idle(document, absent))
    document["fleets"] = {role: fleet for role, fleet in fleets.items() if role not in absent}
    if isinstance(document.get("phases"), list):
        document["phases"] = _phases_without(document, absent)
    return document, problems


def _phases_without(document: Mapping[str, Any], absent: Collection[str]) -> list[Any]:
    """Returns the phases that have a role left, with these roles, in their points and between them, too."""
    return [_without(phase, absent) for phase in _phases(document) if (left := _left(phase, absent)) is None or left]


def _without(phase: Any, absent: Collection[str]) -> Any:
    left = _left(phase, absent)
    if left is None:
        return phase
    rest = {**phase, "roles": left}
    for key in ("nodes", "rate"):
        if isinstance(by_role := rest.get(key), Mapping):
            rest[key] = {role: name for role, name in by_role.items() if role not in absent}
    for key in ("limits", "faults"):
        if isinstance(listed := rest.get(key), list):
            rest[key] = [one for one in listed if not (isinstance(one, Mapping) and one.get("role") in absent)]
    if (others := _left(rest.get("between"), absent)) is not None:
        between = rest.pop("between")
        if others:
            rest["between"] = {**between, "roles": others}
    return rest


def _idle(document: Mapping[str, Any], absent: Collection[str]) -> Iterator[Problem]:
    """Yields measured phases without a role: their absence would measure something else."""
    for phase in _phases(document):
        if _left(phase, absent) == [] and _measures(phase.get("measured", 0)):
            yield _needed(phase["roles"][0], f"the phase {phase.get('name')} measures, and no other role runs it")


def _phases(document: Mapping[str, Any]) -> list[Any]:
    phases = document.get("phases")
    return phases if isinstance(phases, list) else []


def _left(phase: Any, absent: Collection[str]) -> list[Any] | None:
    """Returns the roles of a phase that the cell has; None if it lists none."""
    roles = phase.get("roles") if isinstance(phase, Mapping) else None
    return [role for role in roles if role not in absent] if isinstance(roles, list) and roles else None


def _measures(duration: Any) -> bool:
    try:
        return bool(seconds(duration) if isinstance(duration, str) else duration)
    except ValueError:
        return False


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _needed(role: str, reason: str) -> Problem:
    return Problem(("fleets", role, "count"), "is 0", f"at least 1: {reason}")
