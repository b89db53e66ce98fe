"""Serves the route of decisions: ``GET /decisions``."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from aws_lambda_powertools.event_handler.exceptions import BadRequestError
from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from troop.chaos.aws.decision_queries import BadPosition, DecisionRecord
from troop.chaos.units import LONGEST_UNIT, unit_to_url
from troop.chaos.wiring import tables
from troop.shared import moments, values
from troop.shared.api import cursors
from troop.shared.api.errors import answers
from troop.shared.api.models import Listing, Moment, listed
from troop.shared.malformed import Read
from troop.shared.wiring import environment

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

LONGEST_PAGE = 100


def _day(value: object) -> date:
    try:
        return values.day(value)
    except values.BadValue as error:
        raise ValueError(f"must be {error}") from None


Day = Annotated[date, BeforeValidator(_day)]
"""YYYY-MM-DD; refuses the numbers that pydantic accepts as a day."""


class DecidedOut(BaseModel):
    """A tick's decision about a unit, and its reason."""

    model_config = ConfigDict(frozen=True)

    unit: str
    id: str = Field(description="The unit as one URL path segment, for GET /groups/{unit}")
    tick: Moment = Field(description="The tick's time")
    day: date | None = Field(description="The local day on the unit's calendar")
    time_zone: str | None = Field(
        description="The IANA name of that calendar's time zone; null if the calendar no longer exists"
    )
    reason: str = Field(description="terminate, or the reason against it")
    detail: str = Field(description="A sentence that explains the reason with numbers")
    groups: list[str] = Field(description="The unit's groups at that moment")
    rolled: float | None = Field(description="The day's roll, 0 to 1")
    probability: float | None = Field(description="The probability that the roll is compared with")
    group: str | None = Field(description="The instance's group; null without an instance")
    instance_id: str | None = Field(
        description="The instance to terminate; in a leashed deployment, the one that would be terminated"
    )

    @classmethod
    def from_decided(cls, decided: DecisionRecord) -> DecidedOut:
        calendar = environment.settings().calendars.get(decided.calendar)
        return cls(
            unit=decided.unit,
            id=unit_to_url(decided.unit),
            tick=decided.tick,
            day=decided.day,
            time_zone=calendar.time_zone if calendar else None,
            reason=decided.reason,
            detail=decided.detail,
            groups=list(decided.groups),
            rolled=decided.rolled,
            probability=decided.probability,
            group=decided.group,
            instance_id=decided.instance_id,
        )


class DecisionsOut(Listing):
    """A page of decisions, newest first."""

    decisions: list[DecidedOut]
    cursor: str | None = Field(description="Pass it to get the next page; null on the last page")


@router.get(
    "/decisions",
    operation_id="list_decisions",
    summary="Decisions and their reasons, newest first",
    responses=answers("A page", 400),
)
def list_decisions(
    unit: Annotated[
        str | None, Query(min_length=1, max_length=LONGEST_UNIT, description="Decisions about this unit")
    ] = None,
    day: Annotated[
        Day | None, Query(description="Decisions of this local day on the units' calendars, YYYY-MM-DD")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 25,
    cursor: Annotated[str | None, Query(max_length=2048)] = None,
) -> DecisionsOut:
    """Lists every tick's decision about a unit, about all units on a day, or both; unit or day is required. The newest
    decisions of a day are those of its last tick, in reverse order of the units' names.

    A page of a unit costs one query, or at most 4 if its decisions are very large. A page of one day of a unit costs
    at most 4 queries that examine 250 decisions each. A page of a day costs 8 queries; each examines as many decisions
    as the page may have. A page can be short and still have a cursor.
    """
    if unit is None and day is None:
        raise BadRequestError(
            "unit or day is required: pass one or both, because all decisions cannot be listed at once"
        )
    listing = ["decisions", unit, day]
    queries = tables.decision_queries()
    with cursors.refused(BadPosition):
        position = cursors.decode(cursor, listing)
        if unit is not None:
            page = queries.unit_page(unit, day, limit, position)
        else:
            assert day is not None
            page = queries.day_page(day, limit, position)
    decisions, malformed = listed(
        Read(page.decisions, page.malformed),
        DecidedOut.from_decided,
        lambda one: f"Decisions: {one.unit}, {moments.iso(one.tick)}",
    )
    return DecisionsOut(decisions=decisions, malformed=malformed, cursor=cursors.encode(page.position, listing))
