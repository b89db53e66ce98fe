"""A standing fleet's file, where it differs from a benchmark's."""

from __future__ import annotations

import json
from decimal import Decimal as D
from typing import Any

import jsonschema_rs
import pytest

from troop.bench.definition.definition import from_document, to_document
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.file.fleet_models import FleetFileIn
from troop.bench.file.read_fleet import read_fleet
from troop.bench.file.schema import FLEET_TITLE, document

SCHEMA = jsonschema_rs.Draft202012Validator(document(FleetFileIn, FLEET_TITLE))


def a_file(**more: Any) -> dict[str, Any]:
    workers = {"count": 2, "instance_type": "c7g.large", **more}
    return {"name": "workers", "expires_after": "8h", "fleets": {"workers": workers}}


def test_on_spot_its_nodes_may_have_little_time_to_boot() -> None:
    """There is no backup that has to boot after them."""
    file = a_file(purchase="spot", boot_timeout="5m")
    assert read_fleet(file).fleet("workers").is_spot
    SCHEMA.validate(file)


def test_its_prices_are_of_what_is_counted() -> None:
    fleet = read_fleet(
        {**a_file(), "budget": 5, "prices": {"c7g.large": 0.1, "gp3": 0.08}, "accept_unknown_prices": True}
    )
    assert (fleet.money.budget, fleet.money.other_prices, fleet.money.accept_unknown_prices) == (
        5,
        {"gp3": D("0.08")},
        True,
    )
    assert SCHEMA.is_valid({**a_file(), "prices": {"c7g.large": 0.1, "gp3": 0.08, "io2": 0.1}})
    assert not SCHEMA.is_valid({**a_file(), "prices": {"cross_zone_gb": 0.01}})
    with pytest.raises(BadBenchmarkError) as refused:
        read_fleet({**a_file(), "prices": {"gp3": {"spot": 1}, "cross_zone_gb": 0.01}})
    assert {problem.where for problem in refused.value.problems} == {"prices.gp3", "prices.cross_zone_gb"}


def test_standing_fleet_has_license_fees_but_no_load() -> None:
    assert read_fleet(a_file(license_fee=0.5)).fleets[0].license_fee == D("0.5")
    with pytest.raises(BadBenchmarkError) as refused:
        read_fleet(a_file(load=False))
    (problem,) = refused.value.problems
    assert str(problem) == "fleets.workers.load is set: must be left out: a standing fleet measures nothing"
    assert not SCHEMA.is_valid(a_file(load=False))


@pytest.mark.parametrize("changes", [None, {"fleets.workers.spot_timeout": "1m"}])
def test_without_a_backup_nothing_waits_for_spot(changes: dict[str, Any] | None) -> None:
    file = a_file(purchase="spot", **({} if changes else {"spot_timeout": "1m"}))
    with pytest.raises(BadBenchmarkError) as refused:
        read_fleet(file, changes=changes)
    (problem,) = refused.value.problems
    assert problem.where.endswith("fleets.workers.spot_timeout")
    assert "is 1m: must be left out without backup: on-demand" in str(problem)


def test_spot_can_have_a_backup_and_a_maximum_price() -> None:
    file = a_file(purchase="spot", backup="on-demand", spot_timeout="1m", max_price=0.03)
    SCHEMA.validate(file)
    (workers,) = read_fleet(file).fleets
    assert (workers.backup, workers.spot_timeout, workers.max_price) == ("on-demand", 60, D("0.03"))
    stored = from_document(json.loads(json.dumps(to_document(read_fleet(file)))))
    assert stored.fleets == (workers,), "as the launch reads it"
    assert read_fleet(a_file(purchase="spot", backup="on-demand")).fleets[0].spot_timeout == 300


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"purchase": "spot", "backup": "spot"}, "fleets.workers.backup is 'spot': must be one of on-demand"),
        ({"purchase": "spot", "max_price": 0}, "fleets.workers.max_price is 0: must be a number from 0.001 to 100000"),
        ({"purchase": "spot", "max_price": -1}, "fleets.workers.max_price is -1: must be a number"),
        ({"purchase": "spot", "max_price": "1"}, "fleets.workers.max_price is '1': must be a number"),
    ],
)
def test_backups_and_prices_that_cannot_be(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadBenchmarkError) as refused:
        read_fleet(a_file(**changes))
    (only,) = refused.value.problems
    assert str(only).startswith(problem)
