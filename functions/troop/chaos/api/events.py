"""Serves the routes of events: ``GET /events`` and ``GET /events/{id}``."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.exceptions import BadRequestError, NotFoundError
from aws_lambda_powertools.event_handler.openapi.params import Path, Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from troop.chaos.api.event_models import EventOut, EventsOut
from troop.chaos.aws.event_queries import BadPosition, EventFilter
from troop.chaos.events import Event, Status, from_url
from troop.chaos.verdict import VerdictValue
from troop.chaos.wiring import tables
from troop.shared.api import cursors
from troop.shared.api.errors import MALFORMED, answers
from troop.shared.api.models import UtcMoment, answered, listed
from troop.shared.malformed import Read

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

LONGEST_PAGE = 100

LONGEST_KEY = 2048
"""The most bytes of a partition key; DynamoDB rejects queries with longer ones."""


@router.get(
    "/events",
    operation_id="list_events",
    summary="Terminations and lasting faults, newest first",
    responses=answers("A page", 400),
)
def list_events(
    unit: Annotated[str | None, Query(min_length=1, max_length=255, description="Events of this unit")] = None,
    group: Annotated[
        str | None,
        Query(min_length=1, max_length=255, description="Events of the Auto Scaling group of this name"),
    ] = None,
    status: Annotated[Status | None, Query()] = None,
    verdict: Annotated[VerdictValue | None, Query(description="Events with this verdict")] = None,
    since: Annotated[UtcMoment | None, Query(description="From this moment on (ISO 8601 with offset)")] = None,
    until: Annotated[UtcMoment | None, Query(description="Before this moment (ISO 8601 with offset)")] = None,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 25,
    cursor: Annotated[str | None, Query(max_length=1024)] = None,
) -> EventsOut:
    """Lists the events that match all parameters. A page costs at most 4 queries that examine 250 events each, however
    large the table is. A page of large events, whose alarms changed often, can have fewer than ``limit``.
    """
    event_filter = EventFilter(unit, group, status, since, until, verdict=verdict)
    if event_filter.since and event_filter.until and event_filter.until < event_filter.since:
        raise BadRequestError("until is before since: swap them, or omit one")
    listing = [unit, group, status, verdict, event_filter.since, event_filter.until]
    with cursors.refused(BadPosition):
        position = cursors.decode(cursor, listing)
        page = tables.event_queries().page(event_filter, limit, position)
    events, malformed = listed(Read(page.events, page.malformed), EventOut.from_event, _name)
    return EventsOut(events=events, malformed=malformed, cursor=cursors.encode(page.position, listing))


@router.get(
    "/events/<id>",
    operation_id="get_event",
    summary="One termination or lasting fault",
    responses=answers("The event", 400, 404) | MALFORMED,
)
def get_event(id: Annotated[str, Path(max_length=1024, description="The id from GET /events")]) -> EventOut:
    """Returns one event; answers 404 if it does not exist."""
    event_id = from_url(id)
    event = tables.events().get(event_id) if len(event_id.encode()) <= LONGEST_KEY else None
    if event is None:
        raise NotFoundError(f"there is no event {id!r}: GET /events lists the events")
    return answered(event, EventOut.from_event, _name)


def _name(event: Event) -> str:
    return f"Events: {event.event_id}"
