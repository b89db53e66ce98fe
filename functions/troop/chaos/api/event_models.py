"""Defines the API's answers about events."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel, ConfigDict, Field

from troop.chaos.events import Event, Status, to_url
from troop.chaos.injection import Injection, Way
from troop.chaos.proof import Presence, prove
from troop.chaos.replacements import UNKNOWN, Build, Replacement, comparison, differences
from troop.chaos.verdict import VerdictValue
from troop.chaos.verdict_rules import recovery_bounds, recovery_in_words
from troop.faults import find_lasting
from troop.shared.api.models import Listing, Moment, Out
from troop.shared.formatting import SPACE, duration
from troop.shared.wiring import environment


class BuildOut(Out):
    """What an instance was launched from; an unknown part is empty."""

    template: str = Field(description="Launch template and version, as lt-0abc:3; or the launch configuration")
    instance_type: str
    image: str


class ReplacementOut(BaseModel):
    """The instance that replaced a terminated one."""

    model_config = ConfigDict(frozen=True)

    instance_id: str
    build: BuildOut
    differences: list[str] = Field(
        description="The parts of the build, such as image, that are known of both instances and differ"
    )
    summary: str = Field(description="The comparison with the terminated instance, in one sentence")

    @classmethod
    def from_replacement(cls, before: Build, replacement: Replacement) -> ReplacementOut:
        """Returns the answer for a replacement of an instance with the build ``before``."""
        return cls(
            instance_id=replacement.instance_id,
            build=BuildOut.model_validate(replacement.build),
            differences=list(differences(before, replacement.build)),
            summary=comparison(before, replacement),
        )


class HypothesisOut(Out):
    """What the unit's policy expected of the hit."""

    success_alarms: list[str] = Field(
        description="Alarms that must not go off from the hit until the verdict; empty: the recovery decides"
    )
    stop_alarms: list[str] = Field(description="Alarms that stop chaos for the unit, without effect on the verdict")
    recovery_within: int | None = Field(
        description="The most seconds that the recovery may take; null for the deployment's recovery timeout"
    )


class HealthySinceOut(Out):
    """The replacement's health in a traffic source."""

    source: str = Field(description="A target group's ARN, or the name of a Classic Load Balancer")
    at: Moment | None = Field(description="When a check first found it healthy there; null if not known")


class StagesOut(Out):
    """The stages of the recovery; null if not known."""

    noticed: Moment | None = Field(description="Auto Scaling began to end the terminated instance")
    launched: Moment | None = Field(description="Auto Scaling began to launch the first replacement")
    running: Moment | None = Field(description="EC2 reported the replacement as running")
    in_service: Moment | None = Field(description="Auto Scaling put the replacement into service")
    healthy: list[HealthySinceOut] = Field(
        description="Its health in each traffic source of the group; empty without one"
    )


class AlarmStateOut(Out):
    """An alarm's state from a moment on."""

    at: Moment
    state: str = Field(description="OK, ALARM or INSUFFICIENT_DATA")


class AlarmRecordOut(Out):
    """What a success alarm did in the watched span."""

    name: str
    states: list[AlarmStateOut] = Field(
        description="Its state when the span began, then each change, oldest first; empty if not known"
    )
    doubt: str = Field(description="Why these states prove nothing, such as that it was changed; empty for no doubt")


class VerdictOut(Out):
    """Whether the hypothesis held, and what was seen of it."""

    value: VerdictValue = Field(description="HELD, BROKEN, or UNKNOWN if what was recorded cannot tell")
    why: str = Field(description="One sentence")
    at: Moment = Field(description="When it was given")
    since: Moment = Field(description="The first moment of the watched span")
    until: Moment = Field(description="The last moment of the watched span")
    alarms: list[AlarmRecordOut] = Field(description="Each success alarm; empty: the recovery alone decided")


class AbortOut(Out):
    """The first alarm of the unit that went off before the verdict. It stops further chaos for the unit."""

    at: Moment = Field(description="When the alarm changed its state, by CloudWatch's clock")
    alarm: str


class ReadingOut(Out):
    """What a probe has read on the instance; null: it could not be read."""

    boot: str = Field(description="The kernel's boot id")
    qdiscs: int | None = Field(description="Queueing disciplines of tc of the kinds netem, ingress and prio")
    drops: int | None = Field(description="Rules of iptables that drop packets")
    stress: int | None = Field(description="Processes of stress-ng")
    rollbacks: int | None = Field(description="Flag files and rollback scripts of AWS's documents")
    hosts: int | None = Field(description="Lines of /etc/hosts that AWS's documents have added")
    used: float | None = Field(description="How full the root volume is, in percent")
    running: int | None = Field(description="Processes with the name of the fault; null also without a name")
    missing: list[str] = Field(description="Programs and kernel modules of AWS's documents that do not exist")


