"""Serves the route of changes by people: ``GET /changes``."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.exceptions import BadRequestError, ServiceError
from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import Field

from troop.chaos.api.unit_models import ChangeOut
from troop.chaos.aws.change_table import BadPosition, ChangeFilter, IndexUnfinishedError
from troop.chaos.changes import Change
from troop.chaos.units import LONGEST_UNIT
from troop.chaos.wiring import tables
from troop.shared import moments
from troop.shared.api import cursors
from troop.shared.api.errors import answers
from troop.shared.api.models import Listing, UtcMoment, listed
from troop.shared.malformed import Read
from troop.shared.state_keys import SWITCH, UNIT

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

LONGEST_PAGE = 100


class ChangesOut(Listing):
    """A page of changes, newest first."""

    changes: list[ChangeOut]
    cursor: str | None = Field(description="Pass it to get the next page; null on the last page")


@router.get(
    "/changes",
    operation_id="list_changes",
    summary="Changes of policies and of the switch, newest first",
    responses=answers("A page", 400, 503),
)
def list_changes(
    unit: Annotated[
        str | None, Query(min_length=1, max_length=LONGEST_UNIT, description="Changes of this unit's policy")
    ] = None,
    switch: Annotated[bool, Query(description="true for changes of the switch alone")] = False,
    since: Annotated[UtcMoment | None, Query(description="From this moment on (ISO 8601 with offset)")] = None,
    until: Annotated[UtcMoment | None, Query(description="Before this moment (ISO 8601 with offset)")] = None,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 25,
    cursor: Annotated[str | None, Query(max_length=2048)] = None,
) -> ChangesOut:
    """Lists the changes through this API, each with its author and the values before and after it. Manual edits of the
    tables have no record. A page costs one query, however many changes exist. Without ``unit`` and ``switch``, a
    change of the last seconds can be missing.
    """
    if unit and switch:
        raise BadRequestError("unit and switch exclude each other: the switch belongs to no unit")
    if since and until and until < since:
        raise BadRequestError("until is before since: swap them, or omit one")
    subject = SWITCH if switch else UNIT + unit if unit else None
    listing = ["changes", subject, since, until]
    with cursors.refused(BadPosition):
        position = cursors.decode(cursor, listing)
        try:
            page = tables.changes().page(ChangeFilter(subject, since, until), limit, position)
        except IndexUnfinishedError as error:
            raise ServiceError(503, str(error)) from None
    changes, malformed = listed(Read(page.changes, page.malformed), ChangeOut.from_change, _name)
    return ChangesOut(changes=changes, malformed=malformed, cursor=cursors.encode(page.position, listing))


def _name(change: Change) -> str:
    return f"Changes: {change.subject}, {moments.iso(change.at)}"
