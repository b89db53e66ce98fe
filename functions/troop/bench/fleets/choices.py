"""Decides what an attempt at a cell buys, and what the next one buys if EC2 lacks capacity.

A file can name several instance types and zones for a fleet. Each attempt uses one choice of each fleet. If EC2 refuses
a launch for lack of capacity, the attempt is INVALID, and the next one takes the next choice: first the other zones of
the same type, because these nodes are comparable, and then the next type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from troop.bench.definition.definition import Benchmark, Fleet
from troop.bench.definition.plan import Plan
from troop.bench.fleets.booting import FleetStatus
from troop.bench.fleets.refusals import is_for_capacity
from troop.bench.money.prices import Prices


@dataclass(frozen=True)
class Choice:
    """What a fleet buys: positions, from 0, of its instance type and of the first of its zones in the file's lists."""

    type: int = 0
    zone: int = 0


Choices = Mapping[str, Choice]
"""Choices by role; a missing role has its first choice."""


def windows(fleet: Fleet) -> int:
    """Returns the number of choices of zones: as many neighbours in the list as the fleet needs zones."""
    return max(1, len(fleet.zone_names) - fleet.zones + 1)


def number_of(fleet: Fleet) -> int:
    """Returns the number of a fleet's choices."""
    return len(fleet.types) * windows(fleet)


def chosen(benchmark: Benchmark, choices: Choices) -> Benchmark:
    """Returns the benchmark as one attempt runs it, with a single choice for each fleet."""
    return replace(benchmark, fleets=tuple(_chosen(f, choices.get(f.role, Choice())) for f in benchmark.fleets))


def _chosen(fleet: Fleet, choice: Choice) -> Fleet:
    kind = fleet.types[min(choice.type, len(fleet.types) - 1)]
    zones = fleet.zone_names[choice.zone : choice.zone + fleet.zones]
    return replace(fleet, instance_type=kind, fallback_types=(), zone_names=zones)


def following(benchmark: Benchmark, choices: Choices, refused: Collection[str]) -> dict[str, Choice] | None:
    """Returns the choices of the next attempt; None if a refused fleet has no further choice.

    Fleets with the same list of zones stay in the same zones.

    Args:
        benchmark: with all choices.
        choices: of this attempt.
        refused: roles for which EC2 has no capacity.
    """
    following = {fleet.role: choices.get(fleet.role, Choice()) for fleet in benchmark.fleets}
    for fleet in benchmark.fleets:
        if fleet.role not in refused:
            continue
        now = choices.get(fleet.role, Choice())
        if now.zone + 1 < windows(fleet):
            after = Choice(now.type, now.zone + 1)
        elif now.type + 1 < len(fleet.types):
            after = Choice(now.type + 1, 0)
        else:
            return None
        following[fleet.role] = after
        for mate in benchmark.fleets:
            if mate.role not in refused and fleet.zone_names and _zones(mate) == _zones(fleet):
                following[mate.role] = Choice(following[mate.role].type, after.zone)
    return following


def _zones(fleet: Fleet) -> tuple[int, tuple[str, ...]]:
    return fleet.zones, fleet.zone_names


def without_capacity(benchmark: Benchmark, fleets: Iterable[FleetStatus]) -> dict[str, str]:
    """Returns EC2's refusals for lack of capacity by role, of fleets that lack nodes. A spot fleet counts only when its
    backup on demand lacks capacity, too.
    """
    refusals = {}
    for status in fleets:
        fleet = benchmark.fleet(status.role)
        messages = (status.backup_refusals or ()) if fleet.is_spot else status.refusals
        refusal = next(filter(is_for_capacity, messages), None)
        if refusal is not None and len(status.serving) < fleet.count:
            refusals[status.role] = refusal
    return refusals


def shown(fleet: Fleet) -> str:
    """Describes the choice of a fleet, such as ``c7g.large in us-east-1b``."""
    return fleet.instance_type + (f" in {', '.join(fleet.zone_names)}" if fleet.zone_names else "")


def dearest(plan: Plan, prices: Prices) -> Plan:
    """Returns the plan with the dearest type of each fleet, for its estimate. A type without a price counts as the
    dearest, so that the estimate names it.
    """

    def priced(fleet: Fleet) -> Fleet:
        hours = {kind: prices.hour(kind, fleet.purchase) for kind in fleet.types}
        unknown = next((kind for kind, price in hours.items() if price is None), None)
        return replace(fleet, instance_type=unknown or max(hours, key=lambda kind: hours[kind] or 0))

    cells = (
        replace(one, benchmark=replace(one.benchmark, fleets=tuple(map(priced, one.benchmark.fleets))))
        for one in plan.cells
    )
    return replace(plan, cells=tuple(cells))


def choices_document(choices: Choices) -> dict[str, list[int]]:
    """Converts to the stored document; the reverse of :func:`choices_of`."""
    return {role: [one.type, one.zone] for role, one in choices.items()}


def choices_of(document: Mapping[str, Any]) -> dict[str, Choice]:
    return {role: Choice(*map(int, one)) for role, one in document.items()}
