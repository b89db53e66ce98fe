"""Writes and sends the weekly letter: what chaos found in the last week, by owner."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from troop.chaos.aws.bus import Bus
from troop.chaos.aws.event_queries import EXAMINED, READS, EventFilter, EventQueries
from troop.chaos.aws.topic import Topic
from troop.chaos.letter import bounds, letter, week_before
from troop.chaos.notifications import Notification, letter_notification
from troop.chaos.period import Outcome, Period
from troop.chaos.slowness import RECENT
from troop.shared import moments
from troop.shared.zones import Zone

LONGEST = 180.0
"""The seconds after which no further events are read; the function has 300."""

_PAGE = READS * EXAMINED

End = Callable[[datetime, datetime], Sequence[str]]


@dataclass(frozen=True)
class WeeklyLetter:
    """Writes letters, and sends them.

    Attributes:
        zone: of the clock on which a week begins.
        clock: returns seconds that never decrease.
    """

    deployment: str
    zone: Zone
    queries: EventQueries
    bus: Bus
    topic: Topic
    clock: Callable[[], float] = time.monotonic

    def send(self, due: datetime, end: End) -> Notification:
        """Sends the letter of the last full week before a moment, and returns it. A repeated letter has the same
        ``id``.

        It reads the events of the week, and earlier ones until each recovery can be compared with those before it, for
        at most :data:`LONGEST`. The letter says what it could not read.

        Args:
            end: returns the last lines of the letter, for the bounds of the week.

        Raises:
            NotSent, ClientError, BotoCoreError: of the table, the bus or the topic.
        """
        first, last = week_before(due, self.zone)
        period = Period(*bounds(first, last, self.zone), first, last)
        is_complete = self._read(period)
        summary = period.document()
        lines = letter(summary)
        if not is_complete and period.oldest:
            lacks = "are missing" if period.oldest >= period.since else "are not compared with"
            lines.append(f"Events before {moments.second(period.oldest)} could not be read in time, and {lacks}.")
        lines += end(period.since, period.until)
        news = letter_notification(self.deployment, due, summary, lines)
        try:
            self.bus.send([news])
        finally:
            self.topic.send([news])
        return news

    def _read(self, period: Period) -> bool:
        """Adds the events to a period; returns whether all that matter are read."""
        began, position = self.clock(), None
        event_filter = EventFilter(since=period.since - RECENT, until=period.until)
        while True:
            page = self.queries.page(event_filter, _PAGE, position)
            for event in page.events:
                period.add(Outcome.from_event(event))
            position = page.position
            if position is None or (period.oldest and period.oldest < period.since and period.is_complete):
                return True
            if self.clock() - began > LONGEST:
                return False
