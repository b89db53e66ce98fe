"""Cost by cell and role, traffic between zones, and the price of a throughput."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.report import sample_reports as samples
from tests.unit.report.sample_cells import measured
from troop.bench.admission.estimate import LICENSE, NODE_HOUR, OWN, TRAFFIC
from troop.bench.money.costs import Item, cost_of
from troop.report import bills, traffic
from troop.report.document import Cell, Charge, Fleet, Money, Operation, Phase, Use
from troop.report.run_cost import bill as bill_of


def item(name: str, quantity: str, price: str | None, unit: str = NODE_HOUR) -> Item:
    return Item(name, Decimal(quantity), unit, None if price is None else Decimal(price))


def fleet(role: str, nodes: int, hourly: float | None, zones: dict[str, int] | None = None) -> Fleet:
    charge = None if hourly is None else Charge(instances=hourly, storage=0.0, committed={"3y": hourly / 2})
    return Fleet(role=role, nodes=nodes, instance_type="m2.4xlarge", hourly=hourly, charge=charge, zones=zones or {})


def a_cell(*fleets: Fleet, items: tuple[Item, ...] = (), system: float | None = None) -> Cell:
    cost = bill_of(cost_of(items, "USD")) if items else None
    return Cell(cell="c001", label="n48", status="SUCCEEDED", fleets=list(fleets), cost=cost, system_hourly=system)


def test_each_role_has_its_own_time_and_amount() -> None:
    """As in the study of 2011: clients come last and end first."""
    items = (
        item("servers, m1.xlarge, on-demand", "96", "0.68"),
        item("servers, storage gp3", "10", "0.1", "GiB-month"),
        item(f"servers, {LICENSE}", "96", "0.25"),
        item("drivers, m2.4xlarge, on-demand", "10", "2"),
        item("drivers, m2.4xlarge, spot", "5", None),
        item(TRAFFIC, "40", "0.02", "GB"),
        item(OWN, "1", "0.01", "cell"),
    )
    (one,) = bills.bills([a_cell(fleet("servers", 48, 32.64), fleet("drivers", 10, 20.0), items=items, system=32.64)])
    servers, drivers = one.roles
    assert (servers.node_hours, servers.amount) == (96, pytest.approx(65.28 + 1 + 24))
    assert (drivers.node_hours, drivers.amount, drivers.hourly) == (15, 20, 20.0)
    assert [line.what for line in one.others] == [TRAFFIC, OWN]
    assert (one.hourly, one.by_term) == (32.64, {"1y": None, "3y": pytest.approx(16.32 * 26280)})


def test_role_with_only_a_bill_and_cell_without_one_are_marked() -> None:
    only_billed, unbilled = bills.bills(
        [a_cell(items=(item("nodes, unknown, on-demand", "1", None),)), a_cell(fleet("servers", 1, None))]
    )
    (role,) = only_billed.roles
    assert (role.role, role.fleet, role.amount, role.by_term) == ("nodes", None, None, {"1y": None, "3y": None})
    assert (unbilled.roles[0].node_hours, unbilled.roles[0].amount) == (None, None)
    assert bills.bills([a_cell()]) == []


def test_a_throughput_has_its_operations_a_day_and_its_price_a_month() -> None:
    cell = measured("c001", 3, 50, 1).model_copy(update={"system_hourly": 2.0})
    (total,) = bills.rates([cell])
    assert total.per_second == sum(one.per_second or 0 for one in cell.phases[0].operations)
    assert total.per_day == total.per_second * 86400
    assert (total.monthly, total.operation) == (1460.0, "all operations of drivers")
    assert bills.rates([cell.model_copy(update={"system_hourly": None})])[0].monthly is None


def test_rates_without_a_total_have_a_price_each() -> None:
    """A tool such as iozone reports rates of operations one after the other, which have no total."""
    cell = measured("c001", 3, 50, 1)
    rates = [
        Operation(role="servers", operation=name, count=9, per_second=9.0, mean_ms=1.0, mean_derived=True)
        for name in ("random-read", "random-write")
    ]
    phase = cell.phases[0].model_copy(update={"operations": rates, "totals": []})
    priced = bills.rates([cell.model_copy(update={"phases": [phase]})])
    assert [one.operation for one in priced] == ["random-read of servers", "random-write of servers"]


def test_lines_of_the_same_item_are_beside_one_another() -> None:
    """Each zone has a price for spot, and a backup on demand comes late."""
    items = [
        item("servers, i4i.large, spot", "1", "0.06"),
        item("servers, storage gp3", "1", "0.1"),
        item("servers, i4i.large, spot", "1", "0.07"),
        item("drivers, c7g.large, on-demand", "1", "0.1"),
        item(OWN, "1", "0.1"),
        item("servers, i4i.large, on-demand", "1", "0.2"),
        item(TRAFFIC, "1", "1"),
        item(OWN, "1", "0.2"),
    ]
    actual = bill_of(cost_of(items, "USD"))
    report = samples.bare().model_copy(update={"money": Money(actual=actual)})
    assert [(line.what, line.price) for line in bills.lines(report)] == [
        ("servers, i4i.large, spot", 0.06),
        ("servers, i4i.large, spot", 0.07),
        ("servers, storage gp3", 0.1),
        ("servers, i4i.large, on-demand", 0.2),
        ("drivers, c7g.large, on-demand", 0.1),
        (OWN, 0.1),
        (OWN, 0.2),
        (TRAFFIC, 1),
    ]
    assert bills.lines(samples.bare()) == []


def test_a_thousand_iops_of_the_system_have_a_price() -> None:
    uses = [
        Use(role="servers", nodes=3, disk_reads=3000, disk_writes=1000),
        Use(role="drivers", nodes=1, disk_reads=9e9),
    ]
    phases = [
        Phase(phase="measure", label="batch=1", nodes=4, measured_seconds=60, use=uses),
        Phase(phase="idle", nodes=4, measured_seconds=60, use=[Use(role="servers", nodes=3, disk_writes=49)]),
    ]
    load = fleet("drivers", 1, 1.0).model_copy(update={"load": True})
    cell = a_cell(fleet("servers", 3, 2.0), load, system=2.0).model_copy(update={"phases": phases})
    assert bills.disk_rates([cell]) == [bills.DiskRate("c001 n48, batch=1", 3000, 1000, 0.5)]
    (unpriced,) = bills.disk_rates([cell.model_copy(update={"system_hourly": None})])
    assert unpriced.per_thousand is None


def test_a_line_belongs_to_the_role_at_its_beginning() -> None:
    lines = bill_of(
        cost_of([item("servers, storage gp3", "1", "1"), item(TRAFFIC, "1", "1"), item(OWN, "1", "1")], "USD")
    )
    assert [line.role for line in lines.lines] == ["servers", None, None]


# Traffic between zones


def phase(sent: dict[str, float | None], seconds: float = 100.0) -> Phase:
    use = [Use(role=role, nodes=1, network_sent_bytes=rate) for role, rate in sent.items()]
    return Phase(phase="measure", nodes=1, measured_seconds=seconds, use=use)


def test_traffic_between_zones_is_the_part_of_other_nodes_in_other_zones() -> None:
    servers = fleet("servers", 3, 1.0, {"a": 1, "b": 1, "c": 1})
    drivers = fleet("drivers", 1, 1.0, {"a": 1})
    # A server in b or c has all 3 others elsewhere, that in a 2 of 3; the driver 2 of 3.
    share = (2 / 3 + 1 + 1) / 3
    gb = traffic.estimated_gb(
        [servers, drivers], [phase({"servers": 3e7, "drivers": 1.5e7}), phase({"servers": 1e7}, 10)]
    )
    assert gb == pytest.approx((share * 3e7 * 100 + 2 / 3 * 1.5e7 * 100 + share * 1e7 * 10) / 1e9)


@pytest.mark.parametrize(
    ("fleets", "phases", "gb"),
    [
        ([fleet("servers", 3, 1.0, {"a": 3})], [phase({"servers": 1e9})], 0),
        ([fleet("servers", 1, 1.0, {"a": 1})], [phase({"servers": 1e9})], 0),
        ([fleet("servers", 3, 1.0)], [phase({"servers": 1e9})], None),
        ([fleet("servers", 3, 1.0, {"a": 2, "b": 1})], [], None),
        ([fleet("servers", 3, 1.0, {"a": 2, "b": 1})], [phase({"servers": None})], None),
        ([fleet("servers", 3, 1.0, {"a": 2, "b": 1})], [phase({"others": 1.0})], None),
    ],
)
def test_traffic_with_unknown_parts_is_not_estimated(
    fleets: list[Fleet], phases: list[Phase], gb: float | None
) -> None:
    assert traffic.estimated_gb(fleets, phases) == gb


@given(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_no_more_crosses_zones_than_is_sent(one: list[int], other: list[int]) -> None:
    zoned = [{zone: n for zone, n in zip("abcd", counts, strict=False) if n} for counts in (one, other)]
    fleets = [fleet(role, sum(zones.values()), 1.0, zones) for role, zones in zip("xy", zoned, strict=True) if zones]
    gb = traffic.estimated_gb(fleets, [phase({fleet.role: 1e9 for fleet in fleets}, 1.0)])
    if fleets:
        assert gb is not None
        assert 0 <= gb <= len(fleets) + 1e-6
