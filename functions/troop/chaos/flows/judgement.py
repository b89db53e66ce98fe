"""Judges an event that has ended: reads its success alarms, and waits until they have had the time to go off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.aws.alarm_history import HISTORY_LASTS, Alarm, AlarmHistory
from troop.chaos.events import Event
from troop.chaos.hypothesis import Hypothesis
from troop.chaos.verdict import AlarmRecord, Verdict, VerdictValue
from troop.chaos.verdict_rules import ALARM, LONGEST_DOUBT, LONGEST_NEED, MARGIN, judge, settles_at
from troop.shared import moments
from troop.shared.aws.throttling import is_throttled

_UNREADABLE = (BotoCoreError, ClientError, LookupError)
"""Errors of reading an alarm. A LookupError: CloudWatch has a new kind of alarms, which lacks what others have."""

PATIENCE = timedelta(minutes=10)
"""The time in which a verdict waits for CloudWatch to answer again. The sweeps try again meanwhile."""


@dataclass(frozen=True)
class Judgement:
    """Gives verdicts. It records nothing."""

    history: AlarmHistory

    def verdict(self, event: Event, now: datetime) -> tuple[Verdict | None, datetime | None]:
        """Returns the verdict on an event; or None and the moment from which on it can be given.

        An alarm that went off is a verdict at once, and so is a recovery that took too long. Otherwise, an alarm that
        has just changed lets it wait until its history is complete. Alarms that cannot be read make it UNKNOWN, with
        the reason. They keep no event from being closed.

        Args:
            event: one that has just ended, with its outcome; or a stored one that awaits its verdict.

        Raises:
            ClientError, BotoCoreError: CloudWatch throttles or does not answer, and there is time for a retry; only for
                an event that awaits its verdict.
        """
        names = (event.hypothesis or Hypothesis()).success_alarms
        if not names:
            return judge(event, (), now, event.recovered_at or now), None
        reading = _Reading(self.history, event, now)
        alarms = reading.alarms(names)
        settled = now
        if event.recovered_at:
            needs = [LONGEST_NEED] if reading.unread else [alarm.need for alarm in alarms.values()]
            settled = event.settles_at or settles_at(event.recovered_at, needs)
        records = [reading.record(name, alarms.get(name), settled) for name in names]
        verdict = judge(event, records, now, min(settled, now))
        if verdict.value is VerdictValue.BROKEN:
            return verdict, None
        if now < settled or (reading.is_recent and event.recovered_at):
            return None, settled
        if verdict.value is VerdictValue.HELD:
            records = [reading.with_data(record, alarms[record.name], settled) for record in records]
            verdict = judge(event, records, now, settled)
        if reading.passing and event.recovered_at and now < settled + PATIENCE:
            if event.awaits_verdict:
                raise reading.passing
            return None, settled
        return verdict, None


@dataclass
class _Reading:
    """Reads the alarms of one event; what cannot be read becomes a doubt.

    Attributes:
        unread: why the alarms themselves could not be read; "" if they were.
        is_recent: whether an alarm has changed so recently that its history can lack a change.
        passing: a failure that can pass; None without one.
    """

    history: AlarmHistory
    event: Event
    now: datetime
    unread: str = ""
    is_recent: bool = False
    passing: Exception | None = None

    @property
    def since(self) -> datetime:
        return self.event.hit_at or self.event.at

    def alarms(self, names: tuple[str, ...]) -> Mapping[str, Alarm]:
        try:
            return self.history.alarms(names)
        except _UNREADABLE as error:
            self.unread = f"it cannot be read: {self._reason(error)}"
            return {}

    def record(self, name: str, alarm: Alarm | None, settled: datetime) -> AlarmRecord:
        until = min(settled, self.now)
        try:
            record, is_recent = self.history.record(name, alarm, self.since, until, self.now)
            self.is_recent |= is_recent
        except _UNREADABLE as error:
            record = AlarmRecord(name, doubt=f"its history cannot be read: {self._reason(error)}")
        doubts = (self.unread, record.doubt, *self._too_slow(alarm, settled), *self._contradictions(record, until))
        return replace(record, doubt=next(filter(None, doubts), "")[:LONGEST_DOUBT])

    def with_data(self, record: AlarmRecord, alarm: Alarm, settled: datetime) -> AlarmRecord:
        """Adds a doubt if the alarm had no data at all in the span."""
        try:
            doubt = "" if self.history.had_data(alarm, self.since, settled) else "its metric had no data at all"
        except _UNREADABLE as error:
            doubt = f"its metric cannot be read: {self._reason(error)}"
        return replace(record, doubt=doubt[:LONGEST_DOUBT])

    def _too_slow(self, alarm: Alarm | None, settled: datetime) -> Iterator[str]:
        recovered_at = self.event.recovered_at
        if alarm and recovered_at and settled < recovered_at + alarm.need + MARGIN:
            needed, waited = alarm.need.total_seconds() / 60, (settled - recovered_at).total_seconds() / 60
            yield f"it needs {needed:.0f} minutes to go off, and had {waited:.0f} after the recovery"

    def _contradictions(self, record: AlarmRecord, until: datetime) -> Iterator[str]:
        if self.now - self.since > HISTORY_LASTS:
            yield f"CloudWatch keeps its history for {HISTORY_LASTS.days} days"
        abort = self.event.abort
        in_span = abort and abort.alarm == record.name and self.since <= abort.at <= until
        if abort and in_span and ALARM not in {state.state for state in record.states}:
            yield f"an event of {moments.second(abort.at)} says that it went off; its history does not"

    def _reason(self, error: Exception) -> str:
        if isinstance(error, LookupError):
            return f"this version does not know its kind, which has no {error}"
        if not isinstance(error, ClientError) or is_throttled(error) or _is_internal(error):
            self.passing = error
        return str(error)


def _is_internal(error: ClientError) -> bool:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500
