"""Defines what requests and answers of the API have in common. Moments are ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from troop.shared import malformed, moments, values
from troop.shared.api.validation_messages import problem_of
from troop.shared.malformed import Read

T = TypeVar("T")
Answer = TypeVar("Answer")

Moment = Annotated[datetime, PlainSerializer(moments.iso, return_type=str)]


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is out of range: use a moment between the years 1 and 9999 in UTC") from None


UtcMoment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""A moment in a request, with any offset."""


LONGEST_KEY = 128
KEY_PATTERN = r"^[A-Za-z0-9._:-]+$"
"""Idempotency keys that callers choose: their characters, and the most of them."""


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
    read: Read[T], convert: Callable[[T], Answer], name: Callable[[T], str]
) -> tuple[list[Answer], list[MalformedOut]]:
    """Returns the answers for what was read, and what is malformed, including values that an answer cannot have.

    Args:
        name: returns the table and the key of an item.
    """
    answers = malformed.read(read.items, _worded(convert), name)
    wrong = (*read.malformed, *answers.malformed)
    return list(answers.items), [MalformedOut.model_validate(one) for one in wrong]


def answered(item: T, convert: Callable[[T], Answer], name: Callable[[T], str]) -> Answer:
    """Returns the answer for one item.

    Raises:
        MalformedItemError: it has values that an answer cannot have.
    """
    return malformed.read_one(item, _worded(convert), name)


def _worded(convert: Callable[[T], Answer]) -> Callable[[T], Answer]:
    def worded(item: T) -> Answer:
        try:
            return convert(item)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ValueError(f"{'.'.join(map(str, first['loc']))} {problem_of(first)}") from None

    return worded
