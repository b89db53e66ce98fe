"""Routes of groups and units: ``GET /groups``, ``GET /groups/{unit}`` and ``PATCH /groups/{unit}``."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from aws_lambda_powertools.event_handler.exceptions import BadRequestError, NotFoundError, ServiceError
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from troop.api import cursors
from troop.api.errors import answers
from troop.api.requests import author_of
from troop.api.unit_models import GroupOut, GroupsOut, UnitOut, UnitPatch
from troop.aws.chaos.groups import BadToken
from troop.aws.clients import quick_client
from troop.chaos.units import LONGEST_UNIT, is_unit, unit_from_url, unit_to_url
from troop.flows.chaos.alarms import missing
from troop.flows.chaos.edits import ConflictError
from troop.flows.chaos.units import UnitView
from troop.wiring import chaos_api, environment

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

LONGEST_PAGE = 50

LISTING = ["groups"]

_Unit = Annotated[str, Path(max_length=4096, description="The unit: percent-encoded, with ~ in place of %")]


@router.get(
    "/groups",
    operation_id="list_groups",
    summary="Auto Scaling groups and their policy",
    responses=answers("A page of groups", 400),
)
def list_groups(
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 25,
    cursor: Annotated[str | None, Query(max_length=4096)] = None,
) -> GroupsOut:
    """A page costs one call to Auto Scaling and one to DynamoDB for at most 100 items, however many groups there are.
    Groups that are being deleted, and Troop's own fleets, are left out, so that a page can be short.
    """
    with cursors.refused(BadToken, "cursor has expired: start again without it"):
        token = cursors.decode(cursor, LISTING)
        rows, following = chaos_api.units().page(limit, token, environment.now())
    return GroupsOut(
        groups=[GroupOut.of(row) for row in rows],
        cursor=cursors.encode(following, LISTING),
    )


@router.get("/groups/<unit>", operation_id="get_unit", summary="One unit", responses=answers("The unit", 400, 404))
def get_unit(unit: _Unit) -> UnitOut:
    """By the name of a group, it is the unit that the group belongs to, unless a unit of that name has groups or an
    item: what was decided under that name before the group was another unit's does not count. 404 when nothing is known
    of the unit, and it has no item. Costs at most two items, three queries and four calls to Auto Scaling; one call
    more for a unit that has neither group nor item; for the name of a group, twice the former and one call; and one to
    CloudWatch for a unit with stop alarms.
    """
    name, units, now = _unit(unit), chaos_api.units(), environment.now()
    view = units.view(name, now)
    if not view.groups and not view.item:
        owner = units.owner(name)
        if owner not in (None, name):
            view = units.view(owner, now)
        elif not view.known:
            raise NotFoundError(f"nothing is known of unit {name!r}: GET /groups lists groups and their units")
    return _unit_out(view)


@router.patch(
    "/groups/<unit>",
    operation_id="change_unit",
    summary="Change one unit",
    responses=answers("The unit, changed", 400, 404, 409),
)
def change_unit(unit: _Unit, body: Annotated[UnitPatch, Body()]) -> UnitOut:
    """Changes the unit's item, which wins over tags and settings, and records who has changed what. The same again
    changes nothing. A unit of which nothing is known is taken, too: its group may be yet to come. The name of a group
    that belongs to another unit is refused: it would change nothing for the group. Costs what GET /groups/{unit} costs,
    one call to Auto Scaling, two items and a transaction, the last two up to five times while others change the unit;
    and GET's once more for the name of a group.
    """
    name, event = _unit(unit), router.current_event.raw_event
    owner = chaos_api.units().owner(name)
    if owner is not None and owner != name and not chaos_api.units().view(name, environment.now()).groups:
        raise BadRequestError(f"{name!r} is a group of unit {owner!r}: change /groups/{unit_to_url(owner)}")
    # By itself, too, ``until`` is the end of an opt-out: only who says that there is none, or is none any more, may.
    opting_out = body.opt_out or "opt_out" not in body.model_fields_set
    if opting_out and body.until is not None and body.until < (today := _today(body.calendar)).isoformat():
        raise BadRequestError(
            f"body.until: is {body.until!r}, must be {today} or later: an opt-out that is over would leave nobody "
            "alone; without until it has no end"
        )
    try:
        chaos_api.editor().unit(name, body.changes, body.put_back, body.version, author_of(event))
    except ConflictError as conflict:
        raise ServiceError(409, str(conflict)) from None
    return _unit_out(chaos_api.units().view(name, environment.now()))


def _unit_out(view: UnitView) -> UnitOut:
    names = view.policy.stop_alarms.value
    return UnitOut.of(view, missing(quick_client("cloudwatch"), names) if names else [])


def _today(calendar: str | None) -> date:
    """The local day on a calendar; the earliest on any of them for a unit that may be on any."""
    calendars, now = environment.settings().calendars, environment.now()
    return min(one.at(now).day for name, one in calendars.items() if calendar in (None, name))


def _unit(segment: str) -> str:
    unit = unit_from_url(segment)
    if unit is None:
        raise BadRequestError(f"unit {segment[:80]!r} is not spelled as GET /groups gives it: percent-encode, ~ for %")
    if not is_unit(unit):
        raise BadRequestError(f"a unit has a name of 1 to {LONGEST_UNIT} characters, none of them a control character")
    return unit
