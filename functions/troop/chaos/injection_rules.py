"""Decides which step of a lasting fault is due. Pure: it gets the event and what was read, and says what to do next.

Any number of calls may follow an event at the same time, and each can end between any two lines. So every step is
written with a condition on what was read, and everything that a later call must know is in the event.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from troop.chaos import probe
from troop.chaos.claim_rules import LAST_CALL
from troop.chaos.events import HIT, AbandonReason, Event, Status, lasting_named
from troop.chaos.injection import Injection, Way
from troop.chaos.probe import Probe
from troop.chaos.proof import Presence, objection, packages, prove
from troop.faults.lasting_fault import ROLLBACK, LastingFault

SENDING = timedelta(seconds=10)
"""The longest time from the attempt until AWS has its request; a later request is not sent."""

DELIVERY = timedelta(seconds=30)
"""The time in which Systems Manager delivers a command; the shortest that it accepts. Later it never runs."""

ENDING = timedelta(seconds=ROLLBACK)
"""The time after its end, or the request for it, in which a fault goes."""

RESTART, SHUTDOWN = timedelta(seconds=10), timedelta(seconds=30)
"""How long a killed process may still be seen, killed by SIGKILL and by a signal that it can handle."""

UNPROVEN = timedelta(seconds=120)
"""The time after its latest end in which every fault is proven to be over, or its instance is terminated."""

ENDS_SLOWLY = timedelta(minutes=10)
"""The time in which EC2 has ended an instance, also one that shuts down its operating system."""

AGAIN = timedelta(seconds=60)
"""The longest time between two looks at a fault whose end is not proven in time."""

RESEND = timedelta(seconds=10)
"""The time after which a probe of which no command is known is sent again: it only reads."""

LAST_PROBE = timedelta(seconds=10)
"""The time before the deadline in which no probe starts: the instance would be terminated before it has answered."""

POLL, LEAST_PAUSE = timedelta(seconds=2), timedelta(seconds=5)
"""The time between two looks at a command that is about to be over; and the shortest between two probes."""

IN_PROGRESS = "InProgress"
"""Run Command's status of an invocation that was sent to its instance, and is not over."""

SOONEST = timedelta(seconds=65)
"""The time after which a backstop may be due, before it is made a whole minute: Scheduler must know it by then."""

FINAL = frozenset({"Success", "Cancelled", "TimedOut", "Failed"})
"""Run Command's statuses of an invocation that is over. Not one of them proves that a fault is."""

RAN = frozenset({"Success", "Failed"})
"""Those that the instance itself has reported, of a command that was there; after a boot it can run once more."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of Run Command on its one instance.

    Attributes:
        command_id: "" if none was found.
        status: Run Command's.
        output: what it wrote.
    """

    command_id: str = ""
    status: str = ""
    output: str = ""

    @property
    def is_final(self) -> bool:
        return self.status in FINAL


NO_COMMAND = Command()
"""No command was found, or it could not be read: this tells nothing."""


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a fault must not be injected, or must end.

    Attributes:
        why: a sentence; "" for no objection.
        cause: for a claim that is abandoned because of it.
        absent: whether the instance is not in its group.
    """

    why: str = ""
    cause: AbandonReason = AbandonReason.REFUSED
    absent: bool = False


class Step(StrEnum):
    """What is to be done next. The first four read what a decision needs; afterwards the decision is made again."""

    READ_OBJECTION = "read-objection"
    READ_COMMAND = "read-command"
    READ_PROBE = "read-probe"
    READ_INSTANCE = "read-instance"
    ABANDON = "abandon"
    SEND_PROBE = "send-probe"
    RECORD_ANSWER = "record-answer"
    ARM = "arm"
    INJECT = "inject"
    ADOPT = "adopt"
    RECORD_BEGIN = "record-begin"
    RECORD_OVER = "record-over"
    RECORD_PROOF = "record-proof"
    RECORD_END = "record-end"
    CANCEL = "cancel"
    REPAIR = "repair"
    WAIT = "wait"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Seen:
    """What one call has read and done since it began; None: not yet.

    Attributes:
        now: the moment.
        objection: before a fault, why it must not be injected; during it, why it must end.
        command: the fault's.
        probe: that of the last probe, which is not over.
        ended: whether EC2 has terminated the instance.
        armed: whether the backstop exists.
        cancelled: whether it has asked for the command's end.
        spared: why the instance was not terminated although its time is up.
    """

    now: datetime
    objection: Objection | None = None
    command: Command | None = None
    probe: Command | None = None
    ended: bool | None = None
    armed: bool = False
    cancelled: bool = False
    spared: str = ""


@dataclass(frozen=True, slots=True)
class Due:
    """A step that is due.

    Attributes:
        why: a sentence for the steps that record one: ABANDON, RECORD_ANSWER (a failure), RECORD_PROOF, RECORD_END,
            REPAIR.
        cause: of ABANDON.
        way: of RECORD_PROOF.
        wait: of WAIT, the time until the next look.
    """

    step: Step
    why: str = ""
    cause: AbandonReason = AbandonReason.REFUSED
    way: Way = Way.PROBE
    wait: timedelta = timedelta()


def is_over(event: Event) -> bool:
    """Checks whether nothing is left to do for the fault itself: it ended without being injected, its end is proven, or
    its instance was terminated. The group's recovery may still be checked.
    """
    assert event.injection, event.event_id
    return not (event.status is Status.CLAIMED or (event.status is Status.RUNNING and event.injection.proof is None))


def comment_of(event_id: str) -> str:
    """Returns the comment by which the fault's command is found."""
    return hashlib.sha256(event_id.encode()).hexdigest()


