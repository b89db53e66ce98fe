"""Runs one termination: check again, claim, terminate, record. Every step can be repeated; none can double the
termination.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.aws.account_reader import AccountReader
from troop.chaos.aws.claim_transaction import ClaimRefused, ClaimTransaction
from troop.chaos.aws.decision_table import DecisionTable
from troop.chaos.aws.event_table import LONGEST_NOTE, EventTable, StepRefused
from troop.chaos.aws.groups import alarm_states, instance_gone, read_groups
from troop.chaos.aws.termination_protection import is_protected, without_protected
from troop.chaos.aws.terminator import BUSY, SkipRejected, TerminationRefused, Terminator
from troop.chaos.change_calendars import period_at
from troop.chaos.claim_rules import deadline, may_carry_out, switched_off
from troop.chaos.events import AbandonReason, Event, Status, fault_named, is_on_demand
from troop.chaos.facts import Facts
from troop.chaos.flows.clock_check import is_stale
from troop.chaos.flows.objections import Objections
from troop.chaos.guards import SCHEDULED, Refusal, Target, judge
from troop.chaos.inside import injection_of
from troop.chaos.on_demand import refuse_if_in_flight
from troop.chaos.roll import roll
from troop.chaos.units import unit_of
from troop.faults.fault import Answer
from troop.shared import moments
from troop.shared.errors import TroopError

BY_SOMEBODY_ELSE = "the instance was terminated by somebody else"


TRIES = 4
"""The attempts after which a busy group is skipped: one fewer than the workflow's, so that its step does not fail."""


class TerminationForbiddenError(TroopError):
    """IAM does not allow Troop to terminate, which is no fault of the instance and needs a person.

    Attributes:
        status: the status of the event.
    """

    def __init__(self, event: Event) -> None:
        self.status = event.status
        super().__init__(f"{event.event_id}: {event.detail}")


@dataclass(frozen=True)
class Work:
    """A tick's work item for one unit."""

    event_id: str
    unit: str
    day: date
    groups: tuple[str, ...]
    tick: datetime
    execution: str

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Work:
        return cls(
            event_id=raw["event_id"],
            unit=raw["unit"],
            day=date.fromisoformat(raw["day"]),
            groups=tuple(raw["groups"]),
            tick=moments.parse(raw["tick"]),
            execution=raw["execution"],
        )


