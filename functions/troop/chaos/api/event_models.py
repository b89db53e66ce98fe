"""Defines the API's answers about events."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel, ConfigDict, Field

from troop.chaos.events import Event, Status, to_url
from troop.chaos.replacements import UNKNOWN, Build, Replacement, comparison, differences
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


class EventOut(BaseModel):
    """A termination's record, from its claim to the group's recovery."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(description="One URL path segment, for GET /events/{id}")
    event_id: str = Field(description="The key of the item in the table Events")
    unit: str
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
    os_shutdown: bool | None = Field(
        description="Whether the operating system was shut down before the instance ended; with crash only "
        "where EC2 rejects a termination without it. null before the call to AWS, and for events of "
        "versions that did not record it"
    )
    detail: str
    launch_failure: str = Field(
        description="Of a group that has not recovered: Auto Scaling's message about its last scaling activity since "
        "the termination that failed; empty without one"
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