class ProbeOut(Out):
    """A probe: the stack's document, which only reads."""

    sent_at: Moment = Field(description="Just before its request")
    answered_at: Moment | None = Field(description="When its answer was read; null without one")
    reading: ReadingOut | None = Field(description="Its answer; null without one that counts")
    failure: str = Field(description="Why it has no answer that counts, after it is over; empty otherwise")


class EndRequestOut(Out):
    """Troop asked for the fault's end before its time."""

    at: Moment
    why: str = Field(description="One sentence: chaos was halted, the unit has opted out, or an alarm went off")


class ProofOut(Out):
    """The proof that the fault is over."""

    by: Way = Field(
        description="probe: a probe found nothing of it, and the instance stays; replaced: Troop had to terminate the "
        "instance; gone: the instance ended for another reason"
    )
    at: Moment = Field(description="When the fault was certainly over")
    why: str = Field(description="One sentence")


class InjectionOut(BaseModel):
    """A lasting fault inside the instance, in the order in which it happens."""

    model_config = ConfigDict(frozen=True)

    parameters: dict[str, str] = Field(description="All parameters of the fault, with its defaults")
    seconds: int = Field(description="How long it lasts; of kill, how long the process may be gone")
    installs: bool = Field(description="Whether the owner allows AWS's document to install packages")
    before: ProbeOut | None = Field(description="The probe before the fault; null until it is sent")
    ends_by: Moment | None = Field(description="The latest moment at which the fault ends by itself; null before it")
    packages: list[str] = Field(description="Packages that AWS's document has installed: they stay")
    command_id: str = Field(description="Run Command's; empty before the request, and while its answer is not known")
    end_request: EndRequestOut | None = Field(description="null unless Troop asked for an earlier end")
    command_status: str = Field(
        description="Run Command's final status of the command, such as Success or Cancelled, which proves nothing; "
        "empty until it is seen"
    )
    over_at: Moment | None = Field(description="When that status was seen; null until then")
    after: ProbeOut | None = Field(description="The last probe after the fault; null until it is sent")
    presence: Presence = Field(
        description="What the probes show now: GONE, PRESENT, or UNKNOWN if they cannot tell. Only GONE ends it"
    )
    finding: str = Field(description="The same in one sentence")
    unproven: str = Field(
        description="Why the fault is not proven to be over although its time is up, and the instance was not "
        "terminated: a person must act; empty otherwise"
    )
    proof: ProofOut | None = Field(description="null until the end is proven")

    @classmethod
    def from_injection(cls, method: str, injection: Injection) -> InjectionOut:
        """Returns the answer for the injection of an event with this method."""
        fault = find_lasting(method)  # another version can have more
        unknown = (Presence.UNKNOWN, "this version does not have the fault")
        presence, finding = prove(fault, injection) if fault else unknown
        return cls(
            parameters=dict(injection.parameters),
            seconds=injection.seconds,
            installs=injection.installs,
            before=ProbeOut.model_validate(injection.before) if injection.before else None,
            ends_by=injection.ends_by,
            packages=list(injection.packages),
            command_id=injection.command_id,
            end_request=EndRequestOut.model_validate(injection.end_request) if injection.end_request else None,
            command_status=injection.status,
            over_at=injection.over_at,
            after=ProbeOut.model_validate(injection.after) if injection.after else None,
            presence=presence,
            finding=finding,
            unproven=injection.unproven,
            proof=ProofOut.model_validate(injection.proof) if injection.proof else None,
        )


