"""What an attempt buys, and what the next one buys if EC2 lacks capacity."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.bench.build import BENCHMARK
from troop.bench.definition.definition import SPOT, Benchmark, Fleet, from_document, to_document
from troop.bench.definition.plan import sole
from troop.bench.fleets.booting import FleetStatus
from troop.bench.fleets.choices import Choice, chosen, dearest, following, number_of, without_capacity
from troop.bench.money.prices import Prices

SERVERS = Fleet(
    "servers", 4, "c7g.large", 2, 600, 8, fallback_types=("m7g.large", "r7g.large"), zone_names=("a", "b", "c")
)
DRIVERS = Fleet("drivers", 1, "c5.large", 1, 600, 8)
NO_CAPACITY = (
    "Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have sufficient "
    "c7g.large capacity in the Availability Zone you requested (us-east-1a)."
)


def benchmark_with(*fleets: Fleet) -> Benchmark:
    return replace(BENCHMARK, fleets=fleets, phases=())


def attempts(benchmark: Benchmark, refused: str) -> list[tuple[str, tuple[str, ...]]]:
    """What the fleet buys in each attempt if EC2 refuses every one."""
    bought, choices = [], dict[str, Choice]()
    while True:
        fleet = chosen(benchmark, choices).fleet(refused)
        bought.append((fleet.instance_type, fleet.zone_names))
        if (after := following(benchmark, choices, {refused})) is None:
            return bought
        choices = after


def test_every_zone_is_tried_before_another_type() -> None:
    benchmark = benchmark_with(SERVERS, DRIVERS)
    assert attempts(benchmark, "servers") == [
        ("c7g.large", ("a", "b")),
        ("c7g.large", ("b", "c")),
        ("m7g.large", ("a", "b")),
        ("m7g.large", ("b", "c")),
        ("r7g.large", ("a", "b")),
        ("r7g.large", ("b", "c")),
    ]
    assert number_of(SERVERS) == 6
    assert attempts(benchmark, "drivers") == [("c5.large", ())]


def test_fleets_with_the_same_zones_move_together() -> None:
    one = replace(SERVERS, zones=1, fallback_types=())
    benchmark = benchmark_with(
        one, replace(DRIVERS, zone_names=("a", "b", "c")), replace(DRIVERS, role="others", zone_names=("a",))
    )
    after = following(benchmark, {}, {"servers"})
    assert after is not None
    assert {f.role: f.zone_names for f in chosen(benchmark, after).fleets} == {
        "servers": ("b",),
        "drivers": ("b",),
        "others": ("a",),
    }


@pytest.mark.parametrize(
    ("fleet", "seen", "lacks"),
    [
        (SERVERS, FleetStatus("servers", frozenset(), refusals=(NO_CAPACITY,)), True),
        (SERVERS, FleetStatus("servers", frozenset("wxyz"), refusals=(NO_CAPACITY,)), False),
        (SERVERS, FleetStatus("servers", frozenset(), refusals=("VcpuLimitExceeded",)), False),
        (SERVERS, FleetStatus("servers", frozenset()), False),
        # Spot has a backup on demand: only that one's capacity counts.
        (replace(SERVERS, purchase=SPOT), FleetStatus("servers", frozenset(), refusals=(NO_CAPACITY,)), False),
        (
            replace(SERVERS, purchase=SPOT),
            FleetStatus("servers", frozenset(), backup_refusals=("UnfulfillableCapacity",)),
            True,
        ),
    ],
)
def test_only_a_fleet_that_ec2_refuses_for_lack_of_capacity_moves(fleet: Fleet, seen: FleetStatus, lacks: bool) -> None:
    assert bool(without_capacity(benchmark_with(fleet), [seen])) is lacks


def test_the_estimate_takes_the_dearest_type_and_one_without_a_price_above_all() -> None:
    prices = Prices(on_demand={"c7g.large": Decimal("0.07"), "m7g.large": Decimal("0.1"), "r7g.large": Decimal("0.09")})
    (cell,) = dearest(sole(benchmark_with(SERVERS)), prices).cells
    assert cell.benchmark.fleets[0].instance_type == "m7g.large"
    less = replace(prices, on_demand={"c7g.large": Decimal("0.07"), "m7g.large": Decimal("0.1")})
    (cell,) = dearest(sole(benchmark_with(SERVERS)), less).cells
    assert cell.benchmark.fleets[0].instance_type == "r7g.large"


def test_choices_are_stored_with_the_definition() -> None:
    assert from_document(to_document(benchmark_with(SERVERS, DRIVERS))) == benchmark_with(SERVERS, DRIVERS)
    assert "zone_names" not in to_document(benchmark_with(DRIVERS))["fleets"]["drivers"]