def ends_by(event: Event, at: datetime) -> datetime:
    """Returns the latest moment at which a fault ends by itself whose attempt is at ``at``."""
    injection, fault = event.injection, lasting_named(event.method)
    assert injection
    return at + SENDING + DELIVERY + timedelta(seconds=fault.longest(injection.seconds, bool(installed(event))))


def latest_end(event: Event) -> datetime:
    """Returns the latest moment at which a fault ends by itself, by what is on record; of an event with an attempt."""
    injection = event.injection
    assert injection
    assert injection.ends_by
    began = injection.began_at or (injection.over_at if injection.status in RAN else None)
    if began is None:
        return injection.ends_by
    assert event.attempted_at
    return min(injection.ends_by, injection.ends_by + (began - event.attempted_at - SENDING - DELIVERY))


def installed(event: Event) -> tuple[str, ...]:
    """Lists the packages that AWS's document installs before the fault; empty without the owner's consent."""
    injection = event.injection
    reading = injection.before.reading if injection and injection.before else None
    if injection is None or not injection.installs or reading is None:
        return ()
    return packages(lasting_named(event.method), reading)


def deadline(event: Event) -> datetime:
    """Returns when the end of a fault must be proven; of an event with an attempt."""
    injection = event.injection
    assert injection
    ends = [latest_end(event)]
    if injection.over_at and not lasting_named(event.method).returns:
        ends.append(settled_at(event))
    if injection.end_request:
        ends.append(injection.end_request.at + ENDING)
    return min(ends) + ENDING + probe.BUDGET


def settled_at(event: Event) -> datetime:
    """Returns from when on a probe can prove the end of a fault whose command is over: then it can no longer begin.

    A command that was cancelled on its way, or whose delivery timed out, may start until its delivery is impossible. A
    document prepares its fault first, also one whose shell is said to be dead. ``Success`` is what the agent reports of
    a document that has run.
    """
    injection = event.injection
    assert injection
    assert injection.over_at
    if injection.status == "Success":
        return injection.over_at
    return max(injection.over_at, latest_end(event) - timedelta(seconds=injection.seconds))


def first_backstop(ends_by: datetime, now: datetime) -> datetime:
    """Returns when the first backstop of a fault is due: in at least 5 s. Scheduler calls within the minute, and not in
    the past. So it can send a probe before the deadline, also of a command that was delivered at once.
    """
    return max(ends_by - SENDING - DELIVERY, now + SOONEST).replace(second=0, microsecond=0)


def next_backstop(now: datetime) -> datetime:
    """Returns when the next backstop is due, in 30 to 90 seconds. In whole minutes, so that two calls arm one."""
    return (now + timedelta(seconds=90)).replace(second=0, microsecond=0)


def is_unproven(event: Event, now: datetime) -> bool:
    """Checks whether the end of a fault is not proven although its time was up long ago."""
    injection = event.injection
    if event.status not in HIT or injection is None or injection.proof or injection.ends_by is None:
        return False
    if event.terminated_at:
        return now - event.terminated_at > ENDS_SLOWLY
    return now - latest_end(event) > UNPROVEN


def due(event: Event, seen: Seen) -> Due:
    """Returns the step that is due for an event with a lasting fault."""
    assert event.injection, event.event_id
    if is_over(event):
        return Due(Step.OVER)
    fault = lasting_named(event.method)
    if event.status is Status.CLAIMED:
        return _before(event, event.injection, fault, seen)
    return _during(event, event.injection, fault, seen)


def _before(event: Event, injection: Injection, fault: LastingFault, seen: Seen) -> Due:
    before = injection.before
    if event.abort:
        return Due(Step.ABANDON, f"alarm {event.abort.alarm} went off before the fault", AbandonReason.ALARM)
    if event.deadline is None or seen.now >= event.deadline - LAST_CALL:  # it leaves time for packages and the proof
        return Due(Step.ABANDON, "no time was left for the fault")
    if before is None or before.is_over:
        if before and (why := objection(fault, injection)):
            return Due(Step.ABANDON, why)
        if before and not seen.armed:
            return Due(Step.ARM)
        if seen.objection is None:
            return Due(Step.READ_OBJECTION)
        if seen.objection.why:
            return Due(Step.ABANDON, seen.objection.why, seen.objection.cause)
        return Due(Step.INJECT if before else Step.SEND_PROBE)
    return _answer(before, seen)


