"""What a run is expected to cost, and the most that it can."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.bench.build import BENCHMARK, DRIVERS, MEASURE, SERVERS
from troop.bench.admission import estimate as estimates
from troop.bench.admission.estimate import (
    AFTER,
    BETWEEN,
    BOOT,
    MOST_BETWEEN,
    OWN,
    QUEUE_ENDPOINT,
    REPORTS,
    REQUESTS,
    TRAFFIC,
    Estimate,
    estimate,
    expected_of,
    expected_seconds,
    most_seconds,
    timetable,
)
from troop.bench.admission.overhead_cost import overhead_cost
from troop.bench.definition.definition import ON_DEMAND, SPOT, Benchmark, Between, Fleet, Phase, Point, Volume
from troop.bench.definition.living import Health, Queue, Scale
from troop.bench.definition.money import BILLINGS, ENDPOINT, HOURLY, S3_GETS, S3_PUTS, Committed, Money, Price, shown
from troop.bench.definition.plan import Plan, PlannedCell, Variant
from troop.bench.measuring.verdicts import GRACE
from troop.bench.money import prices as books
from troop.bench.money.prices import Prices, VolumePrice
from troop.shared import codec

D = Decimal
GP3 = VolumePrice(D("0.08"), (D("0.005"),), D("0.04"))
IO1 = VolumePrice(D("0.13"), (D("0.07"),))
IO2 = VolumePrice(D("0.125"), (D("0.065"), D("0.0455"), D("0.03185")))
PRICES = Prices(
    on_demand={"c5.large": D("0.085"), "c7g.large": D("0.0725")},
    spot={"c7g.large": {"a": D("0.03"), "b": D("0.04")}},
    volumes={"gp3": GP3, "io2": IO2, "io1": IO1, "st1": VolumePrice(D("0.045"))},
    cross_zone_gb=D("0.02"),
)
WITH_ENDPOINT = replace(PRICES, endpoint=D("0.01"))
HOUR = Phase("measure", ("servers",), "m.sh", 7200, measured=3600 - BOOT - BETWEEN - AFTER)
"""With it a cell's nodes are there for an hour, as is expected."""


def plan(*benchmarks: Benchmark, parallel: int = 1) -> Plan:
    cells = (PlannedCell(f"c{n:03d}", Variant(scale=f"n{n}"), one) for n, one in enumerate(benchmarks, 1))
    return Plan(tuple(cells), parallel)


def test_a_warning_names_types_whose_processors_can_cost_more() -> None:
    def fleet(kind: str) -> Benchmark:
        return replace(BENCHMARK, fleets=(replace(DRIVERS, instance_type=kind), SERVERS))

    (warning,) = estimates.credit_warnings(plan(*map(fleet, ("t4g.nano", "t3a.large", "t2.micro", "trn1.2xlarge"))))
    assert warning.startswith("nodes of t3a.large, t4g.nano can cost more than their price")
    assert [*estimates.credit_warnings(plan(BENCHMARK))] == []


@pytest.mark.parametrize(("stated", "warned"), [(None, True), (0, False), (9, False)])
def test_traffic_between_zones_that_is_not_stated_is_named(stated: int | None, warned: bool) -> None:
    traffic = None if stated is None else D(stated)
    here = [replace(BENCHMARK.fleets[0], role=role, count=3, zones=zones) for role, zones in (("ring", 3), ("one", 1))]
    cell = replace(BENCHMARK, fleets=tuple(here), money=Money(cross_zone_gb=traffic))
    sentences = [*estimates.traffic_warnings(plan(cell))]
    assert ["traffic between the zones of ring, 2 cents a GB: state" in one for one in sentences] == [True] * warned
    (fleet_warning,) = estimates.traffic_warnings(plan(replace(cell, standing=True, money=Money())))
    assert fleet_warning.endswith("of ring, 2 cents a GB"), "its file cannot state it"


