"""Writes the orders that the nodes of a standing fleet read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from troop.bench.aws.cell_store import CellStore
from troop.bench.definition import names
from troop.bench.flows.fleet_view import CELL, Reading
from troop.bench.living import healing, orders


@dataclass(frozen=True)
class FleetOrders:
    """The orders of fleets in the results bucket."""

    store: CellStore

    def write(self, reading: Reading) -> None:
        """Writes the orders that follow from the record, if they differ from the stored ones. If another check writes
        at the same time, the next check compares again.

        Raises:
            ClientError: AWS refused.
        """
        fleet = reading.fleet
        restarts = healing.to_restart(fleet.repairs, reading.reports, reading.at)
        document = orders.to_document(reading.record.expires_at, fleet.drains, restarts)
        key = names.orders_key(reading.run, CELL)
        stored, version = self.store.find_version(key)
        document["expires_at"] = max(document["expires_at"], _expiry(stored))
        if document != stored:
            self.store.replace(key, document, version)


def _expiry(stored: Any) -> int:
    """Returns the end of the fleet that nodes know already. It never moves back: a slow check has read an old one."""
    return int(stored["expires_at"]) if stored else 0
