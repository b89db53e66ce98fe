"""Defines what requests and answers of the API have in common. Moments are ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from troop.chaos.events import Event, Status, to_url
from troop.chaos.replacements import UNKNOWN, Build, Replacement, comparison, differences
from troop.shared import malformed, moments, values
from troop.shared.api.validation_messages import problem_of
from troop.shared.malformed import Read
from troop.shared.wiring import environment

T = TypeVar("T")
Answer = TypeVar("Answer")

Moment = Annotated[datetime, PlainSerializer(moments.iso, return_type=str)]


class In(BaseModel):
    """The body of a request. A key that the model does not have is refused with the nearest known key."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known(cls, raw: Any) -> Any:
        known = tuple(cls.model_fields)
        for key in raw if isinstance(raw, Mapping) else ():
            if key not in known:
                ctx = {"key": str(key)[:80], "spelling": values.spelling(str(key)[:80], known)}
                raise PydanticCustomError("unknown_key", "{key} is unknown, must be {spelling}", ctx)
        return raw


class Out(BaseModel):
    """An answer with an object's attributes: ``model_validate`` takes the object."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class MalformedOut(Out):
    """An item of a table that cannot be read, because somebody edited it."""

    item: str = Field(description="Its table and key, such as Events: 2026-11-20#web")
    why: str = Field(description="What is wrong with it")


class Listing(BaseModel):
    """An answer that leaves out what cannot be read."""

    malformed: list[MalformedOut] = Field(
        default_factory=list, description="Items that cannot be read and are left out: repair or remove them"
    )


def listed(
    read: Read[T], of: Callable[[T], Answer], name: Callable[[T], str]
) -> tuple[list[Answer], list[MalformedOut]]:
    """Returns the answers for what was read, and what is malformed, including values that an answer cannot have.

    Args:
        name: returns the table and the key of an item.
    """
    answers = malformed.read(read.items, _worded(of), name)
    wrong = (*read.malformed, *answers.malformed)
    return list(answers.items), [MalformedOut.model_validate(one) for one in wrong]


def answered(item: T, of: Callable[[T], Answer], name: Callable[[T], str]) -> Answer:
    """Returns the answer for one item.

    Raises:
        MalformedItemError: it has values that an answer cannot have.
    """
    return malformed.read_one(item, _worded(of), name)


def _worded(of: Callable[[T], Answer]) -> Callable[[T], Answer]:
    def convert(item: T) -> Answer:
        try:
            return of(item)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ValueError(f"{'.'.join(map(str, first['loc']))} {problem_of(first)}") from None

    return convert


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
    def of(cls, before: Build, replacement: Replacement) -> ReplacementOut:
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
    build: BuildOut | None = Field(
        description="What the instance was launched from; null for events of versions that did not record it"
    )
    replacement: ReplacementOut | None = Field(
        description="The first instance that the group launched since, once the group has recovered; null without one"
    )

    @classmethod
    def of(cls, event: Event) -> EventOut:
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
            build=BuildOut.model_validate(event.build) if event.build else None,
            replacement=ReplacementOut.of(event.build or UNKNOWN, event.replacement) if event.replacement else None,
        )


class EventsOut(Listing):
    """A page of events, newest first."""

    events: list[EventOut]
    cursor: str | None = Field(description="Pass it to get the next page; null on the last page")
