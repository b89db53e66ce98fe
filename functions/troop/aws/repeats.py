"""Requests without a key that come again: for a minute they stand for one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from troop.aws.dynamo import plain, typed
from troop.aws.transact import ConditionFailed, Sleep, write
from troop.chaos.events import SCHEMA

REPEAT = "repeat#"
WITHIN = timedelta(minutes=1)
_KEPT = timedelta(days=1)


@dataclass(frozen=True)
class Repeats:
    """Keeps in the table ``State`` which key a request was given; such items expire by themselves."""

    client: Any
    table: str
    sleep: Sleep = time.sleep

    def key_of(self, digest: str, now: datetime) -> str:
        """The key for a request: that of the first one of the same digest, if it came less than a minute ago."""
        stamp = int(now.timestamp() * 1000)
        key = f"repeat-{digest[:32]}-{stamp}"
        values = {
            ":given": key,
            ":now": stamp,
            ":before": stamp - int(WITHIN.total_seconds() * 1000),
            ":expires": int((now + _KEPT).timestamp()),
            ":schema": SCHEMA,
        }
        where = typed({"key": REPEAT + digest})
        try:
            write(
                self.client.update_item,
                self.sleep,
                TableName=self.table,
                Key=where,
                UpdateExpression="SET given = :given, since = :now, expires_at = :expires, #schema = :schema",
                ConditionExpression="attribute_not_exists(since) OR since <= :before",
                ExpressionAttributeNames={"#schema": "schema"},
                ExpressionAttributeValues=typed(values),
            )
        except ConditionFailed:
            found = self.client.get_item(TableName=self.table, Key=where, ConsistentRead=True).get("Item", {})
            return str(plain(found).get("given", key))
        return key
