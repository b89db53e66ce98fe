"""Stores permits: that a caller whom IAM allows to terminate on demand lets a benchmark hit units.

IAM decides about requests, and the request that starts a benchmark is another one than the request to terminate. So
the caller sends the second one first, which records the permit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from troop.shared.aws.state_items import StateItems
from troop.shared.state_keys import PERMIT

LIFETIME = timedelta(hours=1)
"""The time for which a permit holds: a caller starts the benchmark right after it."""

_SCHEMA = 1


def run_of(key: str) -> str:
    """Returns what permits call the run that has this key."""
    return f"run {key}"


def schedule_of(name: str) -> str:
    """Returns what permits call the schedule with this name. A key can be spelled like it."""
    return f"schedule {name}"


class Permits(StateItems):
    """Permits in the table ``State``, where they expire."""

    def give(self, caller: str, benchmark: str, units: Collection[str], now: datetime) -> datetime:
        """Records a permit in place of an earlier one, and returns its end.

        Args:
            caller: ARN of the caller, with the session.
            benchmark: what the caller may start, or schedule: see :func:`run_of` and :func:`schedule_of`.
        """
        until = int((now + LIFETIME).timestamp())
        self.put(_where(caller, benchmark), {"units": sorted(units), "expires_at": until, "schema": _SCHEMA})
        return datetime.fromtimestamp(until, UTC)

    def covers(self, caller: str, benchmark: str, units: Collection[str], now: datetime) -> bool:
        """Checks whether the caller has a permit for the benchmark and all of the units."""
        item = self.find(_where(caller, benchmark))
        return now.timestamp() < float(item.get("expires_at", 0)) and set(units) <= set(item.get("units", ()))


def _where(caller: str, benchmark: str) -> str:
    return PERMIT + hashlib.sha256(json.dumps([caller, benchmark]).encode()).hexdigest()
