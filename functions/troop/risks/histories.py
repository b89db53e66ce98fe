"""Reads from events how units boot and recover, and which events failed. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from troop.chaos.events import Event, Status
from troop.chaos.slowness import Compared, Slowness, likeness
from troop.chaos.stage_times import stage_seconds
from troop.chaos.verdict import VerdictValue
from troop.risks.facts import History, SlowRecovery

RECENT = timedelta(days=90)
"""The time in which events tell of boots and failures."""

MOST_FAILED = 5000
"""The most failed events, the newest ones."""


class Histories:
    """The histories of all units, which grow with each event. Of most events it stores a few numbers.

    Attributes:
        failed: the events that failed, newest first.
    """

    def __init__(self, now: datetime) -> None:
        self.since = now - RECENT
        self.oldest: datetime | None = None
        self.failed: list[Event] = []
        self._boots: dict[str, float] = {}
        self._slow: dict[str, SlowRecovery] = {}
        self._recovered: set[str] = set()
        self._is_cut = False
        self._partial: set[str] = set()
        self._slowness: Slowness[tuple[str, str]] = Slowness()

    @property
    def is_complete(self) -> bool:
        """Whether earlier events would change nothing."""
        return self.oldest is not None and self.oldest < self.since and not self._slowness.waiting

    def add(self, event: Event) -> None:
        """Adds an event, not newer than those before it."""
        self.oldest = event.at
        recent = event.at >= self.since
        if recent and _has_failed(event) and len(self.failed) < MOST_FAILED:
            self.failed.append(event)
        if event.recovery_seconds is None:
            return
        if recent and (boot := _boot(event)) is not None:
            self._boots[event.unit] = max(boot, self._boots.get(event.unit, 0.0))
        last = recent and event.unit not in self._recovered
        self._recovered.add(event.unit)
        like = likeness(event.method, event.victim_stays)
        subject = (event.unit, event.event_id) if last else None
        for compared in self._slowness.add(event.unit, like, event.at, event.recovery_seconds, subject):
            self._compare(compared)

    def end(self, *, is_cut: bool) -> None:
        """Ends the histories, once.

        Args:
            is_cut: whether earlier events are missing that could change something.
        """
        self._is_cut = is_cut and (self.oldest is None or self.oldest >= self.since)
        for compared in self._slowness.rest():
            self._compare(compared)
            if is_cut:
                self._partial.add(compared.subject[0])

    def history(self, unit: str) -> History:
        """Returns the history of a unit, after the end."""
        return History(self._boots.get(unit), self._slow.get(unit), self._is_cut or unit in self._partial)

    def _compare(self, compared: Compared[tuple[str, str]]) -> None:
        if compared.is_slow:
            unit, event_id = compared.subject
            self._slow[unit] = SlowRecovery(event_id, compared.seconds, compared.usually or 0.0)


def _has_failed(event: Event) -> bool:
    broken = event.verdict is not None and event.verdict.value is VerdictValue.BROKEN
    return broken or event.status is Status.UNRECOVERED


def _boot(event: Event) -> float | None:
    """Returns the seconds from the replacement's start of service to its health in all traffic sources."""
    if event.victim_stays:
        return None
    seconds = stage_seconds(event.recovers_from, event.stages, event.recovered_at)
    return seconds["healthy"] if {"in_service", "healthy"} <= seconds.keys() else None
