"""Reads what the page's overview shows, each part by itself and at its own pace, for all tabs together."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from cli.chaos import course, malformed, overview, risks, year
from cli.chaos.course import awaits_verdict
from cli.chaos.period_reader import outcome_of, risks_of
from cli.chaos.units import outlook
from cli.client.client import EVENTS_PAGE, TroopClient
from cli.client.open_benchmarks import month_cost, open_counts, open_fleets, open_runs
from cli.forecasts import calendar_ahead
from cli.forecasts.calendar_ahead import Basis
from cli.shared import side_by_side, times
from cli.shared.errors import CliError
from cli.shared.settings_files import TriedSettings
from cli.web.groups_reader import GroupsReader
from troop.chaos.events import to_url
from troop.chaos.letter import bounds, letter, week_before
from troop.chaos.period import Period
from troop.risks.risk_changes import risk_lines
from troop.shared import moments, zones

SECONDS = {
    "today": 30,
    "benchmarks": 30,
    "open": 120,
    "tick": 30,
    "health": 120,
    "ahead": 300,
    "units": 600,
    "risks": 3600,
    "year": 300,
}
"""The parts, and the age at which each is read again. Units and the forecast take the most requests. Troop looks
for risks once a day."""

MOST_TODAY = 1000
MOST_OF_YEAR = 5000
"""Events of a year that are read, newest first: 50 requests, once for each start of the command."""

SHOWN_TODAY = 8
SHOWN_UNITS = 20
"""The most units that are named because they need a person. The event of one that did not recover is a request."""

MOST_LOST = 100
"""Events of a day without a recovery that are searched for units below their strength."""

_IN_PROGRESS = frozenset({"CLAIMED", "RUNNING", "TERMINATED"})
_SHOWN = (
    *("id", "event_id", "unit", "status", "at", "instance_id", "terminated_at", "recover_by", "recovery_seconds"),
    *("recovery", "recovery_at_least"),
    *("method", "fault", "hit_at", "recovers_from", "injection"),
    *("detail", "launch_failure", "settles_at", "verdict"),
)


def _can_change(event: Mapping[str, Any]) -> bool:
    """Whether an event is in flight, or awaits its verdict."""
    return event["status"] in _IN_PROGRESS or awaits_verdict(event)


def _makes_leave(event: Mapping[str, Any]) -> bool:
    """Whether an event makes its unit leave chaos."""
    return event["status"] == "UNRECOVERED" or (event.get("verdict") or {}).get("value") == "BROKEN"


@dataclass
class _Part:
    """A part of the overview: its last value, when it was read, and why a later attempt failed."""

    value: Any = None
    at: datetime | None = None
    tried: datetime | None = None
    error: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class OverviewReader:
    """Reads the parts of the overview, each with its own lock: none waits for another. A part that cannot be read keeps
    its last value, with its time and the error: the page must show that it is old.

    Attributes:
        settings: returns the deployed settings; raises CliError.
        basis: reads the input of a forecast.
    """

    client: TroopClient
    settings: Callable[[], TriedSettings]
    basis: Callable[[], Basis]
    now: Callable[[], datetime] = times.now
    _parts: dict[str, _Part] = field(default_factory=lambda: {name: _Part() for name in SECONDS})
    _events: dict[str, dict[str, Any]] = field(default_factory=dict)
    _limited: str | None = None
    _left: set[str] | None = None

    def __post_init__(self) -> None:
        self.groups = GroupsReader(self.client, self.now)

    def part(self, name: str) -> dict[str, Any]:
        """Returns a part as ``{"now", "value", "at", "error"}``, reading it if it is due.

        Args:
            name: one of :data:`SECONDS`.
        """
        reads: dict[str, Callable[[datetime], Any]] = {
            "today": self._today,
            "benchmarks": self._benchmarks,
            "open": lambda _: open_counts(self.client),
            "tick": self._tick,
            "health": lambda _: self.client.health(),
            "ahead": lambda now: calendar_ahead.next_day(self.basis(), now),
            "units": self._units,
            "risks": self._risks,
            "year": self._year,
        }
        part = self._parts[name]
        with part.lock:
            now = self.now()
            if part.tried is None or part.error or (now - part.tried).total_seconds() >= SECONDS[name]:
                part.tried = now
                try:
                    part.value, part.at, part.error = reads[name](now), now, None
                except CliError as error:
                    part.error = str(error)
            return {
                "now": moments.iso(now),
                "value": part.value,
                "at": moments.iso(part.at) if part.at else None,
                "error": part.error,
            }

    def recoveries_of(self, unit: str) -> dict[str, Any]:
        """Returns the last recoveries of one unit, see :func:`cli.chaos.year.recoveries`; one request.

        Raises:
            CliError: the events cannot be read.
        """
        return year.recoveries(self.client.events({"unit": unit}, EVENTS_PAGE))

    def forget(self) -> None:
        """Reads the parts that a change can affect again at the next request."""
        self.groups.forget()
        for name in ("today", "benchmarks", "open", "ahead", "units"):
            self._parts[name].tried = None

    def _today(self, now: datetime) -> dict[str, Any]:
        since = moments.iso(times.midnight(now.astimezone().date()))
        events = self.client.events({"since": since}, MOST_TODAY)
        left = {str(event["event_id"]) for event in events if _makes_leave(event)}
        if self._left is not None and left - self._left:
            self.groups.forget()  # the unit needs a person now, not in ten minutes
            self._parts["units"].tried = None
        self._left = left
        return {
            "since": since,
            "limited": len(events) == MOST_TODAY,
            "by_status": overview.events_by_status(events),
            "events": [{key: event.get(key) for key in _SHOWN} for event in events[:SHOWN_TODAY]],
            "by_verdict": dict(Counter(event["verdict"]["value"] for event in events if event.get("verdict"))),
            "in_flight": [{key: event.get(key) for key in _SHOWN} for event in events if _can_change(event)][
                :SHOWN_TODAY
            ],
        }

    def _benchmarks(self, now: datetime) -> dict[str, Any]:
        """Returns what has not ended, with its cost so far, and what this month's runs cost."""
        answers = side_by_side.answers(
            {
                "runs": partial(open_runs, self.client),
                "fleets": partial(open_fleets, self.client),
                "month": partial(month_cost, self.client, now),
            }
        )
        for answer in answers.values():
            if isinstance(answer, CliError):
                raise answer
        return answers

    def _units(self, now: datetime) -> dict[str, Any]:
        groups = self.groups.first(malformed.LOOKED_AT)
        lost = {group["unit"]: group for group in groups if group["unrecovered"]}
        bad = {group["unit"]: group for group in groups if outlook(group)["reason"] == "malformed"}
        return {
            "by_state": overview.units_by_state(groups),
            "odds": overview.odds(groups),
            "unrecovered": self._unrecovered(list(lost.values())[:SHOWN_UNITS], groups),
            "returned": self._returned(now, groups),
            "malformed": [
                {"unit": group["unit"], "id": group["id"], "why": outlook(group)["why"]}
                for group in list(bad.values())[:SHOWN_UNITS]
            ],
            "hidden": max(0, len(lost) - SHOWN_UNITS) + max(0, len(bad) - SHOWN_UNITS),
            "limited": malformed.LOOKED_AT if len(groups) == malformed.LOOKED_AT else None,
        }

    def _unrecovered(self, lost: list[dict[str, Any]], groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns the units that have left chaos, with their capacity now and what their events say."""
        reads = {group["unit"]: partial(self.client.event, to_url(group["unrecovered"])) for group in lost}
        events = side_by_side.answers(reads)
        strengths = _strengths(groups)
        rows = []
        for group in lost:
            event = events[group["unit"]]
            event = {} if isinstance(event, CliError) else event  # the state of the unit is known without it
            rows.append(
                {
                    **{key: group[key] for key in ("unit", "id")},
                    "event_id": group["unrecovered"],
                    **strengths[group["unit"]],
                    "hit_at": course.hit_at(event) or event.get("at"),
                    "left_for": group.get("left_for"),
                    "why": (event.get("verdict") or {}).get("why", ""),
                    "detail": event.get("detail", ""),
                    "launch_failure": event.get("launch_failure", ""),
                }
            )
        return sorted(rows, key=lambda row: str(row["hit_at"] or ""))

    def _returned(self, now: datetime, groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns the units that somebody returned to chaos, within a day of not recovering, and that are still below
        their strength: nothing else would name them.
        """
        ids = {group["unit"]: group["id"] for group in groups if not group["unrecovered"]}
        weak = {
            unit: {"unit": unit, "id": ids[unit], **strength}
            for unit, strength in _strengths(groups).items()
            if unit in ids and strength["in_service"] < strength["desired"]
        }
        if not weak:
            return []
        query = {"status": "UNRECOVERED", "since": moments.iso(now - timedelta(days=1))}
        try:
            events = self.client.events(query, MOST_LOST)
        except CliError:  # the units are known without it, and the part about today says what is wrong
            return []
        lost = {event["unit"]: event["event_id"] for event in reversed(events)}
        return [{**row, "event_id": lost[unit]} for unit, row in weak.items() if unit in lost][:SHOWN_UNITS]

    def _risks(self, now: datetime) -> dict[str, Any] | None:
        """Returns how many risks hold, see :func:`cli.chaos.risks.totals`; None before the first reading."""
        answer = self.client.risks(gone=False)
        return risks.totals(answer, now) if answer["reading"] else None

    def _tick(self, now: datetime) -> dict[str, str] | None:
        tick = calendar_ahead.next_tick(self.settings(), now)
        return {"at": moments.iso(tick[0]), "calendar": tick[1]} if tick else None

    def _year(self, now: datetime) -> dict[str, Any]:
        """Returns the counts of each day, the recoveries of each week, how units recovered lately, and the letter of
        the last week.

        The first call reads the year's events, later ones only those that are new or can still change.
        ``complete_since`` is the first day of which every event is known.
        """
        start = now - timedelta(days=year.DAYS)
        since = moments.iso(start)
        if self._events:
            changing = [e["at"] for e in self._events.values() if _can_change(e)]
            since = min([*changing, max(e["at"] for e in self._events.values())])
        events = self.client.events({"since": since}, MOST_OF_YEAR)
        if len(events) == MOST_OF_YEAR:
            self._limited = str(events[-1]["day"])
            self._events.clear()  # the events between these and the earlier ones are unknown
        self._events |= {str(event["event_id"]): event for event in events}
        self._events = {key: event for key, event in self._events.items() if event["at"] >= moments.iso(start)}
        known = list(self._events.values())
        return {
            "since": start.date().isoformat(),
            "until": now.date().isoformat(),
            "complete_since": self._limited if self._limited and self._limited > start.date().isoformat() else None,
            "days": year.days(known),
            "weeks": year.weeks(known),
            "lately": year.lately(known, now.date() - timedelta(days=year.LATELY_DAYS)),
            "letter": self._letter(known, now) if known else None,
        }

    def _letter(self, events: list[dict[str, Any]], now: datetime) -> list[str] | None:
        """Returns the lines of the letter of the last full week, as subscribers get it; None without the settings."""
        try:
            zone = zones.zone(self.settings().chaos.calendars["default"].time_zone)
        except CliError:  # the part about the next tick says what is wrong
            return None
        first, last = week_before(now, zone)
        period = Period(*bounds(first, last, zone), first, last)
        for event in sorted(events, key=lambda one: str(one["at"]), reverse=True):
            period.add(outcome_of(event))
        changes = risks_of(self.client, period, now)
        return [*letter(period.document()), *(risk_lines(changes) if changes else ())]


def _strengths(groups: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Returns the capacity in service, and the desired one, of each unit."""
    strengths: dict[str, dict[str, int]] = {}
    for group in groups:
        unit = strengths.setdefault(group["unit"], {"in_service": 0, "desired": 0})
        for key in unit:
            unit[key] += group[key]
    return strengths
