"""Decides which resources with this deployment's tags belong to its runs, and which of these may be removed.

Tags are no proof: anyone with the right to tag can set them on anything. So a resource belongs to a run only if the run
is on record and something else, which cannot be set later, agrees: a name that Troop generates, the nodes' instance
profile, the nodes' network, or the run's record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from troop.bench.definition import names
from troop.bench.records.record import Kind, LeftBehind
from troop.bench.removal.teardown import Seen
from troop.shared.tags import PROTECTED_TAG

Recorded = frozenset[tuple[Kind, str]]
"""The resources on record of one run, by kind and name."""

MOST_LEFT = 100
"""Maximum number of leftovers on a run's record: an item of the table could not hold all."""

PROTECTED = f"carries {PROTECTED_TAG}"


@dataclass(frozen=True)
class Site:
    """The id of the VPC of this deployment's nodes, and the ARN of their instance profile."""

    vpc: str
    profile: str


@dataclass(frozen=True)
class Proved:
    """Evidence from a run's own resources about others: ids of its security groups and launch templates, and of the
    volumes that EC2 deletes with its instances.
    """

    templates: frozenset[str] = frozenset()
    volumes: frozenset[str] = frozenset()
    security_groups: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Inventory:
    """All resources with this deployment's tags.

    Attributes:
        ours: resources that runs have created.
        protected: those of ``ours`` that must stay because of ``troop:protected``, with the reason.
        unverified: resources without proof that a run has created them, with the reason. Troop never removes them.
    """

    ours: tuple[Seen, ...] = ()
    protected: Mapping[Seen, str] = field(default_factory=dict)
    unverified: Mapping[Seen, str] = field(default_factory=dict)

    @property
    def removable(self) -> list[Seen]:
        """Resources that may be removed when they are due."""
        return [one for one in self.ours if one not in self.protected]

    @property
    def every(self) -> list[Seen]:
        return [*self.ours, *self.unverified]

    @property
    def left(self) -> dict[Seen, str]:
        """Resources that stay, with the reason; without those whose removal is in progress."""
        return {one: why for one, why in {**self.protected, **self.unverified}.items() if not one.going}


def left_behind(left: Mapping[Seen, str]) -> tuple[LeftBehind, ...]:
    """Returns the leftovers for the record, in a fixed order and at most :data:`MOST_LEFT`."""
    those = (LeftBehind(one.kind, one.name, reason) for one, reason in left.items())
    return tuple(sorted(those, key=lambda one: (one.kind, one.name))[:MOST_LEFT])


def take_inventory(seen: Iterable[Seen], records: Mapping[str, Recorded | None], site: Site) -> Inventory:
    """Separates resources that belong to runs from those that only carry their tags.

    Args:
        records: recorded resources of each known run; missing or None for an unknown run.
    """
    every = list(seen)
    proved: dict[str, Proved] = {}
    doubts: dict[Seen, str | None] = {}
    for kind in _ORDER:
        for one in every:
            if one.kind is kind:
                doubts[one] = doubt(one, records.get(one.run), site, proved.get(one.run, Proved()))
        proved = _proved(one for one, why in doubts.items() if why is None)
    ours = tuple(one for one in every if doubts[one] is None)
    unverified = {one: why for one in every if (why := doubts[one]) is not None}
    return Inventory(ours, _reasons_to_stay(ours, unverified), unverified)


_ORDER = tuple(Kind)
"""Order of the kinds in which origins are proved: security groups prove endpoints, templates instances, and instances
volumes.
"""


def _proved(those: Iterable[Seen]) -> dict[str, Proved]:
    ids: defaultdict[tuple[str, Kind], set[str]] = defaultdict(set)
    volumes: defaultdict[str, set[str]] = defaultdict(set)
    for one in those:
        volumes[one.run] |= one.evidence.volumes
        ids[one.run, one.kind].add(one.id)
    return {
        run: Proved(frozenset(ids[run, Kind.LAUNCH_TEMPLATE]), frozenset(its), frozenset(ids[run, Kind.SECURITY_GROUP]))
        for run, its in volumes.items()
    }


def doubt(one: Seen, recorded: Recorded | None, site: Site, proved: Proved) -> str | None:
    """Returns why a resource does not count as its run's; None if it does.

    Args:
        recorded: recorded resources of the run in its tag; None if there is no such run.
        proved: evidence from the other resources of that run.
    """
    if not names.RUN.fullmatch(one.run):
        return "its tag does not name a run"
    if recorded is None:
        return "its run is not on record"
    if not names.CELL.fullmatch(one.cell):
        return "its tag does not name a cell"
    is_recorded = (one.kind, one.name) in recorded
    if one.kind is Kind.VOLUME:
        if is_recorded or one.id in proved.volumes:
            return None
        return "it is not on record, and EC2 does not delete it with a node of the run"
    if one.kind is Kind.INSTANCE:
        # An instance that shuts down may not show its profile any more, and is not terminated again.
        if one.evidence.profile != site.profile and not one.going:
            return "it does not have the nodes' instance profile"
        if is_recorded or one.evidence.template in proved.templates:
            return None
        return "it is not on record, and no launch template of the run has launched it"
    if one.kind is Kind.ENDPOINT:
        return _doubt_about_endpoint(one, site, proved)
    if not is_named(one):
        return "its name is not one that Troop generates for its run, cell and role"
    if one.kind is Kind.SECURITY_GROUP:
        return _doubt_about_network(one, site)
    return None