def estimated(benchmark: Benchmark, prices: Prices = PRICES) -> Estimate:
    return estimate(plan(benchmark), benchmark.money, prices.replaced_by(benchmark.money))


def lines(figures: Estimate) -> Mapping[str, tuple[Decimal, Decimal | None]]:
    """Quantity and amount by what it is of, of the first cell."""
    return {item.what: (item.quantity, item.amount) for item in figures.cells[0].expected.items}


def an_hour(*fleets: Fleet, **more: object) -> Benchmark:
    return Benchmark("b", "", 86400, fleets, (replace(HOUR, roles=(fleets[0].role,)),), {}, **more)  # type: ignore[arg-type]


def test_node_hours_by_fleet_and_purchase() -> None:
    amounts = lines(estimated(an_hour(replace(SERVERS, count=3, purchase=SPOT), replace(DRIVERS, count=2))))
    assert amounts["servers, c7g.large, spot"] == (3, D("0.12")), "for a zone that is not known yet: the dearest"
    assert amounts["drivers, c5.large, on-demand"] == (2, D("0.17"))


def test_storage_by_what_is_paid_for_it() -> None:
    volumes = (
        Volume("/dev/sdf", 720, "gp3", 4000, 225),
        Volume("/dev/sdg", 100, "io2", 70_000),
        Volume("/dev/sdh", 72, "gp3", 3000, 125),
        Volume("/dev/sdi", 200, "io1", 50_000),
        Volume("/dev/sdj", 500, "st1"),
    )
    amounts = lines(estimated(an_hour(replace(SERVERS, count=10, root_volume_gib=8, volumes=volumes))))
    month = 10 / D(720)
    expected = {
        "storage gp3": (D(800), "0.08"),
        "IOPS gp3": (D(1000), "0.005"),
        "throughput gp3": (D(100), "0.04"),
        "storage io2": (D(100), "0.125"),
        "IOPS io2": (D(32_000), "0.065"),
        "IOPS io2, tier 2": (D(32_000), "0.0455"),
        "IOPS io2, tier 3": (D(6000), "0.03185"),
        "storage io1": (D(200), "0.13"),
        "IOPS io1": (D(50_000), "0.07"),
        "storage st1": (D(500), "0.045"),
    }
    assert not [item for item in amounts if "IOPS st1" in item or "throughput st1" in item]
    for item, (size, price) in expected.items():
        quantity, amount = amounts[f"servers, {item}"]
        assert quantity == pytest.approx(size * month)
        assert amount == pytest.approx(size * month * D(price))


def test_stated_traffic_and_calls_of_troop_have_costs() -> None:
    amounts = lines(estimated(an_hour(SERVERS, money=Money(cross_zone_gb=D("2.5")))))
    assert amounts[TRAFFIC] == (D("2.5"), D("0.05"))
    own = amounts[OWN][1]
    assert own is not None
    assert D("0.001") < own < D("0.05")
    assert TRAFFIC not in lines(estimated(an_hour(SERVERS)))


def test_requests_to_s3_are_as_the_author_says_and_cost_the_list_price() -> None:
    gets, puts = (f"{item}, as stated" for item, _ in REQUESTS.values())
    stated = an_hour(SERVERS, money=Money(requests={S3_GETS: D(2_500_000), S3_PUTS: D(10_000)}))
    amounts, without = lines(estimated(stated)), lines(estimated(an_hour(SERVERS)))
    assert (amounts[gets], amounts[puts]) == ((D(2_500_000), D(1)), (D(10_000), D("0.05")))
    assert not without.keys() & {gets, puts}
    assert estimated(stated).expected - estimated(an_hour(SERVERS)).expected == D("1.05")
    in_yuan = estimated(stated, replace(PRICES, currency="CNY"))
    assert not lines(in_yuan).keys() & {gets, puts}
    assert gets not in in_yuan.unknown


