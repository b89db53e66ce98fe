"""Decides which of the resources that carry this deployment's tags are its own, and which of these may be removed.

Tags are a claim, and no proof: whoever may tag can set any of them on anything. So a resource counts as a run's only if
the run is on record and something else, which cannot be set afterwards, agrees: a name that Troop generates, the nodes'
instance profile, the nodes' network, or the run's record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from troop.bench import names
from troop.bench.record import Kind, LeftBehind
from troop.bench.teardown import Seen
from troop.tags import PROTECTED_TAG

Recorded = frozenset[tuple[Kind, str]]
"""The resources on record of one run, by kind and name."""

MOST_LEFT = 100
"""So much of what stays is on record of a run; there can be more than an item of the table holds."""

PROTECTED = f"carries {PROTECTED_TAG}"


@dataclass(frozen=True)
class Site:
    """Where this deployment's nodes run, and as what: the id of their VPC, and the ARN of their instance profile."""

    vpc: str
    profile: str


@dataclass(frozen=True)
class Proved:
    """What the resources of a run that are its own say of others: ids of its launch templates, and of the volumes that
    EC2 deletes with its instances.
    """

    templates: frozenset[str] = frozenset()
    volumes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Inventory:
    """What carries this deployment's tags.

    Attributes:
        ours: what the runs have created.
        protected: of that, what must stay because of ``troop:protected``, with the reason.
        unverified: what the runs have not created, as far as can be proved, with the reason. It is never removed.
    """

    ours: tuple[Seen, ...] = ()
    protected: Mapping[Seen, str] = field(default_factory=dict)
    unverified: Mapping[Seen, str] = field(default_factory=dict)

    @property
    def removable(self) -> list[Seen]:
        """What may be removed once its time has come."""
        return [one for one in self.ours if one not in self.protected]

    @property
    def every(self) -> list[Seen]:
        return [*self.ours, *self.unverified]

    @property
    def left(self) -> dict[Seen, str]:
        """What stays, with the reason; not what somebody else removes at this moment."""
        return {one: why for one, why in {**self.protected, **self.unverified}.items() if not one.going}


def left_behind(left: Mapping[Seen, str]) -> tuple[LeftBehind, ...]:
    """What stays, for the record: in a fixed order, and at most :data:`MOST_LEFT`."""
    those = (LeftBehind(one.kind, one.name, reason) for one, reason in left.items())
    return tuple(sorted(those, key=lambda one: (one.kind, one.name))[:MOST_LEFT])


def take_inventory(seen: Iterable[Seen], records: Mapping[str, Recorded | None], site: Site) -> Inventory:
    """Tells apart what is the runs' own and what only carries their tags.

    Args:
        records: what is on record of each run that is known; a run that is missing, or None, is not.
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


_ORDER = (Kind.SECURITY_GROUP, Kind.LAUNCH_TEMPLATE, Kind.AUTO_SCALING_GROUP, Kind.INSTANCE, Kind.VOLUME)
"""An instance is judged by the templates that are proved, and a volume by the instances that are."""


def _proved(those: Iterable[Seen]) -> dict[str, Proved]:
    templates: defaultdict[str, set[str]] = defaultdict(set)
    volumes: defaultdict[str, set[str]] = defaultdict(set)
    for one in those:
        volumes[one.run] |= one.evidence.volumes
        if one.kind is Kind.LAUNCH_TEMPLATE:
            templates[one.run].add(one.id)
    return {run: Proved(frozenset(templates[run]), frozenset(its)) for run, its in volumes.items()}


def doubt(one: Seen, recorded: Recorded | None, site: Site, proved: Proved) -> str | None:
    """Why a resource does not count as its run's; None if it does.

    Args:
        recorded: what is on record of the run that its tag names; None where there is no such run.
        proved: what is known of the other resources of that run.
    """
    if not names.RUN.fullmatch(one.run):
        return "its tag names no run"
    if recorded is None:
        return "its run is not on record"
    if not names.CELL.fullmatch(one.cell):
        return "its tag names no cell"
    is_recorded = (one.kind, one.name) in recorded
    if one.kind is Kind.VOLUME:
        if is_recorded or one.id in proved.volumes:
            return None
        return "it is not on record, and goes with none of the run's nodes"
    if one.kind is Kind.INSTANCE:
        # One that shuts down already may not show its profile any more, and is not terminated again.
        if one.evidence.profile != site.profile and not one.going:
            return "it does not have the nodes' instance profile"
        if is_recorded or one.evidence.group in _names(one) or one.evidence.template in proved.templates:
            return None
        return "it is not on record, and was launched by none of the run's groups"
    if one.name not in _names(one):
        return "its name is none that Troop generates for its run, cell and role"
    if one.kind is Kind.SECURITY_GROUP and one.evidence.vpc != site.vpc:
        return f"it is in the network {one.evidence.vpc}, and nodes run in {site.vpc}"
    return None


def _names(one: Seen) -> frozenset[str]:
    """What Troop calls a resource of its kind; of an instance, the groups that may launch it."""
    if one.kind is Kind.SECURITY_GROUP:
        return frozenset({names.security_group_name(one.run, one.cell)})
    if not one.role:
        return frozenset()
    own = names.fleet_name(one.run, one.cell, one.role)
    if one.kind is Kind.LAUNCH_TEMPLATE:
        return frozenset({own})
    return frozenset({own, names.backup_name(one.run, one.cell, one.role)})


def _reasons_to_stay(ours: Iterable[Seen], unverified: Iterable[Seen]) -> dict[Seen, str]:
    """What must stay: what is protected, what would take it along, and what it needs.

    A group takes its instances along, and an instance the volumes that EC2 deletes with it. While a group stays, it
    needs its launch template, and replaces what is terminated; and nothing goes that an instance uses.
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
                reasons[one] = f"would take along the {other.kind.value} {other.name}, which Troop does not remove"
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
    """Whether a resource must stay because another one does."""
    pair = one.kind, other.kind
    if pair == (Kind.AUTO_SCALING_GROUP, Kind.INSTANCE):
        return other.id in one.evidence.members
    if pair == (Kind.INSTANCE, Kind.AUTO_SCALING_GROUP):
        return one.id in other.evidence.members
    if pair == (Kind.INSTANCE, Kind.VOLUME):
        return other.id in one.evidence.volumes
    if pair == (Kind.LAUNCH_TEMPLATE, Kind.AUTO_SCALING_GROUP):
        return (one.run, one.cell, one.role) == (other.run, other.cell, other.role)
    if pair == (Kind.SECURITY_GROUP, Kind.AUTO_SCALING_GROUP):
        return (one.run, one.cell) == (other.run, other.cell)
    return other.kind is Kind.INSTANCE and _uses(other, one)


def _takes_along(one: Seen, other: Seen) -> bool:
    """Tells whether removing the one removes the other, too."""
    return other.id in one.evidence.members | one.evidence.volumes


def _uses(instance: Seen, one: Seen) -> bool:
    """Whether an instance uses a security group or a volume."""
    if one.kind is Kind.SECURITY_GROUP:
        return one.id in instance.evidence.security_groups
    return one.kind is Kind.VOLUME and instance.id in one.evidence.instances
