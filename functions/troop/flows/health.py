"""Checks the deployment's health, for GET /health and for the watchdog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from troop.aws.health_reads import HealthReads
from troop.chaos.health import Digest, digest
from troop.settings import Settings


@dataclass(frozen=True)
class Health:
    """Reads and judges the deployment's health.

    Attributes:
        others: the number of schedules besides those of calendars.
    """

    settings: Settings
    tick_minutes: int
    others: int
    reads: HealthReads
    clock: Callable[[], datetime]

    def check(self) -> Digest:
        """Runs every check as of now."""
        now = self.clock()
        return digest(self.reads.observe(now), self.settings, self.tick_minutes, now, self.others)
