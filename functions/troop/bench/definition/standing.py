"""Models standing fleets: nodes that stay until the fleet expires or a user removes it. Their number can change at any
time.

A standing fleet is a special kind of run, with the same record, tags, launch and teardown as a benchmark. It has one
cell, with :data:`SETUP` as its only phase, if any. Its groups are never frozen: Auto Scaling replaces failed nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from troop.bench.definition.definition import ON_DEMAND, SPOT, surge
from troop.bench.definition.limits import setting
from troop.bench.definition.living import (
    Announcement,
    Heal,
    Health,
    Need,
    Queue,
    Repair,
    RoleDigest,
    Scale,
    Work,
    WorkSample,
)
from troop.bench.definition.problems import BadBenchmarkError, Problem
from troop.bench.definition.roster import Node
from troop.shared.codec import stored

SETUP = "setup"
"""The phase that each node runs once, independently, before it counts as ready."""

ITSELF = "scale"
"""Who has scaled a fleet that follows its backlog, in place of a caller's ARN."""

MOST_OF_A_ROLE = 10_000

FIRST_WAIT, LONGEST_WAIT = 5, 120
"""Seconds before the first poll of a fleet, and maximum seconds between two."""

GROWTH = 3
"""Divisor of the time since the launch: the quotient is the wait until the next poll."""


_OMIT = stored(omit=True)


@dataclass(frozen=True)
class Counts:
    """Numbers of nodes of one role at one poll.

    Attributes:
        in_service: healthy and in service in their group.
        starting: not yet in service.
        leaving: terminating, or unhealthy, so that they soon will be.
        ready: nodes in service that have finished setup and registered.
        failed: nodes in service that could not; they stay for analysis.
        spot, on_demand: nodes in service, by how they were bought; 0 in records of earlier versions.
    """

    in_service: int = 0
    starting: int = 0
    leaving: int = 0
    ready: int = 0
    failed: int = 0
    spot: int = 0
    on_demand: int = 0


@dataclass(frozen=True)
class Market:
    """What the checks of a role with a backup group remember from one to the next.

    Attributes:
        short_since: since when spot has lacked nodes; None if it lacks none.
        surplus_since: since when the backup has had more nodes than needed; None if it has not.
    """

    short_since: datetime | None = field(default=None, metadata=_OMIT)
    surplus_since: datetime | None = field(default=None, metadata=_OMIT)


@dataclass(frozen=True)
class Standing:
    """The record of a standing fleet in addition to that of a run.

    Attributes:
        desired: desired number of nodes by role of its definition.
        scaled_at, scaled_by: when ``desired`` last changed, and the ARN of the caller, or :data:`ITSELF`; None before
            the first change.
        seen: counts by role at the workflow's last poll; empty before the first.
        seen_at: when that was.
        ready_within: seconds from launch within which nodes must be ready; None for a fleet of an earlier version.
        backups: of roles with a backup group, the seconds for which spot may lack nodes before it grows.
        max_prices: of roles with one, the most that a spot node may cost an hour.
        market: what the checks of roles with a backup remember; without roles that need not.
        decisions: number of changes of ``market`` or of sizes: of two overlapping checks, only one may decide.
        ranks: whether nodes have ranks, which their replacements take over.
        fixed: roles that keep their number of nodes.
        queue: of its tasks; None for none.
        scales, heals, healths, works: of the roles that have them in the file.
        watched: roles whose nodes report.
        submitted: number of tasks that its queue has accepted.
        digest: health by role at the last check of the reports.
        work: its tasks at the last check; None without a queue, before the first one, and if they are unknown.
        uncounted: whether Troop may not count its tasks, of which people were warned.
        may_lack_tasks: whether a task has ever reached :data:`~troop.bench.definition.living.AGED`, so that SQS may
            have deleted some.
        samples: earlier ones of the last hour, the oldest first.
        needs: of roles that scale, the numbers of nodes that they have needed lately, the largest first.
        withheld: of roles that should have more nodes, why they do not.
        repairs: those of the last hour, and the last one of each node, in order.
        announced: checks of which people are notified, by ``<role>/<check>``.
        drains: by node that is to take no more tasks, since when.
        extends: whether its nodes learn of a later end; false for a fleet of an earlier version.
    """

    desired: Mapping[str, int]
    scaled_at: datetime | None = None
    scaled_by: str | None = None
    seen: Mapping[str, Counts] = field(default_factory=dict)
    seen_at: datetime | None = None
    ready_within: int | None = None
    backups: Mapping[str, int] = field(default_factory=dict, metadata=_OMIT)
    max_prices: Mapping[str, Decimal] = field(default_factory=dict, metadata=_OMIT)
    market: Mapping[str, Market] = field(default_factory=dict, metadata=_OMIT)
    decisions: int = field(default=0, metadata=_OMIT)
    ranks: bool = field(default=False, metadata=_OMIT)
    fixed: frozenset[str] = field(
        default=frozenset(), metadata=stored(omit=lambda fleet: not (fleet.ranks or fleet.fixed))
    )
    queue: Queue | None = field(default=None, metadata=_OMIT)
    scales: Mapping[str, Scale] = field(default_factory=dict, metadata=_OMIT)
    heals: Mapping[str, Heal] = field(default_factory=dict, metadata=_OMIT)
    healths: Mapping[str, Health] = field(default_factory=dict, metadata=_OMIT)
    works: Mapping[str, Work] = field(default_factory=dict, metadata=_OMIT)
    watched: frozenset[str] = field(default=frozenset(), metadata=_OMIT)
    submitted: int = field(default=0, metadata=_OMIT)
    digest: Mapping[str, RoleDigest] = field(default_factory=dict, metadata=_OMIT)
    work: WorkSample | None = field(default=None, metadata=_OMIT)
    uncounted: bool = field(default=False, metadata=_OMIT)
    may_lack_tasks: bool = field(default=False, metadata=_OMIT)
    samples: tuple[WorkSample, ...] = field(default=(), metadata=_OMIT)
    needs: Mapping[str, tuple[Need, ...]] = field(default_factory=dict, metadata=_OMIT)
    withheld: Mapping[str, str] = field(default_factory=dict, metadata=_OMIT)
    repairs: tuple[Repair, ...] = field(default=(), metadata=_OMIT)
    announced: Mapping[str, Announcement] = field(default_factory=dict, metadata=_OMIT)
    drains: Mapping[str, datetime] = field(default_factory=dict, metadata=_OMIT)
    extends: bool = field(default=False, metadata=_OMIT)


