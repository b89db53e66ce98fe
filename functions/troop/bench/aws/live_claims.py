"""Stores claims on merging a run's running summaries, so that one merge serves all viewers."""

from __future__ import annotations

from datetime import datetime

from troop.bench.records.live_view import FRESH
from troop.bench.records.record import SCHEMA
from troop.shared import moments
from troop.shared.aws.state_items import StateItems
from troop.shared.state_keys import LIVE_CLAIM


class LiveClaims(StateItems):
    """Claims in the table ``State``, where they expire."""

    def claim(self, run: str, now: datetime) -> bool:
        """Claims the next merge of a run, unless one was claimed less than :data:`troop.bench.records.live_view.FRESH`
        ago.

        Raises:
            ClientError: DynamoDB refused.
        """
        values = {"claimed_at": moments.iso(now), "expires_at": int((now + FRESH).timestamp()) + 1, "schema": SCHEMA}
        return self.put_unless(LIVE_CLAIM + run, values, "claimed_at", until=moments.iso(now - FRESH)) is None
