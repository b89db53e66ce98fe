"""The REST API of the original Chaos Monkey, for clients that exist: ``GET`` and ``POST /simianarmy/api/v1/chaos``."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from aws_lambda_powertools.event_handler import Response, content_types
from aws_lambda_powertools.event_handler.exceptions import BadRequestError, ServiceError
from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import BaseModel, Field, ValidationError

from troop import wiring
from troop.api.errors import answers
from troop.api.requests import LARGEST_BODY, caller_of, received_at
from troop.api.terminations import LONGEST_KEY
from troop.aws.clients import client
from troop.aws.event_queries import EventFilter
from troop.chaos.events import Event, Status
from troop.errors import MissingGroupError
from troop.flows.on_demand import NotAllowedError, OtherGroupError, RefusedError

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

PATH = "/simianarmy/api/v1/chaos"
MOST = 1000
"""Events that a listing examines, the newest first."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_TERMINATIONS = frozenset(
    {Status.CLAIMED, Status.TERMINATED, Status.RECOVERED, Status.UNRECOVERED, Status.GROUP_DELETED}
)
"""A leashed record, and a claim that terminated nothing, are no terminations."""

_ASLEEP = frozenset({"leashed", "halted", "switched"})


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

    @classmethod
    def of(cls, event: Event) -> ChaosEventOut:
        return cls(
            monkeyType="CHAOS",
            eventId=event.instance_id,
            eventType="CHAOS_TERMINATION",
            eventTime=(event.at - _EPOCH) // timedelta(milliseconds=1),  # cut off, as what is stored is
            region=client("dynamodb").meta.region_name,
            groupType="ASG",
            groupName=event.group,
            chaosType="ShutdownInstance",
        )


class ChaosIn(BaseModel):
    """A request as the original takes it; fields that it does not know are ignored."""

    eventType: Literal["CHAOS_TERMINATION"]
    groupType: Literal["ASG"]
    groupName: str = Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\ufffe\uffff]*$")
    chaosType: Literal["ShutdownInstance"] | None = None
    idempotencyKey: str | None = Field(
        default=None, min_length=1, max_length=LONGEST_KEY, pattern=r"^[A-Za-z0-9._:-]+$"
    )


@router.get(
    PATH,
    operation_id="list_chaos_events",
    summary="Terminations as the original Chaos Monkey told them, newest first",
    responses=answers("The events", 400),
)
def list_chaos_events(
    since: Annotated[
        str | None, Query(description="From then on, in milliseconds since 1970; the last 24 hours if left out")
    ] = None,
) -> list[ChaosEventOut]:
    """Every other parameter is a filter: an event's field of that name must equal it. Examines the newest 1000 events
    of the time asked for, in at most 4 queries.
    """
    page = wiring.event_queries().page(EventFilter(since=_since(since)), MOST)
    filters = {k: v for k, v in (router.current_event.query_string_parameters or {}).items() if k != "since"}
    found = [ChaosEventOut.of(event) for event in page.events if event.status in _TERMINATIONS]
    return [event for event in found if all(_equals(event, name, value) for name, value in filters.items())]


def _equals(event: ChaosEventOut, name: str, wanted: str) -> bool:
    return name in ChaosEventOut.model_fields and str(getattr(event, name)) == wanted


def _since(text: str | None) -> datetime:
    now: datetime = wiring.now()
    if text is None:
        return now - timedelta(hours=24)
    try:
        if not (text.isascii() and text.isdigit() and len(text) <= 16):
            raise ValueError
        return _EPOCH + timedelta(milliseconds=int(text))
    except (ValueError, OverflowError):
        raise BadRequestError(f"since is {text[:40]!r}: give milliseconds since 1970, such as 1795219200000") from None


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
    ``groupName`` and, if wanted, ``chaosType`` (ShutdownInstance) and ``idempotencyKey`` (or the header
    Idempotency-Key); other fields are ignored. Without a key, the same body from the same caller within a minute counts
    once. Does, and costs, what POST /terminations does, and one or two items more.
    """
    raw = _body()
    try:
        wanted = ChaosIn.model_validate(raw | ({"idempotencyKey": header} if (header := _key_header()) else {}))
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in error.errors()]
        raise BadRequestError("; ".join(problems)) from None
    try:
        received = received_at(router.current_event.raw_event, wiring.now())
        asked = wiring.on_demand().ask(wanted.groupName, wanted.idempotencyKey or _key_of(raw), received)
    except NotAllowedError as error:
        raise ServiceError(403, str(error)) from None
    except MissingGroupError as error:
        raise ServiceError(404, str(error)) from None
    except OtherGroupError as error:
        raise BadRequestError(str(error)) from None
    except RefusedError as error:
        raise ServiceError(410 if error.none_left else 500 if error.reason in _ASLEEP else 403, str(error)) from None
    body = wanted.model_dump(exclude={"idempotencyKey"}, exclude_none=True) | ChaosEventOut.of(asked.event).model_dump()
    return Response(status_code=200, content_type=content_types.APPLICATION_JSON, body=body)


def _body() -> dict[str, Any]:
    text = router.current_event.decoded_body or ""
    try:
        raw = json.loads(text) if len(text) <= LARGEST_BODY else None
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict):
        raise BadRequestError("the body must be one JSON object with eventType, groupType and groupName")
    return raw


def _key_header() -> str | None:
    headers = {name.lower(): value for name, value in (router.current_event.headers or {}).items()}
    return headers.get("idempotency-key")


def _key_of(raw: dict[str, Any]) -> str:
    caller = caller_of(router.current_event.raw_event)
    digest = hashlib.sha256(json.dumps([caller, raw], sort_keys=True).encode()).hexdigest()
    return wiring.repeats().key_of(digest, wiring.now())
