"""Merges the reports of a standing fleet's nodes to one digest for each role.

A node without a current report is silent, and counts as failing. So does one whose report is malformed. Nodes that
drain are to end soon, and fail no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from troop.bench.definition.living import FAIL_AFTER, MOST_NODE_IDS, Grade, MergedCheck, RoleDigest
from troop.bench.definition.roster import Node
from troop.bench.definition.standing import GroupStatus, Place, Standing
from troop.bench.living.report import MOST_CHECKS, SEVERITY, Check, Report

SILENT = timedelta(minutes=3)
"""Age of the newest report from which a node is silent. Nodes report every minute."""

REPORT = "report"
"""The check of a role's nodes that are silent, or whose report is malformed."""

MOST_STORED = 100_000
"""The most bytes of all digests of a fleet, about: an item of DynamoDB has at most 400 KB, with all else of a fleet."""

_NAME = re.compile(r"[!-9;-~][ -~]*")
"""A name of a check that can be the value of a dimension in CloudWatch."""

MOST_VALUES = 100
"""The most values of a check in one line of metrics."""


@dataclass(frozen=True)
class Watched:
    """A node in service whose setup has succeeded, of a role whose nodes report.

    Attributes:
        ready_at: when it registered.
        grace: time after that in which failures do not count.
        report: the newest one; None if there is none.
        is_draining: whether it is to end soon.
        is_silent: whether it should have reported since.
        is_new: whether its first report is due, or its checks fail during its grace.
    """

    id: str
    role: str
    ready_at: datetime
    grace: timedelta = timedelta()
    report: Report | None = None
    is_draining: bool = False
    is_silent: bool = False
    is_new: bool = False

    @property
    def grade(self) -> Grade | None:
        """Its worst status; None if it counts neither as good nor as bad."""
        if self.is_draining or self.is_new:
            return None
        return Grade.FAIL if self.is_silent or self.report is None else self.report.status


def watched(
    fleet: Standing,
    groups: Iterable[GroupStatus],
    nodes: Mapping[str, Node],
    registered: Mapping[str, datetime],
    reports: Mapping[str, Report],
    now: datetime,
) -> tuple[Watched, ...]:
    """Returns the nodes whose health counts.

    Args:
        nodes: registrations by id.
        registered: when each of them was written.
        reports: the newest one of each node.
    """
    return tuple(
        _watched(fleet, group.role, member.id, registered.get(member.id, now), reports.get(member.id), now)
        for group in groups
        if group.role in fleet.watched
        for member in group.members
        if member.place is Place.SERVING and member.id in nodes and nodes[member.id].error is None
    )


def _watched(
    fleet: Standing, role: str, node: str, ready_at: datetime, report: Report | None, now: datetime
) -> Watched:
    health = fleet.healths.get(role)
    grace = timedelta(seconds=health.grace if health else 0)
    # An older report may be about an order that has ended since: nobody would replace the node.
    says_so = report is not None and report.draining and now - report.at <= SILENT
    is_draining = node in fleet.drains or says_so
    newest = max(ready_at, report.at) if report else ready_at
    is_silent = not is_draining and now - newest > SILENT
    in_grace = now < ready_at + grace and (report is None or report.status is not Grade.OK)
    is_new = not is_draining and not is_silent and (report is None or in_grace)
    return Watched(node, role, ready_at, grace, report, is_draining, is_silent, is_new)


def digests(nodes: Sequence[Watched], roles: Iterable[str]) -> dict[str, RoleDigest]:
    """Returns the digest of each role. All together fit into the record: beyond that, the mildest checks are left out.

    Args:
        nodes: of all roles.
    """
    merged = {role: digest([node for node in nodes if node.role == role]) for role in sorted(roles)}
    while sum(map(_size, merged.values())) > MOST_STORED:
        role = max(merged, key=lambda one: _size(merged[one]))
        merged[role] = replace(merged[role], checks=merged[role].checks[:-1])
    return merged


def _size(one: RoleDigest) -> int:
    return sum(
        200 + len("".join((check.name, check.detail, check.todo, *check.node_ids)).encode()) for check in one.checks
    )


