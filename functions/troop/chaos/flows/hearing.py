"""Hears events of AWS. Each is a hint that starts a check: one that is lost or stale costs time, never truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from troop.chaos.aws.event_table import EventTable, StepRefused
from troop.chaos.aws.groups import group_of
from troop.chaos.events import HIT
from troop.chaos.flows import clock_check
from troop.chaos.flows.recovery_check import Observation, RecoveryCheck
from troop.chaos.recovery import CALL_SECONDS, LAG_SECONDS
from troop.shared.aws.throttling import is_throttled

MOST_RUNNING = 5
"""The most instances of which an event records when they ran: the replacement is among the first."""

_TRIES = 3


@dataclass(frozen=True)
class Hearing:
    """Finds the terminations in flight that an event of AWS can be about. Without any it ends after one query.

    Attributes:
        autoscaling: a client that repeats few requests: each launch of the region calls :meth:`instance_runs`.
    """

    autoscaling: Any
    events: EventTable
    recovery_check: RecoveryCheck
    clock: Callable[[], datetime]

    def group_changed(self, group: str, at: datetime, launched: bool) -> list[Observation]:
        """Checks the terminations in flight of a group, of whose instances one was launched or has left.

        Args:
            group: its name.
            at: when AWS sent the event. A very late one starts no check.
            launched: whether it reports a launch, so that a group that is short may have been read too early.
        """
        now = self.clock()
        if clock_check.is_stale(at, now):
            return []
        event_ids = [event_id for event_id, its in self.events.open_groups().items() if its == group]
        lag = LAG_SECONDS if launched else 0
        return [self.recovery_check.watch(event_id, now, CALL_SECONDS / len(event_ids), lag) for event_id in event_ids]

    def instance_runs(self, instance_id: str, at: datetime) -> list[str]:
        """Records that an instance runs, in the terminations in flight of its group; returns their ids.

        Args:
            instance_id: its id.
            at: when AWS sent the event: EC2 states no other moment.
        """
        groups = self.events.open_groups()
        group = self._group_of(instance_id) if groups else ""
        return [event_id for event_id, its in groups.items() if its == group and self._runs(event_id, instance_id, at)]

    def _group_of(self, instance_id: str) -> str:
        """Returns the name of an instance's group; "" if it is in none. Also if Auto Scaling throttles: then many
        instances are launched at once, and a moment that is only shown is not worth requests that delay them.
        """
        try:
            return group_of(self.autoscaling, instance_id)
        except ClientError as error:
            if not is_throttled(error):
                raise
            return ""

    def _runs(self, event_id: str, instance_id: str, at: datetime) -> bool:
        for _ in range(_TRIES):
            event = self.events.get(event_id)
            if event is None or event.status not in HIT or instance_id in event.running:
                return False
            first = sorted({**event.running, instance_id: at}.items(), key=lambda one: one[1])[:MOST_RUNNING]
            try:
                self.events.record_running(event, dict(first))
            except StepRefused:
                continue  # another instance runs, too
            return True
        return False
