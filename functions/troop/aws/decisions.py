"""Writes decisions, and hands what is to be terminated to the workflow."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from troop import moments
from troop.aws.dynamo import plain, typed
from troop.chaos.decisions import Decision
from troop.chaos.events import SCHEMA

KEPT = timedelta(days=90)
_BATCH = 25
_ATTEMPTS = 8


def to_item(decision: Decision) -> dict[str, Any]:
    """A decision as a typed item of the table ``Decisions``."""
    target = decision.target
    return typed(
        {
            "unit": decision.unit,
            "tick": moments.iso(decision.tick),
            "schema": SCHEMA,
            "expires_at": int((decision.tick + KEPT).timestamp()),
            "day": decision.day.isoformat() if decision.day else None,
            "reason": decision.reason,
            "detail": decision.detail,
            "groups": list(decision.groups),
            "rolled": decision.rolled,
            "policy": decision.policy.as_dict(),
            "group": target.group.name if target else None,
            "instance_id": target.instance.instance_id if target else None,
        }
    )


@dataclass(frozen=True)
class Decided:
    """What is on record of a decision. ``groups``: names of the unit's groups at that tick."""

    tick: datetime
    reason: str
    detail: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class DecisionTable:
    """The table ``Decisions``."""

    client: Any
    table: str
    sleep: Callable[[float], None] = time.sleep

    def write(self, decisions: Sequence[Decision]) -> None:
        """Writes all, 25 a call; what DynamoDB leaves unprocessed is sent again with backoff.

        Raises:
            RuntimeError: when some are still unprocessed after the last attempt.
        """
        for start in range(0, len(decisions), _BATCH):
            left = [{"PutRequest": {"Item": to_item(d)}} for d in decisions[start : start + _BATCH]]
            for attempt in range(_ATTEMPTS):
                answer = self.client.batch_write_item(RequestItems={self.table: left})
                left = answer.get("UnprocessedItems", {}).get(self.table, [])
                if not left:
                    break
                self.sleep(0.05 * 2**attempt)
            else:
                raise RuntimeError(f"{len(left)} decisions could not be written: DynamoDB throttles {self.table}")

    def latest(self, unit: str) -> Decided | None:
        """The unit's last decision that is still kept; one query of one item."""
        answer = self.client.query(
            TableName=self.table,
            KeyConditionExpression="#unit = :unit",
            ExpressionAttributeNames={"#unit": "unit"},
            ExpressionAttributeValues={":unit": {"S": unit}},
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=1,
        )
        for item in map(plain, answer["Items"]):
            return Decided(
                tick=moments.parse(item["tick"]),
                reason=item["reason"],
                detail=item.get("detail", ""),
                groups=tuple(item.get("groups", ())),
            )
        return None


def put_work(s3: Any, bucket: str, key: str, items: Sequence[dict[str, Any]]) -> None:
    """Writes a Distributed Map's items as one JSON array."""
    body = json.dumps(list(items), separators=(",", ":")).encode()
    s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType="application/json")
