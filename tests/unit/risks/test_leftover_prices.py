"""The prices of leftovers, from what EC2 tells of them and from usage types of AWS's price list."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.unit.account.market import GP3, PREFIX, product
from troop.bench.aws.price_list import PriceList
from troop.risks.aws.leftover_prices import LeftoverPrices
from troop.risks.price import Price

USAGES = {
    "gp2": [("VolumeUsage.gp2", "0.10")],
    "io1": [("VolumeUsage.piops", "0.125"), ("VolumeP-IOPS.piops", "0.065")],
    "io2": [("VolumeUsage.io2", "0.125"), ("VolumeP-IOPS.io2", "0.065")],
    "sc1": [("VolumeUsage.sc1", "0.015")],
    "st1": [("VolumeUsage.st1", "0.045")],
    "standard": [("VolumeIOUsage", "0.00000005"), ("VolumeUsage", "0.05")],
}


class Listed:
    """A client of the price list."""

    def get_paginator(self, operation: str) -> Listed:
        return self

    def paginate(self, Filters: list[dict[str, str]], **_: Any) -> list[dict[str, Any]]:
        kind = next(one["Value"] for one in Filters if one["Field"] == "volumeApiName")
        products = [product(f"{PREFIX}EBS:{usage}", price, "GB-Mo") for usage, price in USAGES.get(kind, [])]
        return [{"PriceList": products or GP3}]


@pytest.mark.parametrize(
    ("kind", "performance", "monthly"),
    [
        ("gp2", {"Iops": 300}, "10.00"),  # the baseline, which is included
        ("gp3", {"Iops": 3000, "Throughput": 125}, "9.52"),
        ("gp3", {"Iops": 4000, "Throughput": 225}, "20.28"),
        ("io1", {"Iops": 1000}, "77.50"),
        ("io2", {"Iops": 1000}, "77.50"),
        ("sc1", {}, "1.50"),
        ("st1", {}, "4.50"),
        ("standard", {}, "5.00"),
    ],
)
def test_every_type_of_volume_has_a_price(kind: str, performance: dict[str, int], monthly: str) -> None:
    prices = LeftoverPrices(PriceList(Listed(), "eu-central-1"))
    volume = {"VolumeType": kind, "Size": 100, **performance}
    assert prices.volume(volume) == Price(Decimal(monthly), "USD")
