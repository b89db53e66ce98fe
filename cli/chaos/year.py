"""Summarises a year of terminations for the page: counts of each day, recoveries of each week, and slow ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from statistics import median
from typing import Any

from cli.chaos.stage_times import stage_seconds
from troop.chaos.slowness import is_slow, usual

DAYS = 365
LAST = 10
"""Recoveries of a unit that its view shows."""
LATELY_DAYS = 30
MOST_SLOWER = 3
"""The most slow units that are named."""

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


def recoveries(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the last recoveries of one unit, oldest first, and the seconds that its newest method usually takes.

    A recovery is slow by the unit's earlier ones by the same method. An event that has not recovered in time has no
    ``seconds``; ``stages`` has those of each stage. ``verdict`` is its value, None without one. The usual time is None
    while the unit has too few recoveries.

    Args:
        events: of one unit, newest first.
    """
    earlier: dict[str, list[float]] = {}
    points = []
    newest = ""
    for event in reversed(events):
        seconds, method = event.get("recovery_seconds"), str(event.get("method"))
        if seconds is None and event["status"] != "UNRECOVERED":
            continue
        newest, before = method, earlier.setdefault(method, [])
        slow = seconds is not None and is_slow(seconds, usual(before))
        points.append(
            {
                "event_id": event["event_id"],
                "day": event["day"],
                "seconds": seconds,
                "slow": slow,
                "stages": stage_seconds(event),
                "verdict": (event.get("verdict") or {}).get("value"),
            }
        )
        if seconds is not None:
            before.insert(0, seconds)
    return {"points": points[-LAST:], "usual": usual(earlier.get(newest, []))}


def lately(events: Iterable[Mapping[str, Any]], since: date) -> dict[str, Any]:
    """Compares the recoveries of each unit since a day with its earlier ones by the same method.

    Returns:
        ``units``: the units that can be judged: with a usual time, or with an event that has not recovered in time.
        ``usual``: those of them that always recovered within their usual time. ``slower``: the slowest units, with how
        many times their usual time they took. ``unrecovered``: the units that once did not recover in time.
    """
    earlier: dict[tuple[str, str], list[float]] = {}
    judged: set[str] = set()
    slower: dict[str, float] = {}
    unrecovered: set[str] = set()
    for event in sorted(events, key=lambda one: str(one["at"])):
        unit, seconds, recent = str(event["unit"]), event.get("recovery_seconds"), str(event["day"]) >= str(since)
        before = earlier.setdefault((unit, str(event.get("method"))), [])
        if recent and event["status"] == "UNRECOVERED":
            unrecovered.add(unit)
        if seconds is None:
            continue
        usually = usual(before)
        if recent and usually is not None:
            judged.add(unit)
            if is_slow(seconds, usually):
                slower[unit] = max(slower.get(unit, 0.0), seconds / usually)
        before.insert(0, seconds)
    judged |= unrecovered
    slowest = sorted(slower.items(), key=lambda pair: -pair[1])[:MOST_SLOWER]
    return {
        "days": LATELY_DAYS,
        "units": len(judged),
        "usual": len(judged - unrecovered - slower.keys()),
        "slower": [{"unit": unit, "times": round(times, 1)} for unit, times in slowest],
        "unrecovered": sorted(unrecovered)[:MOST_SLOWER],
    }
