"""Estimates how much of the nodes' traffic crosses zones. Nodes count their bytes, but not where these go."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from troop.bench.definition.definition import Benchmark
from troop.bench.money.prices import Prices
from troop.report.document import CrossZone, Fleet, Phase


def cross_zone(
    fleets: Sequence[Fleet], phases: Sequence[Phase], benchmark: Benchmark | None, prices: Prices | None
) -> CrossZone | None:
    """Returns a cell's traffic between zones; None if its benchmark is unknown."""
    if benchmark is None:
        return None
    price = prices.cross_zone_gb if prices else None
    return CrossZone(
        stated_gb=float(benchmark.money.cross_zone_gb or 0),
        estimated_gb=estimated_gb(fleets, phases),
        price=None if price is None else float(price),
    )


def estimated_gb(fleets: Sequence[Fleet], phases: Sequence[Phase]) -> float | None:
    """Estimates the GB that nodes sent to other zones in the measured phases.

    Assumes that each node sends its bytes evenly to all other nodes of the cell. Bytes to S3, which cross no billed
    zone, count as if they went to nodes.

    Returns:
        None if a node's zone or a role's bytes are unknown, or nothing was measured.
    """
    nodes = sum(fleet.nodes for fleet in fleets)
    if any(sum(fleet.zones.values()) != fleet.nodes for fleet in fleets):
        return None
    by_role = {fleet.role: _share(fleet, fleets, nodes) for fleet in fleets}
    sent = [
        (by_role.get(use.role), use.network_sent_bytes, phase.measured_seconds) for phase in phases for use in phase.use
    ]
    if not sent:
        return None
    crossing = []
    for share, rate, seconds in sent:
        if share is None or rate is None:
            return None
        crossing.append(share * rate * seconds)
    return round(math.fsum(crossing) / 1e9, 6)


def _share(fleet: Fleet, fleets: Sequence[Fleet], nodes: int) -> float:
    """Returns the part of a role's bytes that leaves its nodes' zones."""
    in_zone: Counter[str] = Counter()
    for one in fleets:
        in_zone.update(one.zones)
    if nodes < 2:
        return 0.0
    leaving = math.fsum(count * (nodes - in_zone[zone]) / (nodes - 1) for zone, count in fleet.zones.items())
    return leaving / fleet.nodes