class Place(StrEnum):
    """The state of an instance in its group."""

    STARTING = "starting"
    SERVING = "in-service"
    LEAVING = "leaving"


@dataclass(frozen=True)
class Member:
    """An instance of a group.

    Attributes:
        is_protected: whether Auto Scaling keeps it when the group shrinks.
    """

    id: str
    zone: str
    instance_type: str
    place: Place
    is_protected: bool = False


@dataclass(frozen=True)
class GroupStatus:
    """The observed state of an Auto Scaling group.

    Attributes:
        role: its role; a role with a backup has two groups.
        desired, most: its desired capacity and its limit; 0 if the group does not exist or is being deleted.
        is_backup: whether it is the role's backup group.
        is_spot: whether it buys spot instances.
        expires_at: when its tags say that it is removed; None without such a tag.
    """

    role: str
    desired: int = 0
    most: int = 0
    members: tuple[Member, ...] = ()
    exists: bool = True
    is_backup: bool = False
    is_spot: bool = False
    expires_at: datetime | None = None

    @property
    def in_service(self) -> int:
        return sum(member.place is Place.SERVING for member in self.members)

    @property
    def purchase(self) -> str:
        """How its nodes are bought, as in :class:`troop.bench.definition.definition.Fleet`."""
        return SPOT if self.is_spot else ON_DEMAND


@dataclass(frozen=True)
class Resize:
    """A new size of a group."""

    role: str
    size: int
    is_backup: bool = False


def reserved(desired: Mapping[str, int], backups: Collection[str]) -> int:
    """Returns the most nodes that a fleet of this size has at a time.

    Args:
        backups: roles with a backup group.
    """
    return sum(count + (surge(count) if role in backups else 0) for role, count in desired.items())


def scaled(fleet: Standing, role: str | None, count: int) -> dict[str, int]:
    """Returns the desired number of nodes by role after a change.

    Args:
        role: the role to change; None if there is only one.

    Raises:
        BadBenchmarkError: the role does not exist, keeps its size, or follows its backlog.
    """
    desired = fleet.desired
    roles = ", ".join(desired)
    if role is None and len(desired) > 1:
        raise BadBenchmarkError([Problem(("role",), "is missing", f"one of {roles}, the fleet's roles")])
    if role is not None and role not in desired:
        raise BadBenchmarkError([Problem(("role",), f"is {role!r}", f"one of {roles}, the fleet's roles")])
    role = role or next(iter(desired))
    if role in fleet.fixed and count != desired[role]:
        allowed = (
            f"{desired[role]}: {role} keep their number, because the fleet's file does not let this role change its "
            f"size (fleets.{role}.resizable)"
        )
        raise BadBenchmarkError([Problem(("count",), f"is {count}", allowed)])
    if (scale := fleet.scales.get(role)) and count != desired[role]:
        allowed = (
            f"left out: {role} follow their backlog, from {scale.least} to {scale.most} nodes (fleets.{role}.scale). "
            "Submit tasks, or start a fleet with other bounds"
        )
        raise BadBenchmarkError([Problem(("count",), f"is {count}", allowed)])
    return {**desired, role: count}


