"""Reads AWS's Price List: the on-demand prices of instances and volumes in a region.

Few regions serve it; each knows the prices of all regions in its partition. GovCloud does not: its prices are in the
list of the commercial regions, for which its accounts have no credentials.
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
"""Of at most 100 products; a type has one, or a few."""

_INSTANCE = re.compile(r"([A-Z0-9]+-)?BoxUsage(:.*)?")
_GIB_IN_MIB = 1024


def region_of(region: str) -> str | None:
    """Returns the region that serves a region's price list; None if none can be reached."""
    if region.startswith("cn-"):
        return CHINA
    first = region.split("-", maxsplit=1)[0]
    if region.startswith(("us-gov-", "us-iso", "eu-iso", "eusc-")):
        return None
    return _NEAREST.get(first, "us-east-1")


@dataclass(frozen=True)
class Priced:
    """An amount and its currency."""

    amount: Decimal
    currency: str


@dataclass(frozen=True)
class PriceList:
    """The price list of one region.

    Attributes:
        client: of pricing, in a region that serves it.
        region: whose prices are read.
    """

    client: Any
    region: str

    def instance(self, instance_type: str) -> Priced | None:
        """Returns the price of a Linux instance for an hour; None if the list does not have it.

        Raises:
            ClientError, BotoCoreError: the service does not answer.
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
        """Returns the price of a type of volume for a month, and the currency; None if the list does not have it.

        Raises:
            ClientError, BotoCoreError: the service does not answer.
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
    """Returns the first tier's price. Throughput is listed per GiB/s, and returned per MiB/s."""
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