def _doubt_about_endpoint(one: Seen, site: Site, proved: Proved) -> str | None:
    """Returns a doubt about an endpoint, which has no name of its own. Launch gives it the cell's security group and no
    other; while it is being deleted, EC2 may not show that any more.
    """
    groups = one.evidence.security_groups
    if not one.going and not (groups and groups <= proved.security_groups):
        return "it does not have the security group of its cell, and no other"
    return _doubt_about_network(one, site)


def _doubt_about_network(one: Seen, site: Site) -> str | None:
    if one.evidence.vpc != site.vpc:
        return f"it is in the network {one.evidence.vpc}, but nodes run in {site.vpc}"
    return None


def is_named(one: Seen) -> bool:
    """Checks whether a resource has a name that Troop generates for its run, cell and role."""
    return one.name in _names(one)


def _names(one: Seen) -> frozenset[str]:
    if one.kind is Kind.QUEUE:
        return frozenset({names.queue_name(one.run, one.cell), names.dead_queue_name(one.run, one.cell)})
    cell_names = {names.security_group_name(one.run, one.cell)} if one.kind is Kind.SECURITY_GROUP else set()
    if not one.role:
        return frozenset(cell_names)
    own = names.fleet_name(one.run, one.cell, one.role)
    if one.kind in (Kind.LAUNCH_TEMPLATE, Kind.PLACEMENT_GROUP, Kind.SECURITY_GROUP):
        return frozenset({own, *cell_names})
    return frozenset({own, names.backup_name(one.run, one.cell, one.role)})


def _reasons_to_stay(ours: Iterable[Seen], unverified: Iterable[Seen]) -> dict[Seen, str]:
    """Returns what must stay: protected resources, those whose removal would remove them, and those that they need.

    Deleting a group removes its instances; terminating an instance removes the volumes that EC2 deletes with it. A
    group that stays needs its launch template and replaces terminated instances. Resources that an instance uses stay,
    too: its queue, the endpoint that leads to it, and the queue of its dead letters.
    """
    every = [one for one in ours if not one.going]
    reasons = {one: PROTECTED for one in every if one.evidence.protected}
    for one in every:
        if one in reasons:
            continue
        for other in unverified:
            if not other.going and _uses(other, one):
                reasons[one] = f"is used by the {other.kind.value} {other.name}, which Troop does not remove"
            elif not other.going and _takes_along(one, other):
                reasons[one] = f"would also remove the {other.kind.value} {other.name}, which Troop must not remove"
    while True:
        more = {
            one: f"stays as long as the {cause.kind.value} {cause.name}"
            for one in every
            if one not in reasons and (cause := next((other for other in reasons if _stays_with(one, other)), None))
        }
        if not more:
            return reasons
        reasons |= more


def _stays_with(one: Seen, other: Seen) -> bool:
    """Checks whether a resource must stay because another one stays."""
    pair = one.kind, other.kind
    if pair == (Kind.AUTO_SCALING_GROUP, Kind.INSTANCE):
        return other.id in one.evidence.members
    if pair == (Kind.INSTANCE, Kind.AUTO_SCALING_GROUP):
        return one.id in other.evidence.members
    if pair == (Kind.INSTANCE, Kind.VOLUME):
        return other.id in one.evidence.volumes
    if pair in ((Kind.LAUNCH_TEMPLATE, Kind.AUTO_SCALING_GROUP), (Kind.PLACEMENT_GROUP, Kind.AUTO_SCALING_GROUP)):
        return (one.run, one.cell, one.role) == (other.run, other.cell, other.role)
    if pair == (Kind.SECURITY_GROUP, Kind.AUTO_SCALING_GROUP) or pair in _SERVE:
        return (one.run, one.cell) == (other.run, other.cell)
    if pair == (Kind.QUEUE, Kind.QUEUE):
        return one.name == names.dead_queue_name(other.run, other.cell)
    return other.kind in (Kind.INSTANCE, Kind.ENDPOINT) and _uses(other, one)


_SERVE = frozenset(
    (served, worker) for served in (Kind.ENDPOINT, Kind.QUEUE) for worker in (Kind.AUTO_SCALING_GROUP, Kind.INSTANCE)
)
"""What serves the nodes of a cell, with what has nodes."""


def _takes_along(one: Seen, other: Seen) -> bool:
    """Checks whether removing one resource also removes the other."""
    return other.id in one.evidence.members | one.evidence.volumes


def _uses(user: Seen, one: Seen) -> bool:
    """Checks whether an instance uses a security group, a placement group or a volume; or an endpoint the first."""
    if one.kind is Kind.SECURITY_GROUP:
        return one.id in user.evidence.security_groups
    if one.kind is Kind.PLACEMENT_GROUP:
        return one.name == user.evidence.placement_group
    return one.kind is Kind.VOLUME and user.id in one.evidence.instances
