"""Reads the account once a day, and updates the risks on record."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.aws.event_queries import EXAMINED, READS, EventFilter, EventQueries
from troop.chaos.slowness import RECENT
from troop.risks.assessment import assess
from troop.risks.aws.account_survey import AccountSurvey
from troop.risks.aws.risk_table import RiskTable
from troop.risks.histories import Histories
from troop.risks.last_reading import LastReading
from troop.risks.ledger import next_risks
from troop.risks.risk import Risk
from troop.risks.rule import Severity
from troop.shared import moments

LONGEST = 300.0
"""The seconds after which no further events are read; the function has 900."""

MOST_RECORDED = 20_000
"""The most risks on record, the worst ones."""

_ORDER = {severity: place for place, severity in enumerate(Severity)}


@dataclass(frozen=True)
class DailyReading:
    """Reads the account, and writes what the rules say.

    Attributes:
        clock: returns seconds that never decrease.
    """

    survey: AccountSurvey
    queries: EventQueries
    table: RiskTable
    clock: Callable[[], float] = time.monotonic

    def run(self, now: datetime) -> tuple[LastReading, list[Risk]]:
        """Reads once, and returns the record of the reading with the risks that hold. A repeated run changes nothing
        but the moments.

        Raises:
            ThrottledError, ClientError, BotoCoreError: the groups or the tables cannot be read or written.
        """
        histories, problem = self._histories(now)
        earlier = self.table.last()
        since = (earlier.since if earlier else None) or now
        survey = self.survey.read(now, since, histories)
        before = {risk.key: risk for risk in self.table.all()}
        risks = next_risks(before, assess(survey), histories.failed if histories else ())
        recorded = sorted(risks, key=lambda risk: (risk.gone_since is not None, _ORDER[risk.severity], risk.key))
        reading = LastReading(
            at=now,
            subjects={kind.value: len(subjects) for kind, subjects in survey.subjects.items()},
            unread=(*survey.unread, *([problem] if problem else [])),
            unrecorded=max(0, len(recorded) - MOST_RECORDED),
            since=since,
        )
        self.table.write(reading, recorded[:MOST_RECORDED], before)
        return reading, [risk for risk in recorded if risk.gone_since is None]

    def _histories(self, now: datetime) -> tuple[Histories | None, str]:
        """Reads events from the newest on, until earlier ones change nothing. Returns why some are missing."""
        histories, began, position = Histories(now), self.clock(), None
        while True:
            try:
                page = self.queries.page(EventFilter(since=now - RECENT, until=now), READS * EXAMINED, position)
            except (BotoCoreError, ClientError) as error:
                return None, f"the events could not be read: {type(error).__name__}"
            for event in page.events:
                histories.add(event)
            position = page.position
            if position is None or histories.is_complete:
                histories.end(is_cut=False)
                return histories, ""
            if self.clock() - began > LONGEST:
                histories.end(is_cut=True)
                before = moments.second(histories.oldest or now)
                return histories, f"events before {before} could not be read in time"


def counts(risks: Sequence[Risk]) -> dict[str, int]:
    """Returns the number of risks of each severity."""
    counted = Counter(risk.severity for risk in risks)
    return {severity.value: counted[severity] for severity in Severity}
