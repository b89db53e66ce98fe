"""Stores claims on making a run's report, so that repeated requests do not make it repeatedly."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from troop.bench.records.record import SCHEMA
from troop.shared import moments
from troop.shared.aws.dynamo import typed
from troop.shared.aws.state_items import StateItems
from troop.shared.aws.transact import write
from troop.shared.state_keys import REPORT_CLAIM

CLAIMED = timedelta(seconds=60)


@dataclass(frozen=True)
class Claim:
    """A claim on a report, with its time.

    Attributes:
        ours: whether this caller holds it and must have the report made.
    """

    at: datetime
    ours: bool


class ReportClaims(StateItems):
    """Claims in the table ``State``, where they expire."""

    def claim(self, run: str, now: datetime) -> Claim:
        """Claims a run's report for :data:`CLAIMED`; returns the earlier claim if there is one.

        Raises:
            ClientError: DynamoDB refused.
        """
        expires = int((now + CLAIMED).timestamp()) + 1
        values = {"claimed_at": moments.iso(now), "expires_at": expires, "schema": SCHEMA}
        earlier = self.put_unless(REPORT_CLAIM + run, values, "claimed_at", until=moments.iso(now - CLAIMED))
        if earlier and (claimed := earlier.get("claimed_at")):
            return Claim(moments.parse(str(claimed)), ours=False)
        return Claim(now, ours=True)  # or it was released at this moment: then one more call does no harm

    def release(self, run: str) -> None:
        """Releases a claim whose report was not started.

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
