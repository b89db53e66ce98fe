"""Reads current spot prices by zone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

LINUX = "Linux/UNIX"


def read_spot_prices(
    client: Any, types: Iterable[str], zones: Iterable[str], now: datetime
) -> Mapping[str, Mapping[str, Decimal]]:
    """Returns the newest price for an hour in USD (in China yuan), by instance type and zone.

    Args:
        client: EC2's.
        types: names, at least one.
        zones: names of availability zones.
        now: the start of the history; EC2 then returns the current prices.

    Raises:
        ClientError, BotoCoreError: EC2 does not answer.
    """
    newest: dict[tuple[str, str], tuple[datetime, Decimal]] = {}
    pages = client.get_paginator("describe_spot_price_history").paginate(
        InstanceTypes=sorted(types),
        ProductDescriptions=[LINUX],
        StartTime=now,
        Filters=[{"Name": "availability-zone", "Values": sorted(zones)}],
    )
    for page in pages:
        for entry in page["SpotPriceHistory"]:
            key = entry["InstanceType"], entry["AvailabilityZone"]
            one = entry["Timestamp"], Decimal(entry["SpotPrice"])
            newest[key] = max(newest.get(key, one), one)
    prices: dict[str, dict[str, Decimal]] = {}
    for (name, zone), (_, price) in newest.items():
        prices.setdefault(name, {})[zone] = price
    return prices
