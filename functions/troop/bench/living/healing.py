"""Decides which nodes of a standing fleet are repaired, within its limits.

A repair is decided once, by its entry in the record; then it is carried out. A check that ends between both leaves the
entry. The next checks then carry it out: marking a node as unhealthy twice, or the same order twice, repairs once. So
no repair is lost, and none happens without an entry. After :data:`CARRY_OUT`, an entry is void: a node that still fails
needs another one.

The limit counts entries of an hour and of :data:`CARRY_OUT`, so that no hour has more repairs than the limit, no matter
how late each was carried out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from troop.bench.definition.living import REPLACE, RESTART, Grade, Heal, Repair
from troop.bench.definition.standing import Standing
from troop.bench.living.digest import Watched
from troop.bench.living.report import LONGEST_TEXT, Report

ORDER = timedelta(minutes=5)
"""Time in which checks carry out an entry."""

CARRY_OUT = timedelta(minutes=10)
"""Time after which nothing of an entry is carried out any more: the last check before the end of :data:`ORDER` may be
slow, and the next one, which withdraws the order, a few minutes later.
"""

COUNTED = timedelta(hours=1) + CARRY_OUT
"""Time for which an entry counts against the limit."""

MOST_OF_A_NODE = 3
"""Repairs of one node, after which it is left alone: a person must look."""

MOST_ON_RECORD = 500
"""The most entries in a record, and so of all repairs of a fleet in an hour: an item of DynamoDB has at most 400 KB."""

_POLL = 60
"""Seconds between two checks of a role that has no ``health``: nodes report so often."""


@dataclass(frozen=True)
class Healing:
    """What a check has decided about repairs.

    Attributes:
        repairs: the new entries.
        on_record: all entries that the record must have, in order, also the new ones.
        limited: why a person must act, as sentences; empty if nobody must.
    """

    repairs: tuple[Repair, ...]
    on_record: tuple[Repair, ...]
    limited: tuple[str, ...]


def heal(fleet: Standing, nodes: Sequence[Watched], members: Collection[str], now: datetime) -> Healing:
    """Decides the repairs of all roles.

    Args:
        nodes: of all roles whose nodes report.
        members: ids of all instances in the fleet's groups.
    """
    # Clocks of functions differ by a little: entries stay in their order.
    now = max([now, *(one.at for one in fleet.repairs)])
    on_record = _remaining(fleet.repairs, members, now)
    latest = {one.node: one for one in on_record}
    repairs: list[Repair] = []
    limited: list[str] = []
    for role, rule in fleet.heals.items():
        recent = [one for one in on_record if one.at > now - COUNTED]
        its = [one for one in recent if one.role == role]
        most = limit(rule, fleet.desired.get(role, 0))
        room = max(0, min(most - len(its), MOST_ON_RECORD - len(recent) - len(repairs)))
        settle = _settle(fleet, role, rule)
        failing = [
            (node, reason)
            for node in nodes
            if node.role == role and (reason := _reason(node, rule, latest.get(node.id), settle, now))
        ]
        due = [(node, reason) for node, reason in failing if _number(latest, node) < MOST_OF_A_NODE]
        due.sort(key=lambda one: _urgency(one[0]))
        new = [_repair(node, reason, rule, _number(latest, node) + 1, now) for node, reason in due[:room]]
        repairs += new
        limited += _limited(role, most, len(due) - len(new), [node.id for node, _ in failing], latest, new)
    # Those that count come last, and are never more: older entries of nodes that are still there go first.
    return Healing(tuple(repairs), (*on_record, *repairs)[-MOST_ON_RECORD:], tuple(limited))


def limit(rule: Heal, size: int) -> int:
    """Returns the most repairs of a role in an hour.

    Args:
        size: the desired number of its nodes.
    """
    return max(1, int(rule.at_most * size))


def to_replace(repairs: Iterable[Repair], serving: Collection[str], now: datetime) -> list[str]:
    """Returns the nodes to mark as unhealthy now: those with an entry that are still in service."""
    due = (one.node for one in repairs if one.do == REPLACE and now < one.at + ORDER)
    return [node for node in dict.fromkeys(due) if node in serving]


def to_restart(repairs: Iterable[Repair], reports: Mapping[str, Report], now: datetime) -> dict[str, str]:
    """Returns the ids of the repairs that nodes are to begin now, by node: the last one of each, until its report shows
    it.
    """
    latest = {one.node: one for one in repairs}
    return {
        node: one.id
        for node, one in latest.items()
        if one.do == RESTART and now < one.at + ORDER and not _has_begun(one, reports.get(node))
    }


def _has_begun(repair: Repair, report: Report | None) -> bool:
    return report is not None and report.repair == repair.id


def _remaining(repairs: Iterable[Repair], members: Collection[str], now: datetime) -> tuple[Repair, ...]:
    """Returns the entries that still matter: those that count, and the latest of each node that is there."""
    every = tuple(repairs)
    latest = {one.node: one.id for one in every}
    return tuple(one for one in every if one.at > now - COUNTED or (one.node in members and latest[one.node] == one.id))


def _settle(fleet: Standing, role: str, rule: Heal) -> timedelta:
    """Returns the time that a repair takes to show: until then, a node is not repaired again."""
    health, work = fleet.healths.get(role), fleet.works.get(role)
    poll, grace = (health.every, health.grace) if health else (_POLL, 0)
    return timedelta(seconds=grace + rule.after * poll + (work.every if work else 0))


def _reason(node: Watched, rule: Heal, last: Repair | None, settle: timedelta, now: datetime) -> str:
    """Returns why a node needs a repair; "" if it needs none, or none yet."""
    if node.is_draining or now < node.ready_at + node.grace or not _is_over(node, last, settle, now):
        return ""
    if node.is_silent:
        return "no report"
    report = node.report
    # A malformed report tells nothing about the application: it calls for a person.
    if report is None or report.problem or report.status is not Grade.FAIL or report.failures < rule.after:
        return ""
    if last is not None and report.at <= last.at:
        return ""  # it is older than the repair
    names = [check.name for check in report.checks if check.status is Grade.FAIL]
    return f"{', '.join(names[:3]) or 'health'} failed {report.failures} times"[:LONGEST_TEXT]


def _is_over(node: Watched, last: Repair | None, settle: timedelta, now: datetime) -> bool:
    """Checks whether a node's last repair has had its effect, if it ever will."""
    report = node.report
    if last is None:
        return True
    if last.do == RESTART and not node.is_silent and report is not None and report.repair == last.id:
        # A script that goes on ends by itself: the agent limits its time.
        return report.repaired_at is not None and now >= max(last.at, report.repaired_at) + settle
    return now >= last.at + max(settle, CARRY_OUT)


