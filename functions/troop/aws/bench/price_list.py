"""AWS's Price List: what instances and volumes cost in a region, on demand.

It is served in a few regions, each of which knows the prices of all regions of its partition. GovCloud has none: its
prices are in the list of the other regions, whose credentials nobody has there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from troop.bench.prices import VolumePrice

CHINA = "cn-northwest-1"
_NEAREST = {"ap": "ap-south-1", "eu": "eu-central-1", "af": "eu-central-1", "il": "eu-central-1", "me": "ap-south-1"}

_PAGES = 3
"""Of 100 products at most: a type has one, or a few."""

_INSTANCE = re.compile(r"([A-Z0-9]+-)?BoxUsage(:.*)?")
_GIB_IN_MIB = 1024


def region_of(region: str) -> str | None:
    """Where the list of a region's prices is served; None where none can be asked."""
    if region.startswith("cn-"):
        return CHINA
    first = region.split("-", maxsplit=1)[0]
    if region.startswith(("us-gov-", "us-iso", "eu-iso", "eusc-")):
        return None
    return _NEAREST.get(first, "us-east-1")


@dataclass(frozen=True)
class Priced:
    """An amount, and the currency it is in."""

    amount: Decimal
    currency: str


@dataclass(frozen=True)
class PriceList:
    """``client``: pricing's, in one of the regions that serve it; ``region``: whose prices are wanted."""

    client: Any
    region: str

    def instance(self, instance_type: str) -> Priced | None:
        """An hour of an instance of Linux; None when the list does not have it.

        Raises:
            ClientError, BotoCoreError: it does not answer.
        """
        filters = {
            "instanceType": instance_type,
            "regionCode": self.region,
            "operatingSystem": "Linux",
            "tenancy": "Shared",
            "preInstalledSw": "NA",
            "capacitystatus": "Used",
        }
        prices = (
            _price(product)
            for product in self._products(filters)
            if _INSTANCE.fullmatch(_attribute(product, "usagetype"))
        )
        return next((price for price in prices if price is not None and price.amount > 0), None)

    def volume(self, kind: str) -> tuple[VolumePrice, str] | None:
        """A month of a type of volume, and the currency; None when the list does not have it.

        Raises:
            ClientError, BotoCoreError: it does not answer.
        """
        prices: dict[str, Priced] = {}
        for product in self._products({"volumeApiName": kind, "regionCode": self.region}):
            usage = re.fullmatch(r"(?:[A-Z0-9]+-)?EBS:Volume(.+)", _attribute(product, "usagetype"))
            if usage and (price := _price(product)):
                prices.setdefault(usage[1], price)
        if f"Usage.{kind}" not in prices:
            return None
        gib = prices[f"Usage.{kind}"]
        tiers = [prices.get(f"P-IOPS.{kind}{more}") for more in ("", ".tier2", ".tier3")]
        throughput = prices.get(f"P-Throughput.{kind}")
        return (
            VolumePrice(
                gib.amount,
                tuple(tier.amount for tier in _until_none(tiers)),
                throughput.amount if throughput else None,
            ),
            gib.currency,
        )

    def _products(self, attributes: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in attributes.items()]
        pages = self.client.get_paginator("get_products").paginate(
            ServiceCode="AmazonEC2", Filters=filters, FormatVersion="aws_v1", PaginationConfig={"PageSize": 100}
        )
        for number, page in enumerate(pages, 1):
            yield from (json.loads(product) for product in page["PriceList"])
            if number == _PAGES:
                return


def _attribute(product: Mapping[str, Any], name: str) -> str:
    return str(product.get("product", {}).get("attributes", {}).get(name, ""))


def _price(product: Mapping[str, Any]) -> Priced | None:
    """The first tier's. Throughput is listed by the GiB a second, and told by the MiB."""
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term.get("priceDimensions", {}).values():
            if dimension.get("beginRange", "0") != "0":
                continue
            for currency, amount in dimension.get("pricePerUnit", {}).items():
                try:
                    price = Decimal(amount)
                except InvalidOperation:
                    continue
                in_gib = str(dimension.get("unit", "")).lower().startswith("gibps")
                return Priced(price / _GIB_IN_MIB if in_gib else price, currency)
    return None


def _until_none(prices: Iterable[Priced | None]) -> Iterator[Priced]:
    for price in prices:
        if price is None:
            return
        yield price
