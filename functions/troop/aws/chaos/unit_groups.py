"""All groups of one unit, in as few calls as find every one of them, those that nobody knows of yet included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from troop.aws.chaos.groups import groups_carrying, read_groups
from troop.chaos.groups import Group
from troop.chaos.units import LONGEST_GROUP_NAME, unit_of
from troop.tags import UNIT_TAG


def read_members(autoscaling: Any, unit: str, patterns: Sequence[tuple[str, str]]) -> list[Group]:
    """The unit's groups, in order of their names.

    A group is of a unit by its tag, by a pattern, or by its own name. Auto Scaling finds tags (exactly and in upper and
    lower case as written, as :func:`unit_of` takes them) and names: two calls. It knows no globs: where a pattern names
    the unit, all groups of the account are read, a hundred a call, as a tick does.

    Args:
        patterns: as :func:`unit_of` takes them.
    """
    if any(named == unit for _, named in patterns):
        groups = read_groups(autoscaling)
    else:
        of_that_name = read_groups(autoscaling, [unit]) if len(unit) <= LONGEST_GROUP_NAME else []
        groups = [*of_that_name, *groups_carrying(autoscaling, UNIT_TAG, unit)]
    # Twice among them is a group that has the unit's name and its tag: what was read last counts.
    once = {group.name: group for group in groups}
    return [group for _, group in sorted(once.items()) if unit_of(group.name, group.tags, patterns) == unit]
