"""Explains a day of a unit from what the API records of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from cli.chaos.answers import answer, day_of, stretches, zone_of
from cli.client.client import TroopClient
from troop.chaos.guards import in_words
from troop.shared import moments, zones

_MOST = 1500
"""Decisions of a unit on a day: more than the day has minutes."""

_AROUND = (timedelta(hours=14), timedelta(hours=36))
"""Bounds of a day in any time zone, before and after its midnight in UTC."""


@dataclass(frozen=True)
class Explanation:
    """The decisions and events of a unit on a day.

    Attributes:
        day: None if nothing is recorded of any day.
        sentence: the summary.
        decisions, events: all of that day, newest first, as the API returns them.
        zone: the time zone of the unit's calendar; UTC if it is unknown.
    """

    unit: str
    day: date | None
    sentence: str
    decisions: Sequence[Mapping[str, Any]]
    events: Sequence[Mapping[str, Any]]
    zone: zones.Zone

    def document(self) -> dict[str, Any]:
        """Returns the explanation in JSON's types."""
        return {
            "unit": self.unit,
            "day": self.day.isoformat() if self.day else None,
            "time_zone": self.zone.key if self.decisions else None,
            "answer": self.sentence,
            "decisions": list(self.decisions),
            "events": list(self.events),
        }

    def rows(self) -> list[tuple[str, int, str, str]]:
        """Lists consecutive ticks with one reason: local times from-to, number, reason, detail."""
        zone = self.zone
        return [
            (f"{s.first.astimezone(zone):%H:%M}-{s.last.astimezone(zone):%H:%M}", s.ticks, in_words(s.reason), s.detail)
            for s in stretches(self.decisions)
        ]


def explain(client: TroopClient, unit: str, day: date | None, now: datetime) -> Explanation:
    """Explains a day of a unit, or of the unit of a group of that name.

    Args:
        day: None for the last day with a record.

    Raises:
        CliError: NO_SUCH_UNIT, or an error of the API.
    """
    record = client.known_unit(unit)
    name = record["unit"]
    effective_day = day or _last_day(client, record)
    decisions = client.decisions({"unit": name, "day": effective_day.isoformat()}, _MOST) if effective_day else []
    events = _events_of(client, name, effective_day) if effective_day else []
    # A termination on demand can come before the day's first decision.
    zone = zone_of(decisions or client.decisions({"unit": name}, 1))
    sentence = answer(name, effective_day, decisions, events, now, zone)
    return Explanation(name, effective_day, sentence, decisions, events, zone)


def _last_day(client: TroopClient, unit: Mapping[str, Any]) -> date | None:
    """Returns the last day with a decision or, for a termination on demand, an event."""
    days = [day_of(decision) for decision in client.decisions({"unit": unit["unit"]}, 1)]
    days += [date.fromisoformat(event["day"]) for event in unit["events"][:1]]
    return max(days, default=None)


def _events_of(client: TroopClient, unit: str, day: date) -> Sequence[dict[str, Any]]:
    midnight, (before, after) = datetime.combine(day, time.min, UTC), _AROUND
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    since, until = midnight - min(before, midnight - first), midnight + min(after, last - midnight)
    query = {"unit": unit, "since": moments.iso(since), "until": moments.iso(until)}
    return [event for event in client.events(query, 1000) if event["day"] == day.isoformat()]
