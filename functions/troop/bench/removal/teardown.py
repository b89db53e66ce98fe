"""Decides what teardown can remove now, and when nothing is left of a run.

Teardown finds resources by their tags, because the record only states what should exist. It removes each cell's
resources in reverse order of creation. Every pass starts from what exists, so that any step can be repeated or skipped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from troop.bench.records.record import Disk, Kind, Launch, Resource
from troop.shared.errors import TroopError

QUIET = 2
"""Number of consecutive passes that must find nothing: AWS's answers lag behind its actions."""

SKEW = timedelta(minutes=1)
"""Maximum difference of two functions' clocks, including a call in progress: a launch counts this much longer."""

_FIRST_WAIT, _LONGEST_WAIT = 5, 60
_FEW = 6
"""Number of first passes with the shortest wait."""

MOST_PASSES = 66
"""Number of passes in about an hour. Instances take minutes to terminate; a launch that died blocks for a quarter of an
hour.
"""

DATA_PASSES = 40
"""Number of passes that wait for the deletion of objects. What is left then, the bucket's lifecycle rule deletes."""

NAMED = 10
"""Maximum number of leftovers that the error names."""


class TeardownIncompleteError(TroopError):
    """Something still exists after all passes, or could still be created."""


@dataclass(frozen=True)
class Evidence:
    """Facts about a resource besides the tags that anyone with the right to tag can set.

    Attributes:
        protected: whether it carries the tag ``troop:protected``.
        vpc: id of the network of a security group or of an endpoint.
        profile: ARN of the instance profile of an instance.
        template: id of an instance's launch template, from the tag that only EC2 sets.
        volumes: ids of the volumes that EC2 deletes with an instance.
        security_groups: ids of the security groups of an instance or of an endpoint.
        placement_group: name of the placement group of an instance.
        members: ids of the instances of a group.
        instances: ids of the instances that a volume is attached to.
    """

    protected: bool = False
    vpc: str | None = None
    profile: str | None = None
    template: str | None = None
    volumes: frozenset[str] = frozenset()
    security_groups: frozenset[str] = frozenset()
    placement_group: str | None = None
    members: frozenset[str] = frozenset()
    instances: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Seen:
    """An existing resource with the tags of this deployment and a run. :mod:`troop.bench.removal.inventory` decides
    whether it belongs to the run.

    Attributes:
        id: the id for its removal.
        name: the name on record; for instances and volumes, the id.
        going: whether its removal is in progress.
        held: whether it belongs to something that must be removed first, such as a volume to an instance.
        created_at: None if AWS does not report it.
        expires_at: from its tag; None if that cannot be read.
        role, instance_type, zone, purchase, disk, zones: as in :class:`troop.bench.records.record.Resource`.
        evidence: facts that support or contradict the tags.
    """

    run: str
    cell: str
    kind: Kind
    id: str
    name: str
    going: bool = False
    held: bool = False
    created_at: datetime | None = None
    expires_at: datetime | None = None
    role: str | None = None
    instance_type: str | None = None
    zone: str | None = None
    purchase: str | None = None
    disk: Disk | None = None
    zones: int | None = None
    evidence: Evidence = Evidence()

    @property
    def key(self) -> tuple[str, str, Kind, str]:
        """The key that it shares with its :class:`troop.bench.records.record.Resource`."""
        return self.run, self.cell, self.kind, self.name


def key_of(resource: Resource) -> tuple[str, str, Kind, str]:
    return resource.run, resource.cell, resource.kind, resource.name


_ORDER = (
    *(Kind.AUTO_SCALING_GROUP, Kind.INSTANCE, Kind.VOLUME, Kind.LAUNCH_TEMPLATE),
    *(Kind.PLACEMENT_GROUP, Kind.QUEUE, Kind.ENDPOINT, Kind.SECURITY_GROUP),
)
_LAST = frozenset({Kind.PLACEMENT_GROUP, Kind.QUEUE, Kind.ENDPOINT, Kind.SECURITY_GROUP})
"""Kinds that nodes use as long as they exist."""


