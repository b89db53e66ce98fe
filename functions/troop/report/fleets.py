"""Describes the fleets of a cell: nodes, hourly cost and spot interruptions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from troop.bench.billing import HOUR, MONTH
from troop.bench.definition import Benchmark, Volume
from troop.bench.definition import Fleet as PlannedFleet
from troop.bench.estimate import ROOT_VOLUME
from troop.bench.money import ZERO
from troop.bench.prices import Prices, storage
from troop.bench.roster import Member, Roster
from troop.report import archive as files
from troop.report.archive import Archive, DamagedError
from troop.report.document import Fleet, Interruption

REBALANCE = "rebalance-recommended"

MOST_NOTICES = 1000
"""The most notices of a cell: several for each node that it can have."""


@dataclass(frozen=True)
class Place:
    """A node's zone, purchase option and instance type."""

    role: str
    zone: str
    purchase: str
    instance_type: str = ""


def places(roster: Roster | None) -> dict[str, Place]:
    """Returns the places of all nodes by id."""
    members = roster.members if roster else ()
    return {one.id: Place(one.role, one.zone, one.purchase, one.instance_type) for one in members}


def fleets(benchmark: Benchmark | None, roster: Roster | None, prices: Prices | None) -> list[Fleet]:
    """Returns the fleets in the file's order: from the roster, or as planned if there is none."""
    planned = {fleet.role: fleet for fleet in benchmark.fleets} if benchmark else {}
    if roster is None:
        return [_planned(fleet, prices) for fleet in planned.values()]
    roles = dict.fromkeys([*planned, *(one.role for one in roster.members)])
    members_by_role = {role: [one for one in roster.members if one.role == role] for role in roles}
    return [_there(role, members, planned.get(role), prices) for role, members in members_by_role.items() if members]


def hourly(fleets: Sequence[Fleet]) -> float | None:
    """Returns the hourly cost of all fleets with their volumes; None unless all prices are known."""
    known = [fleet.hourly for fleet in fleets if fleet.hourly is not None]
    return round(math.fsum(known), 6) if fleets and len(known) == len(fleets) else None


def _planned(fleet: PlannedFleet, prices: Prices | None) -> Fleet:
    price = prices.hour(fleet.instance_type, fleet.purchase) if prices else None
    return Fleet(
        role=fleet.role,
        nodes=fleet.count,
        instance_type=fleet.instance_type,
        zones={},
        purchase={fleet.purchase: fleet.count},
        hourly=_hourly([price] * fleet.count, fleet, prices),
    )


def _there(role: str, members: Sequence[Member], planned: PlannedFleet | None, prices: Prices | None) -> Fleet:
    each = [prices.hour(one.instance_type, one.purchase, one.zone or None) if prices else None for one in members]
    return Fleet(
        role=role,
        nodes=len(members),
        instance_type=", ".join(sorted({one.instance_type for one in members})),
        zones=dict(sorted(Counter(one.zone for one in members if one.zone).items())),
        purchase=dict(sorted(Counter(one.purchase for one in members).items())),
        hourly=_hourly(each, planned, prices),
    )


def _hourly(nodes: Sequence[Decimal | None], fleet: PlannedFleet | None, prices: Prices | None) -> float | None:
    """Returns the hourly cost of nodes with these prices and of their volumes."""
    if prices is None or fleet is None:
        return None
    parts = list(nodes)
    for disk in (Volume("", fleet.root_volume_gib, ROOT_VOLUME), *fleet.volumes):
        for _, _, size, month in storage(prices, disk.type, disk.size_gib, disk.iops, disk.throughput_mib):
            parts.append(None if month is None else len(nodes) * size * month * HOUR / MONTH)
    known = [part for part in parts if part is not None]
    return float(round(sum(known, ZERO), 6)) if len(known) == len(parts) else None


def interruptions(
    archive: Archive, cell: str, phases: Sequence[Mapping[str, Any]], damaged: Callable[[str], None]
) -> list[Interruption]:
    """Returns the spot interruption notices of a cell, and rebalance recommendations that no interruption followed.

    Args:
        phases: the cell's results.
        damaged: receives a sentence about unreadable and surplus notices; the others are not affected.

    Raises:
        DamagedError: the lines of nodes cannot be read.
    """
    interruptions: list[Interruption] = []
    unread: list[DamagedError] = []
    names = archive.names(f"{cell}/{files.INTERRUPTIONS}")
    for name in names[:MOST_NOTICES]:
        try:
            notice = files.document(archive, name)
        except DamagedError as error:
            unread.append(error)
            continue
        if notice is not None:
            node = str(notice.get("id") or name.rpartition("/")[2].removesuffix(".json"))
            fields = {key: str(notice.get(key) or "") for key in ("role", "action", "time")}
            interruptions.append(Interruption(node=node, **fields))
    if unread:
        others = f"; {len(unread) - 1:,} more cannot be read either" if len(unread) > 1 else ""
        damaged(f"{unread[0]}: this spot interruption notice is left out{others}.")
    if len(names) > MOST_NOTICES:
        more = len(names) - MOST_NOTICES
        damaged(f"{cell}/{files.INTERRUPTIONS} has {len(names):,} spot interruption notices: {more:,} are left out.")
    reported = {one.node for one in interruptions}
    for node, (role, at) in _recommended(phases).items():
        if node not in reported:
            interruptions.append(Interruption(node=node, role=role, action=REBALANCE, time=at))
    return interruptions


def _recommended(phases: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Returns each node's role and the time of its first rebalance recommendation, by node."""
    recommendations: dict[str, tuple[str, str]] = {}
    try:
        for phase in phases:
            for role, its in phase["roles"].items():
                for node, line in its["nodes"].items():
                    if at := line.get("rebalance_recommended_at"):
                        recommendations.setdefault(node, (role, str(at)))
    except (AttributeError, KeyError, TypeError) as error:
        raise DamagedError(f"cannot read the lines of nodes: {error!r}") from None
    return recommendations
