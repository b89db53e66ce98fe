"""Models the prices of a run. Each run stores its own, so that its figures do not change later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from troop.bench.definition.definition import SPOT
from troop.bench.definition.money import CROSS_ZONE, ENDPOINT, INITIALIZATION, STORAGE, Committed, Money
from troop.shared import codec
from troop.shared.codec import stored
from troop.shared.formatting import USD

FORMAT = "troop.prices/1"

ANY_ZONE = "*"
"""Key for all zones, used for spot prices from the file."""

CROSS_ZONE_GB = Decimal("0.02")
"""USD for a GB between two zones: 0.01 for sending and 0.01 for receiving. AWS charges this in nearly all regions; a
file's own price applies only to its author's figures.
"""

IOPS_INCLUDED = {"gp3": 3000, "io2": 0}
THROUGHPUT_INCLUDED = 125
"""MiB a second included in gp3."""

IOPS_TIERS = (32_000, 64_000)
"""Bounds of io2's three price tiers for IOPS."""


_CHINA = "cn-northwest-1"
_NEAREST = {"ap": "ap-south-1", "eu": "eu-central-1", "af": "eu-central-1", "il": "eu-central-1", "me": "ap-south-1"}


def region_of_list(region: str) -> str | None:
    """Returns the region that serves AWS's Price List with a region's prices; None if none can be reached.

    Few regions serve it; each knows the prices of all regions in its partition. GovCloud does not: its prices are in
    the list of the commercial regions, for which its accounts have no credentials.
    """
    if region.startswith("cn-"):
        return _CHINA
    first = region.split("-", maxsplit=1)[0]
    if region.startswith(("us-gov-", "us-iso", "eu-iso", "eusc-")):
        return None
    return _NEAREST.get(first, "us-east-1")


@dataclass(frozen=True)
class VolumePrice:
    """Monthly prices of one type of volume; None if unknown.

    Attributes:
        gib: of a GiB.
        iops: of one provisioned I/O operation a second, by tier.
        throughput_mib: of a provisioned MiB a second.
    """

    gib: Decimal | None = None
    iops: tuple[Decimal, ...] = ()
    throughput_mib: Decimal | None = None


_REQUIRED = stored(required=True)


@dataclass(frozen=True)
class Prices:
    """The prices for a run's cost.

    Attributes:
        on_demand: of an hour, by instance type.
        spot: of an hour, by instance type and zone.
        volumes: by type.
        cross_zone_gb: of a GB between zones; None if unknown.
        initialization: of a GiB of a snapshot's data that EBS loads at 100 MiB/s; None if unknown. AWS's own is not
            read: its name in the price list is not documented.
        committed: of nodes that are reserved or covered by a savings plan, by instance type and term.
        endpoint: of an hour of an interface endpoint in one zone; None if unknown, or not needed.
    """

    currency: str = field(default=USD, metadata=_REQUIRED)
    on_demand: Mapping[str, Decimal] = field(default_factory=dict, metadata=_REQUIRED)
    spot: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict, metadata=_REQUIRED)
    volumes: Mapping[str, VolumePrice] = field(default_factory=dict, metadata=_REQUIRED)
    cross_zone_gb: Decimal | None = None
    initialization: Decimal | None = None
    committed: Mapping[str, Mapping[str, Committed]] = field(default_factory=dict)
    endpoint: Decimal | None = field(default=None, metadata=stored(omit=True))

    def hour(self, instance_type: str, purchase: str, zone: str | None = None) -> Decimal | None:
        """Returns the hourly price of one node; None if unknown. Without a zone, the highest spot price applies."""
        if purchase != SPOT:
            return self.on_demand.get(instance_type)
        zones = self.spot.get(instance_type)
        if not zones:
            return None
        return zones.get(zone or ANY_ZONE) or max(zones.values())

    def committed_hour(self, instance_type: str, term: str) -> Decimal | None:
        """Returns the hourly price of one node under a commitment for a term, with its part of the upfront price."""
        price = self.committed.get(instance_type, {}).get(term)
        return None if price is None else price.an_hour(term)

    def completed_by(self, money: Money) -> Prices:
        """Adds the file's prices for items without a price here. Ignores prices of 0, which would disable limits."""
        on_demand = {name: price.on_demand for name, price in money.prices.items() if price.on_demand}
        spot = {name: {ANY_ZONE: price.spot} for name, price in money.prices.items() if price.spot}
        volumes = dict(self.volumes)
        for name, price in money.other_prices.items():
            own = volumes.get(name, VolumePrice())
            if name in STORAGE and own.gib is None and price:
                volumes[name] = replace(own, gib=price)
        cross_zone = money.other_prices.get(CROSS_ZONE) or None
        initialization = money.other_prices.get(INITIALIZATION) or None
        endpoint = money.other_prices.get(ENDPOINT) or None
        return replace(
            self,
            on_demand={**on_demand, **self.on_demand},
            spot={**spot, **self.spot},
            volumes=volumes,
            cross_zone_gb=cross_zone if self.cross_zone_gb is None else self.cross_zone_gb,
            initialization=initialization if self.initialization is None else self.initialization,
            committed=_merged(_committed(money), self.committed),
            endpoint=endpoint if self.endpoint is None else self.endpoint,
        )

    def replaced_by(self, money: Money) -> Prices:
        """Replaces prices by those of the file, for the author's figures."""
        on_demand = {name: price.on_demand for name, price in money.prices.items() if price.on_demand is not None}
        spot = {name: {ANY_ZONE: price.spot} for name, price in money.prices.items() if price.spot is not None}
        volumes = {
            name: replace(self.volumes.get(name, VolumePrice()), gib=price)
            for name, price in money.other_prices.items()
            if name in STORAGE
        }
        return replace(
            self,
            on_demand={**self.on_demand, **on_demand},
            spot={**self.spot, **spot},
            volumes={**self.volumes, **volumes},
            cross_zone_gb=money.other_prices.get(CROSS_ZONE, self.cross_zone_gb),
            initialization=money.other_prices.get(INITIALIZATION, self.initialization),
            committed=_merged(self.committed, _committed(money)),
            endpoint=money.other_prices.get(ENDPOINT, self.endpoint),
        )


