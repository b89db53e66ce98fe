"""Summarises a year of terminations for the page: counts of each day, recoveries of each week, and slow ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from statistics import median
from typing import Any

from troop.chaos.slowness import is_slow, slow_above, usual

DAYS = 365

_HAPPENED = frozenset({"TERMINATED", "RECOVERED", "UNRECOVERED", "GROUP_DELETED"})
"""Statuses of events whose instance Troop terminated."""


def days(events: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Counts the events of each local day: terminations, those not recovered, and those that the leash prevented.

    Days without any are omitted; the order is that of time.
    """
    counts: dict[str, dict[str, int]] = {}
    for event in events:
        status = str(event["status"])
        if status not in _HAPPENED and status != "LEASHED":
            continue
        day = counts.setdefault(str(event["day"]), {"terminations": 0, "unrecovered": 0, "leashed": 0})
        day["terminations"] += status in _HAPPENED
        day["unrecovered"] += status == "UNRECOVERED"
        day["leashed"] += status == "LEASHED"
    return dict(sorted(counts.items()))


def weeks(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Summarises the recovery times of each week, oldest first: its Monday, their number, median and maximum in
    seconds. Weeks without a recovery are omitted.
    """
    seconds: dict[str, list[float]] = {}
    for event in events:
        if event.get("recovery_seconds") is not None:
            day = date.fromisoformat(str(event["day"]))
            seconds.setdefault((day - timedelta(days=day.weekday())).isoformat(), []).append(event["recovery_seconds"])
    return [
        {"week": week, "recoveries": len(times), "median": median(times), "longest": max(times)}
        for week, times in sorted(seconds.items())
    ]


def recoveries(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns what a chart of one unit's recoveries shows, oldest first.

    Each has the threshold above which the unit's earlier recoveries by the same method make it slow, in seconds; None
    while these are too few. An event that has not recovered has no ``seconds``.

    Args:
        events: of one unit, newest first.
    """
    earlier: dict[str, list[float]] = {}
    points = []
    for event in reversed(events):
        seconds, before = event.get("recovery_seconds"), earlier.setdefault(str(event.get("method")), [])
        if seconds is None and event["status"] != "UNRECOVERED":
            continue
        usually = usual(before)
        points.append(
            {
                **{key: event[key] for key in ("event_id", "at", "day", "status")},
                "seconds": seconds,
                "slow_above": None if usually is None else slow_above(usually),
                "slow": seconds is not None and is_slow(seconds, usually),
            }
        )
        if seconds is not None:
            before.insert(0, seconds)
    return points
