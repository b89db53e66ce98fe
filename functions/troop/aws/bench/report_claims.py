"""Claims on making a run's report: who asks again soon does not have it made again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from troop import moments
from troop.aws.dynamo import typed
from troop.aws.expiring_items import PassingItems
from troop.aws.transact import write
from troop.bench.record import SCHEMA
from troop.state_keys import REPORT_CLAIM

CLAIMED = timedelta(seconds=60)


@dataclass(frozen=True)
class Claim:
    """Who claimed a report, and when.

    Attributes:
        ours: whether it is for whoever has asked to have it made.
    """

    at: datetime
    ours: bool


class ReportClaims(PassingItems):
    """Keeps claims in the table ``State``; they expire by themselves."""

    def claim(self, run: str, now: datetime) -> Claim:
        """Claims a run's report for :data:`CLAIMED`, unless somebody has: then what it was claimed with is the answer.

        Raises:
            ClientError: DynamoDB refused.
        """
        expires = int((now + CLAIMED).timestamp()) + 1
        values = {"claimed_at": moments.iso(now), "expires_at": expires, "schema": SCHEMA}
        earlier = self.put_unless(REPORT_CLAIM + run, values, "claimed_at", until=moments.iso(now - CLAIMED))
        if earlier and (claimed := earlier.get("claimed_at")):
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
            Key=typed({"key": REPORT_CLAIM + run}),
            UpdateExpression="REMOVE claimed_at",
        )
