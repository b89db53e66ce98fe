"""Prices that were read a while ago, in the table ``State``: they change seldom, and to ask takes a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from troop.aws.dynamo import batch_get, typed
from troop.aws.expiring_items import PassingItems
from troop.bench.record import SCHEMA
from troop.state_keys import PRICE

_AT_ONCE = 100


class PriceCache(PassingItems):
    """Items expire by themselves some time after they have ceased to count."""

    def read(self, names: Iterable[str], now: datetime) -> dict[str, Any]:
        """What is kept of these, by name, numbers as decimals; what is not, or too old, is missing."""
        missing_names = sorted(set(names))
        prices = {}
        for i in range(0, len(missing_names), _AT_ONCE):
            keys = {self.table: [typed({"key": PRICE + name}) for name in missing_names[i : i + _AT_ONCE]]}
            for item in batch_get(self.client, keys, self.sleep)[self.table]:
                if item["expires_at"] > now.timestamp():
                    prices[item["key"].removeprefix(PRICE)] = item["price"]
        return prices

    def write(self, name: str, price: Mapping[str, Any], now: datetime, lifetime: timedelta) -> None:
        """Keeps one for so long; decimals stay decimals."""
        expires = int((now + lifetime).timestamp())
        self.put(PRICE + name, {"price": dict(price), "expires_at": expires, "schema": SCHEMA})
