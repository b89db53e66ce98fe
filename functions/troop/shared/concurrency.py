"""Computes how many functions of a deployment run at one time, and compares it with the account's limit in the region.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from troop.shared.settings import Settings

QUOTA_CODE = "L-B99A9384"
"""Service Quotas' code of Lambda's "Concurrent executions"; the same in every partition."""

USUAL_QUOTA = 1000
"""The usual limit of an AWS account; a new one can have as few as 10."""

_STREAMS = 4
"""Tables whose streams Notify reads, each separately."""

_CALLS_OF_A_FAULT, _STREAMS_OF_FAULTS = 3, 2
"""Besides its workflow, a fault inside an instance is followed by an event of its command, one of a probe, and its
backstop; and Inject reads two streams.
"""

_SCHEDULED = 3
"""Watchdog, sweep and the retry of notifications."""

_PEOPLE = 8
"""Requests of one person's page, and the custom widgets of one open dashboard, four at a time each."""

_BENCHMARKS = 5
"""A cell's step, a standing fleet, a teardown, a report and the reaper. Each further concurrent cell adds one."""


@dataclass(frozen=True)
class Concurrency:
    """The limits of an account for concurrent functions in a region.

    Attributes:
        limit: the limit of all functions together.
        unreserved: the limit of the functions without a reservation, such as Troop's.
    """

    limit: int
    unreserved: int
    region: str


def needed(settings: Settings) -> Mapping[str, int]:
    """Counts the functions that run at one time on a busy day, by purpose."""
    inside = _CALLS_OF_A_FAULT * settings.max_in_flight + _STREAMS_OF_FAULTS
    return {
        "ticks": len(settings.calendars),
        "terminations": settings.max_in_flight,
        "notifications": _STREAMS,
        **({"faults inside": inside} if settings.inside_instances else {}),
        "schedules": _SCHEDULED,
        "people": _PEOPLE,
        **({"benchmarks": _BENCHMARKS} if settings.benchmarks else {}),
    }


def shortage(concurrency: Concurrency, settings: Settings) -> str:
    """Describes the account's shortage; "" if there is none."""
    parts = needed(settings)
    required = sum(parts.values())
    if concurrency.unreserved >= required:
        return ""
    named = ", ".join(f"{count} for {part}" for part, count in parts.items())
    return (
        f"Lambda runs at most {concurrency.unreserved} functions at a time here, but Troop needs {required} on a busy "
        f"day ({named}): beyond the limit, steps are late and requests such as troop halt fail"
    )


def remedy(concurrency: Concurrency, settings: Settings) -> str:
    """Describes how to remove the shortage, besides the command of :func:`quota_request`."""
    if concurrency.limit < sum(needed(settings).values()):
        return "request a higher quota"
    reserved = concurrency.limit - concurrency.unreserved
    return (
        f"other functions reserve {reserved} of the account's {concurrency.limit}: reserve less for them, or request "
        "a higher quota"
    )


def quota_request(concurrency: Concurrency, settings: Settings) -> str:
    """Returns the command that requests a sufficient quota."""
    required = sum(needed(settings).values())
    return (
        f"aws service-quotas request-service-quota-increase --region {concurrency.region} --service-code lambda "
        f"--quota-code {QUOTA_CODE} --desired-value {max(USUAL_QUOTA, concurrency.limit + required)}"
    )
