"""Serves the REST API of the original Chaos Monkey for existing clients: ``GET`` and ``POST
/simianarmy/api/v1/chaos``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal

from aws_lambda_powertools.event_handler import Response, content_types
from aws_lambda_powertools.event_handler.exceptions import BadRequestError, ServiceError
from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from troop.chaos.aws.event_walk import Termination
from troop.chaos.claim_rules import abandon_reason
from troop.chaos.events import AbandonReason, Event
from troop.chaos.flows.listing import listing
from troop.chaos.flows.on_demand import NotAllowedError, OtherGroupError, RefusedError
from troop.chaos.wiring import services, tables
from troop.shared.api.errors import answers
from troop.shared.api.models import LONGEST_KEY
from troop.shared.api.requests import BadBodyError, parsed_body, principal_of, received_at
from troop.shared.aws.clients import client
from troop.shared.errors import MissingGroupError
from troop.shared.wiring import environment

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

PATH = "/simianarmy/api/v1/chaos"
COMPLETE_AFTER = "Troop-Complete-After"
"""The header of a listing that had to stop: terminations at and before that moment can be missing."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_MILLISECONDS = re.compile("[+-]?[0-9]+")
_ASLEEP = frozenset({"leashed", "halted", "switched"})
_STATUS = {AbandonReason.SWITCHED_OFF: 500, AbandonReason.GONE: 410, AbandonReason.REFUSED: 403}
"""The status for a request whose event is abandoned."""


class ChaosEventOut(BaseModel):
    """A termination in the format of the original."""

    monkeyType: str
    eventId: str = Field(description="The id of the instance")
    eventType: str
    eventTime: int = Field(description="When it was claimed, in milliseconds since 1970 in UTC")
    region: str
    groupType: str
    groupName: str
    chaosType: str


def _event_document(event: Event | Termination) -> dict[str, Any]:
    """Returns the fields of a :class:`ChaosEventOut` without pydantic, because there can be very many."""
    return _SAME | {
        "eventId": event.instance_id,
        "eventTime": _milliseconds(event.at),
        "region": client("dynamodb").meta.region_name,
        "groupName": event.group,
    }


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)  # truncated, like stored moments


_SAME = {"monkeyType": "CHAOS", "eventType": "CHAOS_TERMINATION", "groupType": "ASG", "chaosType": "ShutdownInstance"}
_ATTRIBUTES = {"groupName": "group", "eventId": "instance_id"}
"""Filters that DynamoDB can apply, and the table's names for them."""


_CHAOS_TYPE: Literal["ShutdownInstance"] = "ShutdownInstance"
_ECHOED = ("eventType", "groupType", "groupName")


def _chaos_type(value: Any) -> Any:
    """Reads a strategy as the original does: in any case, with a default for an empty one."""
    if value is None or value == "":
        return _CHAOS_TYPE
    return _CHAOS_TYPE if isinstance(value, str) and value.lower() == _CHAOS_TYPE.lower() else value


class ChaosIn(BaseModel):
    """A request as the original accepts it; unknown fields are ignored."""

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
            "description": "Present only if the listing had to stop: a moment, in milliseconds since 1970. "
            "Events at and before it can be missing; GET /events lists all of them, page by page",
            "schema": {"type": "string"},
        }
    },
}


@router.get(
    PATH,
    operation_id="list_chaos_events",
    summary="Terminations in the format of the original Chaos Monkey, newest first",
    responses=answers("", 400) | {200: _LISTED},
)
def list_chaos_events(
    since: Annotated[
        str | None, Query(description="Start of the listing, in milliseconds since 1970; the last 24 hours if omitted")
    ] = None,
) -> Response[Any]:
    """Lists the terminations since a moment. Every other parameter is a filter: the event's field of that name must
    equal it. Reads every event since then, 1 MB (some 1,700) a query. Stops after 15 seconds or 5 MB of answer, and
    then sets a header.
    """
    moment = _since(since)
    filters = {k: v for k, v in (router.current_event.query_string_parameters or {}).items() if k != "since"}
    filters_by_attribute = {_ATTRIBUTES[name]: value for name, value in filters.items() if name in _ATTRIBUTES}
    # No field is empty, and an unknown field matches nothing: no read is needed to know that.
    none = moment is _NEVER or not all(name in ChaosEventOut.model_fields and value for name, value in filters.items())
    stretches = () if none else tables.event_walk().since(moment, filters_by_attribute)

    def tell(termination: Termination) -> str | None:
        document = _event_document(termination)
        return json.dumps(document) if all(str(document[name]) == value for name, value in filters.items()) else None

    page = listing(stretches, tell, environment.seconds)
    headers = {COMPLETE_AFTER: str(_milliseconds(page.stopped_at))} if page.stopped_at else {}
    return Response(status_code=200, content_type=content_types.APPLICATION_JSON, body=page.text, headers=headers)


