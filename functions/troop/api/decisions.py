"""Route of decisions: ``GET /decisions``."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from aws_lambda_powertools.event_handler.exceptions import BadRequestError
from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from troop import values
from troop.api import cursors
from troop.api.errors import answers
from troop.api.models import Moment
from troop.aws.chaos.decision_queries import BadPosition, Decided
from troop.chaos.units import LONGEST_UNIT, unit_to_url
from troop.wiring import chaos_tables, environment

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

LONGEST_PAGE = 100


def _day(value: object) -> date:
    try:
        return values.day(value)
    except values.BadValue as error:
        raise ValueError(f"must be {error}") from None


Day = Annotated[date, BeforeValidator(_day)]
"""YYYY-MM-DD, and none of the numbers that pydantic takes for a day, too."""


class DecidedOut(BaseModel):
    """What a tick decided about a unit, and why."""

    model_config = ConfigDict(frozen=True)

    unit: str
    id: str = Field(description="The unit as one URL path segment, for GET /groups/{unit}")
    tick: Moment = Field(description="The moment it was decided for")
    day: date | None = Field(description="The local day on the unit's calendar")
    time_zone: str | None = Field(description="IANA name of that calendar's; null when there is no such calendar")
    reason: str = Field(description="terminate, or what spoke against it")
    detail: str = Field(description="A sentence with the numbers")
    groups: list[str] = Field(description="The unit's groups at that moment")
    rolled: float | None = Field(description="The day's roll, 0 to 1")
    probability: float | None = Field(description="What the roll is held against")
    group: str | None = Field(description="Of the instance; null when there is none")
    instance_id: str | None = Field(
        description="What was to be terminated, or would have been, were the deployment not leashed"
    )

    @classmethod
    def of(cls, decided: Decided) -> DecidedOut:
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


class DecisionsOut(BaseModel):
    """A page of decisions, newest first."""

    decisions: list[DecidedOut]
    cursor: str | None = Field(description="Give it back to get the next page; null when there is none")


@router.get(
    "/decisions",
    operation_id="list_decisions",
    summary="What was decided, and why, newest first",
    responses=answers("A page", 400),
)
def list_decisions(
    unit: Annotated[str | None, Query(min_length=1, max_length=LONGEST_UNIT, description="About this unit")] = None,
    day: Annotated[Day | None, Query(description="On this local day of the units' calendars, YYYY-MM-DD")] = None,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 25,
    cursor: Annotated[str | None, Query(max_length=2048)] = None,
) -> DecisionsOut:
    """Every tick's decision about a unit, about all units on a day, or both; one of the two has to be given. The newest
    of a day are those of its last tick, in the reverse order of the units' names. A page of a unit costs one query (at
    most 4, were its decisions huge), of one of its days at most 4 that examine 250 each; a page of a day costs 8 that
    examine as many decisions each as the page may have. A page can be short and have a cursor all the same.
    """
    if unit is None and day is None:
        raise BadRequestError("give unit, day, or both: there is no listing of all decisions")
    listing = ["decisions", unit, day]
    queries = chaos_tables.decision_queries()
    with cursors.refused(BadPosition):
        position = cursors.decode(cursor, listing)
        if unit is not None:
            page = queries.of_unit(unit, day, limit, position)
        else:
            assert day is not None
            page = queries.of_day(day, limit, position)
    return DecisionsOut(
        decisions=[DecidedOut.of(decided) for decided in page.decisions],
        cursor=cursors.encode(page.position, listing),
    )
