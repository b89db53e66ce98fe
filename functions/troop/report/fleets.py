"""Describes the fleets of a cell: nodes, hourly cost, spot interruptions and replaced nodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from troop.bench.admission.estimate import ROOT_VOLUME
from troop.bench.definition.definition import Benchmark, Volume, is_load
from troop.bench.definition.definition import Fleet as PlannedFleet
from troop.bench.definition.money import TERMS, ZERO
from troop.bench.definition.roster import Member, Roster
from troop.bench.money.billing import HOUR, MONTH
from troop.bench.money.prices import Prices, storage
from troop.bench.records import archive as files
from troop.bench.records.archive import Archive, DamagedError
from troop.report.document import Charge, Fleet, Interruption, ReplacedNode
from troop.shared import moments

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


def fleets(
    benchmark: Benchmark | None, roster: Roster | None, prices: Prices | None, file_prices: Prices | None = None
) -> list[Fleet]:
    """Returns the fleets in the file's order: from the roster, or as planned if there is none.

    Args:
        prices: on record.
        file_prices: the same with those of the file; None for a file without prices.
    """
    planned = {fleet.role: fleet for fleet in benchmark.fleets} if benchmark else {}
    if roster is None:
        return [_planned(fleet, prices, file_prices) for fleet in planned.values()]
    roles = dict.fromkeys([*planned, *(one.role for one in roster.members)])
    members_by_role = {role: [one for one in roster.members if one.role == role] for role in roles}
    return [
        _there(role, members, planned.get(role), prices, file_prices)
        for role, members in members_by_role.items()
        if members
    ]


def hourly(fleets: Sequence[Fleet]) -> float | None:
    """Returns the hourly cost of all fleets with their volumes; None unless all prices are known."""
    known = [fleet.hourly for fleet in fleets if fleet.hourly is not None]
    return round(math.fsum(known), 6) if fleets and len(known) == len(fleets) else None


def system(fleets: Sequence[Fleet]) -> list[Fleet]:
    """Returns the fleets under test: those that do not only generate load, or all of them if all do."""
    return [fleet for fleet in fleets if not fleet.is_load] or list(fleets)


def _planned(fleet: PlannedFleet, prices: Prices | None, file_prices: Prices | None) -> Fleet:
    bought = [(fleet.instance_type, fleet.purchase, None)] * fleet.count
    charge = _charge(bought, fleet, prices)
    return Fleet(
        role=fleet.role,
        nodes=fleet.count,
        instance_type=fleet.instance_type,
        zones={},
        purchase={fleet.purchase: fleet.count},
        hourly=charge.hourly if charge else None,
        load=is_load(fleet.role, fleet.load),
        charge=charge,
        charge_of_file=_charge(bought, fleet, file_prices),
    )


def _there(
    role: str,
    members: Sequence[Member],
    planned: PlannedFleet | None,
    prices: Prices | None,
    file_prices: Prices | None,
) -> Fleet:
    bought = [(one.instance_type, one.purchase, one.zone or None) for one in members]
    charge = _charge(bought, planned, prices)
    return Fleet(
        role=role,
        nodes=len(members),
        instance_type=", ".join(sorted({one.instance_type for one in members})),
        zones=dict(sorted(Counter(one.zone for one in members if one.zone).items())),
        purchase=dict(sorted(Counter(one.purchase for one in members).items())),
        hourly=charge.hourly if charge else None,
        load=is_load(role, planned.load if planned else None),
        charge=charge,
        charge_of_file=_charge(bought, planned, file_prices),
    )


_Bought = tuple[str, str, str | None]
"""A node's instance type, purchase option and zone."""


def _charge(nodes: Sequence[_Bought], fleet: PlannedFleet | None, prices: Prices | None) -> Charge | None:
    """Returns the hourly cost of nodes and of their volumes; None without prices."""
    if prices is None or fleet is None:
        return None
    disks = []
    for disk in (Volume("", fleet.root_volume_gib, ROOT_VOLUME), *fleet.volumes):
        for _, _, size, month in storage(prices, disk.type, disk.size_gib, disk.iops, disk.throughput_mib):
            disks.append(None if month is None else len(nodes) * size * month * HOUR / MONTH)
    by_term = {term: _sum(prices.committed_hour(kind, term) for kind, _, _ in nodes) for term in TERMS}
    return Charge.model_validate(
        {
            "instances": _sum(prices.hour(*node) for node in nodes),
            "storage": _sum(disks),
            "license": float(len(nodes) * fleet.license_fee),
            "committed": {term: amount for term, amount in by_term.items() if amount is not None},
        }
    )


def _sum(prices: Iterable[Decimal | None]) -> float | None:
    """Returns the sum; None unless all are known."""
    parts = list(prices)
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
    for node, notice in _notices(archive, f"{cell}/{files.INTERRUPTIONS}", "spot interruption notice", damaged):
        fields = {key: str(notice.get(key) or "") for key in ("role", "action", "time")}
        interruptions.append(Interruption(node=node, **fields))
    reported = {one.node for one in interruptions}
    for node, (role, at) in _recommended(phases).items():
        if node not in reported:
            interruptions.append(Interruption(node=node, role=role, action=REBALANCE, time=at))
    return interruptions


def replaced_nodes(archive: Archive, cell: str, damaged: Callable[[str], None]) -> list[ReplacedNode]:
    """Returns the nodes that were replaced while the cell booted, in the order of their replacement.

    Args:
        damaged: receives a sentence about unreadable and surplus records; the others are not affected.
    """
    nodes = []
    for node, document in _notices(archive, f"{cell}/{files.REPLACED}", "replacement record", damaged):
        at = None
        with suppress(TypeError, ValueError):
            at = moments.parse(document["at"]) if "at" in document else None
        fields = {key: str(document.get(key) or "") for key in ("role", "reason")}
        nodes.append(ReplacedNode(node=node, at=at, **fields))
    return sorted(nodes, key=lambda one: (one.at is None, one.at or _NEVER, one.node))


_NEVER = datetime.max.replace(tzinfo=UTC)


def _notices(
    archive: Archive, below: str, notice_kind: str, damaged: Callable[[str], None]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields documents about nodes with the nodes' ids, at most :data:`MOST_NOTICES`.

    Args:
        below: the beginning of their names.
        notice_kind: words for one of them; with an s for several.
        damaged: as in :func:`interruptions`.
    """
    unread: list[DamagedError] = []
    names = archive.names(below)
    for name in names[:MOST_NOTICES]:
        try:
            notice = files.document(archive, name)
        except DamagedError as error:
            unread.append(error)
            continue
        if notice is not None:
            yield str(notice.get("id") or name.rpartition("/")[2].removesuffix(".json")), notice
    if unread:
        others = f"; {len(unread) - 1:,} more cannot be read either" if len(unread) > 1 else ""
        damaged(f"{unread[0]}: this {notice_kind} is left out{others}.")
    if len(names) > MOST_NOTICES:
        more = len(names) - MOST_NOTICES
        damaged(f"{below} has {len(names):,} {notice_kind}s: {more:,} are left out.")


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
