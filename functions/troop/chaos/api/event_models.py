"""Defines the API's answers about events."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel, ConfigDict, Field

from troop.chaos.events import Event, Status, to_url
from troop.chaos.replacements import UNKNOWN, Build, Replacement, comparison, differences
from troop.chaos.verdict import VerdictValue
from troop.chaos.verdict_rules import recovery_bounds
from troop.shared.api.models import Listing, Moment, Out
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
    """What the unit's policy expected of the termination."""

    success_alarms: list[str] = Field(
        description="Alarms that must not go off from the termination until the verdict; empty: the recovery decides"
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


class EventOut(BaseModel):
    """A termination's record, from its claim to the group's recovery."""

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
    method: str
    rolled: float | None = Field(description="The day's roll, 0 to 1; null on demand")
    probability: float | None = Field(description="The probability that the roll was compared with; null on demand")
    desired: int = Field(description="Desired capacity at the claim, in the group's own units")
    execution: str
    deadline: Moment | None = Field(description="A claim is not carried out later than this; null for a leashed record")
    terminated_at: Moment | None
    recover_by: Moment | None = Field(description="A group that has not recovered by then is UNRECOVERED")
    recovered_at: Moment | None
    recovery_seconds: float | None = Field(
        description="Seconds from the termination to the first check that found the group recovered"
    )
    recovery_at_least: float | None = Field(
        description="Seconds that the recovery took at least: from the termination to short_at"
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
        description="null before it is given, without a termination, and for events of earlier versions"
    )
    abort: AbortOut | None = Field(description="null if no alarm of the unit went off")
    os_shutdown: bool | None = Field(
        description="Whether the operating system was shut down before the instance ended; with crash only "
        "where EC2 rejects a termination without it. null before the call to AWS, and for events of "
        "versions that did not record it"
    )
    detail: str
    launch_failure: str = Field(
        description="Auto Scaling's message about its last scaling activity since the termination that failed; empty "
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
            rolled=event.rolled,
            probability=event.probability,
            desired=event.desired,
            execution=event.execution,
            deadline=event.deadline,
            terminated_at=event.terminated_at,
            recover_by=event.terminated_at + environment.recovery_timeout() if event.terminated_at else None,
            recovered_at=event.recovered_at,
            recovery_seconds=event.recovery_seconds,
            recovery_at_least=bounds[0] if (bounds := recovery_bounds(event)) else None,
            short_at=event.watch.short_at,
            stages=StagesOut.model_validate(event.stages) if event.stages else None,
            hypothesis=HypothesisOut.model_validate(event.hypothesis) if event.hypothesis else None,
            settles_at=event.settles_at,
            verdict=VerdictOut.model_validate(event.verdict) if event.verdict else None,
            abort=AbortOut.model_validate(event.abort) if event.abort else None,
            os_shutdown=event.os_shutdown,
            detail=event.detail,
            launch_failure=event.launch_failure,
            build=BuildOut.model_validate(event.build) if event.build else None,
            replacement=ReplacementOut.from_replacement(event.build or UNKNOWN, event.replacement)
            if event.replacement
            else None,
        )


class EventsOut(Listing):
    """A page of events, newest first."""

    events: list[EventOut]
    cursor: str | None = Field(description="Pass it to get the next page; null on the last page")