class EventOut(BaseModel):
    """The record of a termination or of a lasting fault, from its claim to the group's recovery."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(description="One URL path segment, for GET /events/{id}")
    event_id: str = Field(description="The key of the item in the table Events")
    unit: str
    owner: str = Field(
        description="The unit's owner at the claim; empty without one, and for events of earlier versions"
    )
    day: date = Field(description="The local day on the unit's calendar")
    status: Status
    at: Moment = Field(description="When it was claimed, or recorded in a leashed deployment")
    group: str
    instance_id: str
    zone: str
    method: str = Field(description="The name of the fault, such as crash or latency")
    fault: str = Field(description="The same with all its parameters, such as cpu load=100 processors=0 seconds=300")
    rolled: float | None = Field(description="The day's roll, 0 to 1; null on demand")
    probability: float | None = Field(description="The probability that the roll was compared with; null on demand")
    desired: int = Field(description="Desired capacity at the claim, in the group's own units")
    execution: str
    deadline: Moment | None = Field(description="A claim is not carried out later than this; null for a leashed record")
    hit_at: Moment | None = Field(
        description="When the fault hit: AWS accepted the termination, or was asked to inject the lasting fault; null "
        "before, and if nothing was sent"
    )
    terminated_at: Moment | None = Field(
        description="When Troop had the instance terminated; null for a lasting fault on an instance that stays"
    )
    recovers_from: Moment | None = Field(
        description="From then on the recovery counts: terminated_at, or the proven end of a lasting fault on an "
        "instance that Troop did not terminate; null before"
    )
    recover_by: Moment | None = Field(description="A group that has not recovered by then is UNRECOVERED")
    recovered_at: Moment | None
    recovery_seconds: float | None = Field(
        description="Seconds from recovers_from to the first check that found the group recovered"
    )
    recovery_at_least: float | None = Field(
        description="Seconds that the recovery took at least: from recovers_from to short_at"
    )
    recovery: str = Field(
        description="How the group recovered, in words that follow its name, such as recovered in 3 min 10 s, or was "
        "whole when latency was over; empty before"
    )
    short_at: Moment | None = Field(
        description="The last moment at which the group had certainly not recovered: a check found it so, or no "
        "instance had returned to service; it recovered between this and recovered_at. null if none is known"
    )
    stages: StagesOut | None = Field(description="null before the first check, and for events of earlier versions")
    hypothesis: HypothesisOut | None = Field(description="As of the claim; null for events of earlier versions")
    settles_at: Moment | None = Field(
        description="From then on the success alarms of the recovered group can be judged; null without any"
    )
    verdict: VerdictOut | None = Field(
        description="null before it is given, if nothing hit, and for events of earlier versions"
    )
    abort: AbortOut | None = Field(description="null if no alarm of the unit went off")
    os_shutdown: bool | None = Field(
        description="Whether the operating system was shut down before the instance ended; with crash only "
        "where EC2 rejects a termination without it. null before the call to AWS, and for events of "
        "versions that did not record it"
    )
    benchmark: str = Field(
        description="The run that requested the hit while it loaded the unit; empty for all others. BROKEN then halts "
        "nothing"
    )
    injection: InjectionOut | None = Field(
        description="What is recorded of a lasting fault inside the instance; null for a termination"
    )
    detail: str
    launch_failure: str = Field(
        description="Auto Scaling's message about its last scaling activity since the hit that failed; empty "
        "without one"
    )
    build: BuildOut | None = Field(
        description="What the instance was launched from; null for events of versions that did not record it"
    )
    replacement: ReplacementOut | None = Field(
        description="The first instance that the group launched since, once the group has recovered; null without one"
    )

    @classmethod
    def from_event(cls, event: Event) -> EventOut:
        """Returns the answer for a stored event."""
        return cls(
            id=to_url(event.event_id),
            event_id=event.event_id,
            unit=event.unit,
            owner=event.owner,
            day=event.day,
            status=event.status,
            at=event.at,
            group=event.group,
            instance_id=event.instance_id,
            zone=event.zone,
            method=event.method,
            fault=event.fault,
            rolled=event.rolled,
            probability=event.probability,
            desired=event.desired,
            execution=event.execution,
            deadline=event.deadline,
            hit_at=event.hit_at,
            terminated_at=event.terminated_at,
            recovers_from=event.recovers_from,
            recover_by=event.recovers_from + environment.recovery_timeout() if event.recovers_from else None,
            recovered_at=event.recovered_at,
            recovery_seconds=event.recovery_seconds,
            recovery_at_least=bounds[0] if (bounds := recovery_bounds(event)) else None,
            recovery=_recovery(event),
            short_at=event.watch.short_at,
            stages=StagesOut.model_validate(event.stages) if event.stages else None,
            hypothesis=HypothesisOut.model_validate(event.hypothesis) if event.hypothesis else None,
            settles_at=event.settles_at,
            verdict=VerdictOut.model_validate(event.verdict) if event.verdict else None,
            abort=AbortOut.model_validate(event.abort) if event.abort else None,
            os_shutdown=event.os_shutdown,
            benchmark=event.benchmark,
            injection=InjectionOut.from_injection(event.method, event.injection) if event.injection else None,
            detail=event.detail,
            launch_failure=event.launch_failure,
            build=BuildOut.model_validate(event.build) if event.build else None,
            replacement=ReplacementOut.from_replacement(event.build or UNKNOWN, event.replacement)
            if event.replacement
            else None,
        )


def _recovery(event: Event) -> str:
    seconds = event.recovery_seconds
    return "" if seconds is None else recovery_in_words(event, duration(seconds).replace(SPACE, " "))


class EventsOut(Listing):
    """A page of events, newest first."""

    events: list[EventOut]
    cursor: str | None = Field(description="Pass it to get the next page; null on the last page")