def test_running_summaries_and_one_viewers_merges_are_part_of_troops_own_calls() -> None:
    benchmark = replace(BENCHMARK, fleets=(replace(SERVERS, count=100),))
    merge = (
        D("0.0000035") + D("0.0000002") + D("0.7") * D("0.0000133334") + 2 * D("0.000000625") + 10 * D("0.000000125")
    )
    objects = 102 * D("0.000005") + 103 * D("0.0000004")
    more = overhead_cost(benchmark, 60, [600], 600) - overhead_cost(benchmark, 60, [600])
    assert more == 40 * (merge + objects), "one each 15 seconds"
    quiet = replace(BENCHMARK, phases=(Phase("measure", ("drivers",), "p", 600, expected=300),))
    loud = replace(BENCHMARK, phases=(Phase("measure", ("drivers",), "p", 600, measured=300),))
    amounts = [lines(estimated(one))[OWN][1] or 0 for one in (quiet, loud)]
    assert amounts[0] < amounts[1], "nodes upload while they measure"


@pytest.mark.parametrize(
    ("phase", "seconds"),
    [
        (Phase("p", ("drivers",), "p", 600), 150),
        (Phase("p", ("drivers",), "p", 601), 151),
        (Phase("p", ("drivers",), "p", 600, warm_up=30, measured=300), 330),
        (Phase("p", ("drivers",), "p", 600, expected=45), 45),
        (Phase("p", ("drivers",), "p", 600, measured=300, expected=400), 400),
    ],
)
def test_how_long_a_phase_is_expected_to_take(phase: Phase, seconds: int) -> None:
    assert expected_of(phase) == seconds


def test_the_most_is_all_time_outs_and_all_attempts_on_demand() -> None:
    benchmark = replace(BENCHMARK, fleets=(replace(SERVERS, purchase=SPOT),), phases=BENCHMARK.phases, attempts=3)
    once = replace(benchmark, attempts=1, fleets=(replace(SERVERS, purchase=ON_DEMAND),))
    assert estimated(benchmark).most == 3 * estimated(once).most
    assert estimated(benchmark).expected < estimated(once).expected, "spot is cheaper, and one attempt is expected"
    assert estimated(benchmark).cells[0].on_demand == estimated(once).expected


def test_nothing_lasts_longer_than_its_expiry_and_the_reapers_round() -> None:
    assert most_seconds(replace(BENCHMARK, expires_after=600)) == 600 + 1800


@given(st.integers(1, 5), st.sampled_from(BILLINGS), st.integers(1, 400), st.integers(0, 3600))
def test_the_most_is_never_less_than_what_is_expected(attempts: int, billing: str, count: int, measured: int) -> None:
    phases = (Phase("m", ("servers",), "m", 3700, measured=measured),)
    benchmark = replace(
        BENCHMARK,
        fleets=(replace(SERVERS, count=count),),
        phases=phases,
        attempts=attempts,
        money=Money(billing=billing),
    )
    figures = estimated(benchmark)
    assert figures.expected <= figures.cells[0].on_demand <= figures.most


def test_cells_are_added_up() -> None:
    one, other = an_hour(SERVERS), an_hour(replace(SERVERS, count=20))
    both = estimate(plan(one, other), Money(), PRICES)
    assert both.expected == estimated(one).expected + estimated(other).expected
    assert [(cell.cell, cell.label) for cell in both.cells] == [("c001", "n1"), ("c002", "n2")]


def test_the_billing_and_the_budget_are_the_runs_and_not_a_cells() -> None:
    cell = an_hour(SERVERS, money=Money(billing=HOURLY, budget=D(1)))
    figures = estimate(plan(cell), Money(budget=D(5)), PRICES)
    assert (figures.budget, figures.billing) == (5, "per-second")