def _during(event: Event, injection: Injection, fault: LastingFault, seen: Seen) -> Due:
    assert injection.ends_by
    if injection.repair_at:  # it may be terminated already: no probe can prove anything until that is known
        if seen.spared:
            return Due(Step.WAIT, wait=AGAIN)
        return Due(Step.REPAIR, injection.unproven or "its time was up")
    running = injection.over_at is None
    if running:
        if seen.command is None:
            return Due(Step.READ_COMMAND)
        if seen.command.command_id and not injection.command_id:
            return Due(Step.ADOPT)
        if seen.command.is_final:
            return Due(Step.RECORD_OVER)
        if seen.command.status == IN_PROGRESS and injection.began_at is None:
            return Due(Step.RECORD_BEGIN)
    if (running or fault.returns) and injection.end_request is None:
        if event.abort:
            return Due(Step.RECORD_END, f"alarm {event.abort.alarm} went off")
        if seen.objection is None:
            return Due(Step.READ_OBJECTION)
        if seen.objection.why and (seen.ended is False or not seen.objection.absent):
            return Due(Step.RECORD_END, seen.objection.why)
    is_late = seen.now >= deadline(event)
    failed = injection.after is not None and bool(injection.after.failure)
    if is_late or failed or (seen.objection and seen.objection.absent):
        if seen.ended is None:
            return Due(Step.READ_INSTANCE)
        if seen.ended:
            return Due(Step.RECORD_PROOF, "the instance has ended", way=Way.GONE)
    if running:
        ends = injection.end_request is not None or seen.now >= latest_end(event)
        if ends and injection.command_id and not seen.cancelled:
            return Due(Step.CANCEL)
        if is_late and not seen.spared:
            return Due(Step.REPAIR, "Run Command has not shown that the fault's command is over")
        return Due(Step.WAIT, wait=AGAIN if seen.spared else _until_over(event, injection, seen.now))
    return _proving(event, injection, fault, seen, is_late)


def _proving(event: Event, injection: Injection, fault: LastingFault, seen: Seen, is_late: bool) -> Due:
    after = injection.after
    if after and not after.is_over:
        step = _answer(after, seen)
        if step.step is Step.WAIT and seen.spared:
            return Due(Step.WAIT, wait=AGAIN)
        if step.step is not Step.WAIT or not is_late:
            return step
    presence, why = prove(fault, injection)
    if after and after.sent_at < settled_at(event):
        presence, why = Presence.UNKNOWN, "the last probe was sent while the fault's command could still start"
    if presence is Presence.GONE:
        return Due(Step.RECORD_PROOF, why)
    if is_late and not seen.spared:
        return Due(Step.REPAIR, why)
    next_at, until = _next_probe(event, injection, fault), deadline(event)
    if after and not is_late and max(next_at, seen.now) > until - LAST_PROBE:
        return Due(Step.WAIT, wait=until - seen.now)
    return Due(Step.WAIT, wait=next_at - seen.now) if seen.now < next_at else Due(Step.SEND_PROBE)


def _answer(sent: Probe, seen: Seen) -> Due:
    """Returns the step for a probe that is not over."""
    if seen.probe is None:
        return Due(Step.READ_PROBE)
    if seen.probe.is_final:
        return Due(Step.RECORD_ANSWER)
    waited = seen.now - sent.sent_at
    if waited > probe.BUDGET:
        return Due(Step.RECORD_ANSWER, f"no answer within {probe.BUDGET.total_seconds():.0f} s")
    if not sent.command_id and not seen.probe.command_id and waited > RESEND:
        return Due(Step.SEND_PROBE)
    return Due(Step.WAIT, wait=POLL)


def _next_probe(event: Event, injection: Injection, fault: LastingFault) -> datetime:
    """Returns when the next probe after the fault is due: more and more rarely, as its traces go soon or never."""
    assert injection.over_at
    if injection.after is None:
        handled = fault.returns and injection.parameters.get("signal") != "SIGKILL"
        pause = SHUTDOWN if handled else RESTART if fault.returns else timedelta()
        return max(settled_at(event), injection.over_at + pause)
    last = injection.after.answered_at or injection.after.sent_at
    return last + min(max(LEAST_PAUSE, (last - injection.over_at) / 3), AGAIN)


def _until_over(event: Event, injection: Injection, now: datetime) -> timedelta:
    """Returns the time until another look at the command can show that it is over."""
    assert event.attempted_at
    if injection.began_at is None and now < event.attempted_at + SENDING + DELIVERY:
        return POLL
    naturally = event.attempted_at
    if not lasting_named(event.method).returns and not injection.end_request:
        naturally += timedelta(seconds=injection.seconds)
    return max(POLL, naturally - now)
