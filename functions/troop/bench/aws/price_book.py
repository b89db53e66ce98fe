"""Reads the prices of what a run uses, from AWS or from the cache.

A price that cannot be read is missing, for whatever reason; the reasons are returned as well. All of it ends in time
for an answer of the API.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.bench.aws.price_cache import PriceCache
from troop.bench.aws.price_list import PriceList
from troop.bench.aws.spot_prices import read_spot_prices
from troop.bench.definition.money import ENDPOINT, committed_of, exact
from troop.bench.money.prices import CROSS_ZONE_GB, Prices, VolumePrice
from troop.shared.formatting import USD

LIST_PRICE_AGE, SPOT_PRICE_AGE = timedelta(days=1), timedelta(hours=1)

THREADS = 8
LONGEST_SECONDS = 12.0
"""The most seconds for all requests together; prices that arrive later count as unknown."""

YUAN = "CNY"

_SPOT = "spot/"
_FAILURES = (ClientError, BotoCoreError, ValueError, KeyError, TypeError)


@dataclass(frozen=True)
class PriceBook:
    """The prices of one region.

    Attributes:
        price_list: None if the region's price list cannot be reached.
        ec2: a client, for spot prices.
    """

    region: str
    price_list: PriceList | None
    ec2: Any
    cache: PriceCache
    clock: Callable[[], datetime]
    longest_seconds: float = LONGEST_SECONDS

    def read(
        self,
        types: Collection[str],
        spot: Mapping[str, Collection[str]],
        volumes: Collection[str],
        *,
        endpoint: bool = False,
    ) -> tuple[Prices, list[str]]:
        """Returns the known prices, and why others are missing.

        Args:
            types: instance types whose on-demand price is needed.
            spot: instance types whose spot price is needed, each with its zones.
            volumes: types of volumes.
            endpoint: whether the price of an interface endpoint is needed.
        """
        now = self.clock()
        every = (*types, *volumes, *([ENDPOINT] if endpoint else []))
        try:
            cached = self.cache.read([*every, *(_SPOT + name for name in spot)], now)
        except _FAILURES:
            cached = {}
        missing = {name: name for name in every if name not in cached}
        stale = [name for name, zones in spot.items() if not set(zones) <= set(cached.get(_SPOT + name, {}))]
        fetched, why = self._fetch(missing, volumes, {name: spot[name] for name in stale}, now)
        prices = cached | fetched
        on_demand = {name: Decimal(str(prices[name]["amount"])) for name in types if name in prices}
        by_zone = {name: _decimals(prices[_SPOT + name]) for name in spot if prices.get(_SPOT + name)}
        volume_prices = {name: _volume(prices[name]) for name in volumes if name in prices}
        return Prices(
            currency=self._currency(prices[name]["currency"] for name in every if name in prices),
            on_demand=on_demand,
            spot=by_zone,
            volumes=volume_prices,
            cross_zone_gb=None if self._currency(()) == YUAN else CROSS_ZONE_GB,
            committed={name: by_term for name in types if name in prices and (by_term := committed_of(prices[name]))},
            endpoint=exact(prices[ENDPOINT]["amount"]) if ENDPOINT in prices else None,
        ), why

    def _currency(self, currencies: Iterable[str]) -> str:
        return next(iter(currencies), YUAN if self.region.startswith("cn-") else USD)

    def _fetch(
        self,
        names: Iterable[str],
        volumes: Collection[str],
        spot: Mapping[str, Collection[str]],
        now: datetime,
    ) -> tuple[dict[str, Any], list[str]]:
        """Reads prices from AWS, and caches them."""
        pool = ThreadPoolExecutor(THREADS)
        listed: dict[Future[Any], str] = {}
        if self.price_list is not None:
            for name in names:
                read = self._volume if name in volumes else self._endpoint if name == ENDPOINT else self._instance
                listed[pool.submit(read, name)] = name
        prices = pool.submit(self._spot, spot, now) if spot else None
        done, late = wait([*listed, *([prices] if prices else [])], timeout=self.longest_seconds)
        pool.shutdown(wait=False, cancel_futures=True)
        prices_by_name: dict[str, Any] = {}
        why: dict[str, None] = {}
        for future in done:
            source = "EC2's spot prices" if future is prices else "AWS's price list"
            try:
                documents = future.result() if future is prices else {listed[future]: future.result()}
            except _FAILURES as error:
                why[f"{source} could not be read: {_words(error)}"] = None
                continue
            known = {name: price for name, price in documents.items() if price}
            self._keep(known, now)
            prices_by_name |= known
        if late:
            why["some prices could not be read in time: try again"] = None
        if self.price_list is None and list(names):
            why[f"there is no price list for {self.region}"] = None
        return prices_by_name, list(why)

    def _instance(self, name: str) -> dict[str, Any] | None:
        assert self.price_list is not None
        price = self.price_list.instance(name)
        if price is None:
            return None
        by_term = {term: {"upfront": one.upfront, "hourly": one.hourly} for term, one in price.committed.items()}
        return {"amount": price.amount, "currency": price.currency, **by_term}

    def _endpoint(self, _: str) -> dict[str, Any] | None:
        assert self.price_list is not None
        price = self.price_list.endpoint()
        return None if price is None else {"amount": price.amount, "currency": price.currency}

    def _volume(self, name: str) -> dict[str, Any] | None:
        assert self.price_list is not None
        listed = self.price_list.volume(name)
        if listed is None:
            return None
        price, currency = listed
        document = {"gib": price.gib, "iops": list(price.iops), "throughput_mib": price.throughput_mib}
        return {key: value for key, value in document.items() if value is not None} | {"currency": currency}

    def _spot(self, zones_by_type: Mapping[str, Collection[str]], now: datetime) -> dict[str, Any]:
        zones = {zone for zones_of_type in zones_by_type.values() for zone in zones_of_type}
        spot_prices = read_spot_prices(self.ec2, zones_by_type, zones, now) if zones else {}
        return {_SPOT + name: dict(prices) for name, prices in spot_prices.items()}

    def _keep(self, prices: Mapping[str, Any], now: datetime) -> None:
        for name, price in prices.items():
            try:
                self.cache.write(name, price, now, SPOT_PRICE_AGE if name.startswith(_SPOT) else LIST_PRICE_AGE)
            except _FAILURES:
                return  # the next call reads them again


def _volume(document: Mapping[str, Any]) -> VolumePrice:
    iops = tuple(Decimal(str(price)) for price in document["iops"])
    return VolumePrice(exact(document["gib"]), iops, exact(document.get("throughput_mib")))


def _decimals(zones: Mapping[str, Any]) -> dict[str, Decimal]:
    return {zone: Decimal(str(price)) for zone, price in zones.items()}


def _words(error: Exception) -> str:
    return error.response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