def test_older_studies_pay_each_node_by_its_started_hour() -> None:
    """288 nodes at $0.68 and 60 clients at $2.00 for one hour and a bit of the next."""
    fleets = (Fleet("servers", 288, "m1.xlarge", 3, 600, 8), Fleet("clients", 60, "m2.4xlarge", 1, 600, 8))
    money = Money(billing=HOURLY, prices={"m1.xlarge": Price(D("0.68")), "m2.4xlarge": Price(D("2.00"))})
    study = an_hour(*fleets, money=money)
    amounts = lines(estimated(study, Prices()))
    assert amounts["servers, m1.xlarge, on-demand"] == (288, D("195.84"))
    assert amounts["clients, m2.4xlarge, on-demand"] == (60, D("120.00"))
    longer = replace(study, phases=(replace(HOUR, measured=HOUR.measured + 360),))
    amounts = lines(estimated(longer, Prices()))
    assert amounts["servers, m1.xlarge, on-demand"] == (576, D("391.68"))


# Prices that are not known


def test_missing_price_is_named_and_stops_the_run() -> None:
    benchmark = an_hour(replace(DRIVERS, purchase=SPOT), replace(SERVERS, instance_type="x9.huge"))
    figures = estimated(benchmark)
    assert figures.unknown_types == ("c5.large, spot", "x9.huge, on-demand")
    (problem,) = estimates.problems(figures, Money())
    assert "of c5.large, spot; x9.huge, on-demand are unknown" in str(problem)
    assert "prices: {c5.large: 0.1}" in str(problem)
    assert "accept_unknown_prices: true" in str(problem)
    assert not list(estimates.problems(figures, Money(accept_unknown_prices=True)))
    assert (
        "leave out what has no known price: drivers, c5.large, spot, servers, x9.huge" in estimates.warnings(figures)[0]
    )


def test_spot_needs_the_price_on_demand_too() -> None:
    """What spot does not give, and the last attempt, are on demand: without that price a budget would mean nothing."""
    figures = estimated(
        an_hour(replace(DRIVERS, instance_type="x9.huge", purchase=SPOT)), replace(PRICES, on_demand={})
    )
    assert figures.unknown_types == ("x9.huge, spot", "x9.huge, on-demand")


def test_refusal_for_the_budget_states_a_sufficient_one() -> None:
    benchmark = an_hour(SERVERS)
    budget = estimated(benchmark).expected.quantize(D("0.01"), "ROUND_DOWN")
    (problem,) = estimates.problems(estimated(benchmark), Money(budget=budget))
    assert f"cost, ${budget + D('0.01')} (" in str(problem)


def test_storage_without_a_price_is_a_warning_and_stops_nothing() -> None:
    figures = estimated(an_hour(SERVERS), replace(PRICES, volumes={}))
    assert not list(estimates.problems(figures, Money()))
    assert estimates.warnings(figures) == ["these figures leave out what has no known price: servers, storage gp3"]


def test_prices_by_hand_count_more_than_those_of_aws() -> None:
    money = Money(
        prices={"c7g.large": Price(D(1)), "c5.large": Price(spot=D(3))},
        other_prices={"gp3": D(720), "cross_zone_gb": D("0.5")},
        cross_zone_gb=D(2),
    )
    amounts = lines(
        estimated(an_hour(replace(SERVERS, count=1), replace(DRIVERS, count=1, purchase=SPOT), money=money))
    )
    assert amounts["servers, c7g.large, on-demand"][1] == 1
    assert amounts["drivers, c5.large, spot"][1] == 3
    assert amounts["servers, storage gp3"][1] == pytest.approx(D(8))
    assert amounts[TRAFFIC][1] == 1


def test_a_license_costs_each_node_hour_of_its_role() -> None:
    servers = replace(SERVERS, count=3, license_fee=D("0.35"))
    plain, licensed = (estimated(an_hour(one, DRIVERS)) for one in (replace(servers, license_fee=D(0)), servers))
    assert lines(licensed)["servers, license, as stated"] == (3, D("1.05"))
    assert licensed.expected - plain.expected == pytest.approx(D("1.05"))
    assert licensed.most > plain.most
    assert "drivers, license, as stated" not in lines(licensed)


