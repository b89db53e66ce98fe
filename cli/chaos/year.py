"""Summarises a year of hits for the page: counts of each day, recoveries of each week, and slow ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from statistics import median
from typing import Any

from cli.chaos import course
from cli.chaos.stage_times import stage_seconds
from troop.chaos.slowness import RECENT, Compared, Slowness, likeness, usual
from troop.shared import moments
from troop.statistics.change_points import change_points, strength_among

DAYS = 365
LAST = 10
"""Recoveries of a unit that its view shows."""
LATELY_DAYS = 30
MOST_SLOWER = 3
"""The most slow units that are named."""

RECOVERY = "recovery"
"""The name of the whole recovery among its stages."""
KNOWN_TO = 5.0
"""Seconds to which recoveries are known: smaller changes of level say nothing."""

_HAPPENED = frozenset({"RUNNING", "TERMINATED", "RECOVERED", "UNRECOVERED", "GROUP_DELETED"})
"""Statuses of events in which an instance was hit."""


def days(events: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Counts the events of each local day: hits, those not recovered, and those that the leash prevented.

    Days without any are omitted; the order is that of time.
    """
    counts: dict[str, dict[str, int]] = {}
    for event in events:
        status = str(event["status"])
        if status not in _HAPPENED and status != "LEASHED":
            continue
        day = counts.setdefault(str(event["day"]), {"hits": 0, "unrecovered": 0, "leashed": 0})
        day["hits"] += status in _HAPPENED
        day["unrecovered"] += status == "UNRECOVERED"
        day["leashed"] += status == "LEASHED"
    return dict(sorted(counts.items()))


def weeks(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Summarises the recovery times of each week after terminations, oldest first: its Monday, their number, median and
    maximum in seconds. Weeks without a recovery are omitted.
    """
    seconds: dict[str, list[float]] = {}
    for event in events:
        if event.get("recovery_seconds") is not None and not event.get("injection"):
            day = date.fromisoformat(str(event["day"]))
            seconds.setdefault((day - timedelta(days=day.weekday())).isoformat(), []).append(event["recovery_seconds"])
    return [
        {"week": week, "recoveries": len(times), "median": median(times), "longest": max(times)}
        for week, times in sorted(seconds.items())
    ]


def recoveries(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the last recoveries of one unit, oldest first, and the seconds that its newest method usually takes.

    A recovery is slow by the unit's earlier ones by the same method. An event that has not recovered in time has no
    ``seconds``; ``stages`` has those of each stage, and ``lasting`` says that it
    counts from a lasting fault's end. ``verdict`` is its value, None without one. The usual time is None
    while the unit has too few recoveries. ``changes`` has the newest change of the whole recovery and of each stage,
    over the recoveries that are like the newest: ``stage``, ``event_id`` and ``day`` of the first recovery after it,
    and the levels ``before`` and ``after`` in seconds.

    Args:
        events: of one unit, newest first.
    """
    slowness: Slowness[str] = Slowness()
    compared: list[Compared[str]] = []
    for event in events:
        if (seconds := event.get("recovery_seconds")) is not None:
            at = moments.parse(event["at"])
            compared += slowness.add(event["unit"], _likeness(event), at, seconds, event["event_id"])
    compared += slowness.rest()
    slow = {one.subject for one in compared if one.is_slow}
    shown = [e for e in events if e.get("recovery_seconds") is not None or e["status"] == "UNRECOVERED"]
    points = [
        {
            "event_id": event["event_id"],
            "day": event["day"],
            "seconds": event.get("recovery_seconds"),
            "slow": event["event_id"] in slow,
            "stages": stage_seconds(event),
            "lasting": bool(event.get("injection")),
            "verdict": (event.get("verdict") or {}).get("value"),
        }
        for event in reversed(shown[:LAST])
    ]
    return {"points": points, "usual": _usual_next(shown), "changes": list(_changes(shown))}


def _changes(events: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    series: dict[str, list[tuple[Mapping[str, Any], float]]] = {RECOVERY: []}
    for event in reversed(_like_newest(events)):
        for stage, seconds in {RECOVERY: event["recovery_seconds"], **stage_seconds(event)}.items():
            series.setdefault(stage, []).append((event, seconds))
    strength = strength_among(len(series))
    for stage, known in series.items():
        for point in change_points([max(1.0, seconds) for _, seconds in known], strength)[-1:]:
            if abs(point.after - point.before) >= KNOWN_TO:
                first = known[point.index][0]
                about = {"stage": stage, "event_id": first["event_id"], "day": first["day"]}
                yield about | {"before": point.before, "after": point.after}


def _likeness(event: Mapping[str, Any]) -> str:
    return likeness(str(event.get("method")), course.victim_stays(event))


def _usual_next(events: Sequence[Mapping[str, Any]]) -> float | None:
    """Returns the seconds that a unit's next recovery usually takes, by the method of its newest event."""
    return usual([event["recovery_seconds"] for event in _like_newest(events)])


def _like_newest(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the recoveries that can be compared with the newest event, newest first."""
    if not events:
        return []
    newest = moments.parse(events[0]["at"])
    return [
        event
        for event in events
        if event.get("recovery_seconds") is not None
        and _likeness(event) == _likeness(events[0])
        and newest - moments.parse(event["at"]) <= RECENT
    ]


def lately(events: Iterable[Mapping[str, Any]], since: date) -> dict[str, Any]:
    """Compares the recoveries of each unit since a day with its earlier ones by the same method.

    Returns:
        ``units``: the units that can be judged: with a usual time, or with an event that has not recovered in time.
        ``usual``: those of them that always recovered within their usual time. ``slower``: the slowest units, with how
        many times their usual time they took. ``unrecovered``: the units that once did not recover in time.
    """
    slowness: Slowness[str] = Slowness()
    compared: list[Compared[str]] = []
    unrecovered: set[str] = set()
    for event in sorted(events, key=lambda one: str(one["at"]), reverse=True):
        unit, seconds, recent = str(event["unit"]), event.get("recovery_seconds"), str(event["day"]) >= str(since)
        if recent and event["status"] == "UNRECOVERED":
            unrecovered.add(unit)
        if seconds is not None:
            at = moments.parse(event["at"])
            compared += slowness.add(unit, _likeness(event), at, seconds, unit if recent else None)
    compared += slowness.rest()
    judged = {one.subject for one in compared if one.usually is not None}
    slower: dict[str, float] = {}
    for one in compared:
        if one.is_slow:
            slower[one.subject] = max(slower.get(one.subject, 0.0), one.times)
    judged |= unrecovered
    slowest = sorted(slower.items(), key=lambda pair: -pair[1])[:MOST_SLOWER]
    return {
        "days": LATELY_DAYS,
        "units": len(judged),
        "usual": len(judged - unrecovered - slower.keys()),
        "slower": [{"unit": unit, "times": round(times, 1)} for unit, times in slowest],
        "unrecovered": sorted(unrecovered)[:MOST_SLOWER],
    }
