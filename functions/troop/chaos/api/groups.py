"""Serves the routes of groups and units: ``GET /groups``, ``GET /groups/{unit}`` and ``PATCH /groups/{unit}``."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from aws_lambda_powertools.event_handler.exceptions import BadRequestError, NotFoundError, ServiceError
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from troop.chaos.api.authors import author_of
from troop.chaos.api.unit_models import GroupOut, GroupsOut, UnitOut, UnitPatch
from troop.chaos.aws.groups import BadToken
from troop.chaos.flows.editor import ConflictError
from troop.chaos.flows.units import UnitView, fitness_of, missing_alarms
from troop.chaos.policy import has_values
from troop.chaos.units import LONGEST_UNIT, is_unit, unit_from_url, unit_to_url
from troop.chaos.wiring import services
from troop.shared.api import cursors
from troop.shared.api.errors import CodedError, answers
from troop.shared.aws.clients import quick_client
from troop.shared.errors import ErrorCode
from troop.shared.wiring import environment

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
    """Lists the groups with their policies. Leaves out groups that are being deleted and Troop's own fleets, so a page
    can be short. A page costs one call to Auto Scaling and at most four more for the other groups of its units, and
    two to DynamoDB for at most 200 items, however many groups exist. A unit that a pattern of names makes costs one
    query more.
    """
    with cursors.refused(BadToken, "cursor has expired: start again without it"):
        token = cursors.decode(cursor, LISTING)
        rows, following = services.units().page(limit, token, environment.now())
    return GroupsOut(
        groups=[GroupOut.from_row(row) for row in rows],
        cursor=cursors.encode(following, LISTING),
    )


@router.get("/groups/<unit>", operation_id="get_unit", summary="One unit", responses=answers("The unit", 400, 404))
def get_unit(unit: _Unit) -> UnitOut:
    """Returns one unit. The name of a group returns the group's unit, unless a unit of that name has groups or an
    item with values; earlier decisions under that name do not count. Answers 404 when nothing is known of the unit
    and it has no item.

    Costs at most two items, three queries and four calls to Auto Scaling, and one more call for a unit without group
    and item. For the name of a group it costs that twice, and one call. Alarms cost one call to CloudWatch. If faults
    inside instances are allowed and a group consents, it costs two calls to EC2, at most two to DynamoDB, and at most
    four to Systems Manager more.
    """
    name, units, now = _unit(unit), services.units(), environment.now()
    view = units.view(name, now)
    if not view.groups and not has_values(view.item):
        owner = units.owner(name)
        if owner not in (None, name):
            view = units.view(owner, now)
        elif not view.known and not view.item:
            raise NotFoundError(f"unit {name!r} is unknown: GET /groups lists groups and their units")
    return _unit_out(view)


@router.patch(
    "/groups/<unit>",
    operation_id="change_unit",
    summary="Change one unit",
    responses=answers("The unit, changed", 400, 404, 409),
)
def change_unit(unit: _Unit, body: Annotated[UnitPatch, Body()]) -> UnitOut:
    """Changes the unit's item, which overrides tags and settings, and records the caller and the change. A repeated
    request changes nothing. Accepts a unit that is still unknown, because its group may be created later. Refuses the
    name of a group that belongs to another unit, because the change would not affect the group; but values that
    somebody has set under such a name can be removed.

    Costs as much as GET /groups/{unit}, one call to Auto Scaling, three items and a transaction. Two of the items and
    the transaction are repeated up to five times when other callers change the unit concurrently. The name of a group
    costs GET once more, and a unit whose item names no owner the calls for its groups.
    """
    name, event = _unit(unit), router.current_event.raw_event
    owner = services.units().owner(name)
    removes = bool(body.changes) and all(value is None for value in body.changes.values()) and not body.put_back
    if owner and owner != name and not removes and not services.units().view(name, environment.now()).groups:
        raise BadRequestError(f"{name!r} is a group of unit {owner!r}: change /groups/{unit_to_url(owner)}")
    # An ``until`` alone also ends an opt-out: it may be past only in a request that sets opt_out to false or null.
    opting_out = body.opt_out or "opt_out" not in body.model_fields_set
    if opting_out and body.until is not None and body.until < (today := _today(body.calendar)).isoformat():
        raise CodedError(
            400,
            ErrorCode.OPT_OUT_OVER,
            f"body.until: is {body.until!r}, must be {today} or later: an opt-out that has ended protects nothing; "
            "omit until for no end",
        )
    try:
        responsible = services.units().responsible(name, environment.now())
        services.editor().change_policy(name, body.changes, body.put_back, body.version, author_of(event), responsible)
    except ConflictError as conflict:
        raise ServiceError(409, str(conflict)) from None
    return _unit_out(services.units().view(name, environment.now()))


def _unit_out(view: UnitView) -> UnitOut:
    names, units = view.policy.hypothesis.alarms, services.units()
    missing = missing_alarms(quick_client("cloudwatch"), names) if names else []
    fitness = None
    if units.settings.inside_instances:
        fitness = fitness_of(quick_client("ec2"), quick_client("ssm"), units.state, view.groups)
    return UnitOut.from_view(view, missing, fitness)


def _today(calendar: str | None) -> date:
    """Returns the local day on a calendar; the earliest of all calendars for a unit whose calendar is not given."""
    calendars, now = environment.settings().calendars, environment.now()
    return min(one.at(now).day for name, one in calendars.items() if calendar in (None, name))


def _unit(segment: str) -> str:
    unit = unit_from_url(segment)
    if unit is None:
        raise BadRequestError(
            f"unit {segment[:80]!r} is not spelled as in GET /groups: percent-encode it, with ~ for %"
        )
    if not is_unit(unit):
        raise BadRequestError(f"a unit's name must have 1 to {LONGEST_UNIT} characters, and no control characters")
    return unit