def _number(latest: Mapping[str, Repair], node: Watched) -> int:
    return latest[node.id].number if node.id in latest else 0


def _urgency(node: Watched) -> tuple[bool, int, str]:
    failures = node.report.failures if node.report else 0
    return not node.is_silent, -failures, node.id


def _repair(node: Watched, reason: str, rule: Heal, number: int, now: datetime) -> Repair:
    do = REPLACE if node.is_silent else rule.do
    return Repair(f"{node.id}-{now:%Y%m%dT%H%M%SZ}", node.id, node.role, do, now, number, reason)


def _limited(
    role: str,
    most: int,
    waiting: int,
    failing: Iterable[str],
    latest: Mapping[str, Repair],
    new: Iterable[Repair],
) -> list[str]:
    limited = []
    if waiting:
        limited.append(f"{waiting} more nodes of {role} fail, but {most} repairs an hour are the limit")
    last = [one.node for one in new if one.number >= MOST_OF_A_NODE]
    alone = [node for node in failing if node in latest and latest[node].number >= MOST_OF_A_NODE]
    if last or alone:
        named = ", ".join([*alone, *last][:_NAMED])
        limited.append(f"repairs do not help nodes of {role}: {named} had {MOST_OF_A_NODE}")
    return limited


_NAMED = 5
