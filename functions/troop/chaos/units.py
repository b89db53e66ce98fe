"""Units: what policy, rolls and history belong to.

A group's name changes with every blue/green or versioned deployment; its unit stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache
from operator import attrgetter
from urllib.parse import quote, unquote

from troop.chaos.groups import Group
from troop.tags import UNIT_TAG

LONGEST_UNIT = 256
"""Characters; what a tag can hold."""

LONGEST_GROUP_NAME = 255

LONGEST_UNIT_BYTES = 800
"""In UTF-8. A sort key of DynamoDB has at most 1,024 bytes, and those of the indices hold a moment and more besides."""

_UNUSABLE = re.compile("[\x00-\x1f\ud800-\udfff\ufffe\uffff]")
"""What neither the name of a group nor a tag can hold: Auto Scaling refuses to look for it, or it has no UTF-8."""


def is_unit(name: str) -> bool:
    """Whether a group's unit can have that name; the key of an item in ``GroupTags`` can be any text."""
    return bool(name.strip()) and len(name) <= LONGEST_UNIT and not _UNUSABLE.search(name) and _fits(name)


def _fits(name: str) -> bool:
    return len(name.encode()) <= LONGEST_UNIT_BYTES


def unit_of(name: str, tags: Mapping[str, str], patterns: Sequence[tuple[str, str]]) -> str:
    """A group's unit: its ``troop:unit`` tag, else the first matching pattern's unit, else its name.

    A tag that is blank, or has blanks around it, is malformed, which the policy reports, and counts for nothing here:
    Auto Scaling looks for tags exactly as they are, and a group that it does not find could not speak for its unit.

    Args:
        name: the group's name.
        tags: the group's tags.
        patterns: (glob over names, unit) in order of precedence; globs are case-sensitive.
    """
    if (tagged := tags.get(UNIT_TAG)) and tagged == tagged.strip():
        return tagged
    pattern = patterns and _any_of(tuple(patterns))(name)
    return patterns[pattern.lastindex - 1][1] if pattern and pattern.lastindex else name


@lru_cache(maxsize=16)
def _any_of(patterns: tuple[tuple[str, str], ...]) -> Callable[[str], re.Match[str] | None]:
    """What ``fnmatchcase`` does, for all globs at once: the group that matched has the number of the first glob."""
    return re.compile("|".join(f"({translate(glob)})" for glob, _ in patterns)).match


def by_unit(groups: Iterable[Group], patterns: Sequence[tuple[str, str]]) -> dict[str, tuple[Group, ...]]:
    """Groups by unit; units and the groups of each in order of their names.

    Troop's own fleets are of no unit: nobody waits for chaos to decide about them, and the guards refuse them anyway.
    """
    groups_by_unit: dict[str, list[Group]] = {}
    for group in sorted(groups, key=attrgetter("name")):
        if group.tags and group.is_own_fleet:
            continue
        groups_by_unit.setdefault(unit_of(group.name, group.tags, patterns), []).append(group)
    return {unit: tuple(members) for unit, members in sorted(groups_by_unit.items())}


def unit_to_url(unit: str) -> str:
    """A unit's name as one URL path segment of unreserved characters (RFC 3986), with ``~`` for ``%``.

    >>> unit_to_url("web/api")
    'web~2Fapi'
    """
    quoted = quote(unit, safe="").replace("~", "%7E")
    if not unit.strip("."):  # clients take "." and ".." for steps along the path
        quoted = quoted.replace(".", "%2E")
    return quoted.replace("%", "~")


def unit_from_url(segment: str) -> str | None:
    """The reverse of :func:`unit_to_url`; None for text that it never gives, so that a unit has one address."""
    unit = unquote(segment.replace("~", "%"))
    return unit if unit_to_url(unit) == segment else None
