"""Prices and quotas, which the account has of itself: behind signatures and policies as all else."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError

from troop.bench.admission.quotas import quota_of
from troop.bench.aws.admission_reads import read_quotas
from troop.bench.aws.price_list import PriceList
from troop.bench.aws.spot_prices import read_spot_prices
from troop.bench.definition.definition import ON_DEMAND, SPOT

from .helpers import World, allow

REGION, ZONES = "us-east-1", ("us-east-1a", "us-east-1b")


def test_prices_cover_instances_volumes_and_endpoints(world: World) -> None:
    prices = PriceList(world.account.client("pricing"), REGION)
    large, xlarge = prices.instance("c7g.large"), prices.instance("c7g.xlarge")
    assert large is not None
    assert xlarge is not None
    assert (xlarge.amount, large.currency) == (2 * large.amount, "USD")
    assert prices.instance("x0.nothing") is None
    gp3 = prices.volume("gp3")
    assert gp3 is not None
    assert (gp3[0].gib, gp3[0].iops, gp3[0].throughput_mib) == (
        Decimal("0.08"),
        (Decimal("0.005"),),
        Decimal("0.04"),
    )
    io2 = prices.volume("io2")
    assert io2 is not None
    assert len(io2[0].iops) == 3
    snapshot, address = prices.snapshot(), prices.idle_address()
    assert snapshot is not None
    assert address is not None
    assert (snapshot.amount, address.amount) == (Decimal("0.05"), Decimal("0.005"))
    io1, sc1 = prices.volume("io1"), prices.volume("sc1")
    assert io1 is not None
    assert sc1 is not None
    assert (len(io1[0].iops), len(sc1[0].iops)) == (1, 0)
    endpoint = prices.endpoint()
    assert endpoint is not None
    assert (endpoint.amount, endpoint.currency) == (Decimal("0.01"), "USD")
    assert PriceList(world.account.client("pricing"), "eu-west-1").endpoint() is None


def test_spot_is_cheaper_and_has_a_price_in_each_zone(world: World) -> None:
    on_demand = PriceList(world.account.client("pricing"), REGION).instance("c7g.large")
    assert on_demand is not None
    prices = read_spot_prices(world.account.client("ec2"), ["c7g.large"], ZONES, datetime.now(UTC))
    assert set(prices["c7g.large"]) == set(ZONES)
    assert all(0 < price < on_demand.amount for price in prices["c7g.large"].values())
    assert len(set(prices["c7g.large"].values())) == 2


def test_quotas_of_virtual_processors(world: World) -> None:
    pairs = [("c7g.large", SPOT), ("g5.xlarge", ON_DEMAND), ("trn1.2xlarge", ON_DEMAND)]
    quotas = [quota for one in pairs if (quota := quota_of(*one))]
    values, why = read_quotas(world.account.client("service-quotas"), quotas)
    assert list(values.values()) == [5000.0, 0.0], "of the third the account says nothing"
    assert why is None


@pytest.mark.parametrize(
    ("service", "call", "action", "how"),
    [
        ("pricing", "get_products", "pricing:GetProducts", {"ServiceCode": "AmazonEC2"}),
        (
            "service-quotas",
            "get_service_quota",
            "servicequotas:GetServiceQuota",
            {"ServiceCode": "ec2", "QuotaCode": "L-1216C47A"},
        ),
        ("ec2", "describe_spot_price_history", "ec2:DescribeSpotPriceHistory", {"InstanceTypes": ["c7g.large"]}),
    ],
)
def test_they_have_to_be_allowed(world: World, service: str, call: str, action: str, how: dict[str, Any]) -> None:
    def ask(role: str) -> None:
        getattr(world.account.client(service, world.as_role(role)), call)(**how)

    with pytest.raises(ClientError, match="not authorized to perform: " + action):
        ask(world.role())
    ask(world.role(allow(action)))