def digest(nodes: Sequence[Watched]) -> RoleDigest:
    """Returns the digest of the nodes of one role."""
    grades = [node.grade for node in nodes if not node.is_silent]
    return RoleDigest(
        ok=grades.count(Grade.OK),
        warn=grades.count(Grade.WARN),
        fail=grades.count(Grade.FAIL),
        silent=sum(node.is_silent for node in nodes),
        draining=sum(node.is_draining for node in nodes),
        new=sum(node.is_new for node in nodes),
        checks=_merged(nodes),
    )


def confirmed(nodes: Iterable[Watched], fleet: Standing) -> tuple[Watched, ...]:
    """Returns the nodes of whose checks people may be notified: not those that have only just begun to fail. One
    request without an answer wakes nobody.
    """
    return tuple(node for node in nodes if not _is_early(node, fleet))


def _is_early(node: Watched, fleet: Standing) -> bool:
    if node.is_silent or node.report is None or node.report.problem or node.report.status is not Grade.FAIL:
        return False
    heal = fleet.heals.get(node.role)
    return node.report.failures < (heal.after if heal else FAIL_AFTER)


def values(nodes: Iterable[Watched]) -> dict[str, tuple[float, ...]]:
    """Returns the values of the checks that have a number, by name: at most :data:`MOST_VALUES` of each, spread evenly
    from the smallest to the largest.
    """
    by_name: dict[str, list[float]] = {}
    for node in nodes:
        if node.report is not None and node.grade is not None and not node.is_silent:
            for check in node.report.checks:
                if check.value is not None and _NAME.fullmatch(check.name):
                    by_name.setdefault(check.name, []).append(check.value)
    return {name: _spread(sorted(by_name[name])) for name in sorted(by_name)[:MOST_CHECKS]}


def _spread(ordered: Sequence[float]) -> tuple[float, ...]:
    if len(ordered) <= MOST_VALUES:
        return tuple(ordered)
    last = len(ordered) - 1
    return tuple(ordered[place * last // (MOST_VALUES - 1)] for place in range(MOST_VALUES))


def _merged(nodes: Iterable[Watched]) -> tuple[MergedCheck, ...]:
    by_name: dict[str, list[tuple[str, Check]]] = {}
    for node in nodes:
        for check in _checks(node):
            by_name.setdefault(check.name, []).append((node.id, check))
    merged = [_merge(name, checks) for name, checks in by_name.items()]
    return tuple(sorted(merged, key=lambda one: (-SEVERITY[one.status], -one.nodes, one.name))[:MOST_CHECKS])


def _checks(node: Watched) -> tuple[Check, ...]:
    if node.grade is None:
        return ()
    if node.is_silent or node.report is None:
        detail = f"no report for more than {int(SILENT.total_seconds())} s"
        return (Check(REPORT, Grade.FAIL, detail=detail, todo=_TODO, actionable=True),)
    if node.report.problem:
        detail = f"the report is malformed: {node.report.problem}"
        return (Check(REPORT, Grade.FAIL, detail=detail, todo=_TODO, actionable=True),)
    return node.report.checks


_TODO = "look at the node: its agent has ended, or cannot write to the results bucket"


def _merge(name: str, checks: Sequence[tuple[str, Check]]) -> MergedCheck:
    status = max((check.status for _, check in checks), key=SEVERITY.__getitem__)
    worst = sorted((one for one in checks if one[1].status is status), key=lambda one: one[0])
    _, shown = max(worst, key=lambda one: _distance(one[1]))
    return MergedCheck(
        name,
        status,
        len(worst),
        tuple(node for node, _ in worst[:MOST_NODE_IDS]),
        shown.value,
        shown.threshold,
        shown.detail,
        shown.todo,
        any(check.actionable for _, check in worst),
    )


def _distance(check: Check) -> float:
    """Returns how far a value is from its threshold: of nodes of one status, the farthest is the worst."""
    if check.value is None:
        return float("-inf")
    return check.value if check.threshold is None else abs(check.value - check.threshold)
