"""Claims on making a run's report: who asks again soon does not have it made again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from troop import moments
from troop.aws.dynamo import plain, typed
from troop.aws.transact import ConditionFailed, Sleep, write
from troop.bench.record import SCHEMA

CLAIMED = timedelta(seconds=60)
_PREFIX = "report-claim#"


@dataclass(frozen=True)
class Claim:
    """Who claimed a report, and when.

    Attributes:
        ours: whether it is for whoever has asked to have it made.
    """

    at: datetime
    ours: bool


@dataclass(frozen=True)
class ReportClaims:
    """Keeps claims in the table ``State``; they expire by themselves."""

    client: Any
    table: str
    sleep: Sleep = time.sleep

    def claim(self, run: str, now: datetime) -> Claim:
        """Claims a run's report for :data:`CLAIMED`, unless somebody has: then what it was claimed with is the answer.

        Raises:
            ClientError: DynamoDB refused.
        """
        values = {
            ":now": moments.iso(now),
            ":before": moments.iso(now - CLAIMED),
            ":expires": int((now + CLAIMED).timestamp()) + 1,
            ":schema": SCHEMA,
        }
        try:
            write(
                self.client.update_item,
                self.sleep,
                TableName=self.table,
                Key=_where(run),
                UpdateExpression="SET claimed_at = :now, expires_at = :expires, #schema = :schema",
                # What has expired can be there for days yet.
                ConditionExpression="attribute_not_exists(claimed_at) OR claimed_at <= :before",
                ExpressionAttributeNames={"#schema": "schema"},
                ExpressionAttributeValues=typed(values),
            )
        except ConditionFailed:
            answer = self.client.get_item(TableName=self.table, Key=_where(run), ConsistentRead=True)
            claimed = plain(answer.get("Item", {})).get("claimed_at")
            if claimed:
                return Claim(moments.parse(str(claimed)), ours=False)
        return Claim(now, ours=True)  # or it was given back in this very moment: then one call more does no harm

    def release(self, run: str) -> None:
        """Gives a claim back, of which nothing has come.

        Raises:
            ClientError: DynamoDB refused.
        """
        write(
            self.client.update_item,
            self.sleep,
            TableName=self.table,
            Key=_where(run),
            UpdateExpression="REMOVE claimed_at",
        )


def _where(run: str) -> dict[str, Any]:
    return typed({"key": _PREFIX + run})
