"""What runs have cost is on record when nothing of them is left."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from tests.unit.teardown.tables import NOON, OTHER, RUN, a_cell, a_run
from tests.unit.teardown.world import World
from troop.bench import names, spending
from troop.bench.money import HOURLY
from troop.bench.prices import Prices, VolumePrice
from troop.bench.record import CellStatus, Kind, RunStatus
from troop.bench.spending import CellTerms, Terms
from troop.flows.bench import reckoning

D = Decimal
CELL = CellTerms(D(1), D(1), 1, D("0.25"), D(10))
TERMS = Terms(
    Prices(
        on_demand={"c7g.large": D(3)},
        volumes={"gp3": VolumePrice(D(1)), "gp2": VolumePrice(D(1))},
        cross_zone_gb=D("0.1"),
    ),
    HOURLY,
    cells={"c001": CELL, "c002": CELL},
)


def launched(world: World, *cells: str, terms: Terms | None = TERMS) -> None:
    assert world.runs.create(a_run(RUN, world.now, len(cells)), [a_cell(RUN, cell) for cell in cells], terms)
    for cell in cells:
        world.launch_by_the_rules(RUN, cell)
        world.runs.cells.change(RUN, cell, phase="boot", at=world.now)


def nodes(world: World, cell: str) -> Decimal:
    """Node-hours that a cell's bill has."""
    cost = world.runs.cells.get(RUN, cell).cost
    assert cost is not None
    return sum((item.quantity for item in cost.items if item.unit == "node-hour"), D(0))


def test_a_cell_is_reckoned_when_nothing_of_it_is_left_and_the_run_when_it_has_ended(world: World) -> None:
    launched(world, "c001", "c002")
    world.runs.cells.change(RUN, "c001", status=CellStatus.SUCCEEDED)
    world.tear_down(RUN, cell="c001")
    one = world.runs.cells.get(RUN, "c001").cost
    assert one is not None
    assert {item.what: item.amount for item in one.items if item.unit in ("GB", "cell")} == {
        "traffic between zones, as stated": 1,
        "Troop's own calls": D("0.25"),
    }
    assert [item.what for item in one.items if item.unit == "node-hour"] == ["drivers, c7g.large, on-demand"]
    assert nodes(world, "c001") > 0
    assert world.runs.cells.get(RUN, "c002").cost is None
    assert world.runs.get(RUN).cost is None
    world.tear_down(RUN, status="FAILED")
    run, other = world.runs.get(RUN), world.runs.cells.get(RUN, "c002").cost
    assert run.status is RunStatus.FAILED
    assert run.cost is not None
    assert other is not None
    assert abs(run.cost.amount - one.amount - other.amount) < D("0.00001")


def test_nodes_that_nobody_had_recorded_are_paid_for_until_they_were_seen_to_be_gone(world: World) -> None:
    launched(world, "c001")
    node = world.members(names.fleet_name(RUN, "c001", "drivers"))[0]
    tags = names.of_fleet(names.tags("Troop", RUN, "c001", "2036-11-20T14:00:00.000Z"), "drivers")
    world.volume_of_a_node(node, tags)
    world.step("close", {"run": RUN, "cell": "c001"})
    world.step("remove", {"run": RUN, "cell": "c001"})
    found = [one for one in world.runs.resources.of(RUN) if one.kind is Kind.INSTANCE]
    assert [(one.instance_type, one.purchase, one.role) for one in found] == [("c7g.large", "on-demand", "drivers")] * 2
    assert all(one.started_at and one.zone for one in found)
    (volume,) = [one for one in world.runs.resources.of(RUN) if one.kind is Kind.VOLUME]
    assert (volume.role, volume.disk and volume.disk.size_gib) == ("drivers", 8)
    # moto's instances are of today, and the clock is years ahead: let them be of an hour and a second ago.
    for one in found:
        world.runs.client.update_item(
            TableName="Runs",
            Key={"run": {"S": RUN}, "item": {"S": f"resource#instance#{one.name}"}},
            UpdateExpression="SET started_at = :at",
            ExpressionAttributeValues={":at": {"S": f"{world.now - timedelta(seconds=3601):%Y-%m-%dT%H:%M:%S}Z"}},
        )
    world.tear_down(RUN, cell="c001")
    assert nodes(world, "c001") == 2 * 2, "each node's second hour had begun"


def test_reckoning_again_changes_nothing_and_what_comes_later_is_added(world: World) -> None:
    launched(world, "c001")
    world.tear_down(RUN, status="SUCCEEDED")
    before = world.runs.get(RUN).cost
    world.forward(hours=5)
    world.tear_down(RUN)
    assert world.runs.get(RUN).cost == before


@pytest.mark.parametrize("terms", [None, TERMS])
def test_a_run_without_terms_or_with_damaged_ones_is_torn_down_all_the_same(
    world: World, terms: Terms | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched(world, "c001", terms=terms)
    if terms:
        monkeypatch.setattr(spending, "actual", lambda *_: dict[str, str]()["nothing"])
    world.tear_down(RUN, status="SUCCEEDED")
    run = world.runs.get(RUN)
    assert (run.status, run.cost) == (RunStatus.SUCCEEDED, None)
    assert run.ended_at is not None


def test_the_budget_is_asked_of_the_record(world: World) -> None:
    launched(world, "c001", terms=Terms(TERMS.prices, budget=D("1.5"), cells=TERMS.cells))
    world.runs.cells.change(RUN, "c001", status=CellStatus.RUNNING, phase="launch", at=world.now)
    said = reckoning.over_budget(world.runs, RUN, "c002")
    assert said is not None
    assert "$0.50 is left, and it is expected to cost $1.00" in said
    assert reckoning.over_budget(world.runs, RUN, "c001") is None
    assert world.runs.create(a_run(OTHER, NOON), [a_cell(OTHER)])
    assert reckoning.over_budget(world.runs, OTHER, "c001") is None
