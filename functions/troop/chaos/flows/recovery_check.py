"""Checks a group from which an instance was terminated, until it has recovered or its time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.aws.balancers import Balancers
from troop.chaos.aws.event_table import LONGEST_NOTE, EventTable
from troop.chaos.aws.groups import image, launch_failure, launches, read_groups
from troop.chaos.events import Event, Status
from troop.chaos.flows import clock_check
from troop.chaos.groups import Group
from troop.chaos.recovery import CONFIRM_WAIT, assess
from troop.chaos.replacements import Replacement, first_since
from troop.shared.errors import MissingEventError


@dataclass(frozen=True)
class Observation:
    """The result of one check. ``wait_seconds`` until the next one; 0 if no more are needed."""

    event: Event
    detail: str
    wait_seconds: int


@dataclass(frozen=True)
class RecoveryCheck:
    """Checks whether groups have recovered."""

    autoscaling: Any
    ec2: Any
    balancers: Balancers
    events: EventTable
    timeout: timedelta
    clock: Callable[[], datetime]
    sleep: Callable[[float], None] = time.sleep

    def check_until_sure(self, event_id: str, entered: datetime) -> Observation:
        """Checks, and checks again soon if the group was whole for the first time: so short a wait costs less here than
        another round of the workflow. For arguments and errors see :meth:`check`.
        """
        observation = self.check(event_id, entered)
        if observation.wait_seconds and observation.event.watch.whole:
            self.sleep(CONFIRM_WAIT)
            observation = self.check(event_id, entered)
        return observation

    def check(self, event_id: str, entered: datetime) -> Observation:
        """Checks once; returns an event without need for checks as it is.

        Args:
            event_id: the id of the event.
            entered: when the workflow entered the step, by the workflow's own clock.

        Raises:
            ClockError: this function's clock is wrong, so it cannot decide whether time is up.
            MissingEventError: there is no such event.
            StepRefused: something else has closed the event in the meantime.
        """
        clock_check.check(entered, self.clock())
        event = self.events.get(event_id)
        if event is None:
            raise MissingEventError(event_id)
        if event.status is not Status.TERMINATED:
            return Observation(event, event.detail, 0)
        group = next(iter(read_groups(self.autoscaling, [event.group])), None)
        healthy, unread = self._healthy(event, group) if group else ({}, "")
        assessment = assess(event, group, healthy, self.clock(), self.timeout)
        if unread:
            assessment = replace(assessment, detail=f"{assessment.detail}; {unread}"[:LONGEST_NOTE])
        event = replace(event, watch=assessment.watch)
        if group and assessment.status is Status.RECOVERED:
            event = self._with_replacement(event, group)
        if group and assessment.status is Status.UNRECOVERED:
            event = self._with_failure(event)
        if assessment.status is None:
            self.events.record_check(event)
            return Observation(event, assessment.detail, assessment.wait_seconds)
        event = self.events.close(event, assessment.status, assessment.detail, assessment.recovered_at)
        return Observation(event, assessment.detail, 0)

    def _with_replacement(self, event: Event, group: Group) -> Event:
        """Adds the replacement, and the victim's image. They are remarks: without them the group has recovered too."""
        with suppress(BotoCoreError, ClientError):
            since = event.attempted_at or event.terminated_at or event.at
            first = first_since(launches(self.ec2, event.group), since)
            builds = {instance.instance_id: instance.build for instance in group.serving}
            if first and first.instance_id in builds and event.build:
                return replace(
                    event,
                    build=replace(event.build, image=image(self.ec2, event.instance_id)),
                    replacement=Replacement(first.instance_id, replace(builds[first.instance_id], image=first.image)),
                )
        return event

    def _with_failure(self, event: Event) -> Event:
        """Adds why the last launch failed. It is a remark: without it the group has not recovered either."""
        with suppress(BotoCoreError, ClientError):
            since = event.attempted_at or event.terminated_at or event.at
            return replace(event, launch_failure=launch_failure(self.autoscaling, event.group, since)[:LONGEST_NOTE])
        return event

    def _healthy(self, event: Event, group: Group) -> tuple[dict[str, frozenset[str]], str]:
        """Returns the healthy instances by traffic source, and what could not be read of them, "" for nothing.

        Raises:
            ClientError, BotoCoreError: the health cannot be read, and there is time for a retry. Without time, no
                instance counts as healthy: otherwise the event would stay in flight forever.
        """
        try:
            return self.balancers.healthy(group), ""
        except (BotoCoreError, ClientError) as error:
            if self.clock() - (event.terminated_at or event.at) <= self.timeout:
                raise
            return dict.fromkeys(
                group.sources, frozenset()
            ), f"the health in the traffic sources could not be read: {error}"
