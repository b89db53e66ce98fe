"""What a run has cost by its record, and whether a further cell fits what is left of its budget."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.admission.test_estimate import PRICES, an_hour, plan
from tests.unit.bench.build import SERVERS
from troop.bench.admission import spending
from troop.bench.admission.estimate import OWN, QUEUE_ENDPOINT, REPORTS, REQUESTS, TRAFFIC, estimate
from troop.bench.admission.spending import Budget, CellTerms, Terms, actual, bought, over_budget, terms_of
from troop.bench.definition.definition import ON_DEMAND, SPOT
from troop.bench.definition.money import HOURLY, S3_GETS, S3_PUTS, Money
from troop.bench.money.costs import Cost
from troop.bench.money.prices import Prices
from troop.bench.records.record import Cell, CellStatus, Disk, Kind, Resource
from troop.shared import codec

D = Decimal
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
RUN = "20261120-120000-00000001"
CELL = CellTerms(D(4), D(6), 3, D("0.01"), D(10), requests={S3_GETS: D(1_000_000)})
TERMS = Terms(PRICES, cells={"c001": CELL, "c002": CELL, "c003": CELL})
DONE = Cell(RUN, "c001", CellStatus.SUCCEEDED, phases={"launch": NOON, "boot": NOON})


def node(name: str, seconds: float | None, role: str = "servers", cell: str = "c001", **more: object) -> Resource:
    """An instance that was there for so long; None: that is still there."""
    gone = None if seconds is None else NOON + timedelta(seconds=seconds)
    resource = Resource(
        RUN,
        cell,
        Kind.INSTANCE,
        name,
        NOON,
        NOON + timedelta(seconds=40),
        gone,
        role,
        "c7g.large",
        "a",
        ON_DEMAND,
        NOON,
    )
    return replace(resource, **more)  # type: ignore[arg-type]


def bill(
    *resources: Resource, terms: Terms = TERMS, cells: tuple[Cell, ...] = (DONE,)
) -> dict[str, tuple[Decimal, ...]]:
    cost = actual(terms, cells, resources, NOON + timedelta(days=3))
    return {one.what: (one.quantity, one.amount or D(-1)) for one in cost.items}


@pytest.mark.parametrize(
    ("seconds", "by_second", "by_hour"),
    [(59, 60, 1), (3600, 3600, 1), (3601, 3601, 2), (66 * 60, 66 * 60, 2), (3 * 86400 + 1, 3 * 86400 + 1, 73)],
)
def test_a_node_is_paid_from_its_launch_until_it_was_seen_to_be_gone(
    seconds: int, by_second: int, by_hour: int
) -> None:
    (quantity, amount) = bill(node("i-1", seconds))["servers, c7g.large, on-demand"]
    assert quantity == D(by_second) / 3600
    assert amount == quantity * D("0.0725")
    older = bill(node("i-1", seconds), terms=replace(TERMS, billing=HOURLY))
    assert older["servers, c7g.large, on-demand"][0] == by_hour


def test_each_node_has_its_own_hours() -> None:
    older = replace(TERMS, billing=HOURLY)
    amounts = bill(node("i-1", 3600), node("i-2", 3601), node("i-3", 1), terms=older)
    assert amounts["servers, c7g.large, on-demand"][0] == 1 + 2 + 1


def test_the_study_of_2011_by_the_started_hour() -> None:
    """288 nodes at $0.68 for 66 minutes, 60 clients at $2.00 that came last, each by its own started hours."""
    prices = Prices(on_demand={"m1.xlarge": D("0.68"), "m2.4xlarge": D("2.00")})
    servers = [node(f"i-{n}", 66 * 60, instance_type="m1.xlarge") for n in range(288)]
    clients = [node(f"i-c{n}", 50 * 60, "clients", instance_type="m2.4xlarge") for n in range(60)]
    amounts = bill(*servers, *clients, terms=Terms(prices, HOURLY))
    assert amounts["servers, m1.xlarge, on-demand"] == (576, D("391.68"))
    assert amounts["clients, m2.4xlarge, on-demand"] == (60, D("120.00"))
    first = [replace(one, gone_at=NOON + timedelta(hours=1)) for one in (*servers, *clients)]
    hour = actual(Terms(prices, HOURLY), [DONE], first, NOON)
    assert hour.amount == 288 * D("0.68") + 60 * D("2.00") == D("315.84")


def test_requests_that_nodes_have_counted_are_billed_in_place_of_stated_ones() -> None:
    nine_gets = replace(DONE, requests={S3_GETS: 9})
    terms = replace(TERMS, cells={"c001": replace(CELL, requests={S3_GETS: D(1_000_000), S3_PUTS: D(1000)})})
    assert bill(terms=terms)["S3 GET requests, as stated"] == (1_000_000, D("0.4"))
    counted = bill(terms=terms, cells=(replace(DONE, requests={S3_GETS: 34_356}),))
    assert counted["S3 GET requests, as counted"] == (34_356, 34_356 * D("0.0000004"))
    assert "S3 GET requests, as stated" not in counted
    assert counted["S3 PUT and LIST requests, as stated"][0] == 1000, "nobody counts these"
    unstated = bill(terms=replace(TERMS, cells={"c001": replace(CELL, requests={})}), cells=(nine_gets,))
    assert unstated["S3 GET requests, as counted"][0] == 9


def test_a_license_is_paid_for_the_time_of_each_node_of_its_role() -> None:
    """A fleet that starts later or ends earlier pays its own time."""
    terms = replace(TERMS, cells={"c001": replace(CELL, licenses={"servers": D("0.5")})})
    nodes = [
        node("i-1", 7200),
        node("i-2", 3600, started_at=NOON + timedelta(seconds=1800)),
        node("i-3", 60, "drivers"),
    ]
    amounts = bill(*nodes, terms=terms)
    assert amounts["servers, license, as stated"] == (D("2.5"), D("1.25"))
    assert amounts["servers, c7g.large, on-demand"][0] == D("2.5")
    assert "drivers, license, as stated" not in amounts
    second = replace(DONE, cell="c001-2")
    again = actual(terms, [second], [replace(nodes[0], cell="c001-2")], NOON)
    assert "servers, license, as stated" in {item.what for item in again.items}, "another attempt pays it too"
    stored = json.loads(json.dumps(spending.to_document(terms), default=float))
    assert codec.from_document(Terms, stored) == terms
    del stored["cells"]["c001"]["licenses"]
    assert codec.from_document(Terms, stored).cells["c001"] == CELL


def test_spot_is_paid_by_the_zones_price_and_on_demand_apart() -> None:
    amounts = bill(
        node("i-1", 3600, purchase=SPOT),
        node("i-2", 3600, purchase=SPOT, zone="b"),
        node("i-3", 3600, purchase=SPOT, zone="elsewhere"),
        node("i-4", 3600),
    )
    assert amounts["servers, c7g.large, on-demand"] == (1, D("0.0725"))
    every = actual(TERMS, [DONE], [node("i-1", 3600, purchase=SPOT), node("i-2", 3600, purchase=SPOT, zone="b")], NOON)
    assert [(line.quantity, line.price) for line in every.items[:2]] == [(1, D("0.03")), (1, D("0.04"))]


def test_volumes_by_their_size_and_time() -> None:
    disk = Disk("gp3", 720, 4000)
    volume = Resource(
        RUN, "c001", Kind.VOLUME, "vol-1", NOON, NOON, NOON + timedelta(days=3), role="servers", disk=disk
    )
    amounts = bill(volume)
    assert amounts["servers, storage gp3"] == (72, D("5.76"))
    assert amounts["servers, IOPS gp3"] == (100, D("0.5"))


def test_a_provisioned_initialization_costs_once_and_without_its_price_it_is_unknown() -> None:
    """Here 20 GiB at 300 MiB/s, as much as 60 at 100 MiB/s."""
    disk = Disk("gp3", 20, initialization_mib=300)
    volumes = [
        Resource(RUN, "c001", Kind.VOLUME, name, NOON, NOON, NOON + timedelta(days=days), role="servers", disk=disk)
        for name, days in (("vol-1", 1), ("vol-2", 2))
    ]
    priced = Terms(replace(PRICES, initialization=D("0.0012")))
    (line,) = (one for one in actual(priced, [DONE], volumes, NOON).items if one.what == "servers, initialization")
    assert (line.quantity, line.amount) == (120, D("0.144"))
    assert "servers, initialization" in actual(Terms(PRICES), [DONE], volumes, NOON).unknown


def test_reports_are_paid_for_the_time_of_each_watched_node() -> None:
    terms = replace(TERMS, cells={"c001": replace(CELL, reports={"servers": D("0.0005")})})
    amounts = bill(node("i-1", 7200), node("i-2", 3600), node("i-3", 60, "drivers"), terms=terms)
    assert amounts[f"servers, {REPORTS}"] == (3, D("0.0015"))
    assert f"drivers, {REPORTS}" not in amounts


def an_endpoint(seconds: float | None, zones: int | None = 2) -> Resource:
    gone = None if seconds is None else NOON + timedelta(seconds=seconds)
    return Resource(RUN, "c001", Kind.ENDPOINT, "troop-x", NOON, NOON, gone, zones=zones)


@pytest.mark.parametrize(
    ("seconds", "hours"), [(1, 1), (3600, 1), (3601, 2), (None, 72)], ids=["a second", "an hour", "more", "still there"]
)
def test_an_endpoint_is_paid_by_the_started_hour_in_each_zone(seconds: float | None, hours: int) -> None:
    terms = replace(TERMS, prices=replace(PRICES, endpoint=D("0.01")))
    assert bill(an_endpoint(seconds), terms=terms)[QUEUE_ENDPOINT] == (2 * hours, 2 * hours * D("0.01"))
    assert bill(replace(an_endpoint(seconds), created_at=None), terms=terms) == bill(terms=terms)


def test_an_endpoint_without_price_or_zones_is_named() -> None:
    priced = replace(TERMS, prices=replace(PRICES, endpoint=D("0.01")))
    for terms, zones in ((TERMS, 2), (priced, None)):
        cost = actual(terms, [DONE], [an_endpoint(60, zones)], NOON)
        (unknown,) = cost.unknown
        assert unknown.startswith(QUEUE_ENDPOINT)


STANDING = Terms(
    PRICES,
    budget=D(10),
    cells={"c001": replace(CELL, hourly={"workers": D("0.1"), "servers": D("0.5")}, endpoint=D("0.02"))},
)
HOUR = 3600


def test_the_expected_cost_of_a_fleet_counts_its_endpoint_until_the_end() -> None:
    spent = Budget(STANDING, D(3), 2 * HOUR).expected({"workers": 4, "servers": 1})
    assert spent == 3 + 2 * (D("0.4") + D("0.5") + D("0.02"))
    assert Budget(STANDING, D(3), -5).expected({"workers": 4}) == 3


def test_more_nodes_leave_enough_for_the_endpoint() -> None:
    """(10 - 3 - 10 x 0.02) / (10 x 0.1) = 6.8 nodes"""
    budget = Budget(STANDING, D(3), 10 * HOUR)
    problem = budget.too_many({"workers": 1}, {"workers": 7})
    assert problem is not None
    assert str(problem).startswith("count is 7: must be at most 6: as requested, it is expected to cost $10.20 until")
    assert budget.too_many({"workers": 1}, {"workers": 6}) is None


@given(st.integers(0, 100), st.decimals(0, 12, places=2), st.integers(0, 200 * HOUR))
def test_refusal_of_a_longer_life_names_the_longest_that_fits(count: int, spent: Decimal, left: int) -> None:
    desired = {"workers": count}
    budget = Budget(STANDING, spent, left)
    problem = budget.too_long(desired)
    fits = budget.expected(desired) <= D(10)
    assert (problem is None) == fits
    if problem is not None:
        named = re.search(
            r"at most (\d+) h (\d+) min from now: with \$.* an hour, .* its budget is \$10.00", str(problem)
        )
        assert named is not None
        longest = int(named[1]) * HOUR + int(named[2]) * 60
        assert longest <= left
        assert not longest or replace(budget, left=longest).too_long(desired) is None
        assert replace(budget, left=longest + 61).too_long(desired) is not None


def test_refusal_of_a_longer_life_names_the_operators_limit() -> None:
    terms = replace(STANDING, ceiling=D(5))
    assert "troop:max_run_cost is $5.00" in str(Budget(terms, D(3), 100 * HOUR).too_long({"workers": 1}))
    assert Budget(replace(STANDING, budget=None), D(3), 100 * HOUR).too_long({"workers": 1}) is None


def test_unknown_resource_is_named_and_one_never_created_costs_nothing() -> None:
    late = NOON + timedelta(hours=1)
    unknown = Resource(RUN, "c001", Kind.INSTANCE, "i-9", NOON, NOON, late)
    volume = Resource(RUN, "c001", Kind.VOLUME, "vol-9", NOON, NOON, late)
    planned = Resource(RUN, "c001", Kind.INSTANCE, "i-8", NOON, None, late)
    group = Resource(RUN, "c001", Kind.SECURITY_GROUP, "sg", NOON, NOON, late)
    cost = actual(Terms(PRICES), [DONE], [unknown, volume, planned, group], NOON)
    assert cost.amount == 0
    assert cost.unknown == ("nodes, unknown, on-demand", "nodes, storage unknown")


def test_existing_resource_costs_until_now() -> None:
    assert bill(node("i-1", None))["servers, c7g.large, on-demand"][0] == 72


@pytest.mark.parametrize(
    ("status", "traffic"),
    [(CellStatus.SUCCEEDED, True), (CellStatus.INVALID, True), (CellStatus.FAILED, False), (CellStatus.STOPPED, False)],
)
def test_traffic_between_zones_counts_for_cells_that_measured(status: CellStatus, traffic: bool) -> None:
    amounts = bill(cells=(replace(DONE, status=status),))
    assert (TRAFFIC in amounts) is traffic
    assert amounts.get(f"{REQUESTS[S3_GETS][0]}, as stated") == ((1_000_000, D("0.4")) if traffic else None)
    assert amounts[OWN] == (1, D("0.01"))
    assert bill(cells=(Cell(RUN, "c001"),)) == {}, "one that was never launched costs nothing"


def test_attempts_are_added_up_and_other_cells_are_not() -> None:
    again = Cell(RUN, "c001-2", CellStatus.SUCCEEDED, phases=DONE.phases, attempt=2)
    resources = [node("i-1", 3600), node("i-2", 3600, cell="c001-2"), node("i-3", 3600, cell="c002")]
    both = actual(TERMS, [DONE, again], resources, NOON)
    assert next(line for line in both.items if line.what.startswith("servers")).quantity == 2
    assert bill(*resources, cells=(again,))["servers, c7g.large, on-demand"][0] == 1


# The budget


def cell(
    name: str, status: CellStatus, cost: str | None = None, minute: int = 0, begun: tuple[str, ...] = ("launch", "boot")
) -> Cell:
    phases = {} if status is CellStatus.PENDING else dict.fromkeys(begun, NOON + timedelta(minutes=minute))
    return Cell(RUN, name, status, phases=phases, cost=None if cost is None else Cost(D(cost)))


OVER, UNDER_WAY, WAITING = CellStatus.SUCCEEDED, CellStatus.RUNNING, CellStatus.PENDING


@pytest.mark.parametrize(
    ("budget", "which", "others", "allowed"),
    [
        (None, "c002", [cell("c001", OVER, "1000")], True),
        ("4", "c001", [], True),
        ("3.99", "c001", [], False),
        ("10", "c002", [cell("c001", OVER, "6")], True),
        ("10", "c002", [cell("c001", OVER, "6.01")], False),
        ("8", "c002", [cell("c001", UNDER_WAY), cell("c003", WAITING)], True),
        ("7.99", "c002", [cell("c001", UNDER_WAY)], False),
        ("7.99", "c002", [cell("c001", CellStatus.FAILED)], False),  # its teardown is not over yet
        ("4", "c002", [cell("c001", CellStatus.FAILED, begun=("launch",))], True),  # it was refused itself
        ("11.99", "c001-2", [cell("c001", CellStatus.INVALID, "4"), cell("c002", WAITING)], False),
        ("12", "c001-2", [cell("c001", CellStatus.INVALID, "4"), cell("c002", WAITING)], True),
        ("10", "c001-2", [cell("c001", CellStatus.INVALID, "6")], True),
        ("10", "c001-3", [cell("c001", CellStatus.INVALID, "2"), cell("c001-2", CellStatus.INVALID, "2")], True),
        ("9.99", "c001-3", [cell("c001", CellStatus.INVALID, "2"), cell("c001-2", CellStatus.INVALID, "2")], False),
    ],
)
def test_a_cell_that_does_not_fit_the_rest_of_the_budget(
    budget: str | None, which: str, others: list[Cell], allowed: bool
) -> None:
    terms = replace(TERMS, budget=None if budget is None else D(budget))
    message = over_budget(terms, which, others)
    assert (message is None) is allowed
    if message:
        assert message.startswith(f"the budget of ${D(budget or 0):.2f} does not allow it: $")
        assert "expected to cost $" in message


def test_partly_unknown_cost_counts_as_the_expected_one() -> None:
    cheap = replace(cell("c001", OVER, "0.01"), cost=Cost(D("0.01"), unknown=("c5.large, on-demand",)))
    assert over_budget(replace(TERMS, budget=D("7.99")), "c002", [cheap])
    assert over_budget(replace(TERMS, budget=D(8)), "c002", [cheap]) is None


def test_only_one_of_two_concurrent_cells_fits_into_the_budget() -> None:
    terms = replace(TERMS, budget=D(7))
    both = [cell("c001", UNDER_WAY), cell("c002", UNDER_WAY)]
    assert [over_budget(terms, one, both) is None for one in ("c001", "c002")] == [True, False]
    later = [cell("c001", UNDER_WAY, minute=1), cell("c002", UNDER_WAY)]
    assert [over_budget(terms, one, later) is None for one in ("c001", "c002")] == [False, True]


# As it is kept


@given(st.decimals(0, 10**6, places=3, allow_nan=False), st.none() | st.decimals(1, 100, places=2, allow_nan=False))
def test_terms_are_read_as_they_were_written(amount: Decimal, budget: Decimal | None) -> None:
    terms = Terms(
        PRICES, HOURLY, budget, {"c001": CellTerms(amount, amount, 2, amount, amount, requests={S3_PUTS: amount})}
    )
    assert codec.from_document(Terms, spending.to_document(terms)) == terms
    assert codec.from_document(Terms, json.loads(json.dumps(spending.to_document(terms), default=float))) == terms


def test_terms_are_those_of_the_estimate() -> None:
    run = plan(an_hour(SERVERS, money=Money(cross_zone_gb=D(3), requests={S3_GETS: D(10_000)})))
    figures = estimate(run, Money(budget=D(9)), PRICES)
    terms = terms_of(figures, PRICES, {"c001": 2})
    assert terms.budget == 9
    assert float(terms.expected("c001")) == pytest.approx(float(figures.expected), abs=1e-6)
    assert terms.cells["c001"].cross_zone_gb == 3
    assert terms.cells["c001"].requests == {S3_GETS: 10_000}
    assert terms.expected("c009") == 0


def test_a_cost_is_read_as_it_was_written() -> None:
    cost = actual(TERMS, [DONE], [node("i-1", 3601), node("i-2", 59, purchase=SPOT)], NOON)
    again = codec.from_document(Cost, codec.to_document(cost))
    assert abs(again.amount - cost.amount) < D("0.000001")
    assert [line.what for line in again.items] == [line.what for line in cost.items]


def test_savings_of_spot_are_the_difference_to_the_on_demand_price() -> None:
    nodes = [node("i-1", 7200, purchase=SPOT), node("i-2", 3600, purchase=SPOT, zone="b"), node("i-3", 1800)]
    cost = actual(TERMS, [DONE], nodes, NOON)
    assert cost.on_demand is not None
    assert cost.on_demand - cost.amount == 2 * (D("0.0725") - D("0.03")) + (D("0.0725") - D("0.04"))
    assert codec.from_document(Cost, codec.to_document(cost)).on_demand == D(str(round(cost.on_demand, 6)))
    assert actual(TERMS, [DONE], [node("i-3", 1800)], NOON).on_demand is None, "nothing was on spot"
    unknown = [*nodes, node("i-4", 60, purchase=SPOT, instance_type="c9.none")]
    assert actual(TERMS, [DONE], unknown, NOON).on_demand is None
    elsewhere = [*nodes, node("i-5", 7200, purchase=SPOT, cell="c002")]
    assert actual(TERMS, [DONE], elsewhere, NOON).on_demand == cost.on_demand


def test_node_hours_are_summed_by_role_and_purchase() -> None:
    nodes = [
        node("i-1", 7200, purchase=SPOT),
        node("i-2", None, purchase=SPOT),
        node("i-3", 1800),
        node("i-4", 60, role="queues"),
        replace(node("vol-1", 60), kind=Kind.VOLUME),
    ]
    summed = [(one.role, one.purchase, one.nodes, one.hours) for one in bought(TERMS, nodes, NOON + timedelta(hours=3))]
    assert summed == [
        ("queues", ON_DEMAND, 1, D(60) / 3600),
        ("servers", ON_DEMAND, 1, D("0.5")),
        ("servers", SPOT, 2, 5),
    ]