def a_fleet(*fleets: Fleet, **more: object) -> Benchmark:
    """It stands for 90 minutes."""
    return Benchmark("w", "", 5400, fleets, (), {}, standing=True, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("billing", BILLINGS)
def test_endpoint_of_a_queue_costs_started_hours_in_each_zone(billing: str) -> None:
    fleet = a_fleet(replace(SERVERS, zones=2), replace(DRIVERS, zones=3), queue=Queue(), money=Money(billing=billing))
    figures = estimated(fleet, WITH_ENDPOINT)
    assert lines(figures)[QUEUE_ENDPOINT] == (2 * 3, D("0.06"))
    assert figures.cells[0].endpoint == D("0.03")
    assert figures.limited >= figures.expected
    without = estimated(replace(fleet, queue=None), WITH_ENDPOINT)
    assert QUEUE_ENDPOINT not in lines(without)
    reports = sum(amount or 0 for text, (_, amount) in lines(figures).items() if text.endswith(REPORTS))
    assert figures.expected - without.expected == D("0.06") + reports


def test_reports_of_watched_nodes_cost_the_time_of_each() -> None:
    """60 reports an hour, which the workflow reads, and 360 looks for orders."""
    an_hour = 60 * D("0.0000054") + 360 * D("0.0000004")
    fleet = a_fleet(replace(SERVERS, count=4, health=Health(8080)), DRIVERS)
    figures = estimated(fleet)
    assert lines(figures)[f"servers, {REPORTS}"] == (6, 6 * an_hour)
    assert f"drivers, {REPORTS}" not in lines(figures)
    assert figures.cells[0].reports == {"servers": an_hour}
    without = estimated(replace(fleet, fleets=(replace(SERVERS, count=4), DRIVERS)))
    assert figures.cells[0].hourly["servers"] - without.cells[0].hourly["servers"] == an_hour
    assert figures.cells[0].hourly["drivers"] == without.cells[0].hourly["drivers"]
    assert not estimated(fleet, replace(PRICES, currency="CNY")).cells[0].reports, "their price in yuan is not known"


def test_zones_of_an_endpoint_are_those_that_roles_name() -> None:
    one, other = replace(SERVERS, zones=1, zone_names=("a",)), replace(DRIVERS, zones=1, zone_names=("b",))
    assert lines(estimated(a_fleet(one, other, queue=Queue()), WITH_ENDPOINT))[QUEUE_ENDPOINT][0] == 2 * 2


def test_unknown_price_of_an_endpoint_is_named_and_only_a_ceiling_stops_the_fleet() -> None:
    fleet = a_fleet(SERVERS, queue=Queue())
    figures = estimated(fleet)
    assert figures.unknown == (QUEUE_ENDPOINT,)
    assert "leave out what has no known price: endpoint of the queue" in estimates.warnings(figures)[0]
    assert [*estimates.problems(figures, fleet.money)] == []
    (problem,) = estimates.problems(figures, fleet.money, ceiling=D(500))
    assert "prices of endpoint of the queue are unknown: must be set in the file" in str(problem)
    assert "prices: {endpoint: 0.01}" in str(problem)
    stated = replace(fleet, money=Money(other_prices={ENDPOINT: D("0.02")}))
    assert lines(estimate(plan(stated), stated.money, PRICES.completed_by(stated.money)))[QUEUE_ENDPOINT][1] == D(
        "0.08"
    )
    listed = WITH_ENDPOINT.completed_by(stated.money)
    assert listed.endpoint == D("0.01"), "limits use AWS's price"
    assert WITH_ENDPOINT.replaced_by(stated.money).endpoint == D("0.02"), "the author's figures use the file's"


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        (None, "with 10 nodes all the time, to which scale can grow it, it would cost $"),
        (D("0.4"), ": Troop adds no nodes for which $0.40 are not enough"),
        (D(400), "it would cost $"),
    ],
)
def test_a_fleet_that_can_grow_says_the_cost_of_its_most_nodes(limit: Decimal | None, sentence: str) -> None:
    fleet = a_fleet(replace(SERVERS, count=1, scale=Scale(20, 0, 10)), queue=Queue())
    (warning,) = estimates.growth_warnings(plan(fleet), estimated(fleet), PRICES, limit)
    assert sentence in warning
    assert ("adds no nodes" in warning) == (limit == D("0.4"))
    grown = replace(fleet, fleets=(replace(SERVERS, count=10),))
    assert shown(estimated(grown).limited, "USD", up=True) in warning
    assert [*estimates.growth_warnings(plan(grown), estimated(grown), PRICES, limit)] == []


