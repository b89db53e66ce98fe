"""Volumes with the data of a snapshot: their template, their time and their cost."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.bench.admission.test_estimate import PRICES, estimated
from tests.unit.bench.build import BENCHMARK, DRIVERS, SERVERS
from troop.bench.admission.estimate import BOOT, expected_seconds
from troop.bench.definition.definition import READ, Benchmark, Volume, from_document, to_document
from troop.bench.definition.money import INITIALIZATION, Money
from troop.bench.fleets.fleet_requests import Image, template_data
from troop.bench.money.prices import Prices
from troop.bench.money.prices import to_document as prices_document
from troop.shared import codec

SNAPSHOT = "snap-0123456789abcdef0"


def restored(**how: Any) -> Benchmark:
    volume = replace(Volume("/dev/sdf", 20, snapshot=SNAPSHOT), **how)
    return replace(BENCHMARK, fleets=(replace(SERVERS, volumes=(volume,)), DRIVERS))


@pytest.mark.parametrize("initialize", [None, READ, 200])
def test_the_template_leaves_encryption_to_the_snapshot(initialize: int | str | None) -> None:
    """EC2 refuses the key beside a snapshot."""
    fleet = restored(initialize=initialize).fleets[0]
    root, volume = template_data(fleet, Image("ami-1", "/dev/xvda"), ["sg-1"], "arn", "", {})["BlockDeviceMappings"]
    assert root["Ebs"]["Encrypted"] is True
    rate = {"VolumeInitializationRate": 200} if initialize == 200 else {}
    assert volume["Ebs"] == {
        "SnapshotId": SNAPSHOT,
        "VolumeSize": 20,
        "VolumeType": "gp3",
        "DeleteOnTermination": True,
        **rate,
    }


@pytest.mark.parametrize("initialize", [None, READ, 200])
def test_initialization_is_stored_with_the_definition(initialize: int | str | None) -> None:
    benchmark = restored(initialize=initialize)
    assert from_document(to_document(benchmark)) == benchmark


def test_the_expected_time_contains_the_reading_of_the_largest_volume() -> None:
    """20 GiB at the 125 MiB/s of gp3, or at its provisioned throughput."""
    without = expected_seconds(restored())
    assert expected_seconds(restored(initialize=200)) == without
    assert expected_seconds(restored(initialize=READ)) - without == 164
    assert expected_seconds(restored(initialize=READ, throughput_mib=250)) - without == 82
    assert expected_seconds(restored(initialize=READ, size_gib=2000)) - without == SERVERS.boot_timeout - BOOT


def test_a_rate_without_a_price_is_unknown_never_free() -> None:
    (cell,) = estimated(restored(initialize=200)).cells
    assert cell.expected.unknown == ("servers, initialization",)
    priced = replace(restored(initialize=200), money=Money(other_prices={INITIALIZATION: Decimal("0.0012")}))
    (cell,) = estimated(priced).cells
    (line,) = (one for one in cell.expected.items if one.what == "servers, initialization")
    assert line.quantity == SERVERS.count * 20 * 2
    assert line.amount == SERVERS.count * Decimal("0.048")
    assert cell.expected.unknown == ()


def test_prices_keep_it() -> None:
    book = replace(PRICES, initialization=Decimal("0.0012"))
    assert codec.from_document(Prices, prices_document(book)) == book
    earlier = {key: value for key, value in prices_document(PRICES).items() if key != INITIALIZATION}
    assert codec.from_document(Prices, earlier).initialization is None
