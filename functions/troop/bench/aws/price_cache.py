"""Caches prices in the table ``State``: they seldom change, and reading them takes a second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from troop.bench.records.record import SCHEMA
from troop.shared.aws.dynamo import batch_get, typed
from troop.shared.aws.state_items import StateItems
from troop.shared.state_keys import PRICE

_AT_ONCE = 100


class PriceCache(StateItems):
    """Cached prices; DynamoDB removes them some time after they expire."""

    def read(self, names: Iterable[str], now: datetime) -> dict[str, Any]:
        """Returns the cached prices by name, with numbers as decimals; unknown and expired ones are missing."""
        missing_names = sorted(set(names))
        prices = {}
        for i in range(0, len(missing_names), _AT_ONCE):
            keys = {self.table: [typed({"key": PRICE + name}) for name in missing_names[i : i + _AT_ONCE]]}
            for item in batch_get(self.client, keys, self.sleep)[self.table]:
                if item["expires_at"] > now.timestamp():
                    prices[item["key"].removeprefix(PRICE)] = item["price"]
        return prices

    def write(self, name: str, price: Mapping[str, Any], now: datetime, lifetime: timedelta) -> None:
        """Caches a price for ``lifetime``; decimals stay decimals."""
        expires = int((now + lifetime).timestamp())
        self.put(PRICE + name, {"price": dict(price), "expires_at": expires, "schema": SCHEMA})