def removable(seen: Iterable[Seen]) -> list[Seen]:
    """Lists what can be removed now, in the order of removal.

    Groups go first, because they replace terminated instances; until its removal is requested, nothing that a group
    uses is touched. Security groups and placement groups are last: they cannot be deleted while anything uses them. A
    queue and its endpoint serve the last instance; the endpoint's interfaces use the security group until it is gone.
    """
    every = list(seen)
    launching = {(s.run, s.cell) for s in every if s.kind is Kind.AUTO_SCALING_GROUP and not s.going}
    working = {(s.run, s.cell) for s in every if s.kind in (Kind.AUTO_SCALING_GROUP, Kind.INSTANCE)}
    reached = {(s.run, s.cell) for s in every if s.kind is Kind.ENDPOINT}

    def may_go(one: Seen) -> bool:
        cell = one.run, one.cell
        if one.going or one.held:
            return False
        if one.kind is Kind.AUTO_SCALING_GROUP:
            return True
        if one.kind is Kind.SECURITY_GROUP and cell in reached:
            return False
        return cell not in (working if one.kind in _LAST else launching)

    return sorted(filter(may_go, every), key=lambda one: (_ORDER.index(one.kind), one.id))


def current(launches: Iterable[Launch], cell: str | None, now: datetime) -> list[Launch]:
    """Lists the launches, of one cell or of all, that may still create something."""
    return [launch for launch in launches if cell in (None, launch.cell) and now <= launch.until + SKEW]


def unrecorded(seen: Iterable[Seen], recorded: Iterable[Resource], now: datetime) -> list[Resource]:
    """Lists existing resources that the record lacks, marks as gone or not created, or cannot price."""
    known = {key_of(resource): resource for resource in recorded if resource.created_at and not resource.gone_at}
    return [
        Resource(
            one.run,
            one.cell,
            one.kind,
            one.name,
            planned_at=now,
            created_at=one.created_at or now,
            role=one.role,
            instance_type=one.instance_type,
            zone=one.zone,
            purchase=one.purchase,
            started_at=one.created_at if one.kind is Kind.INSTANCE else None,
            disk=one.disk,
            zones=one.zones,
        )
        for one in seen
        if one.key not in known or (_can_be_priced(one) and not _can_be_priced(known[one.key]))
    ]


def _can_be_priced(one: Seen | Resource) -> bool:
    return one.instance_type is not None or one.disk is not None or one.zones is not None


def vanished(recorded: Iterable[Resource], seen: Iterable[Seen], launching: Collection[Launch]) -> list[Resource]:
    """Lists recorded resources that are gone. Omits cells that are still launching: their resources may appear."""
    there, unsure = {one.key for one in seen}, {launch.cell for launch in launching}
    return [r for r in recorded if not r.gone_at and key_of(r) not in there and r.cell not in unsure]


@dataclass(frozen=True)
class TeardownProgress:
    """The progress of a teardown.

    Attributes:
        passes: number of passes so far.
        quiet: number of consecutive last passes that found nothing.
        remaining: texts of what is left.
        deleted: number of objects of scripts that the last pass has deleted.
        undeleted: why it could not delete others, as text.
    """

    passes: int
    quiet: int
    remaining: tuple[str, ...] = ()
    deleted: int = 0
    undeleted: tuple[str, ...] = ()

    @property
    def over(self) -> bool:
        return self.quiet >= QUIET

    @property
    def wait_seconds(self) -> int:
        """Seconds until the next pass; few after a quiet one, to confirm it."""
        if self.quiet or self.passes <= _FEW:
            return _FIRST_WAIT
        return min(_FIRST_WAIT * (self.passes - _FEW + 1), _LONGEST_WAIT)


def after(passes: int, quiet: int, remaining: Sequence[str]) -> TeardownProgress:
    """Computes the progress after a pass.

    Args:
        passes: number of earlier passes.
        quiet: number of consecutive last ones of these that found nothing.
        remaining: what this pass found.

    Raises:
        TeardownIncompleteError: there were too many passes.
    """
    progress = TeardownProgress(passes + 1, 0 if remaining else quiet + 1, tuple(remaining))
    if progress.passes >= MOST_PASSES and not progress.over:
        more = f", and {len(remaining) - NAMED} more" if len(remaining) > NAMED else ""
        words = ", ".join(remaining[:NAMED]) + more if remaining else "nothing in the last pass, but something before"
        raise TeardownIncompleteError(f"after {progress.passes} passes there is still: {words}; remove it by hand")
    return progress