def too_many(
    before: Mapping[str, int], desired: Mapping[str, int], max_nodes: int, backups: Collection[str] = ()
) -> Problem | None:
    """Returns a problem if a change of one role leads to more nodes than the deployment allows; None if it does not.

    Args:
        max_nodes: maximum of all roles together.
        backups: roles with a backup group, which may have more nodes than desired for a time.
    """
    most = min(MOST_OF_A_ROLE, max_nodes)
    if (total := reserved(desired, backups)) <= most:
        return None
    role = next((name for name, count in desired.items() if count != before[name]), next(iter(desired)))
    others = reserved({name: number for name, number in desired.items() if name != role}, backups)
    fits = _largest(most - others, has_backup=role in backups)
    left = f"at most {fits}" + (f", beside {others} of other roles" if others else "")
    allowed = f"{left}: {setting('max_nodes', str(max_nodes), str(total))}"
    return Problem(("count",), f"is {desired[role]}", allowed)


def _largest(most: int, *, has_backup: bool) -> int:
    """Returns the largest count of a role that needs at most so many nodes."""
    count = max(most, 0)
    while has_backup and count and count + surge(count) > most:
        count -= 1
    return count


def resizes(groups: Iterable[GroupStatus], desired: Mapping[str, int]) -> tuple[Resize, ...]:
    """Returns the groups to resize. The size is also the limit: nothing else can grow a group.

    Args:
        desired: number of nodes by role; without roles that have a backup, see
            :mod:`troop.bench.fleets.standing_backup`.
    """
    return tuple(
        Resize(group.role, desired[group.role])
        for group in groups
        if group.role in desired and group.exists and {group.desired, group.most} != {desired[group.role]}
    )


def counted(groups: Iterable[GroupStatus], nodes: Mapping[str, Node]) -> dict[str, Counts]:
    """Counts the nodes of each role.

    Args:
        nodes: registrations by id.
    """
    counts: dict[str, Counts] = {}
    for group in groups:
        its, before = asdict(_counts(group, nodes)), asdict(counts.get(group.role, Counts()))
        counts[group.role] = Counts(**{name: number + before[name] for name, number in its.items()})
    return counts


def _counts(group: GroupStatus, nodes: Mapping[str, Node]) -> Counts:
    ids: dict[Place, list[str]] = {place: [m.id for m in group.members if m.place is place] for place in Place}
    registered = [nodes[i] for i in ids[Place.SERVING] if i in nodes]
    failed = sum(node.error is not None for node in registered)
    return Counts(
        in_service=len(ids[Place.SERVING]),
        starting=len(ids[Place.STARTING]),
        leaving=len(ids[Place.LEAVING]),
        ready=len(registered) - failed,
        failed=failed,
        spot=len(ids[Place.SERVING]) if group.is_spot else 0,
        on_demand=0 if group.is_spot else len(ids[Place.SERVING]),
    )


def is_complete(desired: Mapping[str, int], counts: Mapping[str, Counts], backups: Collection[str] = ()) -> bool:
    """Checks whether exactly the desired nodes exist and are ready. Roles with a backup may have more nodes."""
    return all(_is_complete(number, counts.get(role, Counts()), role in backups) for role, number in desired.items())


def _is_complete(number: int, counts: Counts, has_backup: bool) -> bool:
    if has_backup:
        return counts.ready >= number
    return counts.in_service == counts.ready == number and not counts.starting and not counts.leaving


def wait(elapsed: float, left: float) -> int:
    """Computes the seconds until the next poll: few at first, while nodes boot. Later requests do not wait for a poll.

    Args:
        elapsed: seconds since the launch.
        left: seconds until the fleet expires, which ends the wait.
    """
    return int(max(FIRST_WAIT, min(LONGEST_WAIT, elapsed / GROWTH, left + 1)))
