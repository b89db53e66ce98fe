"""Checks a group of which an instance was hit, until it has recovered or its time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.aws.balancers import Balancers
from troop.chaos.aws.event_table import LONGEST_NOTE, EventTable, StepRefused
from troop.chaos.aws.groups import activities, image, instance_terminated, launches, read_groups
from troop.chaos.aws.task_tokens import TaskTokens
from troop.chaos.events import OPEN, Event, Status
from troop.chaos.flows import clock_check
from troop.chaos.flows.judgement import Judgement
from troop.chaos.groups import Group
from troop.chaos.injection import Proof, Way
from troop.chaos.recovery import CALL_SECONDS, CONFIRM_WAIT, TARGETS_WAIT, assess, no_sooner, until_settled
from troop.chaos.replacements import Replacement, first_since
from troop.chaos.stages import Activity, Stages, first_return, last_failure, observe
from troop.shared import moments
from troop.shared.errors import MissingEventError

ELSEWHERE = "another call checks the group"


@dataclass(frozen=True)
class Observation:
    """The result of a check.

    Attributes:
        wait_seconds: until another look can show more; 0 if there is nothing to look for.
        is_short: whether the group's capacity in service was too low.
        closed: whether this check has closed the event.
        judged: whether this check has given the verdict on an event that was closed before.
        activities: the group's scaling activities, if a check of this call has read them.
    """

    event: Event
    detail: str
    wait_seconds: int = 0
    is_short: bool = False
    closed: bool = False
    judged: bool = False
    activities: tuple[Activity, ...] | None = field(default=None, repr=False)

    @property
    def logged(self) -> dict[str, Any]:
        """The fields of its log line."""
        return {
            "event_id": self.event.event_id,
            "status": self.event.status.value,
            "detail": self.detail,
            "recovery_seconds": self.event.recovery_seconds,
            "verdict": self.event.verdict and self.event.verdict.value.value,
            "instance_id": self.event.instance_id,
            "execution": self.event.execution,
        }


@dataclass(frozen=True)
class RecoveryCheck:
    """Checks whether groups have recovered."""

    autoscaling: Any
    ec2: Any
    balancers: Balancers
    events: EventTable
    tokens: TaskTokens
    judgement: Judgement
    timeout: timedelta
    clock: Callable[[], datetime]
    sleep: Callable[[float], None] = time.sleep

    def wait(self, event_id: str, entered: datetime, token: str) -> Observation:
        """Has the workflow wait by its token until the event is over, and checks as :meth:`watch` does.

        The token is stored before the first look. So whatever happens after that look finds it.
        """
        self.events.store_token(event_id, token)
        seen = self.watch(event_id, entered)
        if not (seen.closed or seen.judged):  # something else may have closed it before the token was there
            self._answer(event_id)
        return seen

    def watch(self, event_id: str, entered: datetime, seconds: float = CALL_SECONDS, lag: float = 0) -> Observation:
        """Checks, and looks again soon while that can show more: to confirm, or because targets are not healthy yet,
        or the verdict is near. Returns the last result; another call that looks, too, goes on alone.

        Args:
            event_id: the id of the event.
            entered: the moment by another clock to which this function's is compared.
            seconds: for how long it looks again at most.
            lag: for how many seconds it also looks again at a group that is short.
        """
        began, slept = self.clock(), timedelta()
        try:
            seen = self.check(event_id, entered)
            while True:
                wait, longest = (TARGETS_WAIT, lag) if seen.is_short else (seen.wait_seconds, seconds)
                slept += timedelta(seconds=wait)
                if not wait or max(self.clock() - began + timedelta(seconds=wait), slept).total_seconds() > longest:
                    return seen
                self.sleep(wait)
                seen = self.check(event_id, entered, seen)
        except StepRefused:
            return Observation(self._read(event_id), ELSEWHERE)

    def check(self, event_id: str, entered: datetime, before: Observation | None = None) -> Observation:
        """Checks once; returns an event without need for checks as it is. Gives the verdict on one that awaits it, if
        that is possible by now.

        Args:
            event_id: the id of the event.
            entered: when the workflow entered the step, by the workflow's own clock.
            before: the same call's last result. If there was another check since, this one does nothing.

        Raises:
            ClockError: this function's clock is wrong, so it cannot decide whether time is up.
            MissingEventError: there is no such event.
            StepRefused: something else has checked or closed the event in the meantime.
        """
        clock_check.check(entered, self.clock())
        event = self._read(event_id)
        if event.awaits_verdict:
            return self._judge(event)
        if not event.is_recovering:
            return Observation(event, event.detail)
        if before and event.watch.checks != before.event.watch.checks:
            return Observation(event, ELSEWHERE)
        began = self.clock()
        group = next(iter(read_groups(self.autoscaling, [event.group])), None)
        healthy, unread = self._healthy(event, group) if group else ({}, "")
        now = self.clock()
        assessment = assess(event, group, healthy, began, now, self.timeout)
        if unread:
            assessment = replace(assessment, detail=f"{assessment.detail}; {unread}"[:LONGEST_NOTE])
        event = self._with_proof(replace(event, watch=assessment.watch), now)
        if assessment.status and event.injection and event.injection.proof is None:
            # A lasting fault that is not proven to be over: EC2 has not terminated its instance yet.
            words = f"{assessment.detail}; {event.instance_id} is not terminated yet"
            assessment = replace(assessment, status=None, detail=words, wait_seconds=CONFIRM_WAIT)
        known = before.activities if before else None
        if group and event.victim_stays:
            event = replace(event, stages=event.stages or Stages())  # nothing was to be replaced
        elif group:
            if assessment.status is Status.RECOVERED:
                event = self._with_replacement(event, group)
            if known is None or (assessment.status and not (event.stages and event.stages.in_service)):
                known = self._activities(group.name)
            event = _with_stages(event, known, healthy, now)
            # A group that has grown can be whole without the instance that was launched last.
            if assessment.recovered_at and group.desired == event.desired:
                # From the attempt on: what was added while a lasting fault ran can have made up for the instance.
                returned = first_return(known, event.attempted_at or _requested(event))
                event = replace(event, watch=no_sooner(event.watch, returned, assessment.recovered_at))
        if assessment.status is None:
            self.events.record_check(event)
            return Observation(
                event,
                assessment.detail,
                assessment.wait_seconds,
                is_short=not assessment.wait_seconds,
                activities=known,
            )
        ended = replace(event, status=assessment.status, recovered_at=assessment.recovered_at)
        verdict, settles_at = self.judgement.verdict(ended, now)
        event = self.events.close(
            event,
            assessment.status,
            assessment.detail,
            assessment.recovered_at,
            verdict=verdict,
            settles_at=settles_at,
        )
        self._try_to_answer(event_id)
        return Observation(event, assessment.detail, closed=True)

    def _judge(self, event: Event) -> Observation:
        verdict, _ = self.judgement.verdict(event, self.clock())
        if verdict is None:
            return Observation(event, event.detail, until_settled(event, self.clock()))
        event = self.events.judge(event, verdict)
        self._try_to_answer(event.event_id)
        return Observation(event, event.detail, judged=True)

    def _read(self, event_id: str) -> Event:
        event = self.events.get(event_id)
        if event is None:
            raise MissingEventError(event_id)
        return event

    def _try_to_answer(self, event_id: str) -> None:
        """Answers, if that is possible. The caller has just recorded the outcome, and nobody else will count it. A
        workflow without an answer asks again when its time is up.
        """
        with suppress(BotoCoreError, ClientError):
            self._answer(event_id)

    def _answer(self, event_id: str) -> None:
        """Answers the workflow that waits for an event, if the event is over. Reads it for that: a token that was
        stored since the last look must not be missed.
        """
        event = self._read(event_id)
        if event.token and event.status not in OPEN:
            settles_at = event.settles_at if event.awaits_verdict else None
            self.tokens.succeed(
                event.token,
                {
                    "event_id": event_id,
                    "status": event.status.value,
                    "settles_at": moments.iso(settles_at) if settles_at else None,
                },
            )

    def _with_proof(self, event: Event, now: datetime) -> Event:
        """Adds the proof to a lasting fault whose instance was terminated, as soon as nothing runs on it any more."""
        if event.injection is None or event.injection.proof or not instance_terminated(self.ec2, event.instance_id):
            return event
        proof = Proof(Way.REPLACED, now, "EC2 has terminated the instance")
        return replace(event, injection=replace(event.injection, proof=proof))

    def _activities(self, group: str) -> tuple[Activity, ...]:
        """Reads the scaling activities. They are remarks: without them the group has recovered too, or has not."""
        with suppress(BotoCoreError, ClientError):
            return activities(self.autoscaling, group)
        return ()

    def _with_replacement(self, event: Event, group: Group) -> Event:
        """Adds the replacement, and the victim's image. They are remarks, as activities are."""
        with suppress(BotoCoreError, ClientError):
            first = first_since(launches(self.ec2, event.group), _requested(event))
            builds = {instance.instance_id: instance.build for instance in group.serving}
            if first and first.instance_id in builds and event.build:
                return replace(
                    event,
                    build=replace(event.build, image=image(self.ec2, event.instance_id)),
                    replacement=Replacement(first.instance_id, replace(builds[first.instance_id], image=first.image)),
                )
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
            if self.clock() - (event.recovers_from or event.at) <= self.timeout:
                raise
            return dict.fromkeys(
                group.sources, frozenset()
            ), f"the health in the traffic sources could not be read: {error}"


def _with_stages(event: Event, known: tuple[Activity, ...], healthy: dict[str, frozenset[str]], now: datetime) -> Event:
    since = _requested(event)
    stages = observe(event.stages, known, event.instance_id, since, event.running, healthy, now)
    failure = last_failure(known, since)[:LONGEST_NOTE] or event.launch_failure
    return replace(event, stages=stages, launch_failure=failure)


def _requested(event: Event) -> datetime:
    """Returns when the termination was requested, at the earliest; when a lasting fault was, without a termination."""
    if event.injection and event.terminated_at:
        return event.terminated_at
    return event.attempted_at or event.terminated_at or event.at
