"""The REST API of the original Chaos Monkey, for clients that exist: ``GET`` and ``POST /simianarmy/api/v1/chaos``."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from aws_lambda_powertools.event_handler import Response, content_types
from aws_lambda_powertools.event_handler.exceptions import BadRequestError, ServiceError
from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from troop.api.errors import answers
from troop.api.requests import LARGEST_BODY, principal_of, received_at
from troop.api.terminations import LONGEST_KEY
from troop.aws.chaos.event_walk import Termination
from troop.aws.clients import client
from troop.chaos.claim_rules import Nothing, came_to_nothing
from troop.chaos.events import Event
from troop.errors import MissingGroupError
from troop.flows.chaos.on_demand import NotAllowedError, OtherGroupError, RefusedError
from troop.flows.listing import listing
from troop.wiring import chaos_api, chaos_tables, environment

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

PATH = "/simianarmy/api/v1/chaos"
COMPLETE_AFTER = "Troop-Complete-After"
"""A listing's header, when it had to stop: of that moment and before, terminations can be missing."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_MILLISECONDS = re.compile("[+-]?[0-9]+")
_ASLEEP = frozenset({"leashed", "halted", "switched"})
_STATUS = {Nothing.ASLEEP: 500, Nothing.GONE: 410, Nothing.REFUSED: 403}
"""Of a request whose event has come to nothing."""


class ChaosEventOut(BaseModel):
    """A termination, as the original tells it."""

    monkeyType: str
    eventId: str = Field(description="The instance")
    eventType: str
    eventTime: int = Field(description="When it was claimed, in milliseconds since 1970 in UTC")
    region: str
    groupType: str
    groupName: str
    chaosType: str


def _event_document(event: Event | Termination) -> dict[str, Any]:
    """The fields of a :class:`ChaosEventOut`, without pydantic: there can be very many."""
    return _SAME | {
        "eventId": event.instance_id,
        "eventTime": _milliseconds(event.at),
        "region": client("dynamodb").meta.region_name,
        "groupName": event.group,
    }


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)  # cut off, as what is stored is


_SAME = {"monkeyType": "CHAOS", "eventType": "CHAOS_TERMINATION", "groupType": "ASG", "chaosType": "ShutdownInstance"}
_ATTRIBUTES = {"groupName": "group", "eventId": "instance_id"}
"""Filters that DynamoDB can take, and what the table calls them."""


_CHAOS_TYPE: Literal["ShutdownInstance"] = "ShutdownInstance"
_ECHOED = ("eventType", "groupType", "groupName")


def _chaos_type(value: Any) -> Any:
    """A strategy as the original reads it: in any case, and its default when it is empty."""
    if value is None or value == "":
        return _CHAOS_TYPE
    return _CHAOS_TYPE if isinstance(value, str) and value.lower() == _CHAOS_TYPE.lower() else value


class ChaosIn(BaseModel):
    """A request as the original takes it; fields that it does not know are ignored."""

    eventType: Literal["CHAOS_TERMINATION"]
    groupType: Literal["ASG"]
    groupName: str = Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\ufffe\uffff]*$")
    chaosType: Annotated[Literal["ShutdownInstance"], BeforeValidator(_chaos_type)] = _CHAOS_TYPE
    idempotencyKey: str | None = Field(
        default=None, min_length=1, max_length=LONGEST_KEY, pattern=r"^[A-Za-z0-9._:-]+$"
    )


_LISTED = {
    "description": "The events",
    "content": {"application/json": {"model": list[ChaosEventOut]}},
    "headers": {
        COMPLETE_AFTER: {
            "description": "Only if the listing had to stop: a moment, in milliseconds since 1970. Of it and of "
            "before, events can be missing; GET /events has them all, page by page",
            "schema": {"type": "string"},
        }
    },
}


@router.get(
    PATH,
    operation_id="list_chaos_events",
    summary="Terminations as the original Chaos Monkey told them, newest first",
    responses=answers("", 400) | {200: _LISTED},
)
def list_chaos_events(
    since: Annotated[
        str | None, Query(description="From then on, in milliseconds since 1970; the last 24 hours if left out")
    ] = None,
) -> Response[Any]:
    """Every other parameter is a filter: an event's field of that name must equal it. Looks at every event since then,
    1 MB (some 1,700) a query; stops after 15 seconds, or when the answer has 5 MB, and then says so in a header.
    """
    moment = _since(since)
    filters = {k: v for k, v in (router.current_event.query_string_parameters or {}).items() if k != "since"}
    filters_by_attribute = {_ATTRIBUTES[name]: value for name, value in filters.items() if name in _ATTRIBUTES}
    # No field is empty, and what is no field equals nothing: that is known without a look.
    none = moment is _NEVER or not all(name in ChaosEventOut.model_fields and value for name, value in filters.items())
    stretches = () if none else chaos_tables.event_walk().since(moment, filters_by_attribute)

    def tell(termination: Termination) -> str | None:
        document = _event_document(termination)
        return json.dumps(document) if all(str(document[name]) == value for name, value in filters.items()) else None

    page = listing(stretches, tell, environment.seconds)
    headers = {COMPLETE_AFTER: str(_milliseconds(page.stopped_at))} if page.stopped_at else {}
    return Response(status_code=200, content_type=content_types.APPLICATION_JSON, body=page.text, headers=headers)