@dataclass(frozen=True)
class Outcome:
    """The outcome of the work: the event or, if a guard or the claim refused, the reason."""

    event: Event | None
    reason: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Termination:
    """Terminates one instance of one unit."""

    reader: AccountReader
    claims: ClaimTransaction
    decisions: DecisionTable
    events: EventTable
    terminator: Terminator
    salt: Callable[[], bytes]
    clock: Callable[[], datetime]

    def run(self, work: Work) -> Outcome:
        """Carries out the work, or continues where an earlier try stopped. A refusal replaces the tick's decision.

        Raises:
            TerminationForbiddenError: IAM refuses; the claim is closed, or has a note about it.
            ClientError: AWS failed; the claim stays open with a note about it, and a later sweep reconciles it.
        """
        outcome = self._run(work)
        if outcome.event is None and not is_on_demand(work.event_id):
            # A failure to record must not fail the step: a retry could pass all guards.
            with suppress(BotoCoreError, ClientError):
                self.decisions.overrule(work.unit, work.tick, outcome.reason, outcome.detail)
        return outcome

    def _run(self, work: Work) -> Outcome:
        event = self.events.get(work.event_id)
        if event is None and is_on_demand(work.event_id):
            return Outcome(None, "unclaimed", "only the API claims terminations on demand")
        if event is None or event.status is Status.LEASHED:
            outcome = self._claim(work)
            if outcome.event is None:
                return outcome
            event = outcome.event
        if event.execution != work.execution:
            return Outcome(None, "already-today", f"{event.event_id} is {event.status} by another execution")
        try:
            return Outcome(self._carry_out(event))
        except StepRefused:
            # Another try of ours, or a sweep, was faster, or a response was lost: the record counts.
            return Outcome(self.events.get(event.event_id) or event)

    def _claim(self, work: Work) -> Outcome:
        now = self.clock()
        if is_stale(work.tick, now):
            return Outcome(None, "stale", f"decided at {moments.iso(work.tick)}, but it is {moments.iso(now)} now")
        settings = self.reader.settings
        present = read_groups(self.reader.autoscaling, work.groups)
        groups = [g for g in present if unit_of(g.name, g.tags, settings.units) == work.unit]
        if not groups:
            return Outcome(None, "group-deleted", f"none of {', '.join(work.groups)} still exists in {work.unit}")
        item = self.reader.policies.raw(work.unit)
        facts = without_protected(self.reader.ec2, self._facts(work, groups, item, now), SCHEDULED)
        verdict = judge(facts)
        if isinstance(verdict, Target):
            last = self.events.get(facts.state.last_event) if facts.state.last_event else None
            verdict = refuse_if_in_flight(last) or verdict
        if isinstance(verdict, Refusal):
            return Outcome(None, verdict.reason, verdict.detail)
        if facts.day != work.day:
            return Outcome(None, "stale", f"decided for {work.day}, but it is {facts.day} now")
        event = _event(work, facts, verdict, now)
        if not may_carry_out(event, now):
            return Outcome(None, "outside-window", "too close to the end of the window to be carried out")
        try:
            event = self.claims.make(event, item, facts.state, settings.max_per_day, settings.max_in_flight)
        except ClaimRefused as refused:
            # The response to our own claim may have been lost: then the event exists, and is ours.
            stored = self.events.get(work.event_id)
            if stored is not None and stored.execution == work.execution and stored.status is not Status.LEASHED:
                return Outcome(stored)
            return Outcome(None, refused.reason, refused.detail)
        return Outcome(event)

    def _facts(self, work: Work, groups: Sequence[Any], item: Mapping[str, Any], now: datetime) -> Facts:
        facts = self.reader.read_unit(work.unit, groups, groups, item, self.salt(), now)
        name = facts.policy.calendar.value
        if facts.policy.problems or name not in self.reader.settings.calendars:
            return facts
        return replace(facts, change=period_at(self.reader.changes([name], now).get(name, ()), now))

    def _carry_out(self, event: Event) -> Event:
        if event.injection:
            return event  # the workflow goes on with the function that injects
        if not may_carry_out(event, self.clock()):
            return event
        switch = self.reader.state.switch()
        if switch.halted or switch.leashed:
            if event.attempts:
                return event  # a request that was sent cannot be cancelled; a sweep determines the outcome
            return self._abandon(event, switched_off(switch), AbandonReason.SWITCHED_OFF)
        if why := self._alarm(event):
            return event if event.attempts else self._abandon(event, why, AbandonReason.ALARM)
        if (
            is_on_demand(event.event_id)
            and not event.attempts
            and (why := Objections(self.reader).to_claim(event, self.clock()))
        ):
            if self._is_gone(event):
                return self.events.close(event, Status.GONE_ELSEWHERE, BY_SOMEBODY_ELSE)
            return self._abandon(event, why)
        event = self.events.attempt(event, self.clock())
        answer = self.terminator.check(event.method, event.instance_id)
        attempted_at = self.clock()
        if answer is None:
            if not may_carry_out(event, attempted_at):
                return event  # the checks took too long
            again = event.attempts > 1 and not fault_named(event.method).refused_if_protected
            if again and is_protected(self.reader.ec2, event.instance_id):
                # The choice may be minutes old, and AWS ignores the protection. An earlier request may have succeeded
                # before the owner protected the instance, so a sweep checks later.
                self.events.note(event, f"{event.instance_id} is protected by EC2 now")
                return event
            try:
                try:
                    answer = self._ask(event)
                except SkipRejected:
                    event, attempted_at = self.events.record_os_shutdown(event), self.clock()
                    if not may_carry_out(event, attempted_at):
                        return event  # the rejected call took too long
                    answer = self._ask(event)
            except TerminationRefused as refused:
                if not (refused.forbidden and self._is_gone(event)):
                    return self._refused(event, refused)
                # EC2 takes the tags from a terminated instance, and IAM allows requests for tagged ones only.
                answer = Answer.REQUESTED if refused.repeated else Answer.GONE
        if answer is Answer.REQUESTED:
            return self.events.record_termination(event, attempted_at)
        if event.attempts > 1:
            # Gone: by an earlier request. Alive but out of service: that may still be in progress, so a sweep checks.
            return (
                event
                if answer is Answer.LEFT
                else self.events.record_termination(event, event.attempted_at or attempted_at)
            )
        if answer is Answer.LEFT:
            return self._abandon(event, "the instance lives, but has left the service of its group")
        return self.events.close(event, Status.GONE_ELSEWHERE, BY_SOMEBODY_ELSE)

    def _alarm(self, event: Event) -> str:
        """Returns the objection of an alarm, "" for none. It reads the alarms just before the first attempt: one can
        have gone off since the claim. After an attempt they tell of the termination itself, perhaps.

        Raises:
            ClientError, BotoCoreError: they cannot be read. A retry reads them again, and nothing is terminated before.
        """
        if event.abort:
            return f"alarm {event.abort.alarm} went off"
        if event.attempts or event.hypothesis is None:
            return ""
        return event.hypothesis.objection(alarm_states(self.reader.client("cloudwatch"), event.hypothesis.alarms))

    def _is_gone(self, event: Event) -> bool:
        return instance_gone(self.reader.ec2, self.reader.autoscaling, event.instance_id)

    def _ask(self, event: Event) -> Answer:
        try:
            return self.terminator.terminate(event.method, event.instance_id, os_shutdown=bool(event.os_shutdown))
        except ClientError as error:
            with suppress(BotoCoreError, ClientError, StepRefused):
                self.events.note(event, f"AWS said: {error}")
            if error.response["Error"]["Code"] in BUSY and event.attempts >= TRIES:
                return Answer.LEFT  # its owner is changing it: neither a time for chaos nor a fault
            raise

    def _refused(self, event: Event, refused: TerminationRefused) -> Event:
        """Closes a claim that AWS refuses permanently, so that it is no longer in flight."""
        words = f"AWS refused: {refused}"[:LONGEST_NOTE]
        if event.attempts > 1 or refused.repeated:
            # An earlier request without a known response may have succeeded before the refusal: a sweep checks later.
            self.events.note(event, words)
            event = replace(event, detail=words)
        else:
            event = self._abandon(event, words)
        if refused.forbidden:
            raise TerminationForbiddenError(event)
        return event

    def _abandon(self, event: Event, why: str, cause: AbandonReason = AbandonReason.REFUSED) -> Event:
        return self.events.close(event, Status.ABANDONED, why, cause=cause)


def _event(work: Work, facts: Facts, target: Target, now: datetime) -> Event:
    choice, instance = facts.choice, target.instance
    injection = injection_of(choice, target.group, instance.instance_id, facts.inside)
    takes = choice.takes(injection is not None and injection.installs)
    return Event(
        event_id=work.event_id,
        unit=work.unit,
        day=work.day,
        status=Status.CLAIMED,
        at=now,
        group=target.group.name,
        instance_id=instance.instance_id,
        zone=instance.zone,
        method=choice.name,
        rolled=roll(facts.salt, facts.day, facts.unit),
        probability=float(facts.policy.probability.value),
        desired=target.group.desired,
        deadline=deadline(now, facts.calendar, facts.change, takes),
        execution=work.execution,
        build=instance.build,
        owner=facts.policy.owner.value,
        hypothesis=facts.policy.hypothesis,
        injection=injection,
    )
