"""Reads all groups of one unit, including new ones, in as few calls as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from troop.chaos.aws.groups import groups_tagged, read_groups
from troop.chaos.groups import Group
from troop.chaos.units import LONGEST_GROUP_NAME, unit_of
from troop.shared.tags import UNIT_TAG


def read_members(autoscaling: Any, unit: str, patterns: Sequence[tuple[str, str]]) -> list[Group]:
    """Reads the unit's groups, in order of their names.

    A group belongs to a unit by its tag, by a pattern, or by its name. Auto Scaling finds tags (exactly and
    case-sensitively, as :func:`unit_of` uses them) and names: two calls. It has no globs: if a pattern names the unit,
    all groups of the account are read, a hundred a call, as for a tick.

    Args:
        patterns: as for :func:`unit_of`.
    """
    if any(named == unit for _, named in patterns):
        groups = read_groups(autoscaling)
    else:
        by_name = read_groups(autoscaling, [unit]) if len(unit) <= LONGEST_GROUP_NAME else []
        groups = [*by_name, *groups_tagged(autoscaling, UNIT_TAG, [unit])]
    # A group that has the unit's name and its tag appears twice: the later read counts.
    once = {group.name: group for group in groups}
    return [group for _, group in sorted(once.items()) if unit_of(group.name, group.tags, patterns) == unit]
