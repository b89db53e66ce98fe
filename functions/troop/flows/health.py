"""A look at the deployment's health, for GET /health and for the watchdog alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from troop.aws.health_reads import HealthReads
from troop.chaos.health import Digest, digest
from troop.settings import Settings

OTHERS = 3
"""Schedules besides those of calendars: the watchdog's, the sweep's and the redrive's; the reaper's comes on top."""


@dataclass(frozen=True)
class Health:
    """Looks, and judges what it sees."""

    settings: Settings
    tick_minutes: int
    reads: HealthReads
    clock: Callable[[], datetime]

    def look(self) -> Digest:
        """Every check, as of now."""
        now = self.clock()
        others = OTHERS + self.settings.benchmarks
        return digest(self.reads.observe(now), self.settings.calendars, self.tick_minutes, now, others)
