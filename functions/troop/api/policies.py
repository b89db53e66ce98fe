"""Route of what people have set: ``GET /policies``."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import BaseModel, Field, JsonValue

from troop.api import cursors
from troop.api.errors import answers
from troop.aws.chaos.state import BadUnitKey
from troop.aws.dynamo import jsonable
from troop.chaos.changes import version_of
from troop.chaos.units import is_unit, unit_to_url
from troop.wiring import chaos_tables

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

LONGEST_PAGE = 100

LISTING = ["policies"]


class PolicyItemOut(BaseModel):
    """What people have set for a unit, whether or not a group of it exists."""

    unit: str
    id: str | None = Field(
        description="The unit as one URL path segment, for GET /groups/{unit}; null where no group's unit can have "
        "that name, so that the item means nothing"
    )
    version: int = Field(description="Of the item; counts changes through this API, not those by hand")
    item: dict[str, JsonValue] = Field(description="The item in the table GroupTags, malformed values and all")


class PoliciesOut(BaseModel):
    """A page of items, in no order that means anything."""

    policies: list[PolicyItemOut]
    cursor: str | None = Field(description="Give it back to get the next page; null when there is none")


@router.get(
    "/policies",
    operation_id="list_policies",
    summary="What people have set, unit by unit",
    responses=answers("A page of items", 400),
)
def list_policies(
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 25,
    cursor: Annotated[str | None, Query(max_length=4096)] = None,
) -> PoliciesOut:
    """The items of the table GroupTags, those of units without a group among them. A page costs one read of at most 100
    items and 1 MB, however many items there are; where they are long, a page can be short.
    """
    with cursors.refused(BadUnitKey):
        after = cursors.decode(cursor, LISTING)
        items, following = chaos_tables.policies().page(limit, after)
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
