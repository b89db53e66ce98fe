"""Serves the route of policies that users have set: ``GET /policies``."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import BaseModel, Field, JsonValue

from troop.chaos.aws.state_table import BadUnitKey
from troop.chaos.changes import version_of
from troop.chaos.units import is_unit, unit_to_url
from troop.chaos.wiring import tables
from troop.shared.api import cursors
from troop.shared.api.errors import answers
from troop.shared.aws.dynamo import jsonable

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

LONGEST_PAGE = 100

LISTING = ["policies"]


class PolicyItemOut(BaseModel):
    """The policy that users have set for a unit, whether or not it has a group."""

    unit: str
    id: str | None = Field(
        description="The unit as one URL path segment, for GET /groups/{unit}; null if no group's unit can "
        "have that name, so that the item has no effect"
    )
    version: int = Field(description="The item's version: counts changes through this API, not manual ones")
    item: dict[str, JsonValue] = Field(description="The item in the table GroupTags, including malformed values")


class PoliciesOut(BaseModel):
    """A page of items, in no meaningful order."""

    policies: list[PolicyItemOut]
    cursor: str | None = Field(description="Pass it to get the next page; null on the last page")


@router.get(
    "/policies",
    operation_id="list_policies",
    summary="Policies that users have set, by unit",
    responses=answers("A page of items", 400),
)
def list_policies(
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 25,
    cursor: Annotated[str | None, Query(max_length=4096)] = None,
) -> PoliciesOut:
    """Lists the items of the table GroupTags, including those of units without a group. A page costs one read of at
    most 100 items and 1 MB, however many items exist; with long items a page can be short.
    """
    with cursors.refused(BadUnitKey):
        after = cursors.decode(cursor, LISTING)
        items, following = tables.policies().page(limit, after)
    return PoliciesOut(
        policies=[
            PolicyItemOut(
                unit=item["unit"],
                id=unit_to_url(item["unit"]) if is_unit(item["unit"]) else None,
                version=version_of(item),
                item=jsonable(item),
            )
            for item in items
        ],
        cursor=cursors.encode(following, LISTING),
    )