def test_limits_use_list_price_and_author_sees_committed_price() -> None:
    listed = Prices(committed={"c7g.large": {"1y": Committed(D(3)), "3y": Committed(D(1), upfront=D(26280))}})
    money = Money(prices={"c7g.large": Price(committed={"1y": Committed(D(2))}), "c5.large": Price(D(1))})
    assert listed.completed_by(money).committed_hour("c7g.large", "1y") == 3
    assert listed.replaced_by(money).committed_hour("c7g.large", "1y") == 2
    assert listed.replaced_by(money).committed_hour("c7g.large", "3y") == 2
    assert Prices().completed_by(money).committed_hour("c7g.large", "1y") == 2
    assert listed.committed_hour("c5.large", "1y") is None
    assert codec.from_document(Prices, json.loads(json.dumps(books.to_document(listed), default=float))) == listed
    older = books.to_document(listed)
    del older["committed"]
    assert codec.from_document(Prices, older).committed == {}


# The budget


@pytest.mark.parametrize(("budget", "refused"), [("0.10", True), ("100", False)])
def test_a_run_that_is_expected_to_cost_more_than_its_budget(budget: str, refused: bool) -> None:
    figures = estimated(an_hour(SERVERS, money=Money(budget=D(budget))))
    messages = [str(problem) for problem in estimates.problems(figures, Money(budget=D(budget)))]
    assert bool(messages) is refused
    if refused:
        assert messages[0].startswith("budget is 0.1: must be at least what it is expected to cost, $0.1")
        assert "at most)" in messages[0]


def test_run_that_can_exceed_its_budget_has_a_warning() -> None:
    benchmark = an_hour(SERVERS, money=Money(budget=D("0.2")), attempts=3)
    assert not list(estimates.problems(estimated(benchmark), benchmark.money))
    assert "more than its budget of $0.20" in estimates.warnings(estimated(benchmark))[0]


# As it is kept


def test_prices_survive_json() -> None:
    stored = json.loads(json.dumps(books.to_document(PRICES), default=float))
    assert codec.from_document(Prices, stored) == PRICES


def test_items_of_an_estimate_add_up() -> None:
    document = estimates.to_document(estimated(an_hour(SERVERS, DRIVERS)))
    (cell,) = document["cells"]
    assert abs(document["expected"] - sum(item["amount"] for item in cell["items"])) < D("0.00001")


def test_points_cost_the_time_of_each_and_of_what_runs_between_them() -> None:
    one = replace(MEASURE, repeat=1)
    many = replace(one, points=(Point({"threads": 1}), Point({"threads": 8}, warm_up=90)), repeat=2,
                   between=Between("reset.sh", ("servers",), 400))  # fmt: skip
    alone, swept = (replace(BENCHMARK, phases=(phase,), expires_after=86400) for phase in (one, many))
    each = 30 + 300 + BETWEEN
    assert [(step.step, step.points) for step in timetable(swept)] == [("boot", 0), ("measure", 4), ("teardown", 0)]
    assert expected_seconds(swept) - expected_seconds(alone) == 3 * each + 2 * (90 - 30) + 3 * (400 // 4 + BETWEEN)
    assert most_seconds(swept) - most_seconds(alone) == 3 * (600 + GRACE + MOST_BETWEEN) + 3 * (
        400 + GRACE + MOST_BETWEEN
    )
