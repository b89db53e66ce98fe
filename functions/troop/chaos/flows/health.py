"""Checks the deployment's health, for GET /health and for the watchdog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from troop.chaos.aws.health_reads import HealthReads
from troop.chaos.cures import Cures
from troop.chaos.health import Digest, digest
from troop.shared.settings import Settings

REMEMBERED = timedelta(seconds=5)
"""The time for which a digest is answered again."""


@dataclass(frozen=True)
class Health:
    """Reads and judges the deployment's health.

    Attributes:
        others: the number of schedules besides those of calendars.
        cures: makes the commands that checks name.
    """

    settings: Settings
    tick_minutes: int
    others: int
    reads: HealthReads
    clock: Callable[[], datetime]
    cures: Cures

    def check(self) -> Digest:
        """Runs every check as of now."""
        now = self.clock()
        return digest(self.reads.observe(now), self.settings, self.tick_minutes, now, self.others, self.cures)


@dataclass
class RememberedHealth:
    """Answers a digest again for some seconds: the checks make more calls than any other route's answer.

    Attributes:
        last: the moment of the last digest, and the digest; None before the first.
    """

    health: Health
    last: tuple[datetime, Digest] | None = None

    def check(self) -> Digest:
        """Returns the last digest while it is recent, else a new one."""
        now = self.health.clock()
        if self.last is None or not timedelta(0) <= now - self.last[0] < REMEMBERED:
            self.last = now, self.health.check()
        return self.last[1]
