"""What is left of a run, what can be removed of it now, and when nothing is left.

Seen by tags: the record says what should be there, the account what is. Removing goes backwards through the order of
creation, each cell for itself, and every look starts from what is seen, so that any step can be repeated or left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from troop.bench.record import Disk, Kind, Launch, Resource
from troop.errors import TroopError

QUIET = 2
"""So many looks in a row must show nothing: what the account answers lags behind what it does."""

SKEW = timedelta(minutes=1)
"""How far two functions' clocks may be apart, a call that is still under way included: a launch counts for so much
longer than it says."""

_FIRST_WAIT, _LONGEST_WAIT = 5, 60
_FEW = 6
"""So many of the looks come soon after one another."""

MOST_PASSES = 66
"""About an hour of looks. Instances take minutes to go, a launch that died has its right for a quarter of an hour."""

NAMED = 10
"""So many of what is left are named when teardown gives up."""


class TeardownIncompleteError(TroopError):
    """After all looks something is still there, or could still come."""


@dataclass(frozen=True)
class Evidence:
    """What the account shows of a resource besides its tags, of which anybody with the right to tag can set any.

    Attributes:
        protected: it carries the tag ``troop:protected``.
        vpc: id of the network of a security group.
        profile: ARN of the instance profile of an instance.
        group: name of the Auto Scaling group that an instance is a member of, by the tag that only Auto Scaling sets.
        template: id of the launch template that an instance comes from, by the tag that only EC2 sets.
        volumes: ids of the volumes that EC2 deletes with an instance.
        security_groups: ids of the security groups of an instance.
        members: ids of the instances of a group.
        instances: ids of the instances that a volume is attached to.
    """

    protected: bool = False
    vpc: str | None = None
    profile: str | None = None
    group: str | None = None
    template: str | None = None
    volumes: frozenset[str] = frozenset()
    security_groups: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()
    instances: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Seen:
    """A resource that exists and carries this deployment's tag and a run's. Whether the run owns it,
    :mod:`troop.bench.ownership` decides.

    Attributes:
        id: by which it is removed.
        name: by which it is on record; of instances and volumes the id.
        going: its removal is under way.
        held: it belongs to something that must go first, as a volume does to an instance.
        created_at: None where AWS does not say.
        expires_at: as its tag says; None when that cannot be read.
        role, instance_type, zone, purchase, disk: as of :class:`troop.bench.record.Resource`.
        evidence: what speaks for or against the tags.
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
    evidence: Evidence = Evidence()

    @property
    def key(self) -> tuple[str, str, Kind, str]:
        """What it has in common with its :class:`troop.bench.record.Resource`."""
        return self.run, self.cell, self.kind, self.name


def key_of(resource: Resource) -> tuple[str, str, Kind, str]:
    return resource.run, resource.cell, resource.kind, resource.name


def removable(seen: Iterable[Seen]) -> list[Seen]:
    """What can be asked to go now, in the order in which to ask.

    A group goes first, for it replaces instances that are terminated; while it has not been asked to go, nothing that
    it works with is touched. The security group comes last: it cannot go while anything uses it.
    """
    every = list(seen)
    launching = {(s.run, s.cell) for s in every if s.kind is Kind.AUTO_SCALING_GROUP and not s.going}
    working = {(s.run, s.cell) for s in every if s.kind in (Kind.AUTO_SCALING_GROUP, Kind.INSTANCE)}

    def may_go(one: Seen) -> bool:
        cell = one.run, one.cell
        if one.going or one.held:
            return False
        if one.kind is Kind.AUTO_SCALING_GROUP:
            return True
        return cell not in (working if one.kind is Kind.SECURITY_GROUP else launching)

    order = [Kind.AUTO_SCALING_GROUP, Kind.INSTANCE, Kind.VOLUME, Kind.LAUNCH_TEMPLATE, Kind.SECURITY_GROUP]
    return sorted(filter(may_go, every), key=lambda one: (order.index(one.kind), one.id))


def current(launches: Iterable[Launch], cell: str | None, now: datetime) -> list[Launch]:
    """The launches, of a cell or of all, that may still create something."""
    return [launch for launch in launches if cell in (None, launch.cell) and now <= launch.until + SKEW]


def unrecorded(seen: Iterable[Seen], recorded: Iterable[Resource], now: datetime) -> list[Resource]:
    """Of what exists that which the record does not know, or takes for gone, or for not created; and that of which it
    does not know what it costs.
    """
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
        )
        for one in seen
        if one.key not in known or (_can_be_priced(one) and not _can_be_priced(known[one.key]))
    ]


def _can_be_priced(one: Seen | Resource) -> bool:
    return one.instance_type is not None or one.disk is not None


def vanished(recorded: Iterable[Resource], seen: Iterable[Seen], launching: Collection[Launch]) -> list[Resource]:
    """Of what is on record that which is gone: of a cell that is still launching, nothing can be said to be."""
    there, unsure = {one.key for one in seen}, {launch.cell for launch in launching}
    return [r for r in recorded if not r.gone_at and key_of(r) not in there and r.cell not in unsure]


@dataclass(frozen=True)
class TeardownProgress:
    """How far a teardown is.

    Attributes:
        passes: how many there were.
        quiet: how many of the last ones have shown nothing.
        remaining: what there still is, in words.
    """

    passes: int
    quiet: int
    remaining: tuple[str, ...] = ()

    @property
    def over(self) -> bool:
        return self.quiet >= QUIET

    @property
    def wait_seconds(self) -> int:
        """Until the next look; soon after a quiet one, to be sure."""
        if self.quiet or self.passes <= _FEW:
            return _FIRST_WAIT
        return min(_FIRST_WAIT * (self.passes - _FEW + 1), _LONGEST_WAIT)


def after(passes: int, quiet: int, remaining: Sequence[str]) -> TeardownProgress:
    """The next look.

    Args:
        passes: how many there were before.
        quiet: how many of these, the last ones, have shown nothing.
        remaining: what this one shows.

    Raises:
        TeardownIncompleteError: there were too many.
    """
    progress = TeardownProgress(passes + 1, 0 if remaining else quiet + 1, tuple(remaining))
    if progress.passes >= MOST_PASSES and not progress.over:
        more = f", and {len(remaining) - NAMED} more" if len(remaining) > NAMED else ""
        words = ", ".join(remaining[:NAMED]) + more if remaining else "nothing at the last look, but at the one before"
        raise TeardownIncompleteError(f"after {progress.passes} looks there is still: {words}; remove it by hand")
    return progress
