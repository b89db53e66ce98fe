"""Stops chaos for a unit when one of its alarms goes off.

What an alarm can stop depends on how far an event is. A claim that was not carried out is abandoned. What a fault has
done stays: the event records the alarm, with the fault's own words about it (:attr:`Fault.irreversible`). A fault that
lasts is ended by the function that has injected it, because the event records the alarm. No other chaos can begin for
the unit while the event is open, and after it not before its alarms are OK again. A success alarm also ends the wait
for the verdict.

An alarm that goes off in the moment of the request to terminate comes too late: see :meth:`EventTable.attempt`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from troop.chaos.aws.event_table import EventTable, StepRefused
from troop.chaos.claim_rules import GRACE
from troop.chaos.events import OPEN, AbandonReason, Abort, Event, Status, fault_named
from troop.chaos.flows import clock_check
from troop.chaos.flows.recovery_check import Observation, RecoveryCheck
from troop.shared import moments
from troop.shared.tables import EVENT_OPEN, EVENT_SETTLES

_TRIES = 3


@dataclass(frozen=True)
class AlarmStop:
    """Stops the events whose hypothesis names an alarm. Without any open event it ends after two queries."""

    events: EventTable
    recovery_check: RecoveryCheck
    clock: Callable[[], datetime]

    def went_off(self, alarm: str, at: datetime) -> Iterator[Observation]:
        """Stops what can be stopped, and yields each event of which that is true. One that fails does not keep the
        others from it.

        Args:
            alarm: the name of the alarm that went off.
            at: when it did, by CloudWatch's clock. Its states before a claim were examined by the claim.

        Raises:
            Exception: the first error of an event, after all others.
        """
        errors = []
        for event_id in (*self.events.open_ids(EVENT_OPEN), *self.events.open_ids(EVENT_SETTLES)):
            try:
                if observation := self.stop(event_id, Abort(at, alarm)):
                    yield observation
            except Exception as error:  # noqa: BLE001 - it is raised after the others
                errors.append(error)
        if errors:
            raise errors[0]

    def stop(self, event_id: str, abort: Abort) -> Observation | None:
        """Stops what can be stopped of one event, and returns it; None if the alarm does not concern it."""
        for _ in range(_TRIES):
            event = self.events.get(event_id)
            if event is None or not _concerns(abort, event):
                return None
            try:
                if event.status is Status.CLAIMED and not event.attempts:
                    done = "injected" if event.injection else "terminated"
                    why = f"alarm {abort.alarm} went off before anything was {done}"
                    closed = self.events.close(
                        replace(event, abort=abort), Status.ABANDONED, why, cause=AbandonReason.ALARM
                    )
                    # A termination's workflow counts the outcome.
                    return Observation(closed, why, closed=event.injection is not None)
                return self._record(event, abort)
            except StepRefused:
                continue  # the event has gone on: see how far it is now
        return None

    def _record(self, event: Event, abort: Abort) -> Observation:
        if event.abort is None:
            words = f"alarm {abort.alarm} went off at {moments.second(abort.at)}: {_in_words(event)}"
            event = self.events.record_abort(event, abort, "; ".join(filter(None, (event.detail, words))))
        now = self.clock()
        hypothesis = event.hypothesis
        decides = hypothesis is not None and abort.alarm in hypothesis.success_alarms
        if event.awaits_verdict and decides and not clock_check.is_stale(abort.at, now):
            return self.recovery_check.check(event.event_id, now)
        return Observation(event, event.detail)


def _in_words(event: Event) -> str:
    """Says what an alarm changes for an event."""
    if event.injection is None:
        return f"{fault_named(event.method).irreversible}, but further chaos is stopped"
    if event.status is Status.RUNNING and event.injection.proof is None:
        return "the fault is being ended, and further chaos is stopped"
    return "the fault was over, but further chaos is stopped"


def _concerns(abort: Abort, event: Event) -> bool:
    """Checks whether the alarm is one of an open event's, and went off since its claim; clocks differ."""
    is_open = event.status in OPEN or event.awaits_verdict
    named = event.hypothesis is not None and abort.alarm in event.hypothesis.alarms
    return is_open and named and abort.at >= event.at - GRACE
