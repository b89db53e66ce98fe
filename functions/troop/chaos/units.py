"""Maps groups to units, to which policy, rolls and history belong.

A group's name changes with every blue/green or versioned deployment; its unit does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache
from operator import attrgetter
from urllib.parse import quote, unquote

from troop.chaos.groups import Group
from troop.shared.tags import UNIT_TAG

LONGEST_UNIT = 256
"""The most characters of a unit: the limit of a tag's value."""

LONGEST_GROUP_NAME = 255

LONGEST_UNIT_BYTES = 800
"""The most bytes of a unit in UTF-8. A DynamoDB sort key has at most 1,024 bytes, and those of the indices also contain
a moment and more.
"""

_UNUSABLE = re.compile("[\x00-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that neither a group's name nor a tag can have: Auto Scaling rejects them, or they have no UTF-8."""


def is_unit(name: str) -> bool:
    """Checks whether a unit can have that name; the key of an item in ``GroupTags`` can be any text."""
    return bool(name.strip()) and len(name) <= LONGEST_UNIT and not _UNUSABLE.search(name) and _fits(name)


def _fits(name: str) -> bool:
    return len(name.encode()) <= LONGEST_UNIT_BYTES


def unit_of(name: str, tags: Mapping[str, str], patterns: Sequence[tuple[str, str]]) -> str:
    """Returns a group's unit: its ``troop:unit`` tag, otherwise the first matching pattern's unit, otherwise its name.

    A tag that is blank, or has surrounding blanks, is malformed. The policy reports it, and it has no effect here: Auto
    Scaling finds tags only by their exact value, so the group's own policy would be missing from its unit.

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
    """Compiles all globs into one expression, with the effect of ``fnmatchcase``: the number of the group that matched
    is that of the first glob.
    """
    return re.compile("|".join(f"({translate(glob)})" for glob, _ in patterns)).match


def by_unit(groups: Iterable[Group], patterns: Sequence[tuple[str, str]]) -> dict[str, tuple[Group, ...]]:
    """Collects groups by unit; units, and the groups of each, are in order of their names.

    Troop's own fleets have no unit: chaos need not decide about them, and the guards refuse them anyway.
    """
    groups_by_unit: dict[str, list[Group]] = {}
    for group in sorted(groups, key=attrgetter("name")):
        if group.tags and group.is_own_fleet:
            continue
        groups_by_unit.setdefault(unit_of(group.name, group.tags, patterns), []).append(group)
    return {unit: tuple(members) for unit, members in sorted(groups_by_unit.items())}


def unit_to_url(unit: str) -> str:
    """Encodes a unit's name as one URL path segment of unreserved characters (RFC 3986), with ``~`` for ``%``.

    >>> unit_to_url("web/api")
    'web~2Fapi'
    """
    quoted = quote(unit, safe="").replace("~", "%7E")
    if not unit.strip("."):  # clients resolve "." and ".." as steps of the path
        quoted = quoted.replace(".", "%2E")
    return quoted.replace("%", "~")


def unit_from_url(segment: str) -> str | None:
    """Decodes :func:`unit_to_url`; None for any other text, so that a unit has one address."""
    unit = unquote(segment.replace("~", "%"))
    return unit if unit_to_url(unit) == segment else None
