"""Reads what the page's overview shows, each part at its own pace, for all tabs together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from cli.chaos import malformed, overview, year
from cli.client.client import EVENTS_PAGE, TroopClient
from cli.client.open_benchmarks import open_fleets, open_runs
from cli.shared import side_by_side, times
from cli.shared.errors import CliError
from cli.web.groups_reader import GroupsReader
from troop.shared import moments

NextTick = Callable[[datetime], tuple[datetime, str] | None]
"""Returns the next expected tick after a moment, and its calendar; None if none is expected soon. Raises CliError."""

SECONDS = {"today": 30, "runs": 30, "fleets": 30, "health": 120, "next_tick": 0}
"""The age at which each part is read again."""

UNITS_SECONDS = 600
"""Units take the most requests: one for 50 groups."""

YEAR_SECONDS = 300
MOST_TODAY = 1000
MOST_OF_YEAR = 5000
"""Events of a year that are read, newest first: 50 requests, once for each start of the command."""

SHOWN_TODAY = 8
_IN_PROGRESS = frozenset({"CLAIMED", "TERMINATED"})
_SHOWN = ("id", "event_id", "unit", "status", "at", "instance_id", "recovery_seconds", "detail")


@dataclass
class _Part:
    """A part of the answer: its last value, when it was read, and why a later attempt failed."""

    value: Any = None
    at: datetime | None = None
    tried: datetime | None = None
    error: str | None = None

    def document(self) -> dict[str, Any]:
        return {"value": self.value, "at": moments.iso(self.at) if self.at else None, "error": self.error}


@dataclass
class OverviewReader:
    """Reads the overview, and keeps each part for a while. A part that cannot be read keeps its last value, with its
    time and the error: the page must show that it is old.
    """

    client: TroopClient
    next_tick: NextTick
    read_ungrouped: Callable[[], dict[str, Any]]
    now: Callable[[], datetime] = times.now
    _parts: dict[str, _Part] = field(default_factory=lambda: {name: _Part() for name in SECONDS})
    _units: _Part = field(default_factory=_Part)
    _ungrouped: _Part = field(default_factory=_Part)
    _year: _Part = field(default_factory=_Part)
    _events: dict[str, dict[str, Any]] = field(default_factory=dict)
    _limited: str | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _units_lock: threading.Lock = field(default_factory=threading.Lock)
    _year_lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.groups = GroupsReader(self.client, self.now)

    def document(self) -> dict[str, Any]:
        """Returns every part as ``{"value", "at", "error"}``, reading those that are due, side by side."""
        with self._lock:
            now = self.now()
            reads: dict[str, Callable[[], Any]] = {
                "today": partial(self._today, now),
                "runs": partial(open_runs, self.client),
                "fleets": partial(open_fleets, self.client),
                "health": self.client.health,
                "next_tick": partial(self._next_tick, now),
            }
            due = {name: read for name, read in reads.items() if _is_due(self._parts[name], SECONDS[name], now)}
            for name, answer in side_by_side.answers(due).items():
                _take(self._parts[name], answer, now)
            return {"now": moments.iso(now)} | {name: part.document() for name, part in self._parts.items()}

    def units(self) -> dict[str, Any]:
        """Returns the units by state and the instances outside groups, which take many requests in a large account."""
        with self._units_lock:
            return {
                "units": self._refreshed(self._units, UNITS_SECONDS, lambda _: self._read_units()),
                "ungrouped": self._refreshed(self._ungrouped, UNITS_SECONDS, lambda _: self.read_ungrouped()),
            }

    def year(self) -> dict[str, Any]:
        """Returns the counts of each day and the recoveries of each week of the last year.

        The first call reads the year's events, later ones only those that are new or can still change.
        ``complete_since`` is the first day of which every event is known.
        """
        with self._year_lock:
            return self._refreshed(self._year, YEAR_SECONDS, self._read_year)

    def _refreshed(self, part: _Part, seconds: float, read: Callable[[datetime], Any]) -> dict[str, Any]:
        now = self.now()
        if _is_due(part, seconds, now):
            try:
                _take(part, read(now), now)
            except CliError as error:
                _take(part, error, now)
        return part.document()

    def recoveries_of(self, unit: str) -> dict[str, Any]:
        """Returns the last recoveries of one unit, see :func:`cli.chaos.year.recoveries`; one request.

        Raises:
            CliError: the events cannot be read.
        """
        return year.recoveries(self.client.events({"unit": unit}, EVENTS_PAGE))

    def forget(self) -> None:
        """Reads the parts that a change can affect again at the next request."""
        self.groups.forget()
        for part in (*(self._parts[name] for name in ("today", "runs", "fleets")), self._units):
            part.tried = None

    def _today(self, now: datetime) -> dict[str, Any]:
        since = moments.iso(times.midnight(now.astimezone().date()))
        events = self.client.events({"since": since}, MOST_TODAY)
        return {
            "since": since,
            "limited": len(events) == MOST_TODAY,
            "by_status": overview.events_by_status(events),
            "events": [{key: event.get(key) for key in _SHOWN} for event in events[:SHOWN_TODAY]],
        }

    def _read_units(self) -> dict[str, Any]:
        groups = self.groups.first(malformed.LOOKED_AT)
        return {
            "by_state": overview.units_by_state(groups),
            "limited": malformed.LOOKED_AT if len(groups) == malformed.LOOKED_AT else None,
        }

    def _next_tick(self, now: datetime) -> dict[str, str] | None:
        tick = self.next_tick(now)
        return {"at": moments.iso(tick[0]), "calendar": tick[1]} if tick else None

    def _read_year(self, now: datetime) -> dict[str, Any]:
        start = now - timedelta(days=year.DAYS)
        since = moments.iso(start)
        if self._events:
            changing = [e["at"] for e in self._events.values() if e["status"] in _IN_PROGRESS]
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
        }


def _is_due(part: _Part, seconds: float, now: datetime) -> bool:
    return part.tried is None or part.error is not None or (now - part.tried).total_seconds() >= seconds


def _take(part: _Part, answer: Any, now: datetime) -> None:
    part.tried = now
    if isinstance(answer, CliError):
        part.error = str(answer)
    else:
        part.value, part.at, part.error = answer, now, None
