"""Models standing fleets: nodes that stay until the fleet expires or a user removes it. Their number can change at any
time.

A standing fleet is a special kind of run, with the same record, tags, launch and teardown as a benchmark. It has one
cell, with :data:`SETUP` as its only phase, if any. Its groups are never frozen: Auto Scaling replaces failed nodes.
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
"""The phase that each node runs once, independently, before it counts as ready."""

MOST_OF_A_ROLE = 10_000

FIRST_WAIT, LONGEST_WAIT = 5, 120
"""Seconds before the first poll of a fleet, and maximum seconds between two."""

GROWTH = 3
"""A wait is the time since the launch, divided by this."""


@dataclass(frozen=True)
class Counts:
    """Numbers of nodes of one role at one poll.

    Attributes:
        in_service: healthy and in service in their group.
        starting: not yet in service.
        leaving: terminating, or unhealthy, so that they soon will be.
        ready: nodes in service that have finished setup and registered.
        failed: nodes in service that could not; they stay for analysis.
    """

    in_service: int = 0
    starting: int = 0
    leaving: int = 0
    ready: int = 0
    failed: int = 0


@dataclass(frozen=True)
class Standing:
    """The record of a standing fleet in addition to that of a run.

    Attributes:
        desired: desired number of nodes by role of its definition.
        scaled_at, scaled_by: when ``desired`` last changed, and the ARN of the caller; None before the first change.
        seen: counts by role at the workflow's last poll; empty before the first.
        seen_at: when that was.
        ready_within: seconds from launch within which nodes must be ready; None for a fleet of an earlier version.
    """

    desired: Mapping[str, int]
    scaled_at: datetime | None = None
    scaled_by: str | None = None
    seen: Mapping[str, Counts] = field(default_factory=dict)
    seen_at: datetime | None = None
    ready_within: int | None = None


class Place(StrEnum):
    """The state of an instance in its group."""

    STARTING = "starting"
    SERVING = "in-service"
    LEAVING = "leaving"


@dataclass(frozen=True)
class Member:
    """An instance of a group."""

    id: str
    zone: str
    instance_type: str
    place: Place


@dataclass(frozen=True)
class GroupSeen:
    """The observed state of a role's Auto Scaling group.

    Attributes:
        desired, most: its desired capacity and its limit; 0 if the group does not exist or is being deleted.
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
    """Returns the desired number of nodes by role after a change.

    Args:
        role: the role to change; None if there is only one.
        max_nodes: maximum of all roles together.

    Raises:
        BadBenchmarkError: the role does not exist, or the nodes are too many.
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
    """Returns new sizes, by role, of groups to resize. The size is also the limit: nothing else can grow a group."""
    return {
        group.role: desired[group.role]
        for group in groups
        if group.exists and {group.desired, group.most} != {desired[group.role]}
    }


def counted(groups: Iterable[GroupSeen], nodes: Mapping[str, Node]) -> dict[str, Counts]:
    """Counts the nodes of each role.

    Args:
        nodes: registrations by id.
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
    """Checks whether exactly the desired nodes exist and are ready."""
    return all(seen.get(role) == Counts(in_service=count, ready=count) for role, count in desired.items())


def wait(elapsed: float, left: float) -> int:
    """Computes the seconds until the next poll: few at first, while nodes boot. Later requests do not wait for a poll.

    Args:
        elapsed: seconds since the launch.
        left: seconds until the fleet expires, which ends the wait.
    """
    return int(max(FIRST_WAIT, min(LONGEST_WAIT, elapsed / GROWTH, left + 1)))
