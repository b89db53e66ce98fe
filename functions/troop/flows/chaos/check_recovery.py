"""Looks after a group from which an instance was terminated, until it is whole again or its time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.aws.chaos.balancers import Balancers
from troop.aws.chaos.events import LONGEST_NOTE, EventTable
from troop.aws.chaos.groups import read_groups
from troop.chaos.events import Event, Status
from troop.chaos.groups import Group
from troop.chaos.recovery import CONFIRM_WAIT, assess
from troop.errors import MissingEventError
from troop.flows import clock_check


@dataclass(frozen=True)
class Observation:
    """What one look has shown. ``wait_seconds`` until the next one; 0 when the watch is over."""

    event: Event
    detail: str
    wait_seconds: int


@dataclass(frozen=True)
class RecoveryCheck:
    """Looks at groups."""

    autoscaling: Any
    balancers: Balancers
    events: EventTable
    timeout: timedelta
    clock: Callable[[], datetime]
    sleep: Callable[[float], None] = time.sleep

    def check_until_sure(self, event_id: str, entered: datetime) -> Observation:
        """Looks, and looks again soon when the group was whole for the first time: to wait for so short a time here
        costs less than to go round the workflow once more. Arguments and errors are those of :meth:`look`.
        """
        observation = self.check(event_id, entered)
        if observation.wait_seconds and observation.event.watch.whole:
            self.sleep(CONFIRM_WAIT)
            observation = self.check(event_id, entered)
        return observation

    def check(self, event_id: str, entered: datetime) -> Observation:
        """Looks once; an event that needs no watching (any more) is returned as it is.

        Args:
            event_id: of the event.
            entered: when the workflow entered the step, by the workflow's own clock.

        Raises:
            ClockError: this function's clock is wrong, so that it must not judge whether time is up.
            MissingEventError: there is no such event.
            StepRefused: somebody else has closed the event meanwhile.
        """
        clock_check.check(entered, self.clock())
        event = self.events.get(event_id)
        if event is None:
            raise MissingEventError(event_id)
        if event.status is not Status.TERMINATED:
            return Observation(event, event.detail, 0)
        group = next(iter(read_groups(self.autoscaling, [event.group])), None)
        healthy, unread = self._healthy(event, group) if group else ({}, "")
        seen = assess(event, group, healthy, self.clock(), self.timeout)
        if unread:
            seen = replace(seen, detail=f"{seen.detail}; {unread}"[:LONGEST_NOTE])
        event = replace(event, watch=seen.watch)
        if seen.status is None:
            self.events.record_check(event)
            return Observation(event, seen.detail, seen.wait_seconds)
        event = self.events.close(event, seen.status, seen.detail, seen.recovered_at)
        return Observation(event, seen.detail, 0)

    def _healthy(self, event: Event, group: Group) -> tuple[dict[str, frozenset[str]], str]:
        """Who is healthy by whom the group gets its traffic from, and what of that could not be read, "" for nothing.

        Raises:
            ClientError, BotoCoreError: it cannot be read, and there is time to try again. When there is none left, it
                counts as nobody healthy: an event that nobody can judge would keep its place in flight for ever.
        """
        try:
            return self.balancers.healthy(group), ""
        except (BotoCoreError, ClientError) as error:
            if self.clock() - (event.terminated_at or event.at) <= self.timeout:
                raise
            return dict.fromkeys(group.sources, frozenset()), f"who gets traffic could not be read: {error}"
