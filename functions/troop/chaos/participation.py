"""Computes whether a unit takes part, as users see it: the result of the first guards, not of the policy alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from troop.chaos.groups import Group
from troop.chaos.guards import protecting_tag
from troop.chaos.policy import Policy, SourcedValue

MALFORMED = "malformed"


def effective_participation(groups: Sequence[Group], policy: Policy) -> Policy:
    """Returns the policy with the effective ``takes_part``: protection overrides everything that people set, and
    malformed values opt the unit out.

    The source is then ``tag troop:protected``, or ``tag troop:fleet`` for Troop's own fleets, or ``malformed``.

    Args:
        groups: the unit's; it is protected if all of them are, because chaos may select the others.
        policy: the policy of these groups.
    """
    if tag := protection(groups):
        return replace(policy, takes_part=SourcedValue(False, f"tag {tag}"))
    return replace(policy, takes_part=SourcedValue(False, MALFORMED)) if policy.problems else policy


def protection(groups: Sequence[Group]) -> str | None:
    """Returns the tag that protects all of these groups; None if one is not protected, or there are none."""
    tags = [protecting_tag(group) for group in groups]
    return next(iter(tags), None) if all(tags) else None
