"""Reads a deployment's surroundings in its account: Lambda's limits, and tables that look like the deployment's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from troop.chaos.aws.earlier_tables import EarlierTables
from troop.shared.concurrency import Concurrency


@dataclass(frozen=True)
class AccountReads:
    """Reads one account and region."""

    lambda_: Any
    earlier: EarlierTables

    def concurrency(self) -> Concurrency:
        """Reads how many functions can run at a time; 1 call."""
        limit = self.lambda_.get_account_settings()["AccountLimit"]
        return Concurrency(
            int(limit["ConcurrentExecutions"]),
            int(limit["UnreservedConcurrentExecutions"]),
            str(self.lambda_.meta.region_name),
        )
