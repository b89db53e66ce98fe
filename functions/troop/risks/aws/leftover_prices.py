"""Prices leftovers by AWS's price list, each price once in a reading. One that cannot be read is unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.bench.aws.price_list import PriceList
from troop.bench.money.prices import Prices, VolumePrice, storage
from troop.risks.price import Price

HOURS = 730
"""The hours of a month in AWS's own estimates."""

_AMAZONS = (None, "amazon")
"""Address pools whose addresses AWS charges; people can bring their own."""

_PROVISIONED = frozenset({"gp3", "io1", "io2"})
"""The types of volumes whose I/O operations have a price; of gp2, EC2 tells them as well, but they are included."""

Raw = Mapping[str, Any]


@dataclass
class LeftoverPrices:
    """The prices of one reading.

    Attributes:
        price_list: None if the region's list cannot be reached.
        problems: why prices are unknown, each once.
    """

    price_list: PriceList | None
    problems: dict[str, None] = field(default_factory=dict)
    _known: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.price_list is None:
            self.problems["there is no price list for this Region: all prices are unknown"] = None

    def volume(self, raw: Raw) -> Price | None:
        """Returns the price of a volume for a month; None if a part of it is unknown."""
        kind = raw["VolumeType"]
        listed: tuple[VolumePrice, str] | None = self._once(kind, lambda prices: prices.volume(kind))
        if listed is None:
            return None
        price, currency = listed
        iops = raw.get("Iops") if kind in _PROVISIONED else None
        parts = list(storage(Prices(volumes={kind: price}), kind, raw["Size"], iops, raw.get("Throughput")))
        amounts = [quantity * each for _, _, quantity, each in parts if each is not None]
        return _price(sum(amounts, Decimal()), currency) if len(amounts) == len(parts) else None

    def snapshot(self, raw: Raw) -> Price | None:
        """Returns the most that a snapshot can cost for a month: AWS tells its full size, and bills changed blocks."""
        price = self._once("snapshot", lambda prices: prices.snapshot())
        if price is None or raw.get("StorageTier", "standard") != "standard":
            return None
        full = raw.get("FullSnapshotSizeInBytes")
        gib = Decimal(full) / 2**30 if full else Decimal(raw["VolumeSize"])
        return _price(gib * price.amount, price.currency)

    def address(self, raw: Raw) -> Price | None:
        """Returns the price of an unused address for a month; None for one that its owner has brought to AWS."""
        price = self._once("address", lambda prices: prices.idle_address())
        if price is None or raw.get("PublicIpv4Pool") not in _AMAZONS:
            return None
        return _price(HOURS * price.amount, price.currency)

    def _once(self, name: str, read: Callable[[PriceList], Any]) -> Any:
        if self.price_list is not None and name not in self._known:
            self._known[name] = None
            try:
                self._known[name] = read(self.price_list)
            except ClientError as error:
                self.problems[f"prices could not be read: {error.response['Error']['Code']}"] = None
            except BotoCoreError as error:
                self.problems[f"prices could not be read: {type(error).__name__}"] = None
        return self._known.get(name)


def _price(amount: Decimal, currency: str) -> Price:
    return Price(amount.quantize(Decimal("0.01")), currency)