_NEVER = datetime.max.replace(tzinfo=UTC)


def _since(text: str | None) -> datetime | None:
    """The first moment that is asked for; None for all there are, ``_NEVER`` when nothing can be that late."""
    if text is None:
        now: datetime = environment.now()
        return now - timedelta(hours=24)
    if not _MILLISECONDS.fullmatch(text):
        raise BadRequestError(f"since is {text[:40]!r}: give milliseconds since 1970, such as 1795219200000")
    stamp = float(text)  # of any length; whole milliseconds are exact for longer than anybody will ask
    if stamp <= 0:
        return None
    return _EPOCH + timedelta(milliseconds=int(stamp)) if stamp < _LATEST else _NEVER


@router.post(
    PATH,
    operation_id="terminate_as_chaos_monkey",
    summary="Terminate an instance of a group now, asked for as of the original Chaos Monkey",
    responses=answers("Claimed: the request's and the event's fields", 400, 404, 410)
    | {
        403: {"description": "IAM, the setting troop:on_demand, the group's policy or a cap does not allow it"},
        500: {"description": "Chaos is leashed or halted"},
    },
)
def terminate_as_chaos_monkey() -> Response[Any]:
    """The body is a JSON object, of whatever content type: ``eventType`` (CHAOS_TERMINATION), ``groupType`` (ASG),
    ``groupName`` and, if wanted, ``chaosType`` (ShutdownInstance, in any case, or empty) and ``idempotencyKey`` (or the
    header Idempotency-Key); other fields are ignored. Without a key every request is one of its own, as in the
    original; only the same body from the same role or user within four seconds counts once, as the repetition of a
    request whose connection broke. With a key it terminates once, however often it is sent. A request whose event has
    come to nothing is an error that says why; without a key the next one is made anew. Errors repeat the request's
    fields. Does, and costs, what POST /terminations does, and one or two items more; anew, twice that.
    """
    raw = _body()
    try:
        body = _terminated(raw)
    except (ServiceError, BadRequestError) as error:
        body = _echo(raw) | {"statusCode": error.status_code, "message": error.msg}
        return Response(status_code=error.status_code, content_type=content_types.APPLICATION_JSON, body=body)
    return Response(status_code=200, content_type=content_types.APPLICATION_JSON, body=body)


def _echo(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request that the original repeats in its errors: text as it came, null for anything else."""
    echoed = {name: raw.get(name) if isinstance(raw.get(name), str) else None for name in _ECHOED}
    return echoed | {"chaosType": _chaos_type(raw.get("chaosType"))}


def _terminated(raw: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request that has led to a termination.

    Raises:
        ServiceError: it has not; with the original's status.
    """
    try:
        request = ChaosIn.model_validate(raw | ({"idempotencyKey": header} if (header := _key_header()) else {}))
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in error.errors()]
        raise BadRequestError("; ".join(problems)) from None
    try:
        received = received_at(router.current_event.raw_event, environment.now())
        event = _terminate(request, raw, received)
    except NotAllowedError as error:
        raise ServiceError(403, str(error)) from None
    except MissingGroupError as error:
        raise ServiceError(404, str(error)) from None
    except OtherGroupError as error:
        raise BadRequestError(str(error)) from None
    except RefusedError as error:
        raise ServiceError(410 if error.none_left else 500 if error.reason in _ASLEEP else 403, str(error)) from None
    if nothing := came_to_nothing(event):
        raise ServiceError(_STATUS[nothing], f"{event.event_id} is {event.status}: {event.detail}")
    return request.model_dump(exclude={"idempotencyKey"}) | _event_document(event)


def _terminate(request: ChaosIn, raw: dict[str, Any], received: datetime) -> Event:
    """The event of a request."""
    ask = chaos_api.on_demand().ask
    if request.idempotencyKey:
        return ask(request.groupName, request.idempotencyKey, received).event
    digest = _digest_of(raw)
    key = chaos_api.repeats().key_of(digest, environment.now())
    event = ask(request.groupName, key, received).event
    if not came_to_nothing(event):
        return event
    return ask(request.groupName, chaos_api.repeats().another(digest, key, environment.now()), received).event


def _body() -> dict[str, Any]:
    text = router.current_event.decoded_body or ""
    try:
        raw = json.loads(text) if len(text) <= LARGEST_BODY else None
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict):
        raise _no_object()
    return raw


def _no_object() -> BadRequestError:
    return BadRequestError("the body must be one JSON object with eventType, groupType and groupName")


def _key_header() -> str | None:
    headers = {name.lower(): value for name, value in (router.current_event.headers or {}).items()}
    return headers.get("idempotency-key")


def _digest_of(raw: dict[str, Any]) -> str:
    caller = principal_of(router.current_event.raw_event)
    try:
        text = json.dumps([caller, raw], sort_keys=True)
    except RecursionError:  # nested just less deep than what could not be read
        raise _no_object() from None
    return hashlib.sha256(text.encode()).hexdigest()
