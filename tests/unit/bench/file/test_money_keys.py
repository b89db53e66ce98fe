"""The file's keys about money."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.bench.file.documents import changed, problems, read
from troop.bench.definition.definition import from_document, is_load, to_document
from troop.bench.definition.money import HOURLY, Committed, Money, Price, money_document, money_of, shown

D = Decimal


def money(**changes: Any) -> Money:
    return read(changed(**changes)).money


def test_a_file_that_says_nothing_of_money() -> None:
    assert money() == Money()


def test_all_keys_about_money_are_read() -> None:
    actual = money(
        budget=25.5,
        billing="hourly",
        prices={"c7g.large": 0.0725, "u-6tb1.metal": {"on_demand": 46, "spot": 0.1}, "m7g.large": {"spot": 0.03}}
        | {"gp3": 0.08, "cross_zone_gb": 0},
        accept_unknown_prices=True,
        traffic={"cross_zone_gb": 40, "s3_gets": 1000, "s3_puts": 0},
    )
    assert actual == Money(
        budget=D("25.5"),
        billing=HOURLY,
        prices={
            "c7g.large": Price(D("0.0725")),
            "u-6tb1.metal": Price(D(46), D("0.1")),
            "m7g.large": Price(spot=D("0.03")),
        },
        other_prices={"gp3": D("0.08"), "cross_zone_gb": D(0)},
        accept_unknown_prices=True,
        cross_zone_gb=D(40),
        requests={"s3_gets": D(1000)},
    )


def test_a_commitment_has_a_price_for_its_term_with_or_without_an_upfront_part() -> None:
    its = {"on_demand": 3.1, "1y": 1.9, "3y": {"upfront": 7280, "hourly": 0.621}}
    actual = money(prices={"i4i.large": its, "c7g.large": {"3y": 0.05}})
    assert actual.prices == {
        "i4i.large": Price(D("3.1"), None, {"1y": Committed(D("1.9")), "3y": Committed(D("0.621"), upfront=D(7280))}),
        "c7g.large": Price(committed={"3y": Committed(D("0.05"))}),
    }
    assert actual.prices["i4i.large"].committed["3y"].an_hour("3y") == D("0.621") + D(7280) / (3 * 8760)
    document = json.loads(json.dumps(money_document(actual)))
    assert document["prices"] == {"i4i.large": its, "c7g.large": {"3y": 0.05}}
    assert money_of(document) == actual


def test_a_fleet_has_a_license_fee_and_says_whether_it_only_generates_load() -> None:
    document = changed(fleets__servers__license_fee=0.35, fleets__servers__load=True)
    fleet = read(document).fleet("servers")
    assert (fleet.license_fee, fleet.load) == (D("0.35"), True)
    stored = json.loads(json.dumps(to_document(read(document))))
    assert from_document(stored).fleet("servers") == fleet
    assert stored["fleets"]["servers"]["license_fee"] == 0.35
    plain = to_document(read(changed()))["fleets"]["servers"]
    assert not {"load", "license_fee"} & plain.keys()


@pytest.mark.parametrize(
    ("role", "load", "is_it"),
    [
        ("drivers", None, True),
        ("web-clients", None, True),
        ("load-generator", None, True),
        ("load-balancer", None, False),
        ("servers", None, False),
        ("drivers", False, False),
        ("servers", True, True),
    ],
)
def test_the_file_decides_which_role_generates_load_and_otherwise_its_name(
    role: str, load: bool | None, is_it: bool
) -> None:
    assert is_load(role, load) is is_it


def test_amounts_are_what_was_written_not_what_a_float_is() -> None:
    assert str(money(budget=0.1).budget) == "0.1"
    assert str(money(budget=100).budget) == "100"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": -1}, "budget is -1: must be a number from 0 to 10000000"),
        ({"budget": "25"}, "budget is '25': must be a number"),
        ({"budget": True}, "budget is true: must be a number"),
        ({"budget": float("nan")}, "budget is nan: must be a number"),
        ({"billing": "daily"}, "billing is 'daily': must be one of per-second, hourly"),
        ({"prices": {"c7g": 1}}, "prices.c7g is not a valid name: must be an EC2 instance type"),
        ({"prices": {"c7g.large": "1"}}, "prices.c7g.large is '1': must be USD an hour of one node: a number"),
        ({"prices": {"c7g.large": {}}}, "prices.c7g.large is {}: must be USD an hour"),
        ({"prices": {"c7g.large": {"reserved": 1}}}, "prices.c7g.large is {'reserved': 1}: must be USD an hour"),
        ({"prices": {"c7g.large": {"2y": 1}}}, "prices.c7g.large is {'2y': 1}: must be USD an hour"),
        ({"prices": {"c7g.large": {"1y": {"upfront": 1}}}}, "prices.c7g.large is {'1y': {'upfront': 1}}: must be USD"),
        ({"prices": {"gp3": {"1y": 1}}}, "prices.gp3 is a mapping: must be a number: USD a GiB-month"),
        ({"fleets__servers__license_fee": -1}, "fleets.servers.license_fee is -1: must be a number from 0"),
        ({"fleets__servers__load": "no"}, "fleets.servers.load is 'no': must be true or false"),
        ({"prices": {"gp3": {"spot": 1}}}, "prices.gp3 is a mapping: must be a number: USD a GiB-month"),
        ({"traffic": {"cross_zone": 1}}, "traffic.cross_zone is not known: must be spelled cross_zone_gb"),
        ({"traffic": 5}, "traffic is 5: must be a mapping"),
        ({"accept_unknown_prices": "yes"}, "accept_unknown_prices is 'yes': must be true or false"),
        ({"phases__0__expected": "11m"}, "phases.0.expected is 11m: must be at most 10m, its timeout"),
    ],
)
def test_bad_key_about_money_is_refused(changes: dict[str, Any], message: str) -> None:
    assert any(str(problem).startswith(message) for problem in problems(changed(**changes)))


def test_a_size_and_a_single_change_can_say_it_too() -> None:
    document = changed(sizes={"smoke": {"budget": 1, "phases.prepare.expected": "30s"}})
    benchmark = read(document, size="smoke", changes={"accept_unknown_prices": True})
    assert (benchmark.money.budget, benchmark.money.accept_unknown_prices) == (1, True)
    assert benchmark.phase("prepare").expected == 30


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0.00"),
        (0.001, "less than $0.01"),
        (999999999999999, "$999,999,999,999,999.00"),
        (1e26, "$1.000e+26"),
        (1.7e308, "$1.700e+308"),
        (float("inf"), "$inf"),
    ],
)
def test_any_amount_can_be_shown(amount: float, text: str) -> None:
    assert shown(amount).lower().replace("infinity", "inf") == text.lower()
