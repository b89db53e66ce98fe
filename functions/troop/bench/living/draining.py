"""Decides how the groups of a standing fleet with a queue shrink: nodes finish their tasks before they are terminated.

All nodes of such groups are protected from scale-in. A group that shrinks orders some nodes to take no more tasks, and
is resized only by those that hold none any more: they alone lose their protection. A group that grows again takes
orders back.

Auto Scaling still replaces a node that fails, and EC2 takes spot nodes back: no protection keeps either from that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from troop.bench.definition.living import Grade
from troop.bench.definition.roster import Node
from troop.bench.definition.standing import GroupStatus, Member, Place, Resize
from troop.bench.living.digest import SILENT
from troop.bench.living.report import Report

PATIENCE = timedelta(minutes=15)
"""Time beyond a lease after which a node goes that is silent, fails, or has not drained although it holds no task."""

LONGEST_TASK = timedelta(hours=12)
"""Time after which a node goes although it reports that it works on a task. SQS leases a message no longer, so another
node has the task by then.
"""

BOOTING = timedelta(minutes=2)
"""Time after which a node goes that has neither registered nor reported: it has not begun to work."""

MOST_DRAINS = 1000
"""The most nodes that drain at a time; the record of a fleet has room for them."""

_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Nodes:
    """What is known about the nodes of a fleet, by id.

    Attributes:
        registered: their registrations.
        began: when they were written.
        reports: their newest reports.
    """

    registered: Mapping[str, Node] = field(default_factory=dict)
    began: Mapping[str, datetime] = field(default_factory=dict)
    reports: Mapping[str, Report] = field(default_factory=dict)

    def is_ready(self, node: str) -> bool:
        return node in self.registered and self.registered[node].error is None


@dataclass(frozen=True)
class Change:
    """What to do with one group, in this order.

    Attributes:
        protects, releases: ids of instances that get or lose the protection from scale-in.
        resize: its new size; None if it keeps its size.
    """

    role: str
    is_backup: bool
    protects: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    resize: Resize | None = None

    @property
    def is_needed(self) -> bool:
        return bool(self.protects or self.releases or self.resize)


@dataclass(frozen=True)
class Draining:
    """The decision of one check.

    Attributes:
        drains: nodes that are to take no more tasks, and since when.
        changes: of groups that need one; those that shrink first.
    """

    drains: Mapping[str, datetime]
    changes: tuple[Change, ...]


def decide(
    targets: Iterable[tuple[GroupStatus, int]],
    nodes: Nodes,
    drains: Mapping[str, datetime],
    lease: int,
    now: datetime,
) -> Draining:
    """Decides what the groups of a fleet need to have their sizes.

    Args:
        targets: the groups that exist, each with the size that it should have.
        drains: of the last check; those of nodes that are gone end.
        lease: of a task, in seconds.
    """
    left: dict[str, datetime] = {}
    changes: list[tuple[int, Change]] = []
    for group, size in targets:
        here = [member for member in group.members if member.place is not Place.LEAVING]
        ordered = _ordered(here, size, nodes, drains, MOST_DRAINS - len(left), now)
        left |= ordered
        over = {m.id for m in here if m.id in ordered and _is_over(m, nodes, ordered[m.id], lease, now)}
        change = _change(group, here, size, over)
        if change.is_needed:
            changes.append(((change.resize.size if change.resize else group.desired) - group.desired, change))
    return Draining(left, tuple(change for _, change in sorted(changes, key=lambda pair: pair[0])))


def _ordered(
    here: Sequence[Member],
    size: int,
    nodes: Nodes,
    drains: Mapping[str, datetime],
    room: int,
    now: datetime,
) -> dict[str, datetime]:
    """Returns the orders of one group: as many of its nodes drain as are too many."""
    before = {member.id: drains[member.id] for member in here if member.id in drains}
    surplus = max(0, len(here) - size)
    if surplus <= len(before):
        by_need = sorted(before, key=lambda i: (not _is_drained(nodes, i, before[i]), nodes.is_ready(i), before[i], i))
        return {i: before[i] for i in by_need[:surplus]}
    others = sorted((m for m in here if m.id not in before), key=lambda member: _rank(member, nodes))
    return before | {member.id: now for member in others[: max(0, min(surplus, room) - len(before))]}


def _rank(member: Member, nodes: Nodes) -> tuple[int, datetime, str]:
    """Orders nodes by how little a fleet misses them: those that start, that are not ready, that have been idle
    longest, and the oldest of those at work.
    """
    began, report = nodes.began.get(member.id, _LATEST), nodes.reports.get(member.id)
    if member.place is Place.STARTING:
        return 0, began, member.id
    if not nodes.is_ready(member.id):
        return 1, began, member.id
    if report and not report.held and report.idle_since:
        return 2, report.idle_since, member.id
    return 3, began, member.id


def _is_over(member: Member, nodes: Nodes, since: datetime, lease: int, now: datetime) -> bool:
    """Checks whether a node that drains may go."""
    if member.place is Place.STARTING:  # it has no operating system yet, or nothing runs on it
        return True
    limit = LONGEST_TASK if _is_at_work(nodes, member.id, now) else PATIENCE + timedelta(seconds=lease)
    if _is_drained(nodes, member.id, since) or now - since >= limit:
        return True
    return not nodes.is_ready(member.id) and member.id not in nodes.reports and now - since >= BOOTING


def _is_drained(nodes: Nodes, node: str, since: datetime) -> bool:
    """Checks whether a node has drained for this order: a report from before it may be about an earlier one."""
    report = nodes.reports.get(node)
    return report is not None and report.draining and report.drained and report.at >= since


def _is_at_work(nodes: Nodes, node: str, now: datetime) -> bool:
    """Checks whether a node says now that it holds tasks, and passes its checks: one that fails may hang."""
    report = nodes.reports.get(node)
    return report is not None and report.held > 0 and now - report.at <= SILENT and report.status is not Grade.FAIL


def _change(group: GroupStatus, here: Sequence[Member], size: int, over: set[str]) -> Change:
    """Returns what a group needs now. Its size falls by what is over, and by nodes that it lacks, and never rises
    except to what it should have: so nothing is launched in place of a node that went while it drained.
    """
    serving = [member for member in here if member.place is Place.SERVING]
    now = max(size, min(group.desired, len(here) - len(over)))
    return Change(
        group.role,
        group.is_backup,
        protects=tuple(member.id for member in serving if not member.is_protected and member.id not in over),
        releases=tuple(member.id for member in serving if member.is_protected and member.id in over),
        resize=None if {group.desired, group.most} == {now} else Resize(group.role, now, group.is_backup),
    )
