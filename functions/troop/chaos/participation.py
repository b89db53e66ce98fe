"""Whether a unit takes part, as people are told: what the first guards would say, and not its policy alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from troop.chaos.groups import Group
from troop.chaos.guards import protecting_tag
from troop.chaos.policy import Policy, Sourced

MALFORMED = "malformed"


def effective_participation(groups: Sequence[Group], policy: Policy) -> Policy:
    """A policy whose ``takes_part`` is what becomes of a unit: protection comes before all that people have set, and
    with values that are malformed none of them counts.

    Its source is then ``tag troop:protected``, or ``tag troop:fleet`` for Troop's own fleets, or ``malformed``.

    Args:
        groups: the unit's; it is protected when all of them are, as the others may be hit.
        policy: what people have set for these.
    """
    if tag := protection(groups):
        return replace(policy, takes_part=Sourced(False, f"tag {tag}"))
    return replace(policy, takes_part=Sourced(False, MALFORMED)) if policy.problems else policy


def protection(groups: Sequence[Group]) -> str | None:
    """The tag that keeps everything away from all of these groups; None when one may be touched, or there are none."""
    tags = [protecting_tag(group) for group in groups]
    return next(iter(tags), None) if all(tags) else None
