"""Carries a lasting fault from its claim to the proof of its end. Every step can be repeated, by any number of calls at
the same time; none can inject a second fault, and none can end an event whose fault may still be there.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.chaos.aws.backstops import Backstops
from troop.chaos.aws.event_table import LONGEST_NOTE, StepRefused
from troop.chaos.aws.groups import instance_terminated
from troop.chaos.aws.injection_steps import InjectionSteps
from troop.chaos.aws.run_command import CommandInDoubt, CommandRefused, RunCommand
from troop.chaos.aws.task_tokens import TaskTokens
from troop.chaos.aws.terminator import SkipRejected, TerminationRefused, Terminator
from troop.chaos.claim_rules import GRACE
from troop.chaos.events import Abort, Event, Status, lasting_named
from troop.chaos.flows import clock_check
from troop.chaos.flows.alarm_stop import AlarmStop
from troop.chaos.flows.objections import Objections
from troop.chaos.injection import EndRequest, Proof, Way
from troop.chaos.injection_rules import (
    NO_COMMAND,
    SENDING,
    Command,
    Due,
    Objection,
    Seen,
    Step,
    comment_of,
    due,
    ends_by,
    first_backstop,
    installed,
    is_over,
    next_backstop,
)
from troop.chaos.probe import Probe, parse
from troop.faults.fault import Answer
from troop.faults.lasting_fault import LastingFault
from troop.shared import moments
from troop.shared.errors import MissingEventError

CALL_SECONDS, BACKSTOP_SECONDS = 50, 110
"""The most seconds for which a call follows an event; and a backstop, whose event may have nobody else."""

OBJECTION_LASTS = timedelta(seconds=15)
"""For how long a call relies on what it has read of a unit whose fault lasts. What people change calls anew."""

REPAIR = "crash"
"""The termination with which an instance is repaired."""

ENDS_ITSELF = "the instance is being terminated, and not by Troop"

_MOST_STEPS = 40
"""More than any call takes; a defect must not loop."""

_UNREADABLE = (BotoCoreError, ClientError)


@dataclass(frozen=True)
class Progress:
    """What one call has done for an event.

    Attributes:
        event: as it is now.
        wait: the time until another look can show more; None if nothing is left to do for the fault itself.
        injected: whether this call has sent the fault's command, or may have.
        closed: whether it has closed the event.
        terminated: whether it has had the instance terminated.
        unproven: why the instance is not terminated although its fault's time is up; "" otherwise.
        answered: the task token that it has answered; "" for none.
    """

    event: Event
    wait: timedelta | None = None
    injected: bool = False
    closed: bool = False
    terminated: bool = False
    unproven: str = ""
    answered: str = ""

    @property
    def logged(self) -> dict[str, Any]:
        """The fields of its log line."""
        injection = self.event.injection
        return {
            "event_id": self.event.event_id,
            "status": self.event.status.value,
            "detail": self.event.detail,
            "method": self.event.method,
            "instance_id": self.event.instance_id,
            "command_id": injection.command_id if injection else "",
            "over": self.wait is None,
            "injected": self.injected,
            "unproven": self.unproven,
            "execution": self.event.execution,
        }


@dataclass(frozen=True)
class Injector:
    """Injects lasting faults, ends them, and proves their ends.

    Attributes:
        probe_document: the name of the stack's document that reads.
        new_token: returns a fresh token for a probe.
    """

    steps: InjectionSteps
    commands: RunCommand
    backstops: Backstops
    objections: Objections
    terminator: Terminator
    tokens: TaskTokens
    alarm_stop: AlarmStop
    ec2: Any
    probe_document: str
    clock: Callable[[], datetime]
    sleep: Callable[[float], None]
    new_token: Callable[[], str] = lambda: secrets.token_hex(16)

    def wait(self, event_id: str, entered: datetime, token: str) -> Progress:
        """Has the workflow wait by its token until nothing is left to do for the fault itself, and follows the event.

        The token is stored before the first look: whoever takes the last step after that finds it.

        Args:
            entered: when the workflow entered the step, by the workflow's own clock.

        Raises:
            ClockError: this function's clock is wrong.
        """
        clock_check.check(entered, self.clock())
        self.steps.events.store_token(event_id, token)
        progress = self.follow(event_id, CALL_SECONDS)
        if progress.wait is None and progress.answered != token:
            self._answer(progress.event, token)
        return progress

    def come_back(self, event_id: str, scheduled: datetime, seconds: float = BACKSTOP_SECONDS) -> Progress:
        """Follows an event because its backstop calls, and arms the next one first: this call can die, too.

        Args:
            scheduled: when the call was due, by EventBridge Scheduler's clock.
            seconds: for how long it follows the event at most.

        Raises:
            ClockError: the call is very late, or this function's clock is wrong. The next one is armed, by the later
                of both clocks: so Lambda must repeat this one.
        """
        now = self.clock()
        event = self._read(event_id)
        if is_over(event):
            return Progress(event)
        # Scheduler never calls early. The next one must not be due by a clock that is behind, which would trust it.
        self.backstops.arm(event_id, next_backstop(max(now, scheduled)))
        clock_check.check(scheduled, now)
        return self.follow(event_id, seconds)

    def go_round(self, scheduled: datetime) -> Iterable[Progress]:
        """Comes back to all open events: workflows and backstops can be lost together, such as by a deployment that was
        without faults for a while. An event that fails does not keep the others from it: the first error is raised
        after them.

        Args:
            scheduled: as in :meth:`come_back`.
        """
        errors: list[Exception] = []
        open_ids = self.steps.open_ids()
        for event_id in open_ids:
            try:
                yield self.come_back(event_id, scheduled, BACKSTOP_SECONDS / len(open_ids))
            except Exception as error:  # noqa: BLE001 - it is raised after the others
                errors.append(error)
        if errors:
            raise errors[0]

    def command_changed(self, instance_id: str, at: datetime) -> Iterable[Progress]:
        """Follows the events of an instance on which a command has ended."""
        yield from self._each(self.steps.open_ids(instance_id=instance_id), at)

    def people_changed(self, at: datetime, unit: str = "") -> Iterable[Progress]:
        """Takes the steps that are due for the events of a unit whose policy was changed, or for all: the switch was
        changed, or the deployment has halted itself. It follows none, because the stream's next change waits for this
        call: that may be another unit's opt-out.
        """
        yield from self._each(self.steps.open_ids(**({"unit": unit} if unit else {})), at, follows=False)

    def alarm_went_off(self, alarm: str, at: datetime) -> Iterable[Progress]:
        """Records an alarm in the events that it concerns, unless that was done, and ends their faults.

        Args:
            at: when it went off, by CloudWatch's clock.
        """
        stopped = []
        for event_id in self.steps.open_ids():
            if is_over(self._read(event_id)):
                continue
            if observation := self.alarm_stop.stop(event_id, Abort(at, alarm)):
                stopped.append(event_id)
                if observation.closed:
                    yield Progress(observation.event, closed=True)
        yield from self._each(stopped, at)

    def follow(self, event_id: str, seconds: float) -> Progress:
        """Takes the steps that are due, and those that become due within so many seconds."""
        began, slept = self.clock(), timedelta()
        call = _Call(self)
        progress = Progress(self._read(event_id), timedelta())
        while True:
            progress = call.advance(event_id, progress)
            if progress.wait is None:
                return progress
            slept += progress.wait
            if max(self.clock() - began + progress.wait, slept).total_seconds() > seconds:
                return progress
            self.sleep(progress.wait.total_seconds())

    def advance(self, event_id: str) -> Progress:
        """Takes the steps that are due now, and no others.

        Raises:
            MissingEventError: there is no such event.
            ClockError: this function's clock is wrong.
            ClientError, BotoCoreError: AWS does not answer; a later call continues.
        """
        return _Call(self).advance(event_id, Progress(self._read(event_id), timedelta()))

    def _each(self, event_ids: Iterable[str], at: datetime, follows: bool = True) -> Iterable[Progress]:
        """Follows events one after the other, each first once, so that no end waits for another event's. One that fails
        does not keep the others from it: the first error is raised after them.
        """
        if clock_check.is_stale(at, self.clock()):
            return
        errors: list[Exception] = []
        waiting: list[str] = []
        for follow in (False, True) if follows else (False,):
            for event_id in waiting if follow else event_ids:
                try:
                    progress = self.follow(event_id, CALL_SECONDS / len(waiting)) if follow else self.advance(event_id)
                except Exception as error:  # noqa: BLE001 - it is raised after the others
                    errors.append(error)
                    continue
                if progress.wait is not None and not follow:
                    waiting.append(event_id)
                yield progress
        if errors:
            raise errors[0]

    def _read(self, event_id: str) -> Event:
        event = self.steps.events.get(event_id)
        if event is None:
            raise MissingEventError(event_id)
        return event

    def _answer(self, event: Event, token: str) -> None:
        settles_at = event.settles_at if event.awaits_verdict else None
        self.tokens.succeed(
            token,
            {
                "event_id": event.event_id,
                "status": event.status.value,
                "settles_at": moments.iso(settles_at) if settles_at else None,
            },
        )


@dataclass
class _Call:
    """One call that follows an event.

    Attributes:
        objection: what was last read of the unit while the fault lasts, and when.
    """

    injector: Injector
    objection: tuple[datetime, Objection] | None = None

    def advance(self, event_id: str, progress: Progress) -> Progress:
        injector = self.injector
        event = injector._read(event_id)
        seen = self._fresh()
        progress = replace(progress, event=event, unproven="")
        for _ in range(_MOST_STEPS):
            step = due(event, seen)
            if step.step is Step.OVER:
                return replace(progress, event=event, wait=None)
            if step.step is Step.WAIT:
                unproven = "" if seen.spared == ENDS_ITSELF else seen.spared  # a sweep counts it if that takes long
                return replace(progress, event=event, wait=step.wait, unproven=unproven)
            if event.status is Status.CLAIMED and seen.now < event.at - GRACE:
                raise clock_check.ClockError(f"{event_id} was claimed at {moments.iso(event.at)}, after this moment")
            try:
                event, seen, progress = self._take(step, event, seen, progress)
            except StepRefused:
                event = injector._read(event_id)  # something else was faster, or an answer was lost
                seen = self._fresh()
            else:
                seen = replace(seen, now=injector.clock())
        raise AssertionError(f"{event_id} has no end of steps")

    def _fresh(self) -> Seen:
        return Seen(self.injector.clock())

    def _take(self, step: Due, event: Event, seen: Seen, progress: Progress) -> tuple[Event, Seen, Progress]:
        """Takes one step. Returns the event, what is known, and what was done afterwards."""
        injector, steps, injection, now = self.injector, self.injector.steps, event.injection, seen.now
        assert injection
        match step.step:
            case Step.READ_OBJECTION:
                return event, replace(seen, objection=self._objection(event, now)), progress
            case Step.READ_COMMAND:
                document = lasting_named(event.method).document
                command = self._command(event, document, injection.command_id, comment_of(event.event_id))
                return event, replace(seen, command=command), progress
            case Step.READ_PROBE:
                probe = _last_probe(event)
                answer = self._command(event, injector.probe_document, probe.command_id, probe.token)
                return event, replace(seen, probe=answer), progress
            case Step.READ_INSTANCE:
                return event, replace(seen, ended=self._has_ended(event)), progress
            case Step.ABANDON:
                closed = steps.events.close(event, Status.ABANDONED, step.why, cause=step.cause)
                return closed, seen, replace(progress, closed=True)
            case Step.SEND_PROBE:
                event, sent = self._send_probe(event, now)
                return event, replace(seen, probe=sent), progress
            case Step.RECORD_ANSWER:
                event = steps.probe_answered(event, _answered(_last_probe(event), seen.probe, step.why, now))
                return event, replace(seen, probe=None), progress
            case Step.ARM:
                injector.backstops.arm(event.event_id, first_backstop(ends_by(event, now), now))
                return event, replace(seen, armed=True), progress
            case Step.INJECT:
                return self._inject(event, progress)
            case Step.ADOPT:
                assert seen.command
                return steps.injected(event, seen.command.command_id), seen, progress
            case Step.RECORD_BEGIN:
                return steps.begun(event, now), seen, progress
            case Step.RECORD_OVER:
                assert seen.command
                return steps.over(event, seen.command.status, now), seen, progress
            case Step.RECORD_END:
                return steps.end_requested(event, EndRequest(now, step.why)), seen, progress
            case Step.CANCEL:
                with suppress(*_UNREADABLE):  # asked again until it is over
                    injector.commands.cancel(event.instance_id, injection.command_id)
                return event, replace(seen, cancelled=True), progress
            case Step.RECORD_PROOF:
                at = injection.after.answered_at if injection.after and step.way is Way.PROBE else now
                proof = Proof(step.way, at or now, step.why)
                event = steps.proven(event, proof, f"the fault is over: {step.why}")
                return event, seen, self._over(event, progress)
            case Step.REPAIR:
                return self._repair(event, step.why, seen, progress)
        raise AssertionError(step.step)

    def _objection(self, event: Event, now: datetime) -> Objection:
        if event.status is Status.CLAIMED:
            return self.injector.objections.to_injection(event, now)
        if self.objection and now - self.objection[0] <= OBJECTION_LASTS:
            return self.objection[1]
        try:
            self.objection = now, self.injector.objections.to_lasting(event, now)
        except _UNREADABLE:  # what cannot be read must not keep the fault from being ended and proven
            return Objection()
        return self.objection[1]

    def _command(self, event: Event, document: str, command_id: str, comment: str) -> Command:
        try:
            return self.injector.commands.read(event.instance_id, document, command_id, comment)
        except _UNREADABLE:  # silence: time goes on
            return NO_COMMAND

    def _has_ended(self, event: Event) -> bool:
        try:
            return instance_terminated(self.injector.ec2, event.instance_id)
        except _UNREADABLE:
            return False

    def _send_probe(self, event: Event, now: datetime) -> tuple[Event, Command]:
        """Records a probe, then sends it. Without a known answer, a later call finds its command, or sends another."""
        injector, injection = self.injector, event.injection
        assert injection
        # By causality it is sent after the fault was over, and after the last one: another clock must not deny it.
        last = injection.before if event.status is Status.CLAIMED else injection.after
        earlier = injection.over_at, last.sent_at if last else None
        probe = Probe(injector.new_token(), max([now, *(at for at in earlier if at)]))
        event = injector.steps.send_probe(event, probe)
        parameters = {"Token": probe.token, "Process": injection.parameters.get("process", "")}
        try:
            command_id = injector.commands.send(
                injector.probe_document, event.instance_id, parameters, probe.token, once=False
            )
        except CommandInDoubt:
            return event, NO_COMMAND
        except CommandRefused as refused:
            if refused.throttled:  # it is sent again, as one without a known answer
                return event, NO_COMMAND
            failed = replace(probe, answered_at=injector.clock(), failure=_brief(f"AWS refused it: {refused}"))
            return injector.steps.probe_answered(event, failed), NO_COMMAND
        return injector.steps.probe_sent(event, command_id), Command(command_id, "Pending")

    def _inject(self, event: Event, progress: Progress) -> tuple[Event, Seen, Progress]:
        """Records the attempt, then sends the fault's command, once. Nobody ever sends it after another attempt."""
        injector, fault = self.injector, lasting_named(event.method)
        now = injector.clock()
        event = injector.steps.attempt(event, now, ends_by(event, now), installed(event))
        try:
            if injector.clock() - now > SENDING:
                raise CommandRefused("it was not sent, because the attempt took too long to be recorded")
            command_id = injector.commands.send(
                fault.document, event.instance_id, _parameters(fault, event), comment_of(event.event_id)
            )
        except CommandRefused as refused:
            closed = injector.steps.events.close(event, Status.ABANDONED, _brief(f"AWS refused: {refused}"))
            return closed, self._fresh(), replace(progress, closed=True)
        except CommandInDoubt:
            return event, replace(self._fresh(), objection=Objection()), replace(progress, injected=True)
        progress = replace(progress, injected=True)
        with suppress(StepRefused):  # another call has already adopted it
            injector.steps.injected(event, command_id)
        event = injector._read(event.event_id)
        return event, replace(self._fresh(), objection=Objection(), command=Command(command_id, "Pending")), progress

    def _repair(self, event: Event, why: str, seen: Seen, progress: Progress) -> tuple[Event, Seen, Progress]:
        """Has the instance terminated, unless it must stay: then the event stays open, and people are told."""
        steps = self.injector.steps
        if spared := self._spared(event):
            assert event.injection
            repair_at = event.injection.repair_at
            if repair_at and self._has_ended(event):  # an earlier request has terminated it, and its answer was lost
                return self._repaired(event, why, bool(event.os_shutdown), seen, progress, is_certain=False)
            if event.injection.unproven != spared:
                event = steps.unproven(event, spared, in_doubt=repair_at is not None)
            return event, replace(seen, spared=spared), progress
        event = steps.repairing(event, seen.now)
        try:
            answer, os_shutdown = self._terminate(event.instance_id)
        except TerminationRefused as refused:
            spared, in_doubt = f"AWS refused to terminate the instance: {refused}", refused.repeated
        except _UNREADABLE as error:
            spared, in_doubt = f"AWS did not terminate the instance: {error}", True
        else:
            if answer is Answer.GONE and event.injection and event.injection.repairs == 1:
                return steps.ended_before(event), replace(seen, ended=None, spared=ENDS_ITSELF), progress
            return self._repaired(event, why, os_shutdown, seen, progress, is_certain=answer is not Answer.GONE)
        return steps.unproven(event, spared, in_doubt), replace(seen, spared=_brief(spared)), progress

    def _repaired(
        self, event: Event, why: str, os_shutdown: bool, seen: Seen, progress: Progress, is_certain: bool
    ) -> tuple[Event, Seen, Progress]:
        """Records that Troop has had the instance terminated.

        Args:
            is_certain: False if the instance has ended, and only a request whose answer is not known can be the cause.
        """
        assert event.injection
        assert event.injection.repair_at
        words = f"terminated, because the end of its fault was not proven: {why}"
        event = self.injector.steps.terminated(event, event.injection.repair_at, words, os_shutdown, is_certain)
        return event, seen, self._over(event, replace(progress, terminated=True))

    def _spared(self, event: Event) -> str:
        try:
            return self.injector.objections.to_repair(event)
        except _UNREADABLE as error:
            return _brief(f"it is not known whether the instance may be terminated: {error}")

    def _terminate(self, instance_id: str) -> tuple[Answer, bool]:
        """Requests the termination; returns the result, and whether the operating system is shut down before it."""
        try:
            return self.injector.terminator.terminate(REPAIR, instance_id), False
        except SkipRejected:
            return self.injector.terminator.terminate(REPAIR, instance_id, os_shutdown=True), True

    def _over(self, event: Event, progress: Progress) -> Progress:
        """Answers the workflow whose token was stored when the last step was recorded. A later one looks by itself."""
        if not event.token:
            return progress
        with suppress(*_UNREADABLE):  # it asks again when its time is up
            self.injector._answer(event, event.token)
        return replace(progress, answered=event.token)


def _last_probe(event: Event) -> Probe:
    assert event.injection
    probe = event.injection.before if event.status is Status.CLAIMED else event.injection.after
    assert probe, event.event_id
    return probe


def _answered(probe: Probe, command: Command | None, failure: str, now: datetime) -> Probe:
    """Returns a probe that is over, with its reading or why there is none."""
    reading = parse(command.output, probe.token) if command and command.is_final else None
    if reading is None and not failure:
        failure = f"its answer cannot be read; Run Command's status is {command.status if command else 'not known'}"
    command_id = probe.command_id or (command.command_id if command else "")
    return replace(probe, command_id=command_id, answered_at=now, reading=reading, failure="" if reading else failure)


def _parameters(fault: LastingFault, event: Event) -> dict[str, str]:
    assert event.injection
    installs = "True" if event.injection.installs else "False"
    return {**fault.request(event.injection.parameters), "InstallDependencies": installs}


def _brief(words: str) -> str:
    return words[:LONGEST_NOTE]
