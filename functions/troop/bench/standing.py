"""Standing fleets: nodes that stay until their time is over, or until somebody has them removed. How many there are to
be can be changed at any time.

A standing fleet is a run of its own kind: on the same record, with the same tags, made by the same launch and removed
by the same teardown as a benchmark. It has one cell, whose phases are at most :data:`SETUP`, and which is never frozen:
Auto Scaling replaces what fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from troop.bench.limits import setting
from troop.bench.problems import BadBenchmarkError, Problem
from troop.bench.roster import Node

SETUP = "setup"
"""The phase that each node goes through by itself, once, before it counts as ready."""

MOST_OF_A_ROLE = 10_000

FIRST_WAIT, LONGEST_WAIT = 5, 120
"""Seconds before the first look at a fleet, and at most between two."""

GROWTH = 3
"""A wait is the time since the launch, divided by this."""


@dataclass(frozen=True)
class Counts:
    """Nodes of one role at one look.

    Attributes:
        in_service: that serve in their group, healthy.
        starting: that are on their way into service.
        leaving: that are on their way out, or unhealthy, so that they soon will be.
        ready: of those in service, the ones that have set themselves up and registered.
        failed: of those in service, the ones that could not; they stay, so that somebody can find out why.
    """

    in_service: int = 0
    starting: int = 0
    leaving: int = 0
    ready: int = 0
    failed: int = 0


@dataclass(frozen=True)
class Standing:
    """What the record of a standing fleet says besides that of a run.

    Attributes:
        desired: how many nodes each role is to have; the roles are those of its definition.
        scaled_at, scaled_by: the last change of that, and the ARN of who has asked for it; None before the first.
        seen: by role, at the workflow's last look; empty before the first.
        seen_at: when that was.
        ready_within: seconds that nodes may take until they are ready, launching included; None for a fleet of an
            earlier version.
    """

    desired: Mapping[str, int]
    scaled_at: datetime | None = None
    scaled_by: str | None = None
    seen: Mapping[str, Counts] = field(default_factory=dict)
    seen_at: datetime | None = None
    ready_within: int | None = None


class Place(StrEnum):
    """Where an instance is in its life within a group."""

    STARTING = "starting"
    SERVING = "in-service"
    LEAVING = "leaving"


@dataclass(frozen=True)
class Member:
    """An instance as its group has it."""

    id: str
    zone: str
    instance_type: str
    place: Place


@dataclass(frozen=True)
class GroupSeen:
    """A role's Auto Scaling group as it is.

    Attributes:
        desired, most: its capacity and its limit; 0 when there is no such group, or it is being deleted.
    """

    role: str
    desired: int = 0
    most: int = 0
    members: tuple[Member, ...] = ()
    exists: bool = True

    @property
    def in_service(self) -> int:
        return sum(member.place is Place.SERVING for member in self.members)


def scaled(desired: Mapping[str, int], role: str | None, count: int, max_nodes: int) -> dict[str, int]:
    """How many nodes each role is to have from now on.

    Args:
        role: which is changed; None when there is only one.
        max_nodes: of all roles together.

    Raises:
        BadBenchmarkError: there is no such role, or too many nodes.
    """
    roles = ", ".join(desired)
    if role is None and len(desired) > 1:
        raise BadBenchmarkError([Problem(("role",), "is missing", f"one of {roles}, the fleet's roles")])
    if role is not None and role not in desired:
        raise BadBenchmarkError([Problem(("role",), f"is {role!r}", f"one of {roles}, the fleet's roles")])
    changed = {**desired, role or next(iter(desired)): count}
    most = min(MOST_OF_A_ROLE, max_nodes)
    if (total := sum(changed.values())) > most:
        others = total - count
        left = f"at most {max(most - others, 0)}" + (f", beside {others} of other roles" if others else "")
        allowed = f"{left}: {setting('max_nodes', str(max_nodes), str(total))}"
        raise BadBenchmarkError([Problem(("count",), f"is {count}", allowed)])
    return changed


def resizes(groups: Iterable[GroupSeen], desired: Mapping[str, int]) -> dict[str, int]:
    """The groups, by role, that have to be given another size: that is the limit as well, so that nothing else grows
    them.
    """
    return {
        group.role: desired[group.role]
        for group in groups
        if group.exists and {group.desired, group.most} != {desired[group.role]}
    }


def counted(groups: Iterable[GroupSeen], nodes: Mapping[str, Node]) -> dict[str, Counts]:
    """What a look has shown, by role.

    Args:
        nodes: the registrations, by id.
    """
    return {group.role: _counts(group, nodes) for group in groups}


def _counts(group: GroupSeen, nodes: Mapping[str, Node]) -> Counts:
    ids: dict[Place, list[str]] = {place: [m.id for m in group.members if m.place is place] for place in Place}
    registered = [nodes[i] for i in ids[Place.SERVING] if i in nodes]
    failed = sum(node.error is not None for node in registered)
    return Counts(
        in_service=len(ids[Place.SERVING]),
        starting=len(ids[Place.STARTING]),
        leaving=len(ids[Place.LEAVING]),
        ready=len(registered) - failed,
        failed=failed,
    )


def is_complete(desired: Mapping[str, int], seen: Mapping[str, Counts]) -> bool:
    """Whether exactly the nodes that there are to be are ready."""
    return all(seen.get(role) == Counts(in_service=count, ready=count) for role, count in desired.items())


def wait(elapsed: float, left: float) -> int:
    """Seconds until the next look: few at first, while nodes boot. What is asked for later does not wait for a look.

    Args:
        elapsed: seconds since the launch.
        left: seconds until the fleet expires; no wait goes on after that.
    """
    return int(max(FIRST_WAIT, min(LONGEST_WAIT, elapsed / GROWTH, left + 1)))
