"""How many functions of a deployment run at one moment, beside how many the account may run in the region. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from troop.settings import Settings

QUOTA_CODE = "L-B99A9384"
"""Service Quotas' code of Lambda's "Concurrent executions"; the same in every partition."""

USUAL_QUOTA = 1000
"""What AWS gives an account of some age; a new one has as few as 10."""

_STREAMS = 4
"""Tables whose changes Notify tells others; each is read by itself."""

_SCHEDULED = 3
"""Watchdog, sweep and the redrive of notifications."""

_PEOPLE = 8
"""Requests of one person's page, and the custom widgets of one open dashboard, four at a time each."""

_BENCHMARKS = 5
"""A cell's step, a standing fleet, a teardown, a report and the reaper. Each further cell at a time is one more."""


@dataclass(frozen=True)
class Concurrency:
    """What an account may run at a time in a region.

    Attributes:
        limit: of all functions together.
        unreserved: of those for which nothing is reserved, such as Troop's.
    """

    limit: int
    unreserved: int
    region: str


def needed(settings: Settings) -> Mapping[str, int]:
    """Counts the functions that run at one moment on a busy day, by what they do."""
    return {
        "ticks": len(settings.calendars),
        "terminations": settings.max_in_flight,
        "notifications": _STREAMS,
        "schedules": _SCHEDULED,
        "people": _PEOPLE,
        **({"benchmarks": _BENCHMARKS} if settings.benchmarks else {}),
    }


def shortage(concurrency: Concurrency, settings: Settings) -> str:
    """Says what an account lacks; "" where it has enough."""
    parts = needed(settings)
    required = sum(parts.values())
    if concurrency.unreserved >= required:
        return ""
    named = ", ".join(f"{count} for {part}" for part, count in parts.items())
    return (
        f"Lambda runs at most {concurrency.unreserved} functions at a time here, and a busy day of Troop takes "
        f"{required} ({named}): beyond that, steps are late and requests fail, troop halt among them"
    )


def remedy(concurrency: Concurrency, settings: Settings) -> str:
    """Says how an account gets enough."""
    required = sum(needed(settings).values())
    ask = (
        f"aws service-quotas request-service-quota-increase --region {concurrency.region} --service-code lambda "
        f"--quota-code {QUOTA_CODE} --desired-value {max(USUAL_QUOTA, concurrency.limit + required)}"
    )
    if concurrency.limit < required:
        return ask
    reserved = concurrency.limit - concurrency.unreserved
    return f"other functions reserve {reserved} of the account's {concurrency.limit}: let them reserve less, or {ask}"
