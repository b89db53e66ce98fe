"""Serves the route of terminations on demand: ``POST /terminations``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from aws_lambda_powertools.event_handler import Response, content_types
from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from troop.chaos.api.event_models import EventOut
from troop.chaos.api.unit_models import METHODS
from troop.chaos.events import to_url
from troop.chaos.flows.on_demand import NotAllowedError, OtherGroupError, RefusedError
from troop.chaos.units import LONGEST_UNIT
from troop.chaos.wiring import services
from troop.shared.api.errors import ErrorOut, answers, message_response
from troop.shared.api.models import KEY_PATTERN, LONGEST_KEY, In, Moment, Out
from troop.shared.api.requests import caller_of, received_at
from troop.shared.aws.permits import run_of, schedule_of
from troop.shared.choice import LONGEST, parse_choice
from troop.shared.errors import MissingGroupError
from troop.shared.values import BadValue
from troop.shared.wiring import environment
from troop.shared.wiring.permissions import permits

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

_MOST_UNITS = 1000
"""More than the faults of any benchmark."""


def _one_fault(value: Any) -> str | None:
    try:
        return None if value is None else parse_choice(value).text
    except BadValue as error:
        ctx = {"value": repr(value)[:80], "allowed": str(error)}
        raise PydanticCustomError("policy_value", "is {value}, must be {allowed}", ctx) from None


class TerminationIn(In):
    """A termination, or a lasting fault, to request."""

    group: str = Field(
        min_length=1,
        max_length=255,
        pattern=r"^[^\x00-\x1f\ufffe\uffff]*$",
        description="The name of an Auto Scaling group",
    )
    idempotency_key: str = Field(
        min_length=1,
        max_length=LONGEST_KEY,
        pattern=KEY_PATTERN,
        description="Idempotency key, chosen by the caller: repeating it hits nothing more",
    )
    method: Annotated[str | None, BeforeValidator(_one_fault)] = Field(
        None,
        max_length=LONGEST,
        description="One fault, with its parameters as in latency delay=200 seconds=60. If omitted, the roll of the "
        f"day chooses one of the unit's policy. {METHODS}",
    )


_Key = Annotated[str, Field(min_length=1, max_length=LONGEST_KEY, pattern=KEY_PATTERN)]


class PermitIn(In):
    """A permit for a benchmark that hits units while it loads them. It has either the key of a run, or the name of a
    schedule.
    """

    benchmark: _Key | None = Field(None, description="The key of the run that the caller is about to start")
    schedule: _Key | None = Field(None, description="The name of the schedule that the caller is about to create")
    units: list[Annotated[str, Field(min_length=1, max_length=LONGEST_UNIT)]] = Field(
        min_length=1, max_length=_MOST_UNITS, description="The units that it hits"
    )

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.benchmark is None) == (self.schedule is None):
            raise PydanticCustomError("policy_value", "must have either benchmark or schedule")
        return self


class PermitOut(Out):
    """A permit of the caller."""

    benchmark: str | None = None
    schedule: str | None = None
    units: list[str]
    until: Moment = Field(description="The benchmark must be started or scheduled by then")


_TERMINATION, _PERMIT = "a termination", "a permit"


def _kind(body: Any) -> str:
    return (
        _PERMIT
        if isinstance(body, PermitIn) or (isinstance(body, Mapping) and {"benchmark", "schedule"} & body.keys())
        else _TERMINATION
    )


_Requested = Annotated[
    Annotated[TerminationIn, Tag(_TERMINATION)] | Annotated[PermitIn, Tag(_PERMIT)], Discriminator(_kind)
]


def without_kind(place: Sequence[str | int]) -> list[str | int]:
    """Returns the place of a problem in a request without the kind of the body, which is no part of the body."""
    return [part for part in place if part not in (_TERMINATION, _PERMIT)]


class RefusedOut(ErrorOut):
    """A refusal by a guard, or by the claim."""

    reason: str | None = Field(default=None, description="The reason, as in decisions, such as leashed or unhealthy")
    desired: int | None = Field(default=None, description="Desired capacity of the group, if a guard refuses")


_EVENT = {"application/json": {"model": EventOut}}
_REFUSED = {"application/json": {"model": RefusedOut}}
_ANSWERS = answers("", 400, 404) | {
    200: {"description": "The event that this key has already caused", "content": _EVENT},
    201: {"description": "The permit", "content": {"application/json": {"model": PermitOut}}},
    202: {"description": "Claimed; the event shows the outcome", "content": _EVENT},
    403: {
        "description": "IAM does not allow it, or the setting troop:on_demand is false; of a permit, troop:under_load",
        "content": {},
    },
    409: {"description": "A guard refuses it: halted, leashed, protected, too small, a cap, ...", "content": _REFUSED},
    410: {"description": "The group has no instance that can be terminated", "content": _REFUSED},
}  # fmt: skip


@router.post("/terminations", operation_id="terminate", summary="Hit an instance of a group now", responses=_ANSWERS)
def terminate(body: Annotated[_Requested, Body()]) -> Response[Any]:
    """Terminates an instance of a group, or injects a lasting fault into one. Ignores probability, calendar and
    freezes; obeys halt, leash, opt-out, protection, minimum size, health, alarms and caps, and for a lasting fault the
    owner's consent. Counts as the unit's hit of the day, unless it is abandoned. When the answer arrives, the instance
    is claimed and recorded; a workflow carries out the claim and watches the group. The header Location points to the
    event. Repeating the key returns the recorded event, so a retry is safe after any failure.

    With the key of a benchmark, or the name of a schedule, and units, hits nothing: the caller permits hits on these
    units. For an hour, POST /benchmarks with this key, or POST /benchmarks/schedules with this name, accepts a file
    that hits them, from this caller only. So IAM decides here who may let benchmarks terminate.

    Finds the unit's groups in 3 calls, or lists all groups, as a tick does, if a pattern of troop:units names the
    unit. Lists all protected instances. In addition it costs 3 calls, one call for each load balancer or target group
    of the group, 8 items and a transaction; the last two are repeated up to 3 times when other callers change the
    unit. A permit costs 1 item.
    """
    if isinstance(body, PermitIn):
        return _permit(body)
    try:
        received = received_at(router.current_event.raw_event, environment.now())
        choice = parse_choice(body.method) if body.method else None
        request = services.on_demand().request(body.group, body.idempotency_key, received, choice)
    except NotAllowedError as error:
        return message_response(403, str(error))
    except MissingGroupError as error:
        return message_response(404, str(error))
    except OtherGroupError as error:
        return message_response(409, str(error))
    except RefusedError as error:
        more = {} if error.desired is None else {"desired": error.desired}
        return message_response(410 if error.none_left else 409, str(error), reason=error.reason, **more)
    return Response(
        status_code=200 if request.repeated else 202,
        content_type=content_types.APPLICATION_JSON,
        body=EventOut.from_event(request.event).model_dump(mode="json"),
        headers={"Location": f"events/{to_url(request.event.event_id)}"},
    )


def _permit(body: PermitIn) -> Response[Any]:
    settings = environment.settings()
    if not settings.under_load:
        why = "this deployment lets no benchmark hit units: its setting troop:under_load is false"
        return message_response(403, why)
    services.on_demand().settle()  # the function that benchmarks call may not read earlier tables
    caller = caller_of(router.current_event.raw_event)
    permitted = schedule_of(body.schedule) if body.schedule is not None else run_of(body.benchmark or "")
    until = permits().give(caller, permitted, body.units, environment.now())
    permit = PermitOut(benchmark=body.benchmark, schedule=body.schedule, units=sorted(set(body.units)), until=until)
    return Response(status_code=201, content_type=content_types.APPLICATION_JSON, body=permit.model_dump(mode="json"))