_NEVER = datetime.max.replace(tzinfo=UTC)


def _since(text: str | None) -> datetime | None:
    """Returns the first requested moment; None for all events, ``_NEVER`` if no event can be that late."""
    if text is None:
        now: datetime = environment.now()
        return now - timedelta(hours=24)
    if not _MILLISECONDS.fullmatch(text):
        raise BadRequestError(f"since is {text[:40]!r}: use milliseconds since 1970, such as 1795219200000")
    stamp = float(text)  # any length; exact for whole milliseconds in any sensible range
    if stamp <= 0:
        return None
    return _EPOCH + timedelta(milliseconds=int(stamp)) if stamp < _LATEST else _NEVER


@router.post(
    PATH,
    operation_id="terminate_as_chaos_monkey",
    summary="Terminate an instance of a group now, with a request of the original Chaos Monkey",
    responses=answers("Claimed: the request's and the event's fields", 400, 404, 410)
    | {
        403: {"description": "IAM, the setting troop:on_demand, the group's policy or a cap does not allow it"},
        500: {"description": "Chaos is leashed or halted"},
    },
)
def terminate_as_chaos_monkey() -> Response[Any]:
    """Terminates an instance of a group. The body is a JSON object of any content type, with ``eventType``
    (CHAOS_TERMINATION), ``groupType`` (ASG) and ``groupName``. Optional are ``chaosType`` (ShutdownInstance, in any
    case, or empty) and ``idempotencyKey`` (or the header Idempotency-Key). Other fields are ignored.

    Without a key every request is a new one, as in the original. Only the same body from the same role or user within
    four seconds counts once: it is the retry of a request whose connection broke. A key terminates once, however often
    it is sent. A request whose event is abandoned answers with an error that states why; without a key, the request is
    first repeated once with a new event. Errors repeat the request's fields.

    Does and costs the same as POST /terminations, and one or two items more; a repeated request costs twice that.
    """
    raw = _body()
    try:
        body = _terminated(raw)
    except (ServiceError, BadRequestError) as error:
        body = _echo(raw) | {"statusCode": error.status_code, "message": error.msg}
        return Response(status_code=error.status_code, content_type=content_types.APPLICATION_JSON, body=body)
    return Response(status_code=200, content_type=content_types.APPLICATION_JSON, body=body)


def _echo(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that the original repeats in its errors: text unchanged, null for anything else."""
    echoed = {name: raw.get(name) if isinstance(raw.get(name), str) else None for name in _ECHOED}
    return echoed | {"chaosType": _chaos_type(raw.get("chaosType"))}


def _terminated(raw: dict[str, Any]) -> dict[str, Any]:
    """Returns the answer to a request that led to a termination.

    Raises:
        ServiceError: it did not, with the original's status.
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
    if cause := abandon_reason(event):
        raise ServiceError(_STATUS[cause], f"{event.event_id} is {event.status}: {event.detail}")
    return request.model_dump(exclude={"idempotencyKey"}) | _event_document(event)


def _terminate(request: ChaosIn, raw: dict[str, Any], received: datetime) -> Event:
    """Returns the event of a request."""
    ask = partial(services.on_demand().request, terminates=True)
    if request.idempotencyKey:
        return ask(request.groupName, request.idempotencyKey, received).event
    digest, dedup = _digest_of(raw), services.request_dedup()
    key = dedup.key_of(digest, environment.now())
    event = ask(request.groupName, key, received).event
    if not abandon_reason(event):
        return event
    return ask(request.groupName, dedup.replacement_key(digest, key, environment.now()), received).event


def _body() -> dict[str, Any]:
    try:
        raw = parsed_body(router.current_event.decoded_body or "")
    except BadBodyError:
        raw = None
    if not isinstance(raw, dict):
        raise BadRequestError("the body must be one JSON object with eventType, groupType and groupName")
    return raw


def _key_header() -> str | None:
    headers = {name.lower(): value for name, value in (router.current_event.headers or {}).items()}
    return headers.get("idempotency-key")


def _digest_of(raw: dict[str, Any]) -> str:
    caller = principal_of(router.current_event.raw_event)
    text = json.dumps([caller, raw], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