_ByTerm = Mapping[str, Mapping[str, Committed]]


def _committed(money: Money) -> _ByTerm:
    return {name: price.committed for name, price in money.prices.items() if price.committed}


def _merged(prices: _ByTerm, others: _ByTerm) -> _ByTerm:
    """Returns the prices of both. The others apply where both have one."""
    return {name: {**prices.get(name, {}), **others.get(name, {})} for name in dict.fromkeys((*prices, *others))}


def storage(
    prices: Prices, kind: str, size_gib: int, iops: int | None, throughput_mib: int | None
) -> Iterator[tuple[str, str, int, Decimal | None]]:
    """Lists the billed items of a volume: text, unit, quantity, and price of one unit for a month."""
    price = prices.volumes.get(kind, VolumePrice())
    yield f"storage {kind}", "GiB-month", size_gib, price.gib
    above = max(0, (iops or 0) - IOPS_INCLUDED.get(kind, 0))
    for tier, some in enumerate(_tiers(above) if kind == "io2" else [above]):
        if some:
            named = f"IOPS {kind}" + (f", tier {tier + 1}" if tier else "")
            yield named, "IOPS-month", some, price.iops[tier] if tier < len(price.iops) else None
    if kind == "gp3" and (more := (throughput_mib or 0) - THROUGHPUT_INCLUDED) > 0:
        yield f"throughput {kind}", "MiB/s-month", more, price.throughput_mib


def loading(prices: Prices, size_gib: int, rate: int | None) -> Iterator[tuple[str, str, Decimal, Decimal | None]]:
    """Lists what the provisioned initialization of one volume costs once: text, unit, quantity, and price of one unit.

    AWS bills the snapshot's data, which is at most the volume's size.

    Args:
        rate: MiB a second; None for no provisioned rate.
    """
    if rate is not None:
        yield INITIALIZATION, "GiB at 100 MiB/s", Decimal(size_gib * rate) / 100, prices.initialization


def _tiers(iops: int) -> list[int]:
    first, second = IOPS_TIERS
    return [min(iops, first), max(0, min(iops, second) - first), max(0, iops - second)]


def to_document(prices: Prices) -> dict[str, Any]:
    """Converts to values for JSON or DynamoDB, with prices as decimals."""
    return {"format": FORMAT, **codec.to_document(prices)}
