"""Writes decisions, and the list of terminations for the workflow."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zlib import crc32

from troop.chaos.decisions import TERMINATE, Decision
from troop.chaos.events import SCHEMA
from troop.chaos.units import LONGEST_UNIT_BYTES
from troop.shared import moments
from troop.shared.aws.dynamo import BATCH, batch_write, typed
from troop.shared.aws.throttling import Sleep
from troop.shared.aws.transact import ConditionFailed, write

SHARDS = 8
"""The parts of a day in the index, by unit. A part accepts 1,000 writes a second, and a tick over 100,000 units makes
about 2,000: a single part would throttle them, and the table with them. The number may grow but never shrink, because a
day is read in as many parts.
"""


def day_shard(day: date, shard: int) -> str:
    """Returns the index's partition for a part of a day."""
    return f"{day.isoformat()}#{shard}"


def shard_of(unit: str) -> int:
    """Returns the part of every day that contains a unit."""
    return crc32(unit.encode()) % SHARDS


def to_item(decision: Decision, tick_day: date, retention: timedelta) -> dict[str, Any]:
    """Converts a decision to a typed item of the table ``Decisions``, with the keys of its index.

    Args:
        decision: a decision about a unit whose calendar may not exist.
        tick_day: the local day of the tick's own calendar, the default for such a unit.
        retention: the time from the tick until the item expires.
    """
    target, policy = decision.target, decision.policy
    tick, day = moments.iso(decision.tick), decision.day or tick_day
    return typed(
        {
            "unit": decision.unit,
            "tick": tick,
            "schema": SCHEMA,
            "expires_at": int((decision.tick + retention).timestamp()),
            "day": day.isoformat(),
            "day_shard": day_shard(day, shard_of(decision.unit)),
            # Truncated: the decision about a unit with too long a name must be written too.
            "at": f"{tick}#" + decision.unit.encode()[:LONGEST_UNIT_BYTES].decode(errors="ignore"),
            "reason": decision.reason,
            "detail": decision.detail,
            "groups": list(decision.groups),
            "rolled": decision.rolled,
            "probability": policy.probability.value,
            "calendar": policy.calendar.value,
            "policy": policy.as_dict(),
            "group": target.group.name if target else None,
            "instance_id": target.instance.instance_id if target else None,
        }
    )


@dataclass(frozen=True)
class DecisionTable:
    """Writes the table ``Decisions``, for ticks and for refusals at the claim.

    Attributes:
        retention: how long decisions are stored.
    """

    client: Any
    table: str
    retention: timedelta
    sleep: Sleep = time.sleep

    def write(self, decisions: Sequence[Decision], tick_day: date) -> None:
        """Writes all decisions, 25 a call; unprocessed ones are sent again with backoff.

        Args:
            decisions: the decisions of one tick.
            tick_day: see :func:`to_item`.

        Raises:
            ThrottledError: some are still unprocessed after the last call.
        """
        for start in range(0, len(decisions), BATCH):
            batch = decisions[start : start + BATCH]
            writes = [{"PutRequest": {"Item": to_item(d, tick_day, self.retention)}} for d in batch]
            batch_write(self.client, self.table, writes, self.sleep)

    def overrule(self, unit: str, tick: datetime, reason: str, detail: str) -> None:
        """Replaces a tick's decision to terminate by the later refusal. Any other decision, or a missing one, stays as
        it is.

        Raises:
            ClientError: DynamoDB refuses.
        """
        with suppress(ConditionFailed):
            write(
                self.client.update_item,
                self.sleep,
                TableName=self.table,
                Key=typed({"unit": unit, "tick": moments.iso(tick)}),
                UpdateExpression="SET #reason = :reason, #detail = :detail",
                ConditionExpression="#reason = :terminate",
                ExpressionAttributeNames={"#reason": "reason", "#detail": "detail"},
                ExpressionAttributeValues=typed({":reason": reason, ":detail": detail, ":terminate": TERMINATE}),
            )


def put_work(s3: Any, bucket: str, key: str, items: Sequence[dict[str, Any]]) -> None:
    """Writes a Distributed Map's items as one JSON array."""
    body = json.dumps(list(items), separators=(",", ":")).encode()
    s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType="application/json")
