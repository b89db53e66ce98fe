"""Prices that were read a while ago, in the table ``State``: they change seldom, and to ask takes a second."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from troop.aws.dynamo import batch_get, typed
from troop.aws.transact import Sleep, write
from troop.bench.record import SCHEMA

_PREFIX = "price#"
_AT_ONCE = 100


@dataclass(frozen=True)
class PriceCache:
    """Items expire by themselves some time after they have ceased to count."""

    client: Any
    table: str
    sleep: Sleep = time.sleep

    def read(self, names: Iterable[str], now: datetime) -> dict[str, Any]:
        """What is kept of these, by name, numbers as decimals; what is not, or too old, is missing."""
        wanted = sorted(set(names))
        found = {}
        for i in range(0, len(wanted), _AT_ONCE):
            keys = {self.table: [typed({"key": _PREFIX + name}) for name in wanted[i : i + _AT_ONCE]]}
            for item in batch_get(self.client, keys, self.sleep)[self.table]:
                if item["expires_at"] > now.timestamp():
                    found[item["key"].removeprefix(_PREFIX)] = item["price"]
        return found

    def write(self, name: str, price: Mapping[str, Any], now: datetime, kept: timedelta) -> None:
        """Keeps one for so long; decimals stay decimals."""
        write(
            self.client.update_item,
            self.sleep,
            TableName=self.table,
            Key=typed({"key": _PREFIX + name}),
            UpdateExpression="SET price = :price, expires_at = :expires, #schema = :schema",
            ExpressionAttributeNames={"#schema": "schema"},
            ExpressionAttributeValues=typed(
                {":price": dict(price), ":expires": int((now + kept).timestamp()), ":schema": SCHEMA}
            ),
        )
