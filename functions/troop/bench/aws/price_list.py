"""Reads AWS's Price List: the prices of instances, on demand and reserved, of volumes, snapshots, endpoints and unused
addresses in a region.

:func:`troop.bench.money.prices.region_of_list` says which region serves it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any

from troop.bench.definition.money import ZERO, Committed
from troop.bench.money.prices import VolumePrice

_PAGES = 3
"""The most pages of an answer, each of at most 100 products; a type has one, or a few."""

_INSTANCE = re.compile(r"([A-Z0-9]+-)?BoxUsage(:.*)?")
_GIB_IN_MIB = 1024
_LISTED = {"io1": "piops"}
"""Types of volumes that have another name in the price list."""
_MAGNETIC = "standard"
"""The type of volumes whose usage type does not name it."""
_TERMS = {"1yr": "1y", "3yr": "3y"}


@dataclass(frozen=True)
class Priced:
    """An amount and its currency.

    Attributes:
        committed: of an instance: its cheapest standard reservation, by term.
    """

    amount: Decimal
    currency: str
    committed: Mapping[str, Committed] = field(default_factory=dict)


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
        """Returns the prices of a Linux instance; None if the list does not have it on demand.

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
        for product in self._products(filters):
            if not _INSTANCE.fullmatch(_attribute(product, "usagetype")):
                continue
            price = _price(product)
            if price is not None and price.amount > 0:
                return replace(price, committed=_reserved(product, price.currency))
        return None

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
        listed = _LISTED.get(kind, kind)
        gib = prices.get("Usage" if kind == _MAGNETIC else f"Usage.{listed}")
        if gib is None:
            return None
        tiers = [prices.get(f"P-IOPS.{listed}{more}") for more in ("", ".tier2", ".tier3")]
        throughput = prices.get(f"P-Throughput.{listed}")
        return (
            VolumePrice(
                gib.amount,
                tuple(tier.amount for tier in _until_none(tiers)),
                throughput.amount if throughput else None,
            ),
            gib.currency,
        )

    def endpoint(self) -> Priced | None:
        """Returns the price of an hour of an interface endpoint in one zone; None if the list does not have it.

        Raises:
            ClientError, BotoCoreError: the service does not answer.
        """
        return self._first({"productFamily": "VpcEndpoint"}, "AmazonVPC", "VpcEndpoint-Hours")

    def snapshot(self) -> Priced | None:
        """Returns the price of a GiB of a snapshot's data for a month; None if the list does not have it.

        Raises:
            ClientError, BotoCoreError: the service does not answer.
        """
        return self._first({}, "AmazonEC2", "EBS:SnapshotUsage", contains=True)

    def idle_address(self) -> Priced | None:
        """Returns the price of an hour of an unused public IPv4 address; None if the list does not have it.

        Raises:
            ClientError, BotoCoreError: the service does not answer.
        """
        return self._first({}, "AmazonVPC", "PublicIPv4:IdleAddress", contains=True)

    def _first(
        self, attributes: Mapping[str, str], service: str, usage: str, *, contains: bool = False
    ) -> Priced | None:
        """Returns the price of the first product whose usage type is ``usage``, with or without a region's code.

        Args:
            contains: whether the list is searched for the usage type, as nothing else describes the product.
        """
        usages = {"usagetype": usage} if contains else {}
        products = self._products({**attributes, "regionCode": self.region}, service, usages)
        exact = re.compile(f"([A-Z0-9]+-)?{re.escape(usage)}")
        prices = (_price(product) for product in products if exact.fullmatch(_attribute(product, "usagetype")))
        return next((price for price in prices if price is not None and price.amount > 0), None)

    def _products(
        self, attributes: Mapping[str, str], service: str = "AmazonEC2", parts: Mapping[str, str] = MappingProxyType({})
    ) -> Iterator[Mapping[str, Any]]:
        """Yields the products that have all ``attributes``, and whose other attributes contain ``parts``."""
        filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in attributes.items()]
        filters += [{"Type": "CONTAINS", "Field": field, "Value": value} for field, value in parts.items()]
        pages = self.client.get_paginator("get_products").paginate(
            ServiceCode=service, Filters=filters, FormatVersion="aws_v1", PaginationConfig={"PageSize": 100}
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


def _reserved(product: Mapping[str, Any], currency: str) -> dict[str, Committed]:
    """Returns the cheapest standard reservation by term, whatever part of it is paid upfront."""
    cheapest: dict[str, Committed] = {}
    for offer in product.get("terms", {}).get("Reserved", {}).values():
        attributes = offer.get("termAttributes", {})
        term = _TERMS.get(str(attributes.get("LeaseContractLength", "")).replace(" ", ""))
        price = _reservation(offer.get("priceDimensions", {}).values(), currency)
        if term is None or price is None or attributes.get("OfferingClass") != "standard":
            continue
        if term not in cheapest or price.an_hour(term) < cheapest[term].an_hour(term):
            cheapest[term] = price
    return cheapest


def _reservation(dimensions: Iterable[Mapping[str, Any]], currency: str) -> Committed | None:
    """Returns a reservation's price: one dimension is of each hour, another of the upfront payment, if there is one."""
    hourly, upfront = None, ZERO
    for dimension in dimensions:
        try:
            amount = Decimal(dimension.get("pricePerUnit", {})[currency])
        except (InvalidOperation, KeyError):
            return None
        if str(dimension.get("unit", "")).lower() == "hrs":
            hourly = amount
        else:
            upfront += amount
    return Committed(hourly or ZERO, upfront=upfront) if hourly or upfront else None


def _until_none(prices: Iterable[Priced | None]) -> Iterator[Priced]:
    for price in prices:
        if price is None:
            return
        yield price
