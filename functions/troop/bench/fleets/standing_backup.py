"""Decides how many nodes of a standing fleet's role its spot group and its backup group on demand should have.

The decision is a pure function of both groups, of their nodes that are ready, and of what earlier checks remember.

- The backup grows once spot has lacked nodes for the role's ``spot_timeout``: to all that spot lacks, in one step.
- The backup shrinks once as many spot nodes have been ready for :data:`STEADY`. Nodes of the backup are removed only as
  far as those that stay ready are enough, whichever of them Auto Scaling removes.
- While the backup has nodes, even if they drain, spot may have only
  :func:`~troop.bench.definition.definition.surge` nodes beyond the fleet's count.
  So spot returns in steps, and a fleet never has many more nodes than its count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from troop.bench.definition.definition import surge
from troop.bench.definition.roster import Node
from troop.bench.definition.standing import GroupStatus, Market, Place, Resize, Standing

STEADY = timedelta(minutes=5)
"""Time during which spot must have served before the backup shrinks: spot that comes and goes does not flap."""

LONGEST_WAIT = 60
"""Maximum seconds between two polls of a fleet whose backup has nodes, or may soon need them."""


@dataclass(frozen=True)
class Nodes:
    """The nodes of one group.

    Attributes:
        size: the group's desired capacity.
        here: nodes that are starting or in service.
        ready: nodes in service whose setup has succeeded.
    """

    size: int
    here: int
    ready: int

    @classmethod
    def from_group(cls, group: GroupStatus, nodes: Mapping[str, Node]) -> Nodes:
        """Counts a group's nodes. Nodes beyond its size are about to go, although Auto Scaling still lists them."""
        staying = [member.id for member in group.members if member.place is not Place.LEAVING]
        serving = [member.id for member in group.members if member.place is Place.SERVING]
        ready = [i for i in serving if i in nodes and nodes[i].error is None]
        return cls(group.desired, min(len(staying), group.desired), min(len(ready), group.desired))


@dataclass(frozen=True)
class Sizes:
    """What to buy for one role: sizes of its groups, and what the next check must know."""

    spot: int
    backup: int
    market: Market


def sizes(
    count: int, timeout: int, spot: Nodes, backup: Nodes, market: Market, now: datetime, *, drains: bool = False
) -> Sizes:
    """Decides the sizes of a role's two groups.

    Args:
        count: desired number of ready nodes.
        timeout: seconds for which spot may lack nodes before the backup grows.
        market: what earlier checks remember.
        drains: whether nodes of the backup stay for a while when it shrinks.
    """
    there = backup.size if drains else 0
    is_short = spot.here + backup.size < count
    short_since = (market.short_since or now) if is_short else None
    if short_since is not None and now - short_since >= timedelta(seconds=timeout):
        return _sizes(count, spot, count - spot.here, there, Market(short_since))
    least = _least(count, spot, backup)
    # What a smaller count has made needless goes at once, up to the surge.
    most = max(least, min(backup.size, count + surge(count) - min(count, spot.here)))
    surplus_since = (market.surplus_since or now) if least < most else None
    if surplus_since is not None and now - surplus_since >= STEADY:
        most = least
    # The moments stay until what they led to shows: a call that fails is repeated by the next check.
    return _sizes(count, spot, most, there, Market(short_since, surplus_since))


def _least(count: int, spot: Nodes, backup: Nodes) -> int:
    """Returns the smallest size of the backup with which enough ready nodes stay, whichever ones are removed."""
    needed = max(0, count - spot.ready)
    if needed == 0:
        return 0
    removable = max(0, backup.ready - needed)
    return min(backup.size, max(needed, backup.here - removable))


def _sizes(count: int, spot: Nodes, backup: int, there: int, market: Market) -> Sizes:
    """Returns the sizes for a size of the backup. Spot loses nodes only if the fleet shrinks.

    Args:
        there: nodes that the backup has until they have drained.
    """
    limit = count + surge(count) - max(backup, there)
    return Sizes(min(count, max(spot.here, limit)), backup, market)


@dataclass(frozen=True)
class Purchases:
    """What to buy for all roles with a backup.

    Attributes:
        resizes: groups to resize; those that shrink first, so that the sum of sizes does not exceed the limit.
        market: what the next check must know, by role.
        is_settled: whether spot alone has all nodes, so that nothing is to be expected soon.
    """

    resizes: tuple[Resize, ...]
    market: Mapping[str, Market]
    is_settled: bool


def purchases(standing: Standing, groups: list[GroupStatus], nodes: Mapping[str, Node], now: datetime) -> Purchases:
    """Decides the sizes of the groups of all roles with a backup; leaves out roles of which a group is missing.

    Args:
        nodes: registrations by id.
    """
    resizes: list[tuple[int, Resize]] = []
    market = {}
    is_settled = True
    by_key = {(group.role, group.is_backup): group for group in groups if group.exists}
    for role, timeout in standing.backups.items():
        own, other = by_key.get((role, False)), by_key.get((role, True))
        if own is None or other is None:
            continue
        its, backup = Nodes.from_group(own, nodes), Nodes.from_group(other, nodes)
        market_before = standing.market.get(role, Market())
        decided = sizes(
            standing.desired[role], timeout, its, backup, market_before, now, drains=standing.queue is not None
        )
        market[role] = decided.market
        is_settled = is_settled and decided.market == Market() and not backup.size and not decided.backup
        for group, size in ((own, decided.spot), (other, decided.backup)):
            if {group.desired, group.most} != {size}:
                resizes.append((size - group.desired, Resize(role, size, is_backup=group.is_backup)))
    ordered = tuple(resize for _, resize in sorted(resizes, key=lambda pair: pair[0]))
    return Purchases(ordered, {role: one for role, one in market.items() if one != Market()}, is_settled)
