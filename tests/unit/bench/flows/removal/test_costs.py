"""What runs have cost is on record when nothing of them is left."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from tests.unit.account.account import before, calls
from tests.unit.bench.flows.removal.tables import NOON, OTHER, RUN, a_cell, a_run
from tests.unit.bench.flows.removal.world import World
from tests.unit.shared.aws.test_metrics import values_of
from troop.bench.admission import spending
from troop.bench.admission.spending import CellTerms, Terms
from troop.bench.definition import names
from troop.bench.definition.money import HOURLY
from troop.bench.flows import cost_records
from troop.bench.money.prices import Prices, VolumePrice
from troop.bench.records.record import CellStatus, Kind, Resource, RunStatus

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


def test_cell_has_its_cost_when_nothing_remains_and_the_run_at_its_end(world: World) -> None:
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


def test_unrecorded_nodes_cost_until_they_were_seen_to_be_gone(world: World) -> None:
    launched(world, "c001")
    node = world.members(names.fleet_name(RUN, "c001", "drivers"))[0]
    tags = names.fleet_tags(names.tags("Troop", RUN, "c001", "2036-11-20T14:00:00.000Z"), "drivers")
    world.volume_of_a_node(node, tags)
    world.step("close", {"run": RUN, "cell": "c001"})
    world.step("remove", {"run": RUN, "cell": "c001"})
    instances = [one for one in world.runs.resources.get_all(RUN) if one.kind is Kind.INSTANCE]
    assert [(one.instance_type, one.purchase, one.role) for one in instances] == [
        ("c7g.large", "on-demand", "drivers")
    ] * 2
    assert all(one.started_at and one.zone for one in instances)
    (volume,) = [one for one in world.runs.resources.get_all(RUN) if one.kind is Kind.VOLUME]
    assert (volume.role, volume.disk and volume.disk.size_gib) == ("drivers", 8)
    # moto's instances are of today, and the clock is years ahead: let them be of an hour and a second ago.
    for one in instances:
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


def metric(capsys: pytest.CaptureFixture[str]) -> Decimal:
    """What RunCost has counted since this was last asked."""
    return sum((D(str(value)) for value in values_of(capsys, "RunCost")), D(0))


def standing_for(world: World, terms: Terms) -> list[Resource]:
    """A run's two nodes, on record since now."""
    assert world.runs.create(a_run(RUN, world.now), [a_cell(RUN)], terms)
    world.launch_by_the_rules(RUN)
    world.runs.cells.change(RUN, "c001", status=CellStatus.RUNNING, phase="boot", at=world.now)
    world.start_workflow()
    ids = [name for kind, name in world.existing() if kind == "instance"]
    nodes = [
        Resource(
            RUN, "c001", Kind.INSTANCE, one, world.now, world.now, role="drivers", instance_type="c7g.large",
            purchase="on-demand", started_at=world.now,
        )
        for one in ids
    ]  # fmt: skip
    world.runs.resources.record_seen(nodes, world.now)
    return nodes


def test_the_metric_counts_while_a_run_goes_on_and_each_cent_once(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    standing_for(world, Terms(Prices(on_demand={"c7g.large": D(3)}), cells={"c001": CELL}))
    world.forward(minutes=15)
    world.reap()
    assert metric(capsys) == D("0.25") + 2 * 3 / D(4), "Troop's own calls, and a quarter of an hour of two nodes"
    world.reap()
    assert metric(capsys) == 0, "the same moment is counted once"
    world.forward(minutes=30)
    world.reap()
    assert metric(capsys) == 2 * 3 / D(2)
    world.forward(minutes=10)
    world.tear_down(RUN, status="SUCCEEDED")
    rest = metric(capsys)
    cost = world.runs.get(RUN).cost
    assert cost is not None
    assert rest == cost.amount - D("0.25") - 2 * 3 * D(3) / 4
    assert rest >= 1
    world.tear_down(RUN)
    world.reap()
    assert metric(capsys) == 0, "a repeated teardown counts nothing"


def test_cost_that_somebody_else_counted_meanwhile_is_not_counted_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.runs.create(a_run(RUN, world.now), [a_cell(RUN)])
    other: list[Decimal] = []
    with calls(monkeypatch, before("UpdateItem", lambda: other.append(world.runs.count_cost(RUN, D(4))))):
        assert world.runs.count_cost(RUN, D(7)) == 3
    assert other == [4]


def test_a_run_that_has_cost_more_than_the_operator_allows_is_stopped(world: World) -> None:
    standing_for(world, Terms(Prices(on_demand={"c7g.large": D(3)}), cells={"c001": CELL}, ceiling=D(2)))
    world.forward(minutes=15)
    world.reap()
    assert world.runs.get(RUN).closed_at is None
    world.forward(minutes=15)
    world.reap()
    run = world.runs.get(RUN)
    assert run.outcome is RunStatus.FAILED
    assert run.reason == "it has cost $3.25, more than the deployment's setting troop:max_run_cost allows: $2.00"
    (work,) = world.teardowns().values()
    assert work["run"] == RUN


def test_cost_at_the_files_own_prices_is_stored_separately(world: World) -> None:
    file_prices = Prices(on_demand={"c7g.large": D(0)})
    standing_for(world, Terms(Prices(on_demand={"c7g.large": D(3)}), cells={"c001": CELL}, file_prices=file_prices))
    world.forward(minutes=15)
    world.tear_down(RUN, status="SUCCEEDED")
    run = world.runs.get(RUN)
    assert run.cost is not None
    assert run.cost_of_file is not None
    assert run.cost.amount > D("1.5")
    assert run.cost_of_file.amount == D("0.25"), "Troop's own calls"


def test_the_reaper_keeps_reservations_in_line_with_the_runs_there_are(world: World) -> None:
    world.runs.reservations.reserve("20361119-120000-00000009", 40)  # of a run that somebody has deleted by hand
    world.admit(RUN)  # by an earlier version, which reserved nothing
    assert world.runs.create(a_run(OTHER, world.now), [a_cell(OTHER)], most_nodes=100)
    world.start_workflow(RUN)
    world.start_workflow(OTHER)
    world.forward(minutes=16)
    world.reap()
    assert world.runs.reservations.read().nodes == {RUN: 2, OTHER: 2}
    for run in (RUN, OTHER):
        world.tear_down(run)
        world.tear_down(run)
    world.reap()
    assert world.runs.reservations.read().nodes == {}


def test_remaining_budget_follows_from_the_record(world: World) -> None:
    launched(world, "c001", terms=Terms(TERMS.prices, budget=D("1.5"), cells=TERMS.cells))
    world.runs.cells.change(RUN, "c001", status=CellStatus.RUNNING, phase="launch", at=world.now)
    reason = cost_records.over_budget(world.runs, RUN, "c002")
    assert reason is not None
    assert "$0.50 is left, and it is expected to cost $1.00" in reason
    assert cost_records.over_budget(world.runs, RUN, "c001") is None
    assert world.runs.create(a_run(OTHER, NOON), [a_cell(OTHER)])
    assert cost_records.over_budget(world.runs, OTHER, "c001") is None
