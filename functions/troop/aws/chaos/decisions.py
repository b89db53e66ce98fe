"""Writes decisions, and hands what is to be terminated to the workflow."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zlib import crc32

from troop import moments
from troop.aws.dynamo import typed
from troop.aws.transact import ConditionFailed, write
from troop.chaos.decisions import TERMINATE, Decision
from troop.chaos.events import SCHEMA
from troop.chaos.units import LONGEST_UNIT_BYTES

SHARDS = 8
"""Parts of a day in the index, by unit. A part takes 1,000 writes a second, and a tick over 100,000 units makes about
2,000: in one part they would be throttled, and the table with them. The number may grow, and never shrink: a day is
read in as many parts."""

_BATCH = 25
_ATTEMPTS = 8


def day_shard(day: date, shard: int) -> str:
    """The index's partition of a part of a day."""
    return f"{day.isoformat()}#{shard}"


def shard_of(unit: str) -> int:
    """The part of every day that a unit is in."""
    return crc32(unit.encode()) % SHARDS


def to_item(decision: Decision, tick_day: date, retention: timedelta) -> dict[str, Any]:
    """A decision as a typed item of the table ``Decisions``, with the keys of its index.

    Args:
        decision: of a unit whose calendar may not exist.
        tick_day: the local day of the tick's own calendar, which then stands for the unit's.
        retention: from the tick until the item expires.
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
            # Cut: the decision about a unit that is too long has to be written, too.
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
    """The table ``Decisions``, as ticks and last looks write it.

    Attributes:
        retention: how long decisions are.
    """

    client: Any
    table: str
    retention: timedelta
    sleep: Callable[[float], None] = time.sleep

    def write(self, decisions: Sequence[Decision], tick_day: date) -> None:
        """Writes all, 25 a call; what DynamoDB leaves unprocessed is sent again with backoff.

        Args:
            decisions: of one tick.
            tick_day: see :func:`to_item`.

        Raises:
            RuntimeError: when some are still unprocessed after the last attempt.
        """
        for start in range(0, len(decisions), _BATCH):
            batch = decisions[start : start + _BATCH]
            left = [{"PutRequest": {"Item": to_item(d, tick_day, self.retention)}} for d in batch]
            for attempt in range(_ATTEMPTS):
                answer = self.client.batch_write_item(RequestItems={self.table: left})
                left = answer.get("UnprocessedItems", {}).get(self.table, [])
                if not left:
                    break
                self.sleep(0.05 * 2**attempt)
            else:
                raise RuntimeError(f"{len(left)} decisions could not be written: DynamoDB throttles {self.table}")

    def overrule(self, unit: str, tick: datetime, reason: str, detail: str) -> None:
        """Puts what spoke against it at the last look in the place of a tick's decision to terminate. What is no such
        decision, or not there any more, stays as it is.

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
