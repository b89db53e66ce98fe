"""Changes single values of a document by keys such as ``fleets.drivers.count``: for sizes, scale steps, the matrix and
``--set``.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any

from troop.bench.definition.baseline import ITSELF
from troop.bench.definition.problems import MOST_PROBLEMS, Place, Problem, shown

_FIXED = ("name", "sizes")
_OPEN = ("fleets", "parameters", "targets")
"""Mappings with keys that the author chooses. Setting a key that does not exist is refused as a misspelling, also
within a parameter that is a mapping. :data:`ITSELF` is none.
"""
_DEPTHS = {"scale": 2, "matrix": 1, "baseline": 1}
"""Mappings whose keys contain dots like the keys of changes, and the number of steps that lead into them."""


def apply_changes(
    document: Mapping[str, Any], changes: Mapping[str, Any], at: Place, fixed: Collection[str] = _FIXED
) -> tuple[Any, dict[str, Place], list[Problem]]:
    """Returns a copy of a file's document with the changes, the changed place by key, and the first problems of other
    changes.

    Args:
        document: with a valid structure.
        changes: value by key. A key leads through mappings by their keys, to phases and artifacts by their names, to
            volumes by their position (0 is the first). One key follows ``matrix``, ``baseline`` and ``scale.NAME``.
        at: where the changes are written, for the problems.
        fixed: top-level keys that cannot be changed, including everything below them.
    """
    changed = copy.deepcopy(dict(document))
    places: dict[str, Place] = {}
    problems = []
    for key, value in changes.items():
        try:
            places[key] = _put(changed, str(key), value, fixed)
        except _Lost as lost:
            problems.append(Problem((*at, key), lost.message, lost.allowed))
            if len(problems) == MOST_PROBLEMS:
                break
    return changed, places, problems


class _Lost(Exception):
    def __init__(self, message: str, allowed: str) -> None:
        self.message, self.allowed = message, allowed
        super().__init__(message)


def _put(document: dict[str, Any], key: str, value: Any, fixed: Collection[str]) -> Place:
    if key.partition(".")[0] in fixed:
        raise _Lost("cannot be changed", "any other key")
    *way, last = _steps(key)
    if way in (["matrix"], ["traffic"], ["baseline"]):
        document.setdefault(way[0], {})
    place: list[str | int] = []
    inner: Any = document
    for step in way:
        position = _position(inner, step)
        place.append(position)
        inner = inner[position]
    if not isinstance(inner, dict):
        raise _Lost(f"leads into {shown(inner)}", "the key of a value, such as phases.NAME.timeout")
    if way and way[0] in _OPEN and (len(way) == 1 or way[0] == "parameters") and key != ITSELF:
        _position(inner, last)
    inner[last] = copy.deepcopy(value)
    return (*place, last)


def _steps(key: str) -> list[str]:
    return key.split(".", _DEPTHS.get(key.partition(".")[0], -1))


def _position(inner: Any, step: str) -> str | int:
    """Returns the key or position to which ``step`` leads in a mapping or a list."""
    if isinstance(inner, dict):
        positions: dict[str, str | int] = {str(name): name for name in inner}
    elif isinstance(inner, list):
        named = {str(e["name"]): n for n, e in enumerate(inner) if isinstance(e, dict) and "name" in e}
        positions = dict(named) or {str(n): n for n in range(len(inner))}
    else:
        raise _Lost(f"leads into {shown(inner)}", "the key of a value, such as phases.NAME.timeout")
    if step not in positions:
        raise _Lost(
            f"leads nowhere: there is no {step!r}", "one of " + ", ".join(positions) if positions else "left out"
        )
    return positions[step]
