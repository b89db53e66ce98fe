"""Units: what policy, rolls and history belong to.

A group's name changes with every blue/green or versioned deployment; its unit stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from operator import attrgetter

from troop.chaos.groups import Group

UNIT_TAG = "troop:unit"


def unit_of(name: str, tags: Mapping[str, str], patterns: Sequence[tuple[str, str]]) -> str:
    """A group's unit: its ``troop:unit`` tag, else the first matching pattern's unit, else its name.

    Args:
        name: the group's name.
        tags: the group's tags.
        patterns: (glob over names, unit) in order of precedence; globs are case-sensitive.
    """
    if UNIT_TAG in tags and (tagged := tags[UNIT_TAG].strip()):  # a blank one is malformed, which the policy reports
        return tagged
    for glob, unit in patterns:
        if fnmatchcase(name, glob):
            return unit
    return name


def by_unit(groups: Iterable[Group], patterns: Sequence[tuple[str, str]]) -> dict[str, tuple[Group, ...]]:
    """Groups by unit; units and the groups of each in order of their names."""
    found: dict[str, list[Group]] = {}
    for group in sorted(groups, key=attrgetter("name")):
        found.setdefault(unit_of(group.name, group.tags, patterns), []).append(group)
    return {unit: tuple(members) for unit, members in sorted(found.items())}
