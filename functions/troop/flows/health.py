"""A look at the deployment's health, for GET /health and for the watchdog alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from troop.aws.health_reads import HealthReads
from troop.chaos.health import Digest, digest
from troop.settings import Settings


@dataclass(frozen=True)
class Health:
    """Looks, and judges what it sees.

    Attributes:
        others: how many schedules there are besides those of calendars.
    """

    settings: Settings
    tick_minutes: int
    others: int
    reads: HealthReads
    clock: Callable[[], datetime]

    def check(self) -> Digest:
        """Every check, as of now."""
        now = self.clock()
        return digest(self.reads.observe(now), self.settings, self.tick_minutes, now, self.others)
