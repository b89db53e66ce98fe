"""`troop terminate`: one instance of a group, now."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any
from uuid import uuid4

import typer

from cli import show
from cli.client import TroopClient
from cli.context import confirm, connection
from cli.errors import CliError, Exit
from troop.chaos.events import OPEN, Status

_POLL_SECONDS = 2.0
_OPEN = frozenset(str(status) for status in OPEN)


class Method(StrEnum):
    CRASH = "crash"
    DRAIN = "drain"


def terminate(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(help="An Auto Scaling group, by its name.")],
    method: Annotated[Method | None, typer.Option(help="By default what the unit's policy says.")] = None,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: the same one again terminates nothing more.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Annotated[bool, typer.Option(help="Until the group has recovered, or not in time.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="The event as one JSON document.")] = False,
) -> None:
    """Terminate an instance of a group now, whatever roll and calendar say. Asks first."""
    found = connection(ctx)
    confirm(f"Terminate an instance of {group} in {found.deployment} now", yes)
    key = key or str(uuid4())
    request = {"group": group, "idempotency_key": key} | ({"method": str(method)} if method else {})
    tell: Callable[[str], None] = show.note if as_json else show.say
    event, repeated = found.client.terminate(request)
    before = "already on record" if repeated else "claimed"
    tell(f"{before}: {event['instance_id']} of {event['group']} (key {key})")
    if wait:
        event = _watch(found.client, event, tell, time.sleep)
    if as_json:
        show.document(event)
    if wait and event["status"] != Status.RECOVERED:
        raise CliError(Exit.FAILED, f"{event['status']}: {event['detail'] or 'see `troop events`'}")


def _watch(
    client: TroopClient, event: Mapping[str, Any], tell: Callable[[str], None], sleep: Callable[[float], None]
) -> dict[str, Any]:
    """Follows an event to its end; says each status once."""
    said = "CLAIMED"
    while True:
        now = client.event(str(event["id"]))
        if now["status"] != said:
            said = now["status"]
            seconds = now["recovery_seconds"]
            tell(said.lower().replace("_", " ") + (f" in {seconds:.1f} s" if seconds is not None else ""))
        if said not in _OPEN:
            return now
        sleep(_POLL_SECONDS)
