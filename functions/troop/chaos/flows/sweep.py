"""Sweeps: reconciles claims past their deadline, checks groups whose watch has ended, gives overdue verdicts, and finds
lasting faults that nobody has proven to be over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from troop.chaos.aws.event_table import EventTable, StepRefused
from troop.chaos.aws.groups import instance_gone
from troop.chaos.claim_rules import is_stale, reconciled
from troop.chaos.events import AbandonReason, Event, Status
from troop.chaos.flows import clock_check
from troop.chaos.flows.recovery_check import RecoveryCheck
from troop.chaos.injection_rules import is_unproven
from troop.chaos.recovery import CONFIRM_WAIT, verdict_lost, watch_lost
from troop.shared.tables import EVENT_SETTLES


@dataclass(frozen=True)
class SweepResult:
    """The result of a sweep for one event. ``status`` is "" for an overdue verdict: that event ended before. ``event``
    is the event as it is now, and ``error`` says why it failed. ``unproven``: the end of its lasting fault should have
    been proven long ago.
    """

    event_id: str
    status: str
    error: str = ""
    event: Event | None = None
    unproven: bool = False


@dataclass(frozen=True)
class Sweep:
    """Reconciles, but never terminates."""

    ec2: Any
    autoscaling: Any
    events: EventTable
    recovery_check: RecoveryCheck
    clock: Callable[[], datetime]
    sleep: Callable[[float], None] = time.sleep

    def run(self, started: datetime) -> list[SweepResult]:
        """Sweeps every open event. A failure is reported and does not stop the rest. A tick that is too old, or a wrong
        clock, sweeps nothing: it would end claims that are about to be carried out.

        Args:
            started: when the tick's execution started, by the workflow's own clock; or when the schedule that calls the
                function was due, by EventBridge's.
        """
        if clock_check.is_stale(started, self.clock()):
            return []
        swept: dict[str, SweepResult] = {}
        whole = self._each(self.events.open_ids(), started, swept, self._sweep)
        if whole:
            # Recovery needs two checks. The second must not wait for the next tick, which could terminate in the unit.
            self.sleep(CONFIRM_WAIT)
            self._each(whole, started, swept, self._check)
        judged: dict[str, SweepResult] = {}
        self._each(self.events.open_ids(EVENT_SETTLES), started, judged, self._judge)
        return [*swept.values(), *(replace(one, status="") for one in judged.values())]

    def _each(
        self,
        event_ids: Iterable[str],
        started: datetime,
        swept: dict[str, SweepResult],
        do: Callable[[str, datetime], Event | None],
    ) -> list[str]:
        """Applies ``do`` to each event; returns those whose group was found whole and needs one more check."""
        whole = []
        for event_id in event_ids:
            try:
                if (event := do(event_id, started)) is None:
                    continue
                unproven = is_unproven(event, self.clock())
                swept[event_id] = SweepResult(event_id, event.status, event=event, unproven=unproven)
                if event.is_recovering and event.watch.whole:
                    whole.append(event_id)
            except StepRefused:
                continue  # the event's workflow was faster
            except Exception as error:  # noqa: BLE001 - after any error, the others must be swept
                swept[event_id] = SweepResult(event_id, "", f"{type(error).__name__}: {error}")
        return whole

    def _sweep(self, event_id: str, started: datetime) -> Event | None:
        event = self.events.get(event_id)
        if event is None:
            return None
        if is_stale(event, self.clock()):
            status, detail = reconciled(event, instance_gone(self.ec2, self.autoscaling, event.instance_id))
            if event.detail:
                detail = f"{detail}; {event.detail}"
            if status is not Status.TERMINATED:
                in_doubt = status is Status.ABANDONED and event.attempts > 0
                cause = AbandonReason.ALARM if event.abort and status is Status.ABANDONED else None
                return self.events.close(event, status, detail, cause=cause, in_doubt=in_doubt)
            self.events.record_termination(event, event.attempted_at or event.at, detail)
            return self._check(event_id, started)
        if watch_lost(event, self.clock()):
            return self._check(event_id, started)
        return event if is_unproven(event, self.clock()) else None

    def _judge(self, event_id: str, started: datetime) -> Event | None:
        event = self.events.get(event_id)
        return self._check(event_id, started) if event and verdict_lost(event, self.clock()) else None

    def _check(self, event_id: str, started: datetime) -> Event:
        return self.recovery_check.check(event_id, started).event
